"""Query lexicon: multilingual patterns of time expressions, intents and names, as data.

A pattern of a spaced script must start at a word and is matched against lower case; accents matter,
because "cuándo" asks and "cuando" does not. A Chinese or Japanese pattern matches anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from told.runtime import lazy_regex
from told.text.date_lexicon import fold_text


def _word_set(text: str) -> frozenset[str]:
    return frozenset(fold_text(word.replace("_", " ")) for word in text.split())


def _join_alternatives(words: frozenset[str] | dict[str, str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _build_meaning_table(rows: dict[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in rows.items() for word in _word_set(words)}


# Ambiguous words and the only languages in which they are times.
WORD_LANGUAGES: Final = {
    "hier": "fr",
    "morgen": "de nl",
    "manana": "es",
    "an": "fr",
    "ans": "fr",
    "tag": "de",
    "mes": "es",
    "fall": "en",
    "mayo": "es",
    "mars": "fr",
    "mar": "en",
    "mon": "en",
    "sun": "en",
    "sat": "en",
    "mai": "fr de pt",
    "ete": "fr",
    "ce": "fr",
    "fin": "fr es",
    "once": "es",
}
# Words that are times only if capitalised, or where nothing else fits.
CAPITALISED_WORDS: Final = _word_set(
    "may march mar sun sat mon tue wed thu fri jan feb apr jun jul aug sep oct nov dec"
)
ABBREVIATIONS: Final = CAPITALISED_WORDS - _word_set("may march")
GIVEN_NAMES: Final = _word_set("april may june august summer autumn winter jan mar mon")

# Prepositions of time

PREPOSITIONS: Final = _build_meaning_table(
    {
        "before": "before prior_to antes_de antes_del vor avant",
        "after": "after following nach después_de después_del après",
        "since": "since starting starting_on starting_in desde desde_el seit ab depuis à_partir_de",
        "until": "until till up_to through by bis hasta hasta_el jusqu'en jusqu'au",
    }
)
_ARTICLE: Final = "(?: (?:the|el|la|le|les|dem|den|der|die))?"
PREPOSITION_PATTERN: Final = lazy_regex(
    rf"(?<![a-z])(?P<lead>{_join_alternatives(PREPOSITIONS)}){_ARTICLE} $", re.ASCII
)
POSTPOSITIONS: Final = _build_meaning_table(
    {
        "before": "之前 以前",
        "after": "之后 以后 之後 以後",
        "since": "以来 以來 以降 から 开始 起",
        "until": "まで 为止",
    }
)
POSTPOSITION_PATTERN: Final = lazy_regex(_join_alternatives(POSTPOSITIONS))

# Contexts in which a bare name is a time

_RANGE: Final = (
    r"(?:between|from|entre|zwischen|von|vom|desde|depuis|du) .{2,40} "
    r"(?:and|to|through|until|till|y|und|et|bis|hasta|au|al|a)"
)
NAME_CONTEXT: Final = {
    unit: lazy_regex(rf"(?:^|[^a-z])(?:{words}|{_RANGE}) ?$", re.ASCII)
    for unit, words in {
        "month": """(?:in|since|until|till|during|throughout|before|after|by|between|through|
            month of|en|im|seit|bis|ab|desde|hasta|durante|depuis|entre|zwischen|mes de|mois de|
            mois d'|early|mid|late|back in)""",
        "season": """(?:in|during|over|throughout|since|until|before|after|by|im|seit|en|au|durante|
            pendant)(?: the| el| la| l'| den)?""",
        "day": "(?:on|since|until|till|by|before|after|between|am|seit|bis|desde el|hasta el|el|"
        "from|for)(?: the)?",
        "weekend": "(?:over|on|during|at|for|since|until|by|before|after|am|durante) ?(?:the|el|)",
    }.items()
    for words in [re.sub(r"\n\s*", "", words)]
}
RANGE_FROM: Final = lazy_regex(r"(?:^|[^a-z])(?:from|von|vom|du|de) $")
RANGE_TO: Final = lazy_regex(r" (?:to|through|until|till|and|bis|au|al|a|hasta) ")
YEAR_CONTEXT: Final = lazy_regex(
    r"(?:^|[^a-z])(?:in|since|until|till|during|throughout|before|after|by|between|through|early|"
    r"mid|late|from|of|en|seit|"
    rf"bis|ab|desde|hasta|durante|depuis|avant|entre|zwischen|von|summer|winter|spring|fall|"
    rf"autumn|{_RANGE}) $",
    re.ASCII,
)
# What may follow a year or month that is a time: the end, punctuation or a new clause.
_CLAUSE_WORDS: Final = """and or but to through until till with when while that which who what where
    why how did do does was were is are has have had will would should can could about for from at
    by on in as than regarding because so if then before after since i we you he she they it my our
    her his their the a an this compared including during y und et o ou oder con mit avec hice hizo
    gemacht bis hasta passiert gewesen"""
CLAUSE_BOUNDARY: Final = lazy_regex(
    rf"\s*(?:$|[^\sa-z0-9]|(?:{_join_alternatives(_word_set(_CLAUSE_WORDS))})(?![a-z]))", re.ASCII
)
# "In the last year" is twelve months up to now, "last year" is the previous calendar year.
ROLLING_WINDOW: Final = lazy_regex(r"(?<![a-z])(?:in|over|during|within|for|throughout) the $")
# Vague counts and their ranges.
VAGUE_COUNTS: Final = {
    "a few": (2, 5),
    "few": (2, 5),
    "a couple": (2, 3),
    "a couple of": (2, 3),
    "couple of": (2, 3),
}
ANCHOR_WORDS: Final = lazy_regex(
    r" (?:before|after|prior to|following|preceding|of|vor|nach|antes|despues|avant|apres)(?![a-z])"
)
# A preceding number word means that the matched number is only part of a larger one.
PARTIAL_NUMBER: Final = lazy_regex(
    r"(?:[a-z]-|\d[.,]|(?<![a-z])(?:and|und|y|et|than|over|least|most|under|hundred|thousand|"
    r"dozen|half|twenty|"
    r"thirty|forty|"
    r"fifty|sixty|seventy|eighty|ninety|mehr als|mas de|plus de|por lo menos|mindestens) )$",
    re.ASCII,
)
NOT_A_MODIFIER: Final = lazy_regex("[晚早以网線线楼地脚未后後本原起首优祖日基根成版上下]$")

# Parts, edges, ranges and tense

_NTH_OF: Final = " (?:of|in|im|del|des|de|du|d')(?: the| el)?(?: month of)? ?"
NTH_TEMPLATE: Final = f"{{nth}} {{thing}}{_NTH_OF}"
NTH_HALF_TEMPLATE: Final = f"{{nth}} half{_NTH_OF}"
WEEK_OF_TEMPLATE: Final = "(?P<thing>week|weekend) of (?:the )?"
EDGE_TEMPLATE: Final = "{edge}(?P<of>[- ](?:of|de|del|des|du|von))?[- ](?:the |el |le )?"
EDGES_WITH_OF: Final = _word_set("beginning start middle end fin")
RANGE_JOIN: Final = lazy_regex(
    r" ?(?P<join>to|through|until|till|bis|hasta|al|au|and|und|y|et|-|–|—|到|至|から) ?(?:the )?"
)
BETWEEN_JOINS: Final = _word_set("and und y et")
BETWEEN_PREFIX: Final = lazy_regex(r"(?<![a-z])(?:between|zwischen|entre)(?: the| el| le)? $")
FROM_PREFIX: Final = lazy_regex(
    r"(?<![a-z])(?:from|between|von|vom|zwischen|entre|desde|de|du)(?: the| el| le)? $"
)
_RANGE_SEPARATOR: Final = "(?: ?[-–] ?| (?:to|through|until|till|and|bis|al|au|y|und|et) )"
_NTH_DAY: Final = r"\d{1,2})(?:st|nd|rd|th|\.)?"
DAY_RANGE_TEMPLATES: Final = (
    rf"{{month}} (?P<first>{_NTH_DAY}{_RANGE_SEPARATOR}(?P<last>{_NTH_DAY}(?:,? {{year}})?",
    (
        rf"(?P<first>{_NTH_DAY}{_RANGE_SEPARATOR}(?P<last>{_NTH_DAY} (?:of |de )?{{month}}(?:,? "
        rf"(?:de |del )?{{year}})?"
    ),
)
_BEFORE_AND_AFTER: Final = {
    word: direction for word, direction in PREPOSITIONS.items() if direction in ("before", "after")
}
_OFFSET_ANCHOR: Final = f"(?:{_join_alternatives(_BEFORE_AND_AFTER)}){_ARTICLE} "
OFFSET_TEMPLATES: Final = (f"{{n}} {{thing}} {_OFFSET_ANCHOR}", f"{{thing}} {_OFFSET_ANCHOR}")
NESTED_JOIN: Final = lazy_regex(
    r",?(?: (?:in|on|of|the|en|im|am|de|del|du|des|el|la|le))* ?|[的の]?", re.ASCII
)
_AT_PREFIX: Final = ",? (?:(?:in the|at around|at|am|in der|por la|de la|um|a las) )?"
DAY_PART_TEMPLATES: Final = (f"{_AT_PREFIX}{{part}}", f"{_AT_PREFIX}{{clock}}", "{part_zh}")
RELATIVE_PART_TEMPLATE: Final = "(?:last|this) {part}"

PAST_TENSE: Final = lazy_regex(
    r"(?<![a-z])(?:did|was|were|had|happened|went|said|told|hice|hizo|fue|fui|dije|dijo|hicimos|"
    r"war|waren|habe|hat|"
    r"haben|"
    r"hatte|etait|etais|ai|avons|avez)(?![a-z])|了|过|ました|でした|した",
    re.ASCII,
)
FUTURE_TENSE: Final = lazy_regex(
    r"(?<![a-z])(?:will|going to|gonna|upcoming|planning|scheduled|due|shall|plans? for|plan to|"
    r"wird|werde|werden|"
    r"voy a|vamos a|vas a|vais|allons)(?![a-z])|'ll |将|会|打算|计划|予定|つもり",
    re.ASCII,
)
PROGRESSIVE_TENSE: Final = lazy_regex(
    r"(?<![a-z])(?:am|are|is) (?:[a-z]+ ){1,3}?[a-z]{2,}ing(?![a-z])", re.ASCII
)
HABITUAL_PATTERN: Final = lazy_regex(
    r"(?<![a-z])(?:every|each|usually|always|typically|normally|often|generally|cada|siempre|"
    r"jeden|immer|chaque|"
    r"toujours|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days|mornings|afternoons|evenings|nights|weekends|"
    r"montags|sonntags)"
    r"(?![a-z])|每|毎",
    re.ASCII,
)
DATE_OPENERS: Final = _word_set(
    "hace vor il in dentro en dans ultimos ultimas year ano jahr week weekend the 过 最 過"
)


@dataclass(frozen=True, slots=True)
class QueryCue:
    """Patterns of one cue, for scripts with and without spaces."""

    spaced: re.Pattern[str]
    unspaced: re.Pattern[str]

    def matches(self, text: str) -> bool:
        """Return True if a lower-case text shows the cue."""
        return bool(
            self.spaced.search(text) or (_may_be_unspaced(text) and self.unspaced.search(text))
        )


def _build_cue(
    *rows: str, compile_pattern: Callable[[str], re.Pattern[str]] = re.compile
) -> QueryCue:
    """Build a cue; pass `compile_pattern=lazy_regex` for rarely used ones."""
    rows = tuple(re.sub(r"\n\s*", "", row) for row in rows)
    unspaced = [row for row in rows if _is_unspaced(row)]
    spaced = "|".join(row for row in rows if row not in unspaced)
    return QueryCue(
        compile_pattern(rf"\b(?<!['’])(?:{spaced})(?!\w)"), lazy_regex("|".join(unspaced))
    )


def _not_preceded_by(words: str, phrase: str) -> str:
    """Match a phrase not preceded by some words; the phrase first, as it is rare."""
    return phrase + "".join(f"(?<!{word} {phrase})" for word in words.split())


def _is_unspaced(row: str) -> bool:
    return not row.isascii() and any("\u3040" <= char <= "\u9fff" for char in row)


def _may_be_unspaced(text: str) -> bool:
    return not text.isascii() and max(text) >= "\u3040"


# When

_TIME_NOUN: Final = "(?:date|day|month|year|time|week|weekend|weekday|season|decade|hour)"
_AUXILIARY: Final = (
    "(?:did|do|does|is|are|was|were|am|will|would|have|has|had|should|shall|can|could|'s|’s|"
    "exactly)"
)
WHEN_CUE: Final = _build_cue(
    rf"when(?: |(?=['’])){_AUXILIARY}",
    r"(?:since|until|till|by|from) when",
    r"(?:know|remember|recall|tell me|remind me|wonder(?:ing)?|say|said|sure|check|find out|and|"
    r"or|exactly|of) when"
    r"(?= (?!you |asked)\w)",
    r"when\s*[?.!]*$",
    r"how long(?! (?:is|are|was|were) (?:the|my|her|his|their) (?:\w+ )?(?:bridge|river|table|"
    r"rope|hair))",
    r"how many (?:more )?(?:days|weeks|months|years|hours|minutes|nights|weekends)",
    r"how (?:recently|soon)",
    rf"(?:what|which)(?:'s|’s| is| was)?(?: the| exact| specific)* {_TIME_NOUN}(?![-\w])(?! "
    rf"(?:job|trip|planner))",
    r"(?:date|timeline|duration) of",
    r"cuándo",
    r"cuando(?= [^,]*\?|$)(?<!\w cuando)",
    r"(?:hace|por|durante) cu[aá]nto(?: tiempo)?",
    r"cu[aá]nto tiempo",
    r"cu[aá]nt[oa]s (?:d[ií]as|semanas|meses|años|horas)",
    r"qu[eé] (?:d[ií]a|fecha|mes|año|hora|semana)",
    r"wann",
    r"wie lange",
    r"wie viele (?:tage|wochen|monate|jahre|stunden)",
    r"(?:an |in )?welche[mnrs]? (?:tag|datum|monat|jahr|woche|uhrzeit)",
    r"wie viel uhr",
    r"(?:depuis |jusqu'à )?quand(?= (?:est-ce|ai|as|a|avons|avez|ont|suis|es|est|était|dois|vais|"
    r"va)\b|-)",
    r"depuis quand",
    r"quand [^,]*\?",
    r"combien de (?:temps|jours|semaines|mois|ans|années|heures)",
    r"(?:à )?quelle? (?:jour|date|mois|année|heure|semaine)",
    r"quando",
    r"wanneer",
    r"когда",
    r"언제",
    r"什么时候|什麼時候|啥时候|何时|何時|几月|几号|幾號|幾月|哪[一]?[年天]|哪个月|多久|多长时间|多長時間|几点|幾點|"
    r"几天|哪一?天",
    r"いつ(?:から|まで|頃)|いつ(?![もか])|何[時日月年](?!間前)|何曜日|どのくらいの(?:期間|時間)|どれくらい前",
)

# Replies of the assistant

_SAID_VERBS: Final = """(?:recommended|told|suggested|said|mentioned|advised|gave|given|provided|
    listed|explained|described|shared|showed|shown|proposed|wrote|written|named|created|generated|
    came up with|helped|offered|pointed out|promised|quoted|referred|taught|warned|answered|replied|
    outlined|summari[sz]ed|drafted|cited|made|used|sent|talked about|discussed)"""
_SAY_VERBS: Final = """(?:recommend|tell|suggest|say|mention|advise|give|provide|list|explain|
    describe|share|show|propose|write|name|create|generate|come up with|offer|point out|promise|
    quote|refer|teach|warn|answer|reply|outline|draft|cite)"""
_CONVERSATION_NOUN: Final = "(?:conversation|chat|discussion|session|talk|exchange)s?"
_ADVICE_NOUN: Final = (
    "(?:advice|recommendations?|suggestions?|answers?|reply|replies|response|responses|"
    "explanation|proposal)"
)
REPLY_CUE: Final = _build_cue(
    rf"you(?:'ve|’ve|'d|’d| have| had)?(?: (?:already|also|once|just|previously|originally|"
    rf"initially|earlier|\w+ly))*"
    rf" {_SAID_VERBS}",
    rf"(?:did|didn't|didn’t|had|have|haven't) you(?: (?:already|also|ever|just|previously|"
    rf"originally|\w+ly))*"
    rf" (?:{_SAY_VERBS}|{_SAID_VERBS})",
    r"you (?:were|was) (?:telling|explaining|saying|suggesting|recommending|describing|mentioning)",
    r"(?:remind|tell) me (?:again )?(?:what|which|how|where|who) you(?! (?:think|would|can|could|"
    r"are|know|do))",
    rf"(?:in |from )?(?:our|the) (?:previous|last|earlier|past) {_CONVERSATION_NOUN},? you(?! "
    rf"(?:think|would|can|could|are))",
    rf"(?:what (?:was|were)|based on|according to|following|followed|per|took|take|about|from|on|"
    rf"of|to|tried|"
    rf"remember|recall|ignored|used) your"
    rf"(?: (?:previous|earlier|last|first|original|exact|initial|\w+))? {_ADVICE_NOUN}",
    rf"our (?:previous|earlier|last|past) {_CONVERSATION_NOUN}\b(?=.*\b(?:remind me|"
    rf"confirm)\b)(?!.*\bi (?:said|mentioned|told)\b)",
    r"we (?:talked about|discussed) (?:last time|earlier|before|previously)",
    rf"your (?:previous|earlier|last|first|original|initial|past) {_ADVICE_NOUN}",
    rf"{_not_preceded_by('need', 'your')} {_ADVICE_NOUN} (?:was|were|about|earlier|last|from|that)",
    r"(?:me |nos )?(?:recomendaste|dijiste|sugeriste|contaste|aconsejaste|explicaste|mencionaste|"
    r"propusiste|diste)",
    r"(?:de|seg[uú]n|con|era|fue|siguiendo) tu (?:consejo|recomendaci[oó]n|sugerencia|respuesta)",
    r"(?:hast|habt) (?:du|ihr)(?: \S+){0,6} (?:empfohlen|gesagt|vorgeschlagen|geraten|erwähnt|"
    r"erklärt|genannt|gegeben)",
    r"(?:du|sie)(?: \S+){0,6} (?:empfohlen|gesagt|vorgeschlagen|geraten|erwähnt|erklärt|genannt|"
    r"gegeben) (?:hast|"
    r"haben)",
    r"(?:du hast|sie haben|haben sie)(?: \S+){0,6} (?:empfohlen|gesagt|vorgeschlagen|geraten|"
    r"erwähnt|erklärt|genannt)",
    r"(?:war|nach|laut|auf|von) (?:dein|deine|deinen|deinem|deiner|ihr|ihre|ihrem|ihrer) "
    r"(?:rat|empfehlung|empfehlungen|vorschlag|antwort)",
    r"(?:tu (?:m'|m’)?(?:as|avais)|vous (?:m'|m’)?(?:avez|aviez)|(?:m'|m’)?(?:as-tu|"
    r"avez-vous))(?: \S+){0,3} "
    r"(?:recommandée?s?|dit|suggérée?s?|conseillée?s?|proposée?s?|mentionnée?s?|expliquée?s?|"
    r"donnée?s?)",
    r"(?:selon|était|d'après|suivi) (?:ton|votre|ta) (?:conseil|recommandation|suggestion|réponse)",
    r"[你您](?:之前|上次|以前|刚才|曾经|曾|当时|给我|跟我|向我|对我|和我|那次){0,3}"
    r"(?:推荐|建议|说|提到|告诉|介绍|提议|解释|列出|给|推薦|建議|說|告訴)(?:我)?(?:过|了|的|過)",
    r"[你您](?:之前|上次|以前|刚才|曾经|当时)(?:给我|跟我|向我|对我)?(?:推荐|建议|说|提到|告诉|介绍|推薦|建議|說|告訴)",
    r"(?:おすすめ|お勧め|勧めて|提案|教えて|言って|話して|紹介|説明)(?:し|して)?くれ(?:た|まし)",
    r"あなた(?:が|は)[^。？?]{0,12}(?:言った|勧めた|提案した|おすすめした|言いました|教えた|答えた)",
)

# Past states

PAST_CUE: Final = _build_cue(
    _not_preceded_by("days weeks months years", "before")
    + r"(?! (?:i (?:go|leave|start)|bed|going to bed))",
    r"(?:earlier|previous|prior|past)(?= (?!conversation|chat|discussion|session|talk|message|"
    r"day|days|week|weeks|"
    r"month|months|"
    r"art|year|years|few|couple|today|this|to\b|one|two|three|four|five|six|\d)\w)(?<!past)",
    r"earlier(?=\s*[?.!,]|$)",
    r"previously|originally|formerly|initially|in the beginning(?! of)|at first|at the start|"
    r"back then|back when|"
    r"in those days",
    r"original|initial|former|ex-\w+",
    _not_preceded_by("am is are was were get got getting be been 'm", "used to"),
    r"(?:what|where|who|how|why|when) did (?:\w+ ){1,3}use to",
    _not_preceded_by("how years year months weeks", "old")
    + r"(?! (?:is|are|was|were|enough|am|did|will)\b)(?!-)",
    _not_preceded_by("the", "first")
    + r"(?! (?:name|aid|class|thing|lady|floor|person|of all|time|two|three|four|five|few|half|"
    r"week|weekend|"
    r"quarter|month|or)\b)(?=[ ']\w)(?!-)",
    r"first(?<=the first) (?:place|version|plan|idea|choice|draft|one|job|design|budget|estimate)",
    r"antes|anteriormente|originalmente|inicialmente|previamente|al principio|en un principio|"
    r"sol[ií]a[nms]?(?:os)?",
    r"antigu[oa]s?|anterior(?:es)?|primer[oa]?s?(?! (?:nombre|semana|mitad))|previ[oa]s?|"
    r"original(?:es)?",
    r"früher\w{0,2}|vorher\w*|ursprünglich\w*|anfangs|anfänglich\w*|zuerst|damals|ehemalig\w*|"
    r"alte[mnrs]?|zuvor|bevor|"
    r"vorig\w*|erste[mnrs]?(?! (?:woche|hälfte))",
    r"avant|auparavant|à l'origine|au début|initialement|ancien(?:ne)?s?|premi(?:er|ère)s?(?! "
    r"(?:semaine|moitié))|"
    r"précédent\w*|"
    r"jadis|autrefois|d'abord|à l'époque|originellement",
    r"(?<![天日周週期月年时時钟鐘])(?:以前|之前)|原来|原來|原先|最初|起初|当初|當初|先前|曾经|曾經|从前|從前|旧的|"
    r"老的|第一[次个個份]|前任|"
    r"过去(?![\d一二两三四五六七八九十几])",
    r"(?<![日週月年間時分か])前[にの]|昔|元の|もともと|かつて|当時|従来|初めて|前回",
)

# "Have I ever been there before?" does not ask about a past state.
EVER_BEFORE_PATTERN: Final = lazy_regex(r"^(?:have|has|did|had) .*\b(?:ever|any)\b.* before\W*$")

# Intents

DECISION_CUE: Final = _build_cue(
    r"decid(?:e|ed|es|ing)|decisions?|agreed|agreement|settled on|conclu(?:de|ded|sion|sions)|"
    r"opted|went with|"
    r"rationale",
    r"chose|chosen|(?:did|do|have) (?:i|we|they|he|she|\w+) (?:choose|pick|select)|selected|"
    r"picked|trade-?offs?",
    r"why (?:did|have|do|are|were|was) (?:i|we|you)|resolved to|made up my mind|ruled out",
    r"decid\w+|decisi[oó]n(?:es)?|acord(?:amos|aron|é|ó|ado|aste)|eleg(?:imos|í|ido)|escog\w+|"
    r"por qué (?:elegi|"
    r"hicimos|usamos)\w*",
    r"entschied\w*|entscheid\w*|beschlossen|beschluss\w*|vereinbart\w*|geeinigt|gewählt|"
    r"ausgesucht|festgelegt",
    r"décid\w+|décision\w*|choisi\w*|convenu\w*|opté",
    r"决定|決定|选择了|選擇了|选了|為什麼選|为什么选|为什么用|商定|敲定|定下来|拍板",
    r"決め|選んだ|選びました|合意|なぜ[^。]{0,12}(?:選|使)",
    compile_pattern=lazy_regex,
)
OPEN_ITEM_CUE: Final = _build_cue(
    r"to-?dos?|to do lists?|open (?:items?|tasks?|questions?|issues?|points?|loops?|threads?|"
    r"tickets?)|pending|"
    r"outstanding",
    r"unfinished|unresolved|undone|incomplete|backlog|action items?|next steps?|follow[- ]?ups?|"
    r"loose ends",
    r"(?:still|yet) (?:need|needs|have|has|left|to be|open|missing|waiting|owe|remaining)(?: "
    r"to)?|left to (?:do|"
    r"finish|fix)",
    r"remaining (?:tasks?|work|items?|steps?|issues?)|(?:have|has|need|needs) yet to|not (?:yet "
    r")?(?:done|finished|"
    r"completed)|"
    r"(?:haven't|hasn't|haven’t|hasn’t) (?:\w+ )?(?:done|finished|completed|started|replied|sent|"
    r"paid)(?: yet)?",
    r"(?:do|does|did) (?:i|we) (?:still )?(?:need|have|owe) to|overdue|deadlines?|due (?:this|"
    r"next|today|tomorrow|"
    r"soon|on|by)",
    r"pendientes?|por hacer|(?:falta|faltan) (?:por )?\w+|sin (?:terminar|resolver)|próximos pasos",
    r"offene?[nrs]? (?:punkte?|aufgaben?|fragen?|themen|tickets?)|ausstehend\w*|noch (?:zu "
    r")?(?:tun|erledigen|"
    r"offen|machen)|"
    r"unerledigt\w*|nächste[n]? schritte|aufgabenliste",
    r"en suspens|à faire|reste(?:-t-il)? (?:à|encore)|non résolu\w*|inachevé\w*|prochaines "
    r"étapes|en attente",
    r"待办|待辦|未完成|未解决|没完成|还没|還沒|尚未|还要做|下一步|截止|还需要",
    r"未完了|未解決|やること|残って|まだ(?:終|完|や)|次のステップ|締め切り|締切|宿題",
    compile_pattern=lazy_regex,
)
PROCEDURE_CUE: Final = _build_cue(
    r"how to|how (?:do|can|should|could|would|did) (?:i|we|you|one)(?! (?:feel|meet|know|like|"
    r"get along|react|"
    r"celebrate|spend))"
    r"(?= (?:\w+ ){0,2}(?:do|make|set|install|deploy|run|build|fix|debug|configure|use|write|"
    r"create|test|solve|handle|"
    r"start|stop|restart|reset|connect|release|migrate|upgrade|update|add|remove|delete|publish|"
    r"send|open|clean|"
    r"cook|bake|"
    r"prepare|convert|format|import|export|back|restore|rotate|generate|resolve|avoid|implement|"
    r"enable|disable|train|"
    r"approach|automate|log|get|change|go about|find|print|merge|commit|push|roll)\b)",
    r"(?:the |what |which )?(?:steps?|procedures?|workflows?|runbooks?|playbooks?|instructions?|"
    r"recipe|commands?|"
    r"scripts?) "
    r"(?:to|for|do|did|should|are|is|we|i)|best practices?|step[- ]by[- ]step|skills? (?:to|for)|"
    r"walk me through (?:how|the (?:steps|process))|"
    r"procedures?|workflows?|runbooks?|playbooks?|how-?to|cheat ?sheet",
    r"cómo (?:puedo|hago|se|debo|podemos|hacer|instalo|configuro|uso|despliego)|pasos (?:para|"
    r"de)|procedimiento|receta",
    r"wie (?:kann|mache|macht|geht|soll|muss|richte|installiere|baue|starte) (?:ich|man|wir|das)|"
    r"schritte|anleitung|"
    r"vorgehen\w*|arbeitsablauf",
    r"comment (?:faire|puis-je|peut-on|on|installer|configurer|je|dois-je|déployer)|étapes "
    r"(?:pour|de)|procédure|"
    r"mode d'emploi",
    r"怎么(?:做|办|用|写|安装|配置|部署|修|设置|操作|弄)|如何|步骤|流程|怎樣|怎样(?:做|才)|教程|操作方法|最佳实践",
    r"やり方|手順|どうやって|作り方|使い方|方法",
    compile_pattern=lazy_regex,
)
_KIN_NOUN: Final = """(?:brother|sister|mother|father|mom|mum|dad|parents?|sons?|daughters?|wife|
    husband|spouse|partner|cousins?|aunt|uncle|niece|nephew|grand\\w+|girlfriend|boyfriend|
    fianc[eé]e?|siblings?|boss|manager|colleagues?|coworkers?|co-workers?|roommates?|neighbou?rs?|
    mentor|friends?|teammates?|in-laws?|kids|children|family|team)"""
RELATION_CUE: Final = _build_cue(
    r"(?<!-)relat(?:ed|es|ion|ions|ionship|ionships)|connect(?:ed|ion|ions|s)|linked|link "
    r"between|in common|"
    r"associated with",
    r"who(?:'s|’s| is| are| was| were)(?! (?:going|coming|doing|working on|responsible))",
    r"(?:depends?|relies|built) on|belongs? to|works? (?:with|for|under|at)|reports? to|member "
    r"of|owns|"
    r"married|dating|divorced|know each other|met each other|founded by|made by|owned by",
    rf"(?:whose|my|his|her|their|\w+['’]s) {_KIN_NOUN}(?:['’]s? name)?(?= (?:is|are|was|were|"
    rf"called|named|name)|['’]s name)",
    r"relaci[oó]n(?:es)?|relacionad[oa]s?|conectad[oa]s?|quién(?:es)? (?:es|son|era|fue)|en "
    r"común|pertenece",
    r"beziehung\w*|verhältnis|zusammenhang|verbunden|wer (?:ist|sind|war|waren)|verwandt|gehört "
    r"zu|kennen sich",
    r"relations?|liens?|liées?|qui (?:est|sont|était)|lien entre|en commun|appartient",
    r"关系|關係|有关联|相关|认识|谁是|是谁|誰是|是誰|属于|联系",
    r"関係|つながり|誰です|は誰|関連|知り合い",
    compile_pattern=lazy_regex,
)

# Resource types

SKILL_CUE: Final = _build_cue(
    r"(?:which|what|any|do (?:you|we) have(?: an?)?|is there(?: an?)?|find|use|load|list|show|"
    r"your|the|"
    r"our) (?:\w+ ){0,2}"
    r"(?:skills?|runbooks?|playbooks?|workflows?|procedures?)(?! (?:does|do|did|is|has|have|are) "
    r"(?!i |we |you |"
    r"one |to )\w)"
    r"(?= (?:for|to|do|should|can|covers|handles|we|you|i)\b|\s*[?.!]|$)",
    r"(?:^|(?:show|tell|remind|teach) me (?:again )?|explain |know |remember |forgot )how to|"
    r"(?:the )?steps (?:to|for)",
    r"(?:walk me through|step[- ]by[- ]step,?) (?:how|the (?:steps|process|procedure)|our (?:\w+ "
    r")?(?:process|"
    r"procedure))",
    r"how (?:do|should|can) (?:i|we|you) (?:\w+ )?(?:set up|install|deploy|run|build|fix|debug|"
    r"configure|test|release|"
    r"restart|migrate|upgrade|roll back|implement|enable|disable|automate|reset|rotate|publish)",
    r"pasos para|procedimiento para|cómo (?:instalo|configuro|despliego|ejecuto|se (?:instala|"
    r"configura|despliega|"
    r"hace))",
    r"anleitung (?:für|zum|zur)|wie (?:installiere|konfiguriere|starte|richte) (?:ich|man|wir)",
    r"étapes pour|procédure pour|comment (?:installer|configurer|déployer|lancer)",
    r"怎么(?:安装|配置|部署|修复|设置|操作)|如何(?:安装|配置|部署|修复|设置|操作)|操作步骤|步骤是|流程是|技能",
    r"手順|やり方|インストール方法|スキル",
)
_DOCUMENT_NOUN: Final = """(?:documents?|docs?|documentation|files?|pdfs?|urls?|links?|manuals?|
    readme|spreadsheets?|attachments?|repositor(?:y|ies)|repos?|wikis?|specs?|specification|slides|
    slide decks?|handbooks?|white ?papers?|datasheets?)"""
RESOURCE_CUE: Final = _build_cue(
    rf"(?:find|open|show|get|fetch|look up|read|search|where(?:'s|’s| is| are)|which|what|"
    rf"according to|in|send me|"
    rf"share|summari[sz]e|attach|link to|path (?:to|of)|contents? of) (?:me )?(?:the |my |our |a "
    rf"|an |that |this )?"
    rf"(?:\w+ ){{0,3}}{_DOCUMENT_NOUN}",
    r"(?:https?|ctx|file)://\S+",
    r"[\w./-]{0,99}\w\.(?:pdf|docx?|xlsx?|pptx?|md|txt|csv|json|ya?ml|html?|py|ipynb|png|jpe?g)",
    r"(?:el|la|los|qué|dónde está el|abre el|busca el|en el) (?:documento|archivo|fichero|enlace|"
    r"manual|pdf)s?",
    r"(?:das|die|den|der|welches|welche|im|in der|finde|öffne)(?: das| die)? (?:dokument|datei|"
    r"dateien|handbuch|"
    r"unterlagen|pdf)\w*",
    r"(?:le|la|les|quel|dans le|ouvre le|trouve le) (?:document|fichier|lien|manuel|pdf)s?",
    r"文档|文件|文檔|链接|連結|手册|手冊|附件|网址|资料库",
    r"ファイル|ドキュメント|資料|文書|マニュアル|リンク",
)

# Names

# Words that may be capitalised at the start of a question but are no names.
COMMON_WORDS: Final = frozenset(
    """i i'm i've i'd i'll ok okay tv pm am hi hello hey thanks thank please yes no not also so and
        or but if because who whom whose what what's which when where why how who's how's when's
        where's that's it's there's let's can could will would should shall may might must do does
        did don't doesn't didn't is are was were be been being am isn't aren't wasn't has have had
        haven't hasn't having the a an this that these those it its he she they we you me my mine
        our your his her their him them us in on at by for from to of with without about after
        before during since until between among over under through into onto upon against within
        around near across behind beside besides despite except like than as while though although
        even just only still already yet ever never always often sometimes usually recently lately
        currently now then today tomorrow yesterday tonight here there everything something anything
        nothing everyone someone anyone nobody all any some most many much more less few several
        each every both either neither one two three four five six seven eight nine ten first second
        third last next previous another other others same such own new old tell remind show give
        list find search get recall remember summarize summarise describe explain compare check look
        help make write create suggest recommend name say said think know see ask answer let go come
        take put use try need want based according given considering regarding concerning assuming
        suppose provide share identify determine calculate count outline discuss mention talk keep
        plan please kindly say looking going thinking trying wondering starting really maybe perhaps
        actually generally specifically overall finally additionally however therefore meanwhile
        again apart aside instead well right sure up down out off back away long far soon too very
        quite rather people person man woman family friend friends work job time day week month year
        morning evening night weekend mom mum dad mother father grandma grandpa dr mr mrs ms prof
        sir madam qué que cuál cuáles cual quién quien quiénes cómo como cuándo cuando dónde donde
        cuánto cuánta cuántos por para el la los las un una unos unas en de del con sin hay tengo
        tiene puedes dime recuérdame mi mis tu su yo ella él was wer wen wem wessen wie wo wann
        warum wieso weshalb welche welcher welches welchen wohin woher hat haben habe hast ist sind
        war waren kann kannst können soll der die das den dem des ein eine einen mein meine dein ich
        du er sie es wir ihr und oder aber im am vom zum zur mit nach bei seit von für gibt hatte
        wurde bitte sag erinnere letzten letzte qui quoi quel quelle quels quelles quand où comment
        pourquoi combien est-ce qu'est-ce qu'est a as ai avons avez ont est sont était le les un une
        des du dans avec pour sur chez je tu il elle nous vous ils elles mon ma mes ton ta tes son
        sa ses ce cette ces peux-tu dis-moi rappelle-moi y chi cosa quando dove come perché quale
        quali il lo gli che non ho hai ha o os quem qual onde porque quanto eu você ele ela não tem
        foi wie wat waar wanneer waarom hoe welke heb heeft de het een ik jij hij zij кто что где
        когда почему как какой какая какие сколько я ты он она мы вы они мой моя это в на с
        и""".split()
)
# Common words that may be part of a name inside a sentence: "New York", "Will".
NAME_PART_WORDS: Final = frozenset(
    "new old long well right back first second last next will may one two three four five six "
    "seven eight nine ten day "
    "night morning family friend friends people man woman mother father time work".split()
)
# Common words that are names in all capitals.
ACRONYMS: Final = frozenset(("us", "it", "who"))
# German capitalises every noun; one that follows these words is no name.
GERMAN_ARTICLES: Final = frozenset(
    """der die das den dem des ein eine einen einem einer eines mein meine meinen meinem meiner dein
        deine deinen sein seine seinen ihr ihre ihren ihrem ihrer unser unsere unseren kein keine
        keinen diese dieser dieses diesen jede jeder jedes im am zum zur vom beim ins ans welche
        welcher welches welchen viele alle letzte letzten letzter nächste nächsten""".split()
)

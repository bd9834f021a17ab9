"""The words that stand beside a time in a sentence, as data: what they make of it, and what shows that it is none.

Words are spelt as in `almanac`: lower case, no accents, an underscore for a space. `read.timing` says
what they mean.
"""

from __future__ import annotations

import re
from typing import Final

from told.core.almanac import fold_text
from told.core.lazy import lazy_regex


def _word_set(text: str) -> frozenset[str]:
    return frozenset(fold_text(word.replace("_", " ")) for word in text.split())


def _join_alternatives(words: frozenset[str] | dict[str, str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _build_meaning_table(rows: dict[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in rows.items() for word in _word_set(words)}


# A word that is also something else, and the only languages in which it is a time.
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
# Words that are times when they are written with a capital, or where nothing else can stand.
CAPITALISED_WORDS: Final = _word_set(
    "may march mar sun sat mon tue wed thu fri jan feb apr jun jul aug sep oct nov dec"
)
ABBREVIATIONS: Final = CAPITALISED_WORDS - _word_set("may march")
GIVEN_NAMES: Final = _word_set("april may june august summer autumn winter jan mar mon")

# ------------------------------------------------------------------------------------------- what a time is led in by

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

# ------------------------------------------------------------------------------- where a name alone may stand as a time

_RANGE: Final = (
    r"(?:between|from|entre|zwischen|von|vom|desde|depuis|du) .{2,40} "
    r"(?:and|to|through|until|till|y|und|et|bis|hasta|au|al|a)"
)
NAME_CONTEXT: Final = {
    unit: lazy_regex(rf"(?:^|[^a-z])(?:{words}|{_RANGE}) ?$", re.ASCII)
    for unit, words in {
        "month": """(?:in|since|until|till|during|throughout|before|after|by|between|through|month of|en|im|seit|bis|ab|
            desde|hasta|durante|depuis|entre|zwischen|mes de|mois de|mois d'|early|mid|late|back in)""",
        "season": """(?:in|during|over|throughout|since|until|before|after|by|im|seit|en|au|durante|pendant)
            (?: the| el| la| l'| den)?""",
        "day": "(?:on|since|until|till|by|before|after|between|am|seit|bis|desde el|hasta el|el|from|for)(?: the)?",
        "weekend": "(?:over|on|during|at|for|since|until|by|before|after|am|durante) ?(?:the|el|)",
    }.items()
    for words in [re.sub(r"\n\s*", "", words)]
}
RANGE_FROM: Final = lazy_regex(r"(?:^|[^a-z])(?:from|von|vom|du|de) $")
RANGE_TO: Final = lazy_regex(r" (?:to|through|until|till|and|bis|au|al|a|hasta) ")
YEAR_CONTEXT: Final = lazy_regex(
    r"(?:^|[^a-z])(?:in|since|until|till|during|throughout|before|after|by|between|through|early|mid|late|from|of|en|seit|"
    rf"bis|ab|desde|hasta|durante|depuis|avant|entre|zwischen|von|summer|winter|spring|fall|autumn|{_RANGE}) $",
    re.ASCII,
)
# What may come after a year or a month that is a time: the end, a stop, a word that begins a clause; no noun it counts.
_CLAUSE_WORDS: Final = """and or but to through until till with when while that which who what where why how did do does was
    were is are has have had will would should can could about for from at by on in as than regarding because so if then
    before after since i we you he she they it my our her his their the a an this compared including during y und et o
    ou oder con mit avec hice hizo gemacht bis hasta passiert gewesen"""
CLAUSE_BOUNDARY: Final = lazy_regex(
    rf"\s*(?:$|[^\sa-z0-9]|(?:{_join_alternatives(_word_set(_CLAUSE_WORDS))})(?![a-z]))", re.ASCII
)
# "In the last year" are twelve months up to now, "last year" is the one before this.
ROLLING_WINDOW: Final = lazy_regex(r"(?<![a-z])(?:in|over|during|within|for|throughout) the $")
# Counts that are no numbers, and what they may mean.
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
# A number before a number, or before "ago", says that the number that was found is not the whole of it.
PARTIAL_NUMBER: Final = lazy_regex(
    r"(?:[a-z]-|\d[.,]|(?<![a-z])(?:and|und|y|et|than|over|least|most|under|hundred|thousand|dozen|half|twenty|"
    r"thirty|forty|"
    r"fifty|sixty|seventy|eighty|ninety|mehr als|mas de|plus de|por lo menos|mindestens) )$",
    re.ASCII,
)
NOT_A_MODIFIER: Final = lazy_regex("[晚早以网線线楼地脚未后後本原起首优祖日基根成版上下]$")

# ------------------------------------------------------------------------------------------ parts, edges, ranges, tense

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
    rf"(?P<first>{_NTH_DAY}{_RANGE_SEPARATOR}(?P<last>{_NTH_DAY} (?:of |de )?{{month}}(?:,? (?:de |del )?{{year}})?",
)
_OFFSET_ANCHOR: Final = f"(?:{_join_alternatives({word: way for word, way in PREPOSITIONS.items() if way in ('before', 'after')})}){_ARTICLE} "
OFFSET_TEMPLATES: Final = (f"{{n}} {{thing}} {_OFFSET_ANCHOR}", f"{{thing}} {_OFFSET_ANCHOR}")
NESTED_JOIN: Final = lazy_regex(
    r",?(?: (?:in|on|of|the|en|im|am|de|del|du|des|el|la|le))* ?|[的の]?", re.ASCII
)
_AT_PREFIX: Final = ",? (?:(?:in the|at around|at|am|in der|por la|de la|um|a las) )?"
DAY_PART_TEMPLATES: Final = (f"{_AT_PREFIX}{{part}}", f"{_AT_PREFIX}{{clock}}", "{part_zh}")
RELATIVE_PART_TEMPLATE: Final = "(?:last|this) {part}"

PAST_TENSE: Final = lazy_regex(
    r"(?<![a-z])(?:did|was|were|had|happened|went|said|told|hice|hizo|fue|fui|dije|dijo|hicimos|war|waren|habe|hat|"
    r"haben|"
    r"hatte|etait|etais|ai|avons|avez)(?![a-z])|了|过|ました|でした|した",
    re.ASCII,
)
FUTURE_TENSE: Final = lazy_regex(
    r"(?<![a-z])(?:will|going to|gonna|upcoming|planning|scheduled|due|shall|plans? for|plan to|wird|werde|werden|"
    r"voy a|vamos a|vas a|vais|allons)(?![a-z])|'ll |将|会|打算|计划|予定|つもり",
    re.ASCII,
)
PROGRESSIVE_TENSE: Final = lazy_regex(
    r"(?<![a-z])(?:am|are|is) (?:[a-z]+ ){1,3}?[a-z]{2,}ing(?![a-z])", re.ASCII
)
HABITUAL_PATTERN: Final = lazy_regex(
    r"(?<![a-z])(?:every|each|usually|always|typically|normally|often|generally|cada|siempre|jeden|immer|chaque|"
    r"toujours|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days|mornings|afternoons|evenings|nights|weekends|montags|sonntags)"
    r"(?![a-z])|每|毎",
    re.ASCII,
)
DATE_OPENERS: Final = _word_set(
    "hace vor il in dentro en dans ultimos ultimas year ano jahr week weekend the 过 最 過"
)

"""The commonest things people say of themselves in German, French, Spanish, Italian and Portuguese.

Values stay as they were said; the sentence that says them is English, like every other.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from told.write.local.render import sentence as sentence_of
from told.write.local.said import Said
from told.write.local.speaker import titled
from told.write.local.value import Value, is_name

if TYPE_CHECKING:
    from told.write.local.interpret import Talk
    from told.write.local.sentence import Sentence

_PHRASES: Final = {
    "name": "'s name is {}", "lives_in": "live in {}", "works_at": "work at {}", "works_as": "work as {}", "likes": "like {}", "dislikes": "dislike {}",
    "allergic_to": "be allergic to {}", "comes_from": "come from {}", "age": "be {} years old", "diet": "be {}", "speaks": "speak {}",
    "has_pet": "have {}", "has_child": "have {}", "prefers": "prefer {}", "uses": "use {}", "studies": "study {}", "learning": "learn {}",
    "plays": "play {}", "nickname": "go by {}", "has_condition": "have {}", "birthday": "'s birthday is {}", "avoids": "avoid {}", "relationship_status": "be {}",
}  # fmt: skip

# predicate: patterns with {name} (a name), {v} (one value) or {l} (a list). NOT marks a denial that negates the claim.
_ROWS: Final = {
    "de": """
name: (?:ich )?(?:heiße|heisse) {name}; mein name ist {name}; (?:ich )?bin (?:der|die) {name}
nickname: nenn(?:t)? mich (?:bitte )?{name}
lives_in: (?:ich )?(?:wohne|lebe)(?: (?:jetzt|seit \\S+(?: \\S+)?|aktuell|derzeit|zurzeit|momentan|immer noch|inzwischen))* (?:in|bei) {v}; (?:ich )?bin (?:gerade |vor kurzem |letztes jahr |letzten monat |neulich )*(?:von \\S+ )?nach {v} (?:um)?gezogen
NOT lives_in: (?:ich )?(?:wohne|lebe) nicht mehr in {v}
works_at: (?:ich )?arbeite (?:jetzt |seit \\S+ |als \\S+(?: \\S+)? )*(?:bei|für)(?: der| dem)? {v}; (?:ich )?bin (?:\\S+ )?bei {v} (?:angestellt|beschäftigt)
NOT works_at: (?:ich )?arbeite nicht mehr (?:bei|für) {v}
works_as: (?:ich )?(?:arbeite|bin) (?:\\S+ )?als {v}; (?:ich )?bin (?:von beruf )(?:eine?n? )?{v}; (?:ich )?bin (?=[\\w-]*(?:ingenieur|entwickler|lehrer|arzt|ärztin|anwalt|anwältin|krankenschwester|pfleger|informatiker|designer|architekt|koch|köchin|wissenschaftler|berater|programmierer|student)(?:in)?\\b){v}
likes: (?:ich )?(?:mag|liebe)(?: (?:sehr|gerne|besonders|total|wirklich|am liebsten))* (?!dich|es|das\\b|nicht|kein){l}; (?:ich )?(?:esse|trinke|höre|spiele|lese) (?:sehr |am |besonders )?(?:gern|gerne|liebsten) {l}
dislikes: (?:ich )?(?:hasse|verabscheue) (?!dich|es|das\\b){l}; (?:ich )?mag (?:keine|keinen|kein) {l}; (?:ich )?mag {l} (?:überhaupt |gar )?nicht
allergic_to: (?:ich )?bin (?:sehr |stark |leicht )?allergisch (?:gegen|auf) {l}; (?:ich )?habe eine {v}allergie
comes_from: (?:ich )?(?:komme|stamme)(?: ursprünglich)? aus {v}
age: (?:ich )?bin {n}(?: jahre alt)?
diet: (?:ich )?(?:bin|lebe|ernähre mich)(?: \\S+)? (?P<v>vegetarierin|vegetarier|veganerin|veganer|vegan|vegetarisch)
NOT diet: (?:ich )?bin (?:kein|keine|nicht mehr) (?P<v>vegetarierin|vegetarier|veganerin|veganer|vegan|vegetarisch)
speaks: (?:ich )?spreche(?: fließend| auch| ein bisschen| etwas)* {l}
has_pet: (?:ich )?habe (?P<v>(?:eine?n?|zwei|drei) (?:hund|katze|kater|hündin|hunde|katzen|hamster|kaninchen)(?: namens \\w+)?)
has_child: (?:ich )?habe (?P<v>(?:eine?n?|zwei|drei|vier) (?:sohn|tochter|kind|kinder|söhne|töchter))
learning: (?:ich )?lerne (?:gerade |jetzt |zurzeit )*{l}
relationship_status: (?:ich )?bin (?P<v>verheiratet|ledig|geschieden|verlobt)
""",
    "fr": """
name: je m'appelle {name}; mon (?:nom|prénom) (?:est|c'est) {name}; moi c'est {name}
nickname: appel(?:le|ez)[- ]moi {name}
lives_in: (?:j'habite|je vis|je réside|j'vis)(?: (?:actuellement|maintenant|toujours))*(?: à| en| au| aux| dans| près de)? {v}; (?:j'ai|je viens de) (?:déménagé|emménagé?r?|déménager|m'installer)(?: de \\S+)? (?:à|en|au|aux) {v}
NOT lives_in: je n'habite plus (?:à|en|au|aux) {v}
works_at: (?:je )?(?:travaille|bosse)(?: (?:actuellement|maintenant|comme \\S+))*(?: chez| pour| à la| au) {v}
NOT works_at: je ne travaille plus (?:chez|pour) {v}
works_as: (?:je )?(?:travaille|bosse) (?:comme|en tant que?'?) ?{v}; (?:je )?suis (?=(?:un |une )?(?:ingénieur|développeu|professeu|infirmi|médecin|avocat|enseignant|étudiant|architecte|cuisini|journaliste|graphiste|comptable|designer|chercheu))(?:un |une )?{v}
likes: j'(?:aime|adore)(?: (?:beaucoup|bien|vraiment|trop|surtout))*(?: (?:le|la|les|l'|du|faire du|faire de la))? ?(?!pas|ça|te\\b|vous){l}
dislikes: (?:je )?(?:déteste|hais)(?: (?:le|la|les|l'))? ?(?!ça|te\\b){l}; je n'aime pas(?: (?:le|la|les|l'|trop|du tout))* ?(?!ça){l}
allergic_to: (?:je )?suis (?:très )?allergique (?:à la |à l'|aux |au |à ){l}
comes_from: (?:je )?(?:viens|suis originaire) (?:de la |de |du |des |d'){v}
age: j'ai {n} ans
diet: (?:je )?suis (?:devenue? )?(?P<v>végétarienne|végétarien|végane|végan|vegan|végétalienne|végétalien)
NOT diet: je ne suis (?:plus|pas) (?P<v>végétarienne|végétarien|végane|végan|vegan)
speaks: (?:je )?parle(?: couramment| aussi| un peu)*(?: le| l'| la)? ?{l}
has_pet: j'ai (?P<v>(?:un|une|deux|trois) (?:chien|chienne|chat|chatte|chiens|chats|lapin|hamster)(?: (?:qui s'appelle|nommée?|appelée?) \\w+)?)
has_child: j'ai (?P<v>(?:un|une|deux|trois|quatre) (?:fils|fille|filles|enfant|enfants))
learning: j'apprends(?: le| l'| la| à)? ?{l}
relationship_status: (?:je )?suis (?P<v>mariée?|célibataire|divorcée?|fiancée?)
""",
    "es": """
name: (?:yo )?me llamo {name}; mi nombre es {name}; (?:yo )?soy {name}(?=$|,| y | de )
nickname: ll[aá]mame {name}
lives_in: (?:yo )?(?:vivo|resido)(?: (?:ahora|actualmente|todavía))* (?:en|cerca de) {v}; me (?:mudé|he mudado|mude)(?: (?:hace poco|de \\S+(?: \\S+)?))? a {v}
NOT lives_in: ya no vivo en {v}
works_at: (?:yo )?trabajo(?: (?:ahora|actualmente|como \\S+))* (?:en|para) (?=[A-ZÁÉÍÓÚ]){v}
NOT works_at: ya no trabajo (?:en|para) {v}
works_as: (?:yo )?trabajo (?:como|de) {v}; (?:yo )?soy (?=(?:un |una )?(?:ingenier|desarrollador|profesor|enfermer|médic|abogad|maestr|estudiante|arquitect|cociner|periodista|programador|diseñador|contador)){v}
likes: (?:a mí )?(?:me (?:gusta|gustan|encanta|encantan)|amo|adoro)(?: (?:mucho|muchísimo|el|la|los|las))* (?!que|cuando|tu\\b|esto|eso){l}
dislikes: (?:odio|detesto)(?: (?:el|la|los|las))? (?!que|cuando|esto|eso){l}; no me (?:gusta|gustan)(?: (?:nada|el|la|los|las))* (?!que|cuando|esto|eso){l}
allergic_to: (?:yo )?soy (?:muy )?al[eé]rgic[oa] (?:a la |a las |a los |al |a ){l}; tengo alergia (?:a la |a las |a los |al |a ){l}
comes_from: (?:yo )?(?:soy|vengo) de {v}
age: tengo {n} años
diet: (?:yo )?soy (?P<v>vegetarian[oa]|vegan[oa])
NOT diet: (?:ya )?no soy (?P<v>vegetarian[oa]|vegan[oa])
speaks: (?:yo )?hablo(?: (?:también|un poco de|con fluidez))* {l}
has_pet: tengo (?P<v>(?:un|una|dos|tres) (?:perr[oa]s?|gat[oa]s?|conejo|hámster)(?: (?:llamad[oa]|que se llama) \\w+)?)
has_child: tengo (?P<v>(?:un|una|dos|tres|cuatro) (?:hij[oa]s?|niñ[oa]s?))
learning: estoy aprendiendo (?:a )?{l}
relationship_status: (?:yo )?(?:soy|estoy) (?P<v>casad[oa]|solter[oa]|divorciad[oa])
""",
    "it": """
name: (?:io )?mi chiamo {name}; il mio nome (?:è|e') {name}; (?:io )?sono {name}(?=$|,)
nickname: chiamami {name}
lives_in: (?:io )?(?:vivo|abito|risiedo)(?: (?:ora|adesso|attualmente))* (?:a|in|vicino a) {v}; mi sono (?:appena )?trasferit[oa](?: (?:da \\S+|di recente))? (?:a|in) {v}
NOT lives_in: non (?:vivo|abito) più (?:a|in) {v}
works_at: (?:io )?lavoro(?: (?:ora|come \\S+))* (?:presso|per|da|in|alla|a) (?=[A-Z]){v}
NOT works_at: non lavoro più (?:presso|per|da|in|alla|a) {v}
works_as: (?:io )?(?:lavoro come|faccio (?:il |la |l')) ?{v}; (?:io )?sono (?=(?:un |una |un')?(?:ingegner|sviluppat|insegnant|infermier|medic|avvocat|student|architett|cuoc|giornalist|programmat|designer)){v}
likes: (?:a me )?mi (?:piace|piacciono)(?: (?:molto|tanto|il|la|i|le|gli|lo|l'))* ?(?!che|quando){l}; (?:io )?(?:amo|adoro)(?: (?:il|la|i|le|gli|lo|l'))? ?(?!che|quando|ti\\b){l}
dislikes: (?:io )?(?:odio|detesto)(?: (?:il|la|i|le|gli|lo|l'))? ?(?!che|quando){l}; non mi (?:piace|piacciono)(?: (?:il|la|i|le|gli|lo|l'))? ?(?!che|quando){l}
allergic_to: (?:io )?sono (?:molto )?allergic[oa] (?:al |alla |alle |agli |ai |all'|a ){l}
comes_from: (?:io )?(?:vengo da|sono di|sono originari[oa] di) {v}
age: ho {n} anni
diet: (?:io )?sono (?P<v>vegetarian[oa]|vegan[oa])
NOT diet: non sono (?:più )?(?P<v>vegetarian[oa]|vegan[oa])
speaks: (?:io )?parlo(?: (?:anche|un po' di|fluentemente))*(?: il| l'| lo)? ?{l}
has_pet: ho (?P<v>(?:un|una|due|tre) (?:cane|cani|gatt[oaie]|coniglio)(?: (?:di nome|che si chiama) \\w+)?)
has_child: ho (?P<v>(?:un|una|due|tre|quattro) (?:figli[oae]?|bambin[oaie]))
learning: sto imparando (?:l'|il |lo |a )?{l}
relationship_status: (?:io )?sono (?P<v>sposat[oa]|single|divorziat[oa]|celibe|nubile)
""",
    "pt": """
name: (?:eu )?(?:me chamo|chamo-me) {name}; (?:o )?meu nome é {name}; (?:eu )?sou (?:o|a) {name}(?=$|,| e )
nickname: (?:me chame de|pode me chamar de|chama-me) {name}
lives_in: (?:eu )?(?:moro|vivo|resido)(?: (?:agora|atualmente))* (?:em|no|na|nos|nas) {v}; (?:eu )?(?:me mudei|mudei-me)(?: de \\S+(?: \\S+)?)? para (?:o |a )?{v}
NOT lives_in: (?:eu )?(?:não moro mais|já não moro|já não vivo) (?:em|no|na) {v}
works_at: (?:eu )?trabalho(?: (?:agora|como \\S+))* (?:na|no|em|para|para a|para o) (?=[A-Z]){v}
NOT works_at: (?:eu )?(?:não trabalho mais|já não trabalho) (?:na|no|em|para) {v}
works_as: (?:eu )?trabalho como {v}; (?:eu )?sou (?=(?:um |uma )?(?:engenheir|desenvolvedor|professor|enfermeir|médic|advogad|estudante|arquitet|cozinheir|jornalista|programador|designer)){v}
likes: (?:eu )?(?:gosto|adoro|amo)(?: (?:muito|bastante|de|do|da|dos|das))* (?!que|quando){l}
dislikes: (?:eu )?(?:odeio|detesto) (?!que|quando){l}; (?:eu )?não gosto (?:muito )?(?:de|do|da|dos|das) {l}
allergic_to: (?:eu )?(?:sou|tenho) (?:muito )?al[eé]rgi(?:c[oa]|a) (?:a|à|ao|aos|às) {l}
comes_from: (?:eu )?(?:sou|venho) (?:de|do|da|dos) {v}
age: (?:eu )?tenho {n} anos
diet: (?:eu )?sou (?P<v>vegetarian[oa]|vegan[oa])
NOT diet: (?:eu )?(?:não sou mais|já não sou|não sou) (?P<v>vegetarian[oa]|vegan[oa])
speaks: (?:eu )?falo(?: (?:também|um pouco de|fluentemente))* {l}
has_pet: (?:eu )?tenho (?P<v>(?:um|uma|dois|duas|três) (?:cachorr[oa]s?|c[ãa]o|gat[oa]s?|coelho)(?: (?:chamad[oa]) \\w+)?)
has_child: (?:eu )?tenho (?P<v>(?:um|uma|dois|duas|três) (?:filh[oa]s?))
learning: (?:eu )?(?:estou aprendendo|estou a aprender) {l}
relationship_status: (?:eu )?sou (?P<v>casad[oa]|solteir[oa]|divorciad[oa])
""",
}

# Words that give a language away; none of them is English.
_TRIGGERS: Final = {
    "de": "ich mein nenn nennt",
    "fr": "je j'ai j'aime j'adore j'habite j'apprends mon moi appelle-moi appelez-moi m'appelle",
    "es": "yo llamo soy vivo resido trabajo tengo gusta gustan encanta encantan odio amo adoro detesto hablo estoy nombre mudé llámame llamame vengo",
    "it": "io chiamo sono vivo abito risiedo lavoro faccio piace piacciono amo adoro odio detesto ho parlo sto chiamami nome vengo trasferito trasferita",
    "pt": "eu chamo chame meu sou moro vivo resido trabalho gosto adoro amo odeio detesto tenho falo estou venho mudei já não",
}
_OPEN = r"(?:^|[,.;:!\u00a1]\s*|\s+(?:und|et|y|e|ed|aber|mais|pero|ma|mas|weil|parce que|porque|perché|car|denn)\s+|(?:hallo|bonjour|salut|hola|ciao|olá|oi|hi|buenas)[,!]?\s+)"
_STOP = re.compile(
    r"[,;.!?\n()]|\s+(?:und|et|y|e|ed|ou|oder|o)\s+(?=(?:ich|je|j'|yo|me|mi|io|eu|arbeite|wohne|lebe|komme|mag|habe|travaille|trabajo|tengo|vivo|lavoro|ho|abito|trabalho|tenho|moro|gosto|soy|sono|sou|suis|bin)\b)|"
    r"\s+(?:aber|weil|seit|mais|parce|depuis|pero|porque|desde|ma|perché|mas|als|comme|como|come|mit|avec|con|com|wenn|quand|cuando|quando|hace|desde|für|pour|para|per|und arbeite|et je|y trabajo|e lavoro|nicht|mehr|wo|où|donde|dove|onde|was|que|che|denn|zum|zur|obwohl|besonders|surtout|sehr|auch|aussi|también|anche|também|um|zu)\b",
    re.IGNORECASE,
)
_LIST = re.compile(r"\s*,\s*(?:und|et|y|e|ed)?\s*|\s+(?:und|et|y|e|ed|oder|ou|o|sowie|&)\s+(?:(?:le|la|les|l'|el|los|las|il|i|gli|lo|o|os|as|do|da|dos|das)\b\s*)?", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)?")
_ENGLISH = re.compile(r"\b(?:i'm|the|my|is|are|and|i|was|have|you|with|for)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:eine?[nrm]?|der|die|das|den|dem|une?|le|la|les|l'|el|los|las|un|una|il|lo|gli|i|o|os|as|um|uma|a|à|al|alle|ai|agli|aux|au|du|des|de|do|da|dos|das|di|del|della)\s+", re.IGNORECASE)


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """The languages each telling word belongs to."""
    table: dict[str, tuple[str, ...]] = {}
    for language, telling in _TRIGGERS.items():
        for word in telling.split():
            table[word] = (*table.get(word, ()), language)
    return table


@cache
def _patterns(language: str) -> tuple[tuple[str, bool, re.Pattern[str]], ...]:
    found = []
    for row in _ROWS[language].strip().splitlines():
        head, _, forms = row.partition(": ")
        found += [(head.removeprefix("NOT "), head.startswith("NOT "), _compiled(form)) for form in forms.split("; ")]
    return tuple(found)


def _compiled(form: str) -> re.Pattern[str]:
    name = r"(?P<name>[^\W\d_][\w'-]*(?:\s(?-i:[A-ZÀ-Þ])[\w'-]*)?)"
    last = form.endswith(("{v}", "{l}"))
    filled = form.replace("{name}", name).replace("{n}", r"(?P<n>\d{1,3})").replace("{v}", r"(?P<v>\S.*?)").replace("{l}", r"(?P<l>\S.*?)")
    return re.compile(_OPEN + filled + ("$" if last else r"(?!\w)"), re.IGNORECASE)


def foreign(talk: Talk, sentence: Sentence) -> list[Said]:
    """What a sentence in another language says, nothing if it is none of those."""
    text = talk.text[sentence.start : sentence.end]
    telling = _languages()
    spoken = dict.fromkeys(language for word in _WORDS.findall(text.lower()) for language in telling.get(word, ()))
    if sentence.asks or not spoken or len(_ENGLISH.findall(text)) > 1:
        return []
    return [
        said
        for language in spoken
        for predicate, denied, pattern in _patterns(language)
        for match in pattern.finditer(text)
        for said in _said(talk, predicate, denied, match, sentence.start)
    ]


def _said(talk: Talk, predicate: str, denied: bool, match: re.Match[str], offset: int) -> list[Said]:
    said = []
    for value in _values(match, predicate):
        shown = titled(value.text) if predicate in ("name", "nickname") else value.text
        text = sentence_of(talk.speaker, _PHRASES[predicate].format(shown), "negated" if denied else "asserted", ended=denied)
        start = offset + match.start() + len(match[0]) - len(match[0].lstrip(" ,.;:!\u00a1"))
        said.append(Said(talk.speaker, predicate, shown, text, start, offset + value.end, "negated" if denied else "asserted", confidence=0.85, valid=talk.default))
    return said


def _values(match: re.Match[str], predicate: str) -> list[Value]:
    groups = match.groupdict()
    group = next(name for name in ("name", "n", "v", "l") if groups.get(name))
    start, end = match.span(group)
    text = match.string
    if group == "name":
        return [Value(text[start:end], start, end)] if is_name(text[start:end], known=predicate == "name" and "soy" in match[0].lower()) else []
    if group in ("n",):
        return [Value(text[start:end], start, end)]
    stop = _first_stop(text, start, end, group)
    if group == "v":
        return [value for value in (_bare(text, start, stop),) if value.text and len(value.text.split()) <= 5]
    return _listed(text, start, stop)


def _first_stop(text: str, start: int, end: int, group: str) -> int:
    for found in _STOP.finditer(text, start, end):
        if found.start() > start and not (group == "l" and found[0] == ","):
            return found.start()
    return end


def _listed(text: str, start: int, end: int) -> list[Value]:
    values, at = [], start
    for comma in (*_LIST.finditer(text, start, end), None):
        value = _bare(text, at, end if comma is None else comma.start())
        if not value.text or len(value.text.split()) > 5:
            break
        values.append(value)
        at = comma.end() if comma else end
    return values


def _bare(text: str, start: int, end: int) -> Value:
    while start < end and text[start] in " '\"":
        start += 1
    if found := _ARTICLE.match(text[start:end]):
        start += found.end()
    while end > start and text[end - 1] in " '\"!.,":
        end -= 1
    return Value(text[start:end], start, end)

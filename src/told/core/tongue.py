"""Which language a short text is written in, told by its script and, in Latin letters, by its commonest words."""

from __future__ import annotations

import re
from typing import Final

# A letter that only one language of a script uses comes before the script itself; the first row that fits wins.
_SCRIPTS: Final = {
    "ja": "\u3041-\u3096 \u30a1-\u30fa",
    "ko": "\uac00-\ud7a3 \u1100-\u11ff",
    "zh": "\u3400-\u4dbf \u4e00-\u9fff \U00020000-\U000323af",
    "uk": "і ї є ґ",
    "ru": "\u0400-\u04ff",
    "ur": "ٹ ڈ ڑ ے",
    "fa": "پ چ ژ گ",
    "ar": "\u0600-\u06ff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "bn": "\u0980-\u09ff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
    "th": "\u0e00-\u0e7f",
    "el": "\u0370-\u03ff",
    "hy": "\u0530-\u058f",
    "ka": "\u10a0-\u10ff",
}
_COMMON_WORDS: Final = {
    "en": """a about after am an and any are as at be been before but by can could did do does for from had has have
        he her him his how i i'm i've in is it its just last me my of on or our she should so than that the their
        them then there they this to us was we were what what's when where which who whose why will with would you
        your""",
    "es": """a al algo antes cómo como con cuál cuales cuándo cuando cuánto de del desde dijo dije donde dónde el
        ella en es esta está este fue hace hasta hay la las le lo los me mi mis para pero por porque que qué quién se
        ser si sobre son su sus también tengo tiene tu un una y ya yo hizo""",
    "de": """aber als am an auf aus bei bin bis das dass dem den der des die du ein eine einem einen einer er es für
        gab gibt habe haben hast hat hatte ich im in ist kann mein meine mich mir mit nach nicht oder sein sich sie
        sind um und uns vom von vor wann war waren warum was welche wem wer wie wir wo wurde zu zum zur letzten
        gemacht gestern heute geschah passiert ende anfang""",
    "fr": """a ai as au aux avec avez avons c'est ce cette comment d'un d'une dans de depuis des du elle en est et
        été était il ils j'ai je la le les leur lui ma mais me mes moi mon ne nous on ont ou où par pas pour pourquoi
        quand que quel quelle qu'est qui quoi sa se ses son sont sur ta ton tu un une votre vous y qu'ai""",
    "it": """a al alla anche che chi ci come con cosa da dal de del della di dopo dove e è era gli ha hai hanno ho i
        il in io la le lo ma mi mia mio nel nella non o per perché più quale quando quanto questo sono su sua suo ti
        tu un una fatto""",
    "pt": """a ao aos as com como da das de do dos e é ela ele em era está eu fez foi isso lhe mais mas me meu minha
        na não nas no nos o onde os ou para pela pelo por porque qual quando quanto que quem se sem ser seu sua tem
        um uma você fiz""",
    "nl": """aan als bij dan dat de deze die dit door een en er had heb hebben heeft het hij hoe ik in is je kan maar
        met mij mijn naar niet nog of om ons op over te tot uit van voor waar waarom was wat we wel welke werd wie
        wij ze zich zijn gedaan""",
}
_ACCENTS: Final = {"es": "ñ¿¡", "de": "ßäöü", "fr": "êèœàù", "pt": "ãõ"}
# Looked up and not compiled: a pattern of all Chinese letters takes milliseconds.
_SCRIPT_RANGES: Final = tuple(
    (name, (first, last or first))
    for name, letters in _SCRIPTS.items()
    for first, _, last in (letter.partition("-") for letter in letters.split())
)
_LATIN_WORD: Final = re.compile("[a-zß-ɏ]+(?:'[a-zß-ɏ]+)?")
_WORD_SETS: Final = {name: frozenset(words.split()) for name, words in _COMMON_WORDS.items()}
_LANGUAGES_BY_WORD: Final = {
    word: tuple(name for name, words in _WORD_SETS.items() if word in words)
    for word in frozenset().union(*_WORD_SETS.values())
}


def detect_language(text: str) -> str:
    """The ISO 639-1 code of the language, "" if the text does not tell."""
    lowered = text.lower().replace("\u2019", "'")
    words = _LATIN_WORD.findall(lowered)
    if (
        not lowered.isascii()
        and (foreign := _detect_by_script(lowered))
        and len(foreign[1]) >= sum(map(len, words)) / 4
    ):
        return foreign[0]
    return _detect_by_words(lowered, words)


def _detect_by_script(text: str) -> tuple[str, list[str]] | None:
    """The first script the text has letters of, with all letters that are not Latin."""
    foreign = [c for c in text if c > "\u036f"]
    distinct = set(foreign)
    script = next(
        (
            name
            for name, (first, last) in _SCRIPT_RANGES
            if any(first <= c <= last for c in distinct)
        ),
        None,
    )
    return (script, [*filter(str.isalpha, foreign)]) if script else None


def _detect_by_words(text: str, words: list[str]) -> str:
    """The language most of the words belong to; a tie goes to the one whose accents are seen, then to the first row."""
    votes = dict.fromkeys(_COMMON_WORDS, 0)
    for word in words:
        for name in _LANGUAGES_BY_WORD.get(word, ()):
            votes[name] += 1
    if not text.isascii():
        for name, letters in _ACCENTS.items():
            votes[name] += any(c in text for c in letters)
    winner = max(votes, key=votes.__getitem__)
    return winner if votes[winner] else ""

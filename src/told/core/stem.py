"""English words reduced to a common stem, so that "runs", "running" and "ran" meet in one index term.

The inflections only (plural, -ed, -ing, -ly, final -e and -y), after the idea of Porter's first step: a stem is a key
for matching and need not be a word. Derivations ("nation", "national") stay apart on purpose: they cost precision.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_IRREGULAR_FORMS: Final = """
agree agreed; become became; begin began begun; bite bitten; break broke broken; bring brought; build built; bus buses;
buy bought; catch caught; child children; choose chose chosen; come came; draw drew drawn; drink drank drunk;
drive drove driven; eat ate eaten; fall fell fallen; feel felt; fight fought; find found; fly flew flown; foot feet;
forget forgot forgotten; get got gotten; give gave given; go goes went gone; grow grew grown; hear heard;
hide hid hidden; hold held; keep kept; knife knives; know knew known; learn learnt; leave left; lend lent; lose lost;
make made; man men; meet met; mouse mice; pay paid; person people; ride rode ridden; ring rang rung; run ran; sell sold;
send sent; sing sang sung; sit sat; ski skis skied; sleep slept; speak spoke spoken; spend spent; steal stole stolen;
swim swam swum; take took taken; teach taught; tell told; think thought; throw threw thrown; tooth teeth;
wake woke woken; wear wore worn; wife wives; win won; woman women; write wrote written
"""
IRREGULAR_STEMS: Final = {
    form: base for base, *forms in map(str.split, _IRREGULAR_FORMS.split(";")) for form in forms
}

_INFLECTED_ENDINGS: Final = frozenset("sdgyel")
"""How a word ends of which anything is cut."""

_VOWEL: Final = re.compile("[aeiouy]")
_SYLLABLE: Final = re.compile("[aeiouy]+[^aeiouy]+")
_SHORT_SYLLABLE: Final = re.compile("[^aeiou][aeiouy][^aeiouwxy]")


@lru_cache(maxsize=1 << 14)
def stem_word(word: str) -> str:
    """The stem of one lower-case ASCII word; anything else comes back unchanged."""
    word = IRREGULAR_STEMS.get(word, word)
    if (
        len(word) < 4
        or word[-1] not in _INFLECTED_ENDINGS
        or not (word.isascii() and word.isalpha())
    ):
        return word
    return _normalise_ending(_strip_adverb(_strip_participle(_strip_plural(word))))


def _strip_plural(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is", "news")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith("sses") else word[:-1]


def _strip_participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith("ing"):
        root = word[:-3]
    elif word.endswith("ed") and not word.endswith("eed"):
        root = word[:-2]
    else:
        return word
    return _restore_verb(root) if len(root) > 1 and _VOWEL.search(root) else word


def _restore_verb(root: str) -> str:
    """The verb behind "hopp(ing)", "hop(ing)", "us(ing)" or "creat(ed)"."""
    if root[-1] == root[-2] and root[-1] not in "aeiouylsz" and len(root) > 3:
        return root[:-1]
    lost_e = root.endswith(("at", "bl", "iz")) if len(root) > 2 else root[0] in "aeiou"
    return (
        root + "e" if lost_e or (_is_short_syllable(root) and _count_syllables(root) == 1) else root
    )


def _strip_adverb(word: str) -> str:
    return word[:-2] if word.endswith("ly") and len(word) > 5 else word


def _normalise_ending(word: str) -> str:
    """Even out the spellings of one ending: -y, silent -e, and -l or -ll."""
    if len(word) < 4:
        return word
    root, last = word[:-1], word[-1]
    if last == "y" and root[-1] not in "aeiou":
        return root + "i"
    syllables = _count_syllables(root)
    if last == "e" and (syllables > 1 or (syllables == 1 and not _is_short_syllable(root))):
        return root
    return root if word.endswith("ll") and syllables > 1 else word


def _count_syllables(root: str) -> int:
    return len(_SYLLABLE.findall(root))


def _is_short_syllable(root: str) -> bool:
    """Whether it ends like "hop": consonant, vowel, consonant."""
    return _SHORT_SYLLABLE.fullmatch(root[-3:]) is not None

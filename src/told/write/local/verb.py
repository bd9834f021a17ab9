"""The verb of a clause: which one it is, and how it is said — now or once, denied, doubted, planned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from told.write.local.tables import get_pattern, load_sections

PRESENT, PAST, ING = TENSES = ("present", "past", "ing")
_MIN_SWAP_LENGTH: Final = 5
_MAX_TOKENS: Final = 9
"""How many auxiliaries and adverbs may stand before a verb."""


@cache
def load_verb_forms() -> dict[str, tuple[str, str]]:
    """Every form of a verb the rules know, with the verb and the tense, and with two letters in the wrong order."""
    table: dict[str, tuple[str, str]] = {}
    for row in load_sections("verbs.txt")["verbs"]:
        for tense, tense_forms in zip(TENSES, row.split(" / "), strict=False):
            for form in tense_forms.split():
                table.setdefault(form, (row.split()[0], tense))
    return {
        swapped: form for word, form in table.items() for swapped in _swap_neighbours(word)
    } | table


def _swap_neighbours(word: str) -> list[str]:
    """The word with two neighbouring letters in the wrong order, for words long enough that nothing else is meant."""
    if len(word) < _MIN_SWAP_LENGTH:
        return []
    return [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)]


@dataclass(frozen=True, slots=True)
class VerbFeatures:
    """How a verb is said.

    `ended` is what holds no longer, `supposed` a duty or what nearly was, `wished` what would be, `able` what can be.
    """

    tense: str = PRESENT
    negated: bool = False
    ended: bool = False
    future: bool = False
    doubted: bool = False
    wished: bool = False
    able: bool = False
    perfect: bool = False
    habit: bool = False
    now: bool = False
    supposed: bool = False
    passive: bool = False


@dataclass(frozen=True, slots=True)
class ParsedVerb:
    """A verb with its stance, where its word begins, and where its complement does."""

    lemma: str
    features: VerbFeatures
    word_start: int
    complement_start: int


_BE: Final = frozenset("am is are was were be been being 'm 're 's m r".split())
_HAVE: Final = frozenset("have has had 've ve having hav".split())
_DO: Final = frozenset("do does did".split())
_AUXILIARY_FLAGS: Final = {
    **dict.fromkeys(_BE | _DO, "aux"),
    **dict.fromkeys(_HAVE, "perfect"),
    **dict.fromkeys("would could should must 'd shall ought".split(), "wished"),
    **dict.fromkeys("might may".split(), "doubted future"),
    **dict.fromkeys("will 'll gonna".split(), "future"),
    "can": "able",
}
_PASSIVE_VERBS: Final = frozenset(
    "bear diagnose raise employ hire promote name call retire engage divorce".split()
)
_PERFECT_VERBS: Final = frozenset(
    "buy move start join leave finish adopt quit lose break go become turn switch get win".split()
)
"""Verbs before which an 's is more likely a "has" than an "is"."""
_INVARIANT_PARTICIPLES: Final = frozenset(
    "run read quit become come set put cut hit split hurt".split()
)
"""Verbs whose participle looks like their present."""
_NEGATIONS: Final = frozenset("not n't nt never neither".split())
_ADVERB_FLAGS: Final = {
    **dict.fromkeys("barely hardly rarely seldom scarcely almost nearly".split(), "supposed"),
    **dict.fromkeys(
        "usually always often typically generally normally regularly sometimes frequently".split(),
        "habit",
    ),
    **dict.fromkeys("now currently presently".split(), "now"),
    **dict.fromkeys("probably possibly maybe perhaps apparently supposedly".split(), "doubted"),
}
_ADVERBS: Final = frozenset(
    """also really realy relly just still actually absolutely totally definitely truly deeply literally especially
    particularly recently finally already only even very pretty quite so too simply genuinely certainly honestly
    obviously basically both all kinda kind sort of officially originally mainly primarily largely personally
    strongly much secretly mostly fully completely seriously super happily proudly lately since long strictly
    newly once soon right then slowly gradually quickly constantly actively steadily""".split()
)
_CONTRACTED: Final = {
    **dict.fromkeys("don't dont".split(), "do"),
    **dict.fromkeys("doesn't doesnt".split(), "does"),
    **dict.fromkeys("didn't didnt".split(), "did"),
    **dict.fromkeys("isn't isnt".split(), "is"),
    **dict.fromkeys("aren't arent".split(), "are"),
    **dict.fromkeys("wasn't wasnt".split(), "was"),
    **dict.fromkeys("weren't".split(), "were"),
    **dict.fromkeys("haven't havent".split(), "have"),
    **dict.fromkeys("hasn't hasnt".split(), "has"),
    **dict.fromkeys("hadn't".split(), "had"),
    **dict.fromkeys("won't wont".split(), "will"),
    **dict.fromkeys("can't cant cannot".split(), "can"),
    **dict.fromkeys("couldn't".split(), "could"),
    **dict.fromkeys("wouldn't".split(), "would"),
    **dict.fromkeys("shouldn't".split(), "should"),
    **dict.fromkeys("ain't".split(), "am"),
}


def parse_verb(text: str, start: int, end: int) -> ParsedVerb | None:
    """The verb a stretch begins with, read through its auxiliaries, negations and adverbs."""
    return _VerbParser(text, end).parse_from(start)


class _VerbParser:
    """Reads auxiliaries one by one and keeps what they say."""

    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.flags: dict[str, bool] = {}
        self.auxiliary = ""
        self.is_past = False
        self.auxiliary_start = 0

    def parse_from(self, position: int) -> ParsedVerb | None:
        """The verb from here on; `be` and `have` are the verb themselves where no other follows."""
        for _ in range(_MAX_TOKENS):
            token = get_pattern("verb.token").match(self.text, position, self.end)
            if token is None:
                break
            phrase, word = (token["phrase"] or "").lower(), (token["word"] or "").lower()
            if phrase == "going to" and not self._is_verb_next(token.end()):
                return self._build_verb("going", position, token.end() - len(" to"))
            if phrase == "used to" and self.auxiliary in _BE:
                return None
            if not (
                self._consume_phrase(phrase)
                if phrase
                else self._consume_word(word, token.end() - len(word))
            ):
                return self._build_verb(word, position, token.end())
            position = token.end()
        return self._build_auxiliary_verb(position)

    def _is_verb_next(self, position: int) -> bool:
        token = get_pattern("verb.token").match(self.text, position, self.end)
        word = (token["word"] or "").lower() if token else ""
        return word == "be" or load_verb_forms().get(word, ("", ""))[1] == PRESENT

    def _consume_phrase(self, phrase: str) -> bool:
        if phrase in ("used to", "no longer"):
            self.flags["ended"] = True
        elif phrase == "going to":
            self.flags["supposed" if self.is_past else "future"] = True
        elif phrase in ("tend to", "tends to"):
            self.flags["habit"] = True
        elif phrase in ("about to", "have to", "has to", "had to", "need to"):
            self.flags["supposed"] = True
        if phrase in ("used to", "going to", "tend to", "tends to"):
            self.auxiliary = "to"
        return True

    def _consume_word(self, word: str, start: int) -> bool:
        """Take in a word that is not yet the verb; false if it is."""
        if word in _CONTRACTED:
            word = _CONTRACTED[word]
            self.flags["negated"] = True
        if flag_names := _AUXILIARY_FLAGS.get(word):
            self.flags |= dict.fromkeys(flag_names.split(), True)
            is_double_had = word == "had" and self.auxiliary in _HAVE
            self.flags["had"] = is_double_had
            self.is_past = self.is_past or (
                word in ("was", "were", "did", "had") and not is_double_had
            )
            self.auxiliary, self.auxiliary_start = word, start
        elif word in _NEGATIONS:
            self.flags["negated"] = not self.flags.get("negated", False)
        elif word in _ADVERB_FLAGS:
            self.flags[_ADVERB_FLAGS[word]] = True
        else:
            return word in _ADVERBS
        return True

    def _build_verb(self, word: str, position: int, end: int) -> ParsedVerb | None:
        lemma, tense = load_verb_forms().get(word, ("", ""))
        start = end - len(word)
        if self.auxiliary == "'s" and (
            word == "got" or (lemma in _PERFECT_VERBS and tense == PAST)
        ):
            self.auxiliary = "has"
            self.flags["perfect"] = True
        if self.auxiliary in _BE:
            if tense == ING or (lemma in _PASSIVE_VERBS and tense == PAST):
                self.flags["passive"] = tense == PAST
                return ParsedVerb(lemma, self._build_features(tense), start, end)
            return self._build_auxiliary_verb(position)
        if self.auxiliary in _HAVE and word == "got":
            self.flags.pop("perfect", None)
            return ParsedVerb("have", self._build_features(PRESENT), start, end)
        if self.auxiliary in _HAVE:
            if tense == PAST or lemma in _INVARIANT_PARTICIPLES:
                return ParsedVerb(lemma, self._build_features(PAST), start, end)
            return self._build_auxiliary_verb(position)
        if self.auxiliary in _DO and tense != PRESENT:
            return self._build_auxiliary_verb(position)
        if not lemma:
            return None
        return ParsedVerb(lemma, self._build_features(PAST if self.is_past else tense), start, end)

    def _build_auxiliary_verb(self, position: int) -> ParsedVerb | None:
        """The auxiliary as the verb of the clause."""
        for lemma, auxiliaries in (("be", _BE), ("have", _HAVE), ("do", _DO)):
            if self.auxiliary in auxiliaries:
                is_double_had = self.flags.get("had", False)
                if lemma == "have" and not is_double_had:
                    self.flags.pop("perfect", None)
                tense = (
                    ING
                    if self.auxiliary == "having"
                    else PAST
                    if self.is_past or is_double_had
                    else PRESENT
                )
                return ParsedVerb(
                    lemma, self._build_features(tense), self.auxiliary_start, position
                )
        return None

    def _build_features(self, tense: str) -> VerbFeatures:
        return VerbFeatures(
            tense=tense,
            **{name: value for name, value in self.flags.items() if name not in ("aux", "had")},
        )

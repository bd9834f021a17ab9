"""The verb of a clause: which one it is, and how it is said — now or once, denied, doubted, planned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from told.write.local.tables import pattern, sections

PRESENT, PAST, ING = TENSES = ("present", "past", "ing")
_LONG_ENOUGH: Final = 5
_MOST_WORDS: Final = 9
"""How many auxiliaries and adverbs may stand before a verb."""


@cache
def forms() -> dict[str, tuple[str, str]]:
    """Every form of a verb the rules know, with the verb and the tense, and with two letters in the wrong order."""
    table: dict[str, tuple[str, str]] = {}
    for row in sections("verbs.txt")["verbs"]:
        for tense, said in zip(TENSES, row.split(" / "), strict=False):
            for form in said.split():
                table.setdefault(form, (row.split()[0], tense))
    return {swapped: form for word, form in table.items() for swapped in _swaps(word)} | table


def _swaps(word: str) -> list[str]:
    """The word with two neighbouring letters in the wrong order, for words long enough that nothing else is meant."""
    if len(word) < _LONG_ENOUGH:
        return []
    return [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)]


@dataclass(frozen=True, slots=True)
class Stance:
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
class Verb:
    """A verb with its stance, where its word begins, and where its complement does."""

    lemma: str
    stance: Stance
    word: int
    at: int


_BE: Final = frozenset("am is are was were be been being 'm 're 's m r".split())
_HAVE: Final = frozenset("have has had 've ve having hav".split())
_DO: Final = frozenset("do does did".split())
_AUXILIARIES: Final = {
    **dict.fromkeys(_BE | _DO, "aux"),
    **dict.fromkeys(_HAVE, "perfect"),
    **dict.fromkeys("would could should must 'd shall ought".split(), "wished"),
    **dict.fromkeys("might may".split(), "doubted future"),
    **dict.fromkeys("will 'll gonna".split(), "future"),
    "can": "able",
}
_PASSIVE: Final = frozenset("bear diagnose raise employ hire promote name call retire engage divorce".split())
_HAS_DONE: Final = frozenset(
    "buy move start join leave finish adopt quit lose break go become turn switch get win".split()
)
"""Verbs before which an 's is more likely a "has" than an "is"."""
_UNCHANGED: Final = frozenset("run read quit become come set put cut hit split hurt".split())
"""Verbs whose participle looks like their present."""
_NOT: Final = frozenset("not n't nt never neither".split())
_SAID: Final = {
    **dict.fromkeys("barely hardly rarely seldom scarcely almost nearly".split(), "supposed"),
    **dict.fromkeys(
        "usually always often typically generally normally regularly sometimes frequently".split(), "habit"
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


def verb_at(text: str, start: int, end: int) -> Verb | None:
    """The verb a stretch begins with, read through its auxiliaries, negations and adverbs."""
    return _Reader(text, end).read(start)


class _Reader:
    """Reads auxiliaries one by one and keeps what they say."""

    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.said: dict[str, bool] = {}
        self.auxiliary = ""
        self.past = False
        self.stood = 0

    def read(self, at: int) -> Verb | None:
        """The verb from here on; `be` and `have` are the verb themselves where no other follows."""
        for _ in range(_MOST_WORDS):
            token = pattern("verb.token").match(self.text, at, self.end)
            if token is None:
                break
            phrase, word = (token["phrase"] or "").lower(), (token["word"] or "").lower()
            if phrase == "going to" and not self._verb_follows(token.end()):
                return self._verb("going", at, token.end() - len(" to"))
            if phrase == "used to" and self.auxiliary in _BE:
                return None
            if not (self._phrase(phrase) if phrase else self._word(word, token.end() - len(word))):
                return self._verb(word, at, token.end())
            at = token.end()
        return self._alone(at)

    def _verb_follows(self, at: int) -> bool:
        token = pattern("verb.token").match(self.text, at, self.end)
        word = (token["word"] or "").lower() if token else ""
        return word == "be" or forms().get(word, ("", ""))[1] == PRESENT

    def _phrase(self, phrase: str) -> bool:
        if phrase in ("used to", "no longer"):
            self.said["ended"] = True
        elif phrase == "going to":
            self.said["supposed" if self.past else "future"] = True
        elif phrase in ("tend to", "tends to"):
            self.said["habit"] = True
        elif phrase in ("about to", "have to", "has to", "had to", "need to"):
            self.said["supposed"] = True
        if phrase in ("used to", "going to", "tend to", "tends to"):
            self.auxiliary = "to"
        return True

    def _word(self, word: str, start: int) -> bool:
        """Take in a word that is not yet the verb; false if it is."""
        if word in _CONTRACTED:
            word = _CONTRACTED[word]
            self.said["negated"] = True
        if flags := _AUXILIARIES.get(word):
            self.said |= dict.fromkeys(flags.split(), True)
            had = word == "had" and self.auxiliary in _HAVE
            self.said["had"] = had
            self.past = self.past or (word in ("was", "were", "did", "had") and not had)
            self.auxiliary, self.stood = word, start
        elif word in _NOT:
            self.said["negated"] = not self.said.get("negated", False)
        elif word in _SAID:
            self.said[_SAID[word]] = True
        else:
            return word in _ADVERBS
        return True

    def _verb(self, word: str, at: int, end: int) -> Verb | None:
        lemma, tense = forms().get(word, ("", ""))
        start = end - len(word)
        if self.auxiliary == "'s" and (word == "got" or (lemma in _HAS_DONE and tense == PAST)):
            self.auxiliary = "has"
            self.said["perfect"] = True
        if self.auxiliary in _BE:
            if tense == ING or (lemma in _PASSIVE and tense == PAST):
                self.said["passive"] = tense == PAST
                return Verb(lemma, self._stance(tense), start, end)
            return self._alone(at)
        if self.auxiliary in _HAVE and word == "got":
            self.said.pop("perfect", None)
            return Verb("have", self._stance(PRESENT), start, end)
        if self.auxiliary in _HAVE:
            if tense == PAST or lemma in _UNCHANGED:
                return Verb(lemma, self._stance(PAST), start, end)
            return self._alone(at)
        if self.auxiliary in _DO and tense != PRESENT:
            return self._alone(at)
        if not lemma:
            return None
        return Verb(lemma, self._stance(PAST if self.past else tense), start, end)

    def _alone(self, at: int) -> Verb | None:
        """The auxiliary as the verb of the clause."""
        for lemma, auxiliaries in (("be", _BE), ("have", _HAVE), ("do", _DO)):
            if self.auxiliary in auxiliaries:
                had = self.said.get("had", False)
                if lemma == "have" and not had:
                    self.said.pop("perfect", None)
                tense = ING if self.auxiliary == "having" else PAST if self.past or had else PRESENT
                return Verb(lemma, self._stance(tense), self.stood, at)
        return None

    def _stance(self, tense: str) -> Stance:
        return Stance(tense=tense, **{name: value for name, value in self.said.items() if name not in ("aux", "had")})

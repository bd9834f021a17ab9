"""Labelled utterances and updates, and scores of an extractor or a memory on them.

An utterance has what was `said` (a text, or messages) and, where it matters, the time (`at`). Its
`gold` triples are what a careful reader would keep. A triple's `any_of` lists the acceptable
predicates; one marked `-` or `+` is acceptable in the negated or asserted form, whatever the
triple's own polarity. A list of subjects or objects holds alternative wordings. `optional` triples
count neither for nor against. `never` holds texts and triples that must not be claimed. `on` is the
date a claim should carry, as a prefix of ISO 8601.

A claim is right if it matches a required triple that no earlier claim matched; neutral if it
matches any other triple, or only names somebody in a triple; and wrong otherwise. Precision is
right / (right + wrong); recall is the share of required triples found.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from chaos import DATA, rows
from told.flow import run
from told.ingest import messages
from told.ingest.types import QUARANTINED, ExtractionInput, Extractor
from told.model.entry import Claim
from told.model.kind import FAVOURITE_PREFIX, lookup_predicate
from told.model.scope import Scope
from told.settings import Settings
from told.text.dates import format_iso, parse_instant
from told.text.tokens import stem_word

SPLITS = ("dev", "test")
NOW = "2026-06-15T12:00:00Z"
"""Default time of an utterance."""
COVERED, SWALLOWED = 0.6, 0.3
"""Share of wanted words a value must hold, and share of its words that must be wanted."""
LIKE, LIKE_FROM = 0.84, 5
"""Similarity of words that differ by a typo, and their minimum length."""
SCOPE = Scope(user_id="labels")


# the labels


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple that a claim must match."""

    subjects: tuple[str, ...]
    predicates: tuple[tuple[str, str], ...]
    """Each accepted predicate with its accepted polarity."""
    objects: tuple[str, ...]
    optional: bool = False
    on: str = ""

    def __str__(self) -> str:
        name, polarity = self.predicates[0]
        return (
            f"{'not ' if polarity == 'negated' else ''}{self.subjects[0]} {name} {self.objects[0]}"
        )


@dataclass(frozen=True, slots=True)
class Utterance:
    """An utterance and its labels."""

    id: str
    style: str
    lang: str
    said: Any
    at: str
    gold: tuple[Triple, ...]
    never: tuple[Triple | str, ...]

    @property
    def text(self) -> str:
        """Return the utterance on one line."""
        said = (
            self.said
            if isinstance(self.said, str)
            else " // ".join(row["content"] for row in self.said)
        )
        return " ".join(said.split())

    @property
    def required(self) -> tuple[Triple, ...]:
        """Return the triples that must be found."""
        return tuple(one for one in self.gold if not one.optional)

    def heard(self) -> ExtractionInput:
        """Return the input of an extractor."""
        said = messages.parse_messages(
            self.said, metadata=None, timestamp=self.at, source=None, settings=Settings()
        )
        return ExtractionInput(said.turns, parse_instant(self.at), SCOPE)


def utterances(split: str) -> tuple[Utterance, ...]:
    """Load the utterances of a split."""
    return tuple(map(_utterance, rows(DATA / "utterances" / f"{split}.jsonl")))


def _utterance(row: Mapping[str, Any]) -> Utterance:
    never = tuple(one if isinstance(one, str) else _triple(one) for one in row["never"])
    gold = tuple(map(_triple, row["gold"]))
    return Utterance(
        row["id"], row["style"], row["lang"], row["said"], row.get("at", NOW), gold, never
    )


def _triple(row: Mapping[str, Any]) -> Triple:
    own = row.get("polarity", "asserted")
    signs = {"-": "negated", "+": "asserted"}
    names = row.get("any_of", (row["predicate"],))
    fair = tuple((name.lstrip("+-"), signs.get(name[0], own)) for name in names)
    return Triple(
        _several(row["subject"]),
        fair,
        _several(row["object"]),
        row.get("optional", False),
        row.get("on", ""),
    )


def _several(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


# words

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_SMALL = frozenset(
    "a an the my our his her their your its of in at on to for with and or by from as is are be "
    "am was were s "
    "el la los las un una unos unas mi de del en y le les une mon ma mes des du et der die das "
    "den dem ein eine einen "
    "mein meine im und il lo gli uno i di da per e o os um uma meu minha em user users".split()
)
_NEGATED = frozenset("no not never without cannot neither nor none t".split())
"""Words that negate a value; the last is the rest of "don't"."""
_SAME = {
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "twelve": "12",
    "twelfth": "12",
    "color": "colour",
    "favorite": "favourite",
    "movie": "film",
    "mum": "mother",
    "mom": "mother",
    "mama": "mother",
    "dad": "father",
    "papa": "father",
    "grandpa": "grandfather",
    "grandma": "grandmother",
    "kids": "children",
    "kid": "child",
    "gf": "girlfriend",
    "bf": "boyfriend",
    "boss": "manager",
    "neighbor": "neighbour",
    "frau": "wife",
    "mari": "husband",
    "esposa": "wife",
}


@lru_cache(maxsize=50_000)
def words(text: str) -> tuple[str, ...]:
    """Return the stems of the content words, or of all words if there are none."""
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c)
    )
    found = _WORD.findall(unicodedata.normalize("NFKC", plain))
    carrying = [word for word in found if word not in _SMALL] or found
    return tuple(stem_word(_SAME.get(word, word)) for word in carrying)


def _alike(one: str, other: str) -> bool:
    if one == other:
        return True
    if min(len(one), len(other)) < LIKE_FROM:
        return False
    return SequenceMatcher(None, one, other).ratio() >= LIKE


def share(wanted: Sequence[str], given: Sequence[str]) -> float:
    """Return the share of the wanted words among the given ones."""
    return sum(any(_alike(word, other) for other in given) for word in wanted) / max(1, len(wanted))


def same_value(wanted: str, given: str) -> bool:
    """Compare values, ignoring case, articles, typos and a few extra words."""
    want, have = words(wanted), words(given)
    agreed = _NEGATED.isdisjoint(want) == _NEGATED.isdisjoint(have)
    want, have = (
        tuple(word for word in some if word not in _NEGATED) or some for some in (want, have)
    )
    return agreed and share(want, have) >= COVERED and share(have, want) >= SWALLOWED


def same_subject(wanted: str, given: str | None) -> bool:
    """Compare names: "Anna" equals "User's wife Anna"; the user equals only the user."""
    if wanted == "User" or given is None:
        return wanted == "User" and (given is None or given.casefold() in ("user", "the user"))
    want, have = (
        set(words(name.rpartition("'s ")[2])) for name in (wanted, given.replace("’", "'"))
    )
    return given.casefold() != "user" and (want <= have or have <= want)


def same_predicate(wanted: str, given: str) -> bool:
    """Compare predicates; a favourite thing may be named more or less exactly."""
    if wanted == given:
        return True
    given = given.replace("favorite_", FAVOURITE_PREFIX)
    if not (wanted.startswith(FAVOURITE_PREFIX) and given.startswith(FAVOURITE_PREFIX)):
        return False
    want, have = (
        set(words(name.removeprefix(FAVOURITE_PREFIX).replace("_", " ")))
        for name in (wanted, given)
    )
    return want <= have or have <= want


# matching


def matches(claim: Claim, triple: Triple, now: int) -> bool:
    """Check whether a claim matches a triple; without a predicate, compare the text."""
    if claim.predicate is None:
        return _by_text(claim, triple, now)
    if not any(same_subject(subject, claim.subject) for subject in triple.subjects):
        return False
    for name, polarity in triple.predicates:
        if not _same_polarity(claim, name, polarity, now):
            continue
        if same_predicate(name, claim.predicate):
            if any(same_value(value, claim.object or "") for value in triple.objects):
                return True
        elif lookup_predicate(name).slot == lookup_predicate(claim.predicate).slot and _tells(
            claim.text, triple
        ):
            return True
    return False


def _tells(text: str, triple: Triple) -> bool:
    """Check whether a text holds one of the values, such as "works at Acme as a chemist"."""
    return any(share(words(value), words(text)) >= COVERED for value in triple.objects)


def _by_text(claim: Claim, triple: Triple, now: int) -> bool:
    first = claim.text.split()[:1]
    about = any(
        first in (["User"], ["I"])
        if subject == "User"
        else share(words(subject), words(claim.text)) == 1
        for subject in triple.subjects
    )
    fair = any(_same_polarity(claim, name, polarity, now) for name, polarity in triple.predicates)
    return about and fair and _tells(claim.text, triple)


def _same_polarity(claim: Claim, name: str, polarity: str, now: int) -> bool:
    """Treat an ended state as denied; an event stays asserted, however long ago."""
    ended = (
        claim.valid.end is not None
        and claim.valid.end <= now
        and lookup_predicate(name).kind != "event"
    )
    return (claim.polarity == "negated" or ended) == (polarity == "negated")


def fair(claim: Claim, gold: Sequence[Triple], now: int) -> bool:
    """Check whether a claim is neutral: optional, repeated or implied."""
    return implied(claim, gold) or any(matches(claim, one, now) for one in gold)


def implied(claim: Claim, gold: Iterable[Triple]) -> bool:
    """Check whether a claim only names somebody in the labels, or says that the user has them."""
    if claim.polarity == "negated" or claim.predicate is None:
        return False
    named, value = claim.predicate in ("name", "nickname"), claim.object or ""
    if named and not same_subject("User", claim.subject):
        return any(
            same_value(one, value) for triple in gold for one in (*triple.subjects, *triple.objects)
        )
    if claim.predicate == "relationship_status":
        return any(
            name in ("married_to", "has_partner")
            for triple in gold
            for name, _ in triple.predicates
        )
    if claim.predicate.startswith("has_") or claim.predicate in ("has", "married_to", "manager"):
        others = [one for triple in gold for one in triple.subjects if one != "User"]
        return any(same_subject(one, value) for one in others)
    return False


def forbidden(claim: Claim, utterance: Utterance, now: int) -> bool:
    """Check whether a claim must never be made of this utterance."""
    return any(
        one.casefold() in claim.text.casefold()
        if isinstance(one, str)
        else matches(claim, one, now)
        for one in utterance.never
    )


# scores


@dataclass(slots=True)
class Score:
    """Counts of right, wrong and missed."""

    right: int = 0
    wrong: int = 0
    wanted: int = 0
    found: int = 0
    forbidden: int = 0
    dated: int = 0
    """Required triples found that have a date."""
    well_dated: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def precision(self) -> float:
        """Return the share of counted claims that are right."""
        claimed = self.right + self.wrong
        return self.right / claimed if claimed else 1.0

    @property
    def recall(self) -> float:
        """Return the share of required triples found."""
        return self.found / self.wanted if self.wanted else 1.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """One utterance and the claims of an extractor."""

    utterance: Utterance
    score: Score
    missed: tuple[Triple, ...]
    wrong: tuple[Claim, ...]


def judge(utterance: Utterance, extractor: Extractor) -> Judged:
    """Run an extractor on an utterance and score its claims; quarantined ones do not count."""
    heard = utterance.heard()
    claims = [
        one.claim
        for one in run(extractor.extract(heard)).claims
        if one.claim.modality != QUARANTINED
    ]
    return held_against(utterance, claims, heard.now)


def held_against(utterance: Utterance, claims: Iterable[Claim], now: int) -> Judged:
    """Score claims against the labels."""
    score, wrong = Score(wanted=len(utterance.required)), []
    missed = list(utterance.required)
    for claim in claims:
        banned = forbidden(claim, utterance, now)
        hit = [] if banned else [one for one in missed if matches(claim, one, now)]
        if not (hit or banned) and fair(claim, utterance.gold, now):
            continue
        if not hit:
            score += Score(wrong=1, forbidden=banned)
            wrong.append(claim)
            continue
        missed = [one for one in missed if one not in hit]
        score += Score(right=1, found=len(hit)) + _dates(claim, hit)
    return Judged(utterance, score, tuple(missed), tuple(wrong))


def _dates(claim: Claim, hit: Sequence[Triple]) -> Score:
    dates = [one.on for one in hit if one.on]
    start = "" if claim.valid.start is None else format_iso(claim.valid.start)
    return Score(dated=len(dates), well_dated=sum(start.startswith(date) for date in dates))


def measure(split: str, extractor: Extractor) -> list[Judged]:
    """Judge an extractor on every utterance of a split."""
    return [judge(utterance, extractor) for utterance in utterances(split)]


def total(judged: Iterable[Judged]) -> Score:
    """Add up the scores."""
    return sum((one.score for one in judged), Score())


def by_style(judged: Iterable[Judged]) -> dict[str, Score]:
    """Return a score for every style."""
    found: dict[str, Score] = defaultdict(Score)
    for one in judged:
        found[one.utterance.style] += one.score
    return dict(sorted(found.items()))


# updates

_DENIES = re.compile(
    r"\b(no longer|not|never|stopped|quit|used to|former(ly)?|any ?more|gave up|sold|cancelled|died|keine?|was|had)\b"  # noqa: E501
    r"|n['’]t",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Update:
    """Consecutive steps, the expected event of the last one, and the expected memories."""

    id: str
    theme: str
    steps: tuple[Any, ...]
    expect: tuple[str, ...]
    now: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def updates(split: str) -> tuple[Update, ...]:
    """Load the updates of a split."""
    names = ("now", "gone", "kept")
    return tuple(
        Update(
            row["id"],
            row["theme"],
            tuple(row["steps"]),
            _several(row["expect"]),
            *(tuple(row[name]) for name in names),
        )
        for row in rows(DATA / "updates" / f"{split}.jsonl")
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The faults of an update; none if it went well."""

    update: Update
    events: tuple[str, ...]
    held: tuple[str, ...]
    faults: tuple[str, ...] = field(default=())


def measure_updates(memory_factory: Callable[[], Any], split: str = "test") -> list[Outcome]:
    """Play every update of a split on a fresh memory through its public verbs."""
    return [_played(memory_factory, update) for update in updates(split)]


def accuracy(outcomes: Sequence[Outcome]) -> float:
    """Return the share of updates without a fault."""
    return sum(not one.faults for one in outcomes) / len(outcomes)


def _played(memory_factory: Callable[[], Any], update: Update) -> Outcome:
    with memory_factory() as memory:
        receipts = [memory.add(step, user_id="u") for step in update.steps]
        held = tuple(row["memory"] for row in memory.get_all(user_id="u")["results"])
    events = tuple(row["event"] for row in receipts[-1]["results"])
    return Outcome(update, events, held, tuple(_faults(update, events, held)))


def _faults(update: Update, events: Sequence[str], held: Sequence[str]) -> Iterator[str]:
    changes = {*events} - {"NONE"} or {"NONE"}
    if not changes <= {*update.expect}:
        yield f"{'/'.join(sorted(changes))}, not {'/'.join(update.expect)}"
    yield from (
        f"{text!r} is not held"
        for text in (*update.now, *update.kept)
        if not any(_holds(held, text))
    )
    last = update.steps[-1]
    verbatim = {last} if isinstance(last, str) else {row["content"] for row in last}
    believed = [text for text in held if text not in verbatim and not _DENIES.search(text)]
    yield from (f"{text!r} is still held" for text in update.gone if any(_holds(believed, text)))


def _holds(held: Iterable[str], text: str) -> Iterator[bool]:
    """Check whether each memory holds a text or one of its wordings, about the same person."""
    for wording in text.split("~"):
        first = wording.split()[0]
        alone = first in ("User", "User's")
        for memory in held:
            yield share(words(wording), words(memory)) == 1 and (
                not alone or memory.split()[0] == first
            )

"""Filing exchanges under topics: what it comes to, as drafts and notes that commit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from told.core.entry import Asserted, Claim, Draft, Linked, Retracted
from told.core.fact import TOPIC, Fact, Link
from told.core.ids import Mint
from told.core.query import LATEST, AsOf
from told.core.scope import Scope
from told.core.score import quantise
from told.core.topics import (
    DERIVED_FROM,
    EXCHANGE,
    IN_TOPIC,
    SUPER,
    Mean,
    Shelf,
    Thresholds,
    centre_in,
    clusters,
    code_in,
    join,
    label,
    mean_in,
    mean_of,
    overfull,
    pack_code,
)
from told.flow import Flow, call
from told.ports import Embedder, Guard, Intact, Store, sound
from told.read.topics import AUTHOR, CONSUMER, PAGE, held_turns, opening
from told.settings import Settings
from told.tend import dots
from told.tend.shelves import Shelves, epoch_key

NAMELESS: Final = "(no longer held)"


@dataclass(frozen=True, slots=True)
class Member:
    """An exchange as a topic holds it, by its id, with the threads of its turns; its vector is noted under the id."""

    key: str
    threads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spoken:
    """An exchange with what was said in it."""

    member: Member
    facts: tuple[Fact, ...]

    @property
    def text(self) -> str:
        """What is embedded: all turns together."""
        return "\n".join(f"{'User' if fact.role == 'user' else 'Agent'}: {fact.text}" for fact in self.facts)


@dataclass(frozen=True, slots=True)
class Files:
    """What topics are kept with; `model` is the one whose vectors they are made of."""

    store: Store
    mint: Mint
    settings: Settings
    limits: Thresholds
    model: str
    embedder: Embedder | None = None
    shelves: Shelves = field(default_factory=Shelves)


@dataclass(slots=True)
class Filing:
    """What becomes of the topics of one scope in one commit."""

    files: Files
    scope: Scope
    shelf: Shelf
    drafts: list[Draft] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    notes: dict[str, bytes | None] = field(default_factory=dict)
    means: dict[str, Mean] = field(default_factory=dict)
    joined: dict[str, list[Member]] = field(default_factory=dict)
    made: int = 0
    split: int = 0

    def say(self, *verbs: Asserted | Linked | Retracted) -> None:
        """Draft what is to be written."""
        self.drafts += [Draft(verb, self.scope, AUTHOR) for verb in verbs]

    def put(self, topic: str, mean: Mean) -> None:
        """A topic has this mean now."""
        self.means[topic] = mean
        self.notes[topic] = mean.pack(self.files.model)
        self.shelf.put(topic, mean.code)

    def end(self, topic: str, why: str) -> None:
        """A topic is no more; the past keeps it."""
        self.say(Retracted(topic, why))
        self.means.pop(topic, None)
        self.notes[topic] = None
        self.shelf.drop(topic)

    def enrol(self, topic: str, members: Iterable[Member]) -> None:
        """These are of this topic from now on."""
        for member in members:
            meta = {EXCHANGE: member.key}
            self.say(*(Linked(thread, IN_TOPIC, topic, meta=meta) for thread in member.threads))
            self.joined.setdefault(topic, []).append(member)

    def begin(self, turn: Fact | None) -> str:
        """A new topic, named after a turn if that is still held; it goes when that turn is erased."""
        topic = self.files.mint.id()
        self.guards += [] if turn is None else [Intact(turn.seq)]
        self.say(*naming(topic, turn))
        self.made += 1
        return topic

    def renewed(self) -> bytes:
        """Note that the topics of the scope changed; what they are known by from then on."""
        epoch = self.files.mint.salt()
        self.notes[epoch_key(self.scope)] = epoch
        return epoch


def naming(topic: str, turn: Fact | None, since: int | None = None) -> tuple[Asserted | Linked, ...]:
    """That a topic is named after a turn, or after nothing."""
    if turn is None:
        return (Asserted(topic, Claim(NAMELESS, TOPIC), since),)
    return Asserted(topic, Claim(label(turn.text), TOPIC), since), Linked(topic, DERIVED_FROM, turn.id)


# What is there --------------------------------------------------------------------------------------------------------


def opened(files: Files, scope: Scope) -> Flow[Filing]:
    """The topics of a scope, ready to be changed."""
    key = epoch_key(scope)
    noted = yield from call(files.store.notes, scope.account, CONSUMER, [key])
    shelf = files.shelves.take(scope, noted.get(key))
    filing = Filing(files, scope, Shelf(products=dots.best()) if shelf is None else shelf)
    if shelf is None:
        yield from _load(filing)
    return filing


def held(files: Files, scope: Scope) -> Flow[Sequence[Fact]]:
    """The topics that exactly this scope has, oldest first; topics of topics are none."""
    found = yield from call(files.store.held, scope, files.mint.now(), kinds=[TOPIC])
    return [fact for fact in found if not fact.meta.get(SUPER)]


def _load(filing: Filing) -> Flow[None]:
    """Put every topic of the scope on the shelf; what is not noted of one is made anew of its members."""
    files, account = filing.files, filing.scope.account
    topics = [fact.id for fact in (yield from held(files, filing.scope))]
    for start in range(0, len(topics), PAGE):
        page = topics[start : start + PAGE]
        noted = yield from call(files.store.notes, account, CONSUMER, page)
        for topic in page:
            centre = centre_in(noted.get(topic), files.model)
            if centre is None:
                yield from renew(filing, topic)
            else:
                filing.shelf.put(topic, centre)


def members(links: Iterable[Link], topic: str) -> list[Member]:
    """The exchanges that links put into a topic, in the order of the ledger."""
    found: dict[str, dict[str, None]] = {}
    for link in links:
        if link.rel == IN_TOPIC and link.dst == topic:
            found.setdefault(str(link.meta.get(EXCHANGE, link.src)), {})[link.src] = None
    return [Member(exchange, tuple(threads)) for exchange, threads in found.items()]


def members_of(filing: Filing, topic: str) -> Flow[list[Member]]:
    """The exchanges of a topic: those it had, and those of this commit."""
    links = yield from call(filing.files.store.links, filing.scope.account, [topic])
    return [*members(sorted(links, key=lambda link: link.seq), topic), *filing.joined.get(topic, ())]


def spoken(files: Files, scope: Scope, exchanges: Iterable[Member]) -> Flow[list[Spoken]]:
    """What was said in exchanges, as far as it is still held."""
    several, now = list(exchanges), AsOf(LATEST, files.mint.now())
    turns = yield from held_turns(files.store, scope, now, (thread for one in several for thread in one.threads))
    said = (Spoken(one, tuple(turns[thread] for thread in one.threads if thread in turns)) for one in several)
    return [one for one in said if one.facts]


def codes_of(filing: Filing, exchanges: Sequence[Member]) -> Flow[dict[str, bytes]]:
    """The vectors of exchanges by their keys, in order: as they are noted, and else as the embedder gives them."""
    files, account = filing.files, filing.scope.account
    noted = dict((yield from call(files.store.notes, account, CONSUMER, [member.key for member in exchanges])))
    noted |= {key: note for key, note in filing.notes.items() if note is not None}
    found = {member.key: code_in(noted.get(member.key), files.model) for member in exchanges}
    missing = [member for member in exchanges if found[member.key] is None]
    if missing and files.embedder is not None and files.embedder.model == files.model:
        said = yield from spoken(files, filing.scope, missing)
        filing.guards += [Intact(fact.seq) for one in said for fact in one.facts]
        for key, code in (yield from _embedded(files.embedder, said)).items():
            found[key], filing.notes[key] = code, pack_code(code, files.model)
    return {key: code for key, code in found.items() if code is not None}


def _embedded(embedder: Embedder, said: Sequence[Spoken]) -> Flow[Mapping[str, bytes]]:
    if not said:
        return {}
    vectors = yield from call(embedder.embed, [one.text for one in said], "passage")
    vectors = sound(embedder, vectors, len(said))
    return {one.member.key: quantise([float(x) for x in vec]) for one, vec in zip(said, vectors, strict=True)}


def renew(filing: Filing, topic: str) -> Flow[None]:
    """Make the mean of a topic anew of its members; one that has none left is no more."""
    exchanges = yield from members_of(filing, topic)
    codes = yield from codes_of(filing, exchanges)
    if codes:
        filing.put(topic, mean_of(codes.values()))
    elif not exchanges:
        filing.end(topic, "empty")


# Filing ---------------------------------------------------------------------------------------------------------------


def file(filing: Filing, exchanges: Sequence[Member]) -> Flow[int]:
    """Put exchanges into the topics they are near enough to, or into new ones; how many were put somewhere."""
    codes = yield from codes_of(filing, exchanges)
    filed = 0
    for member in exchanges:
        if (code := codes.get(member.key)) is None:
            continue
        topic = join(code, filing.shelf, filing.files.limits.join)
        if topic is None:
            topic, mean = filing.begin((yield from first_held(filing.files, filing.scope, [member]))), Mean()
        else:
            mean = yield from _mean(filing, topic)
        filing.enrol(topic, [member])
        filing.put(topic, mean.plus(code))
        filed += 1
        if overfull(mean.count, mean.count + 1, filing.files.settings.topic_cap):
            yield from divide(filing, topic)
    return filed


def _mean(filing: Filing, topic: str) -> Flow[Mean]:
    if topic not in filing.means:
        noted = yield from call(filing.files.store.notes, filing.scope.account, CONSUMER, [topic])
        known = mean_in(noted.get(topic), filing.files.model)
        if known is not None:
            return known
        yield from renew(filing, topic)
    return filing.means.get(topic, Mean())


def first_held(files: Files, scope: Scope, exchanges: Iterable[Member]) -> Flow[Fact | None]:
    """The turn that a topic of these is named after: that of the first of which anything is held."""
    for member in exchanges:
        for said in (yield from spoken(files, scope, [member])):
            return opening(said.facts)
    return None


def divide(filing: Filing, topic: str) -> Flow[None]:
    """Make several topics of one, if its members lie in clusters that are nearer than it takes to join."""
    exchanges = {member.key: member for member in (yield from members_of(filing, topic))}
    codes = yield from codes_of(filing, list(exchanges.values()))
    parts = clusters(codes, filing.files.limits.split)
    if len(parts) < 2:
        return
    filing.end(topic, "split")
    filing.split += 1
    for part in parts:
        several = [exchanges[key] for key in part]
        made = filing.begin((yield from first_held(filing.files, filing.scope, several)))
        filing.enrol(made, several)
        filing.put(made, mean_of(codes[key] for key in part))

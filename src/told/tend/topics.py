"""The consumer that puts exchanges into topics, and what keeps topics right when something in them is erased.

Which topic a turn is in is a belief, and stands in the ledger; the latest link counts. Means and vectors are notes of
the consumer. They commit with its step, and can be thrown away: they are made anew of the links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from told.core.entry import Asserted, Draft, Entry, Linked
from told.core.fact import TOPIC, Link
from told.core.scope import Scope
from told.core.topics import EXCHANGE, IN_EXCHANGE, IN_TOPIC, SUPER, is_mean
from told.flow import Flow, call
from told.ledger.commit import commit, decided
from told.ledger.consume import Failure, attempt
from told.ports import Batch, Guard, Step
from told.read.topics import CONSUMER, PAGE
from told.tend.filing import Files, Filing, Member, file, opened
from told.tend.naming import rename
from told.tend.shelves import epoch_key

NO_EMBEDDER = "No embedder is in use, so no topics are made; `told models install` adds one."


@dataclass(frozen=True, slots=True)
class Filed:
    """What the consumer did: exchanges put into topics, topics made and split, and what was not as it should be."""

    exchanges: int = 0
    made: int = 0
    split: int = 0
    warnings: tuple[str, ...] = ()

    def __add__(self, other: Filed) -> Filed:
        return Filed(
            self.exchanges + other.exchanges, self.made + other.made, self.split + other.split,
            (*self.warnings, *other.warnings),
        )  # fmt: skip


def consume(files: Files, account: str) -> Flow[Filed]:
    """Put every exchange that waits into a topic, a page of the ledger at a time; without an embedder, none."""
    done = Filed()
    while True:
        page = yield from attempt(decided(files.settings.conflict_retries, lambda: _page(files, account)))
        if isinstance(page, Failure):
            return done + Filed(warnings=(f"Not put into topics yet: {page}",))
        if page is None:
            return done
        done += page
        if page.warnings:
            return done


def _page(files: Files, account: str) -> Flow[Filed | None]:
    """What the next page of the ledger comes to; none when there is none."""
    before = yield from call(files.store.cursor, account, CONSUMER)
    head = yield from call(files.store.head, account)
    limit = files.settings.consumer_batch
    entries = yield from call(files.store.scan, account, before, limit)
    while entries and len(entries) == limit and not _whole(entries):
        limit *= 2
        entries = yield from call(files.store.scan, account, before, limit)
    if not entries:
        return None
    whole = _whole(entries) if len(entries) == limit else entries
    if (yield from rename(files, account, whole, head.seq)):
        head = yield from call(files.store.head, account)
    waiting = yield from _unfiled(files, account, _exchanges(whole))
    if not waiting:
        yield from call(files.store.advance, account, CONSUMER, whole[-1].seq)
        return Filed()
    if files.embedder is None:
        return Filed(warnings=(NO_EMBEDDER,))
    filings, filed = [], 0
    for scope, exchanges in waiting.items():
        filing = yield from opened(files, scope)
        filed += yield from file(filing, exchanges)
        filings.append(filing)
    yield from settle(files, filings, Step(CONSUMER, before, whole[-1].seq), head.seq)
    return Filed(filed, sum(f.made for f in filings), sum(f.split for f in filings))


def _whole(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries without those of the last transaction, of which more may follow."""
    return [entry for entry in entries if entry.tx != entries[-1].tx]


def _exchanges(entries: Iterable[Entry]) -> dict[Scope, list[Member]]:
    """The exchanges that entries tell of, by scope."""
    found: dict[tuple[Scope, str], dict[str, None]] = {}
    for entry in entries:
        match entry.draft:
            case Draft(verb=Linked(src=src, rel=rel, dst=dst), scope=Scope() as scope) if rel == IN_EXCHANGE:
                found.setdefault((scope, dst), {})[src] = None
            case _:
                pass
    members: dict[Scope, list[Member]] = {}
    for (scope, exchange), threads in found.items():
        members.setdefault(scope, []).append(Member(exchange, tuple(threads)))
    return members


def _unfiled(files: Files, account: str, found: dict[Scope, list[Member]]) -> Flow[dict[Scope, list[Member]]]:
    """Those that no topic holds: who reads a ledger again, or one from elsewhere, files nothing twice."""
    threads = [thread for members in found.values() for member in members for thread in member.threads]
    links = yield from _links(files, account, threads)
    filed = {link.meta.get(EXCHANGE) for link in links if link.rel == IN_TOPIC}
    left = {scope: [one for one in members if one.key not in filed] for scope, members in found.items()}
    return {scope: members for scope, members in left.items() if members}


def settle(files: Files, filings: Sequence[Filing], step: Step, seen: int = -1) -> Flow[None]:
    """Commit what became of the topics of some scopes, and keep their shelves for the next time."""
    epochs = [filing.renewed() for filing in filings]
    drafts: list[Draft] = []
    guards: list[Guard] = []
    notes: dict[str, bytes | None] = {}
    for filing in filings:
        drafts += filing.drafts
        guards += filing.guards
        notes |= filing.notes
    account = filings[0].scope.account
    yield from commit(files.store, Batch(account, drafts, guards, seen, step=step, notes=notes))
    for filing, epoch in zip(filings, epochs, strict=True):
        files.shelves.keep(filing.scope, epoch, filing.shelf)


def standing(files: Files, account: str) -> Flow[Step]:
    """A step on the spot: what changes topics without a page of the ledger takes its turn with what does."""
    cursor = yield from call(files.store.cursor, account, CONSUMER)
    return Step(CONSUMER, cursor, cursor)


def changing(files: Files, scope: Scope, change: Callable[[Filing], Flow[None]]) -> Flow[Filing]:
    """Change the topics of a scope in one commit, again if another was quicker."""

    def decide() -> Flow[Filing]:
        step = yield from standing(files, scope.account)
        head = yield from call(files.store.head, scope.account)
        filing = yield from opened(files, scope)
        yield from change(filing)
        yield from settle(files, [filing], step, head.seq)
        return filing

    return (yield from decided(files.settings.conflict_retries, decide))


# Erasure --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Wound:
    """What an erasure takes from the topics of a scope: members of some, and others altogether."""

    topics: dict[str, None] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    orphans: dict[str, dict[str, None]] = field(default_factory=dict)


def forsake(files: Files, account: str, threads: Iterable[str]) -> Flow[dict[Scope, Wound]]:
    """Forget every mean and vector that threads are in, before they are erased; what is to be mended afterwards."""
    doomed = set(threads)
    wounds: dict[Scope, Wound] = {}
    links = yield from _links(files, account, sorted(doomed))
    for link in (link for link in links if link.rel in (IN_TOPIC, IN_EXCHANGE)):
        wound = wounds.setdefault(link.scope, Wound())
        if link.rel == IN_TOPIC and link.dst in doomed:
            wound.orphans.setdefault(str(link.meta.get(EXCHANGE, link.src)), {})[link.src] = None
        elif link.rel == IN_TOPIC:
            wound.topics[link.dst] = None
            wound.keys[str(link.meta.get(EXCHANGE, link.src))] = None
        else:
            wound.keys[link.dst] = None
    yield from _forget(files, account, wounds)
    return wounds


def _links(files: Files, account: str, nodes: Sequence[str]) -> Flow[list[Link]]:
    found: list[Link] = []
    for start in range(0, len(nodes), PAGE):
        found += yield from call(files.store.links, account, nodes[start : start + PAGE])
    return sorted({link.seq: link for link in found}.values(), key=lambda link: link.seq)


def _forget(files: Files, account: str, wounds: dict[Scope, Wound]) -> Flow[None]:
    gone: dict[str, bytes | None] = {}
    for scope, wound in wounds.items():
        gone |= dict.fromkeys((*wound.topics, *wound.keys, epoch_key(scope)))
    if gone:
        yield from call(files.store.note, account, CONSUMER, gone)


def mend(files: Files, account: str, wounds: dict[Scope, Wound], threads: Iterable[str]) -> Flow[None]:
    """Make anew, after an erasure, what it took something from: means of what is left, topics for what has none."""
    gone = set(threads)
    yield from _forget(files, account, wounds)
    for scope, wound in wounds.items():
        left = (Member(name, tuple(t for t in threads if t not in gone)) for name, threads in wound.orphans.items())
        orphans = [member for member in left if member.threads]
        if orphans or (yield from call(files.store.held, scope, files.mint.now(), kinds=[TOPIC])):
            yield from changing(files, scope, partial(_adopted, orphans))


def _adopted(orphans: Sequence[Member], filing: Filing) -> Flow[None]:
    """Put exchanges that lost their topic into another; the means of the others were made anew when they were read."""
    yield from file(filing, orphans)


def doubt(files: Files, account: str, after: int) -> Flow[None]:
    """Forget all that is noted if entries from elsewhere erased anything; it is made anew when it is needed."""
    while page := (yield from call(files.store.scan, account, after, PAGE * 4)):
        if any(entry.sort == "erased" for entry in page):
            noted = yield from call(files.store.notes, account, CONSUMER)
            yield from call(files.store.note, account, CONSUMER, dict.fromkeys(noted))
            return
        after = page[-1].seq


# Rebuilding -----------------------------------------------------------------------------------------------------------


def rebuild(files: Files, account: str) -> Flow[int]:
    """Throw every mean away and make it anew of the links and the noted vectors; how many topics there are."""
    topics = yield from _told(files, account)
    scopes = dict.fromkeys(topics.values())
    noted = yield from call(files.store.notes, account, CONSUMER)
    gone: dict[str, bytes | None] = {key: None for key, note in noted.items() if is_mean(note)}
    gone |= dict.fromkeys(map(epoch_key, scopes))
    if gone:
        yield from call(files.store.note, account, CONSUMER, gone)
    for scope in scopes:
        yield from changing(files, scope, partial(_adopted, ()))
    return len(topics)


def _told(files: Files, account: str) -> Flow[dict[str, Scope]]:
    """Every topic that is held, by its id, with its scope."""
    found: dict[str, Scope] = {}
    seq = 0
    while page := (yield from call(files.store.scan, account, seq, PAGE * 4)):
        for entry in page:
            if isinstance(entry.verb, Asserted) and entry.verb.claim.kind == TOPIC:
                fact = yield from call(files.store.fact, account, entry.verb.thread)
                if fact is not None and not fact.meta.get(SUPER):
                    found[fact.id] = fact.scope
        seq = page[-1].seq
    return found

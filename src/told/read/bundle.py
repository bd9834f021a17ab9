"""A context: what is pinned, what answers the query, what was said last, packed into a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from told.core.fact import LEVELS, OVERVIEW, PIECE, TURN, UNLISTED, Fact
from told.core.filter import All, parse
from told.core.kind import Semantics
from told.core.predicates import VITAL, predicate
from told.core.query import MAX_LIMIT, Bundle, Candidate, Find, Hit, Trace, listed
from told.core.text import normalise, piece
from told.flow import Flow, call
from told.read import path, rank, trace
from told.read.assemble import Assembly, Format, Item, assemble
from told.read.fading import alive
from told.read.gather import Eye
from told.read.guard import denials
from told.read.recall import Recall, Want

CHARACTERS = 4
"""About how many characters a token has."""

PLENTY = 3
"""How many times the text a budget holds is offered to it."""

CHANGED = " [changed since]"
"""What stands behind words of which something no longer holds."""

USER = "user"
"""What claims call the one whose memory it is, where nothing gives a name."""

FADED = "only what is asked for is shown once it has faded"
LEAST_TOKENS = 12
"""Hardly any line is shorter, so a budget needs no more lines than this allows."""


@dataclass(frozen=True, slots=True)
class Order:
    """How a context is wanted: its tokens, its format, and how many of the last turns stand at its end."""

    budget: int
    format: Format = "text"
    tail: int = 0


def lines(budget: int) -> int:
    """How many memories a budget can hold at most."""
    return min(max(budget // LEAST_TOKENS, 1), MAX_LIMIT)


def context(eye: Eye, want: Want | None, find: Find, order: Order) -> Flow[Bundle]:
    """A block of text for a prompt: what answers the query, or without one what was learned last."""
    pinned, faint = yield from _pinned(eye, find, want.belief if want else "latest")
    said = yield from _said_last(eye, find, order.tail) if order.tail else _nothing()
    recall = None if want is None else (yield from path.recalled(eye, replace(want, verbatim=True)))
    chosen, hidden = (_answers(recall, eye, order), []) if recall else (yield from _learned(eye, find, order))
    faint = [*faint, *hidden]
    clock = trace.Clock(list(recall.clock.stages) if recall else [])
    if faint:
        clock.mark("fade", len(pinned) + len(chosen), len(faint), lambda: FADED)
    items = [*_items(pinned, "pinned"), *_items(said, "recent"), *chosen]
    made = assemble(
        items, order.budget, eye.settings.encoding, format=order.format, pinned_share=eye.settings.pinned_share,
        zone=eye.settings.zone or None,
    )  # fmt: skip
    used = f"{made.tokens} of {order.budget} tokens"
    clock.mark("assemble", len(made.items), len(items) - len(made.items), lambda: used)
    hits = tuple({item.hit.fact.seq: item.hit for item in reversed(made.items)}.values())[::-1]
    warnings = list(recall.warnings) if recall else []
    warnings += yield from path.noted(eye, find, hits, recall)
    if items and not made.items:
        warnings.append(f"No memory fits a budget of {order.budget} tokens.")
    if made.text:
        eye.echo(find.scope.account, made.text)
    query = want.query if want else ""
    told = Trace(
        query, find.as_of, clock.steps(), (*_candidates(items, made), *map(_hidden, faint)),
        trace.understood(recall.asked) if recall else {},
    )  # fmt: skip
    return Bundle(made.text, made.tokens, order.budget, hits, told, tuple(warnings), made.messages)


def _answers(recall: Recall, eye: Eye, order: Order) -> list[Item]:
    """Each passage that answers, in the words that matched; a memory found by its summary may be shown in full.

    It is enough to offer several times what the budget can hold; what is too long for it takes no room.
    """
    room, scale = order.budget * CHARACTERS * PLENTY, rank.scale(recall.found, eye.settings)
    whole: set[int] = set()
    inside: set[int] = set()
    items: list[Item] = []
    for one in recall.scored:
        fact, slot = recall.facts[one.mark.seq], one.mark.slot
        if fact.seq in whole or (slot in LEVELS and fact.seq in inside):
            continue
        again = fact.seq in inside
        inside.add(fact.seq)
        if slot in LEVELS:
            whole.add(fact.seq)
        hit, forms = path.hit(one, recall, scale(one.score)), _forms(fact, slot)
        if hit.superseded:
            forms = tuple([f"{form}{CHANGED}" for form in forms])
        items.append(Item(replace(hit, slot=0) if slot in LEVELS else hit, forms[:1] if again else forms))
        shortest = min(map(len, forms))
        room -= shortest if shortest <= order.budget * CHARACTERS else 0
        if room < 0:
            break
    return items


def _forms(fact: Fact, slot: int) -> tuple[str, ...]:
    """The texts that may stand for a passage, the fullest first."""
    whole = slot in LEVELS or len(fact.text) <= PIECE
    return (fact.text if whole else piece(fact.text, PIECE, slot), *(text for _, text in _shorter(fact)))


def _shorter(fact: Fact) -> list[tuple[str, str]]:
    """The shorter forms a fact has, each after its name."""
    meta = fact.meta
    return [(name, text) for name in LEVELS.values() if isinstance(text := meta.get(name), str)] if meta else []


def _items(facts: Sequence[Fact], section: str) -> list[Item]:
    return [Item(Hit(fact, 1.0), _forms(fact, OVERVIEW), section) for fact in facts]


def _nothing() -> Flow[Sequence[Fact]]:
    """No facts, asked of nobody."""
    return ()
    yield


def _learned(eye: Eye, find: Find, order: Order) -> Flow[tuple[list[Item], list[Fact]]]:
    """What was learned last, and what of it has faded."""
    facts = yield from _newest(eye, listed(find))
    kept, hidden = yield from alive(eye, facts, find, min(lines(order.budget), find.limit or MAX_LIMIT))
    return _items(kept, "recalled"), hidden


def _said_last(eye: Eye, find: Find, count: int) -> Flow[Sequence[Fact]]:
    """The last turns, the newest first, as they were said: a claim stands behind the turn it was taken from."""
    facts = yield from _newest(eye, find)
    turns = {fact.evidence for fact in facts if fact.kind == TURN}
    shown = (fact for fact in facts if fact.kind == TURN or (fact.kind not in UNLISTED and fact.evidence not in turns))
    return list(islice(shown, count))


def _newest(eye: Eye, find: Find) -> Flow[Sequence[Fact]]:
    """The facts learned last, the newest first."""
    facts = yield from call(eye.store.facts, replace(find, limit=None, offset=0))
    denied = denials(facts, eye.guards)
    return [fact for fact in reversed(facts) if fact.seq not in denied]


def _pinned(eye: Eye, find: Find, belief: str) -> Flow[tuple[list[Fact], list[Fact]]]:
    """The facts of pinned kinds that are believed, oldest first, so that they stand in the same place every time.

    Beside them, those that have faded.
    """
    kinds = eye.settings.pinned_kinds.replace(",", " ").split()
    if not kinds:
        return [], []
    wanted = replace(find, filter=All((find.filter, parse({"kind": {"in": kinds}}))), limit=MAX_LIMIT, offset=0)
    facts, told = yield from path.listing(eye, wanted, belief)
    believed = [fact for fact in facts if fact.id not in told.lost and _is_lasting(fact)]
    return (yield from alive(eye, believed, find, MAX_LIMIT))


def _is_lasting(fact: Fact) -> bool:
    """Whether a fact is worth a place in every context: it is about the user, and the only one of its sort or vital.

    Where the user lives is, and every allergy, but neither the many things the user owns nor where somebody else lives.
    """
    known = None if fact.predicate is None else predicate(fact.predicate)
    lasting = known is None or known.semantics is not Semantics.MULTI or known.name in VITAL
    about = fact.subject is None or normalise(fact.subject) in (USER, normalise(fact.scope.user_id or ""))
    return lasting and about


def _hidden(fact: Fact) -> Candidate:
    """What became of a fact that is not shown because it has faded."""
    return Candidate(fact.id, fact.seq, fact.text, 0.0, {}, "fade", False, "has faded")


def _candidates(items: Sequence[Item], made: Assembly) -> Iterator[Candidate]:
    for item in items:
        hit = item.hit
        level = made.levels.get((hit.fact.seq, hit.slot))
        shown = "content" if not level else _shorter(hit.fact)[level - 1][0]
        reason = "" if level is not None else "does not fit the budget"
        yield Candidate(
            hit.fact.id, hit.fact.seq, hit.fact.text, hit.score, hit.parts, "assemble", level is not None, reason,
            (item.section,), shown,
        )  # fmt: skip

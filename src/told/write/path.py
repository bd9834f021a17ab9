"""add: observe, gate, extract, curate and commit what was said.

Evidence is committed before a model is asked. What rules find is committed together with it; what a model finds comes
afterwards, at once or by the consumer that catches up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from told.core.blob import Blob
from told.core.entry import Asserted, Evidence
from told.core.fact import TURN, UNLISTED, Fact
from told.core.ids import text_hash
from told.core.kind import Kind, Write
from told.core.query import Event, Receipt
from told.core.scope import Scope
from told.core.text import md5, normalise
from told.core.trust import safe_kind
from told.core.value import quick
from told.flow import Flow, call
from told.ledger.commit import decided
from told.ledger.consume import Failure, attempt
from told.ports import Known, Store, Vector
from told.views.passages import wording as spelt
from told.write import chunk, gate, talk, understand
from told.write.claims import curated, understanding
from told.write.curate.policies import looked_over
from told.write.desk import Desk, Key, Plan, settle
from told.write.duplicate import Wording, near_duplicate, with_vectors
from told.write.embed import Looked, catch_up
from told.write.extract.verbatim import KindExtractor
from told.write.gate import Verdict
from told.write.hearing import Piece, pieces
from told.write.messages import Said
from told.write.mind import CLOSED, LOCAL, VERBATIM, Ask, read
from told.write.observe import observed, question_of, worth
from told.write.replay import replay
from told.write.shape import Extracted, Extractor, Heard
from told.write.understand import Case, Understood

PLAIN = "memory"
PENDING, FAILED, DONE = "pending", "failed", "done"
NOTHING = Extracted()


@quick
@dataclass(frozen=True, slots=True)
class Order:
    """What an add is to do: whose it is, what was said and judged, and how it is to be kept and understood."""

    scope: Scope
    verdicts: tuple[Verdict, ...]
    skipped: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]
    kind: str
    rules: Kind | None
    expires: int | None
    ask: Ask
    blobs: tuple[Blob, ...] = ()


def order(desk: Desk, scope: Scope, said: Said, *, expires: int | None, kind: str, ask: Ask) -> Order:
    """Judge what was said: what is refused is gone; what is skipped is evidence only, unless it is to be verbatim."""
    verbatim = ask.by == VERBATIM or kind != PLAIN
    mind = desk.mind
    found = gate.admit(said, scope.account, desk.settings, mind.echoes, mind.vault, verbatim=verbatim)
    rules = mind.ontology.get(kind)
    odd = () if rules is None else _odd(rules, found.verdicts)
    warnings = tuple(dict.fromkeys((*said.warnings, *found.warnings, *odd)))
    return Order(scope, found.verdicts, found.skipped, warnings, kind, rules, expires, ask, said.blobs)


def _odd(rules: Kind, verdicts: Sequence[Verdict]) -> list[str]:
    """What to say of the fields that turns of a kind are given, or of a key that none of them gives."""
    keyed = rules.keyed
    metas = {id(each.turn.meta): each.turn.meta for each in verdicts if keyed or each.turn.meta}
    return [note for meta in metas.values() for note in looked_over(rules, meta)]


def add(desk: Desk, wanted: Order, key: Key | None) -> Flow[Receipt]:
    """Keep what was said, and hold what it says."""
    ask = wanted.ask
    extractor = _extractor(desk, wanted)
    asks_model = extractor is not None and not extractor.local
    first = desk.extractor(LOCAL) if asks_model and ask.later else None if asks_model else extractor
    parts = [] if extractor is None else _pieces(wanted, whole=isinstance(extractor, KindExtractor))
    heard = None if extractor is None else _heard(desk, wanted, parts)
    found = NOTHING
    if first is not None and heard is not None and parts:
        found = yield from chunk.extract(first, replace(heard, ontology=desk.mind.catalogue), desk.settings)
    receipt, plan = yield from _written(desk, wanted, heard, parts, first, found, key, asks_model=asks_model)
    receipt = yield from catch_up(desk.store, desk.embedder, wanted.scope.account, receipt, desk.settings)
    if not asks_model or plan is None or not parts:
        return receipt
    if ask.later:
        return replace(receipt, extraction=PENDING)
    return (yield from _asked(desk, wanted, plan, receipt))


def _extractor(desk: Desk, wanted: Order) -> Extractor | None:
    """Who finds facts in what was said; what is given as one of a kind with rules of its own is that as it stands."""
    if wanted.rules is not None and wanted.rules.write is not Write.APPEND:
        return KindExtractor(wanted.kind, desk.author)
    if wanted.ask.by == VERBATIM or wanted.kind != PLAIN:
        return None
    if not wanted.ask.facts:
        return desk.extractor(wanted.ask.by)
    from told.write.extract.given import GivenExtractor

    return GivenExtractor(read)


def _pieces(wanted: Order, *, whole: bool) -> list[Piece]:
    """What is heard of the turns that passed the gate; what is to be kept as one of a kind is one piece of each."""
    kept = [(place, each) for place, each in enumerate(wanted.verdicts) if each.outcome == "keep"]
    heard = pieces((place, each.turn, each.own) for place, each in kept)
    return list({part.place: part for part in reversed(heard)}.values())[::-1] if whole else heard


def _heard(desk: Desk, wanted: Order, parts: Sequence[Piece]) -> Heard:
    """What extractors hear."""
    turns = tuple(part.turn for part in parts)
    ask, mind = wanted.ask, desk.mind
    return Heard(turns, desk.mint.now(), wanted.scope, mind.ontology, (), ask.prompt, desk.settings.zone, ask.facts)


def _written(
    desk: Desk, wanted: Order, heard: Heard | None, parts: Sequence[Piece], extractor: Extractor | None,
    found: Extracted, key: Key | None, *, asks_model: bool,
) -> Flow[tuple[Receipt, Plan | None]]:  # fmt: skip
    """Commit the evidence with what rules found in it; no plan is left where a key was handed in before."""
    scope, kinds = wanted.scope, _kinds(wanted, parts, found, asks_model=asks_model)
    said = [verdict.turn.evidence for verdict in wanted.verdicts]
    md5s, digests = [md5(each.content) for each in said], [each.digest() for each in said]
    words = [_wording(each) for each in said] if desk.embedder and desk.embedder.local else []
    hashes = list(map(text_hash, words))
    answering = bool(said) and said[0].said_at is not None and talk.answerable(said[0])

    def decide() -> Flow[tuple[Receipt, Plan | None]]:
        name = key.name if key else None
        known = yield from call(desk.store.known, scope, md5s, digests, name, hashes, last=answering)
        if key and known.ticket:
            return (yield from replay(desk.store, scope.account, key, known.ticket)), None
        given: Mapping[bytes, Vector] = {}
        if wanted.ask.by != VERBATIM:
            known, given = yield from _nearly(desk, wanted, zip(wanted.verdicts, kinds, md5s, strict=True), known)
        kept = zip(wanted.verdicts, kinds, md5s, strict=True)
        anew = (yield from _given_up(desk.store, scope.account, known)) if asks_model and wanted.ask.later else ()
        ask = wanted.ask if asks_model else None
        plan = observed(desk, scope, kept, known, expires=wanted.expires, ask=ask, anew=anew)
        plan.blobs, plan.vectors = wanted.blobs, given
        plan.warnings.update(dict.fromkeys((*wanted.warnings, *found.warnings)))
        plan.looked = Looked(dict(zip(words, hashes, strict=True)), known.vectors, known.model)
        if extractor is not None and heard is not None and found is not NOTHING:
            yield from curated(desk, plan, heard, found, extractor, parts, wanted.expires, known.seen)
            if not asks_model and wanted.ask.by != CLOSED:
                _speak_for_themselves(plan, kinds, wanted.kind)
        return (yield from settle(desk, scope, plan, known.seen, key, wanted.skipped)), plan

    return (yield from decided(desk.settings.conflict_retries, decide))


def _given_up(store: Store, account: str, known: Known) -> Flow[set[str]]:
    """Evidence of which all that was understood has been given up: said again, it is to be asked about again."""
    found: set[str] = set()
    for evidence in known.evidence.values():
        gone = listed = False
        for thread in (yield from call(store.derived, account, [evidence])):
            fact = yield from call(store.fact, account, thread)
            gone, listed = gone or fact is None, listed or (fact is not None and fact.kind not in UNLISTED)
        if gone and not listed:
            found.add(evidence)
    return found


def _speak_for_themselves(plan: Plan, kinds: Sequence[str | None], kind: str) -> None:
    """Make memories of the turns that nothing came of: what was found in them was not worth keeping beside them."""
    silent = {plan.evidence[place] for place, each in enumerate(kinds) if each == TURN and place not in plan.spoken_for}
    for place, draft in enumerate(plan.drafts):
        said = draft.verb
        if isinstance(said, Asserted) and said.claim.kind == TURN and said.claim.evidence in silent:
            plan.drafts[place] = replace(draft, verb=replace(said, claim=replace(said.claim, kind=kind)))
            claim = said.claim
            plan.events.append(Event("ADD", said.thread, claim.text, None, claim.role, claim.actor))


def _nearly(
    desk: Desk, wanted: Order, kept: Iterable[tuple[Verdict, str | None, str]], known: Known
) -> Flow[tuple[Known, Mapping[bytes, Vector]]]:
    """What is known of plain memories that say almost word for word what is held, and the vectors asked for that."""
    new = [(text, each.turn.evidence) for each, kind, text in kept if kind == PLAIN and text not in known.facts]
    if not new:
        return known, {}
    words = [Wording(said.content, said.role, said.name, said.said_at) for _, said in new]
    local = desk.embedder if desk.embedder is not None and desk.embedder.local else None
    words = list((yield from with_vectors(local, words)))
    facts = dict(known.facts)
    for (text, _), wording in zip(new, words, strict=True):
        now = desk.mint.now()
        near = yield from near_duplicate(desk.store, wanted.scope, wording, now, desk.settings, kinds=[PLAIN])
        if near is not None:
            facts[text] = near
    vectors = {text_hash(each.passage): each.vector for each in words if each.vector is not None}
    return replace(known, facts=facts), vectors


def _kinds(wanted: Order, parts: Sequence[Piece], found: Extracted, *, asks_model: bool) -> list[str | None]:
    """What each turn is kept as: a memory, a turn behind what was found in it, or evidence alone."""
    verbatim = wanted.ask.by == VERBATIM
    texts: dict[int, list[str]] = {}
    for one in found.claims:
        texts.setdefault(parts[one.turn].place, []).append(one.claim.text)
    kinds: list[str | None] = []
    for place, verdict in enumerate(wanted.verdicts):
        if verdict.outcome == "skip":
            kinds.append(None)
            continue
        claimed = texts.get(place)
        if claimed and normalise(verdict.turn.evidence.content) in map(normalise, claimed):
            kinds.append(None)
        else:
            kept = wanted.kind if verbatim else safe_kind(wanted.kind, worth(verdict.turn))
            kinds.append(TURN if claimed or asks_model or wanted.ask.by == CLOSED else kept)
    return kinds


def _wording(said: Evidence) -> str:
    """What will be embedded of a turn that is short and answers nobody."""
    return spelt(said.name or said.role, said.content)


# Asking a model -------------------------------------------------------------------------------------------------------


def _asked(desk: Desk, wanted: Order, plan: Plan, receipt: Receipt) -> Flow[Receipt]:
    """Let the model see what was just committed, now; what it cannot do yet is a warning, and stays to be done."""
    account, retries = wanted.scope.account, desk.settings.consumer_attempts
    if not (yield from understand.enough(desk.store, account, desk.settings.extract_threshold, wanted.scope)):
        return replace(receipt, extraction=PENDING)
    mine = set(plan.evidence)
    again = yield from _said_again(desk, wanted, plan)
    progress = yield from understand.drain(desk.store, account, understanding(desk), retries, desk.mind.alone)
    done = [*again, *(found for evidence, found in progress.done.items() if not mine.isdisjoint(evidence))]
    failed = any(not mine.isdisjoint(evidence) for evidence in progress.failed)
    state = DONE if done else FAILED if failed else PENDING if progress.failure else DONE
    notes = [f"Not extracted yet, the words are kept: {progress.failure}"] if progress.failure else []
    if any(found.garbled for found in done):
        notes.append("Some of the model's answer could not be read; the words are kept. See `told faults list`.")
    if state == FAILED:
        notes.append("Extraction failed; the words are kept. See `told faults list`.")
    warnings = (*receipt.warnings, *(note for found in done for note in found.warnings), *notes)
    return replace(
        receipt, events=(*receipt.events, *(event for found in done for event in found.events)),
        skipped=(*receipt.skipped, *(row for found in done for row in found.skipped)),
        warnings=tuple(dict.fromkeys(warnings)), extraction=state, usage=understand.total(done).as_dict(),
    )  # fmt: skip


def _said_again(desk: Desk, wanted: Order, plan: Plan) -> Flow[list[Understood]]:
    """What was said before in the same words: its facts are still held, or the model is asked once more."""
    places = [place for place, fresh in enumerate(plan.fresh) if not fresh and wanted.verdicts[place].outcome == "keep"]
    if not places:
        return []
    ids = tuple(plan.evidence[place] for place in places)
    held = yield from _held(desk.store, wanted.scope.account, ids)
    if held and wanted.ask.prompt is None and not wanted.ask.facts:
        return [Understood(tuple(Event("NONE", fact.id, fact.text, None, fact.role, fact.actor) for fact in held))]
    again = [wanted.verdicts[place] for place in places]
    parts = pieces((number, each.turn, each.own) for number, each in enumerate(again))
    case = Case(wanted.scope, (), ids, tuple(parts), question_of(wanted.ask, wanted.expires), desk.mint.now())
    found = yield from attempt(understanding(desk)(case, None))
    if isinstance(found, Failure):
        return [Understood(warnings=(f"Not extracted, the words are kept: {found}",))]
    return [found]


def _held(store: Store, account: str, evidence: Sequence[str]) -> Flow[list[Fact]]:
    """The facts taken from some evidence, if each of them still says what it said."""
    found: list[Fact] = []
    for thread in (yield from call(store.derived, account, evidence)):
        fact = yield from call(store.fact, account, thread)
        if fact is None or fact.evidence not in evidence:
            return []
        if fact.kind not in UNLISTED:
            found.append(fact)
    return found

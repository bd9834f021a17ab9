"""The model curator: a language model proposes, and what it proposes is checked before anything is touched.

One question decides many facts of one source. Memories are shown by short numbers, and only a number that was shown
counts; what one source says is not shown beside what a source trusted less has said. A model cannot touch what the
source of a claim may not, cannot retire what a claim does not speak of, cannot write words that neither the memory nor
the claim holds, and cannot end a memory without leaving what contradicts it. Whatever it leaves undecided or garbles,
the rules decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from told.core.alike import Likeness, compare, words
from told.core.entry import Claim
from told.core.errors import InvalidInput
from told.core.fact import QUARANTINE, Fact
from told.core.kind import Semantics, Write
from told.core.predicates import predicate
from told.core.text import STOP_WORDS, loads_forgiving
from told.core.trust import Trust, source_of
from told.core.when import iso
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import LLM, Embedder, Store, Usage, usage_of
from told.settings import Settings
from told.write.curate import policies, rules
from told.write.curate.near import Neighbourhood
from told.write.curate.scene import Scene, judged, look
from told.write.curate.slots import OPPOSITES, loose, siblings
from told.write.curate.verdicts import NEGATED, delete, joined, late, none, outranks, quarantined, update
from told.write.extract.brief import page
from told.write.shape import QUARANTINED, Curated, Decision, Found, Heard

EVENTS: Final = ("ADD", "UPDATE", "DELETE", "NONE")
LISTS: Final = ("decisions", "operations", "events", "memory", "results")
TEXTS: Final = ("text", "data", "new_memory")
OWN_WORDS: Final = 0.2
"""The largest share of words in a merged text that stand in neither of the two it is made of."""
SCHEMA: Final = {
    "type": "object", "required": ["decisions"],
    "properties": {"decisions": {"type": "array", "items": {
        "type": "object", "required": ["fact", "event"],
        "properties": {"fact": {"type": "integer"}, "event": {"type": "string", "enum": list(EVENTS)},
                       "id": {"type": "integer"}, "text": {"type": "string"}},
    }}},
}  # fmt: skip


Row: TypeAlias = tuple[int, Claim, list[Fact]]
"""A claim by its number, and the memories it is held against."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One decision a model proposes, about the memory it named, if it named one."""

    event: str
    fact: Fact | None = None
    text: str = ""


@dataclass(slots=True)
class Answer:
    """What a model made of one batch of claims: proposals by the number of the claim, and what went wrong."""

    proposals: dict[int, list[Proposal]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ModelCurator:
    """Asks a language model what becomes of claims, and lets the rules have the last word."""

    llm: LLM
    store: Store
    settings: Settings
    embedder: Embedder | None = None
    prompt: str | None = None

    def decide(self, heard: Heard, claims: Sequence[Found]) -> Flow[Curated]:
        """One or more decisions for every claim, in order of the claims."""
        scene = yield from look(self.store, heard, claims, self.settings)
        asked = [number for number, found in enumerate(claims) if _to_ask(scene, found.claim)]
        neighbourhood = Neighbourhood(self.store, self.embedder, self.settings.curate_near)
        near = yield from neighbourhood.of(heard, [claims[number].claim.text for number in asked])
        answer = Answer()
        shown = zip(asked, near, strict=True)
        for rows in _apart(_row(heard, number, claims[number], facts) for number, facts in shown):
            for start in range(0, len(rows), self.settings.curate_batch):
                yield from self._ask(answer, rows[start : start + self.settings.curate_batch])
        touched: set[str] = set()
        for number, found in enumerate(claims):
            proposals = answer.proposals.get(number, [])
            if not _accept(scene, heard, found, proposals, touched, answer.warnings):
                rules.settle(scene, heard, found)
        return Curated(tuple(scene.decisions), tuple(answer.warnings), tuple(answer.faults), answer.usage)

    def _ask(self, answer: Answer, rows: Sequence[Row]) -> Flow[None]:
        """Ask about some claims at once; a model that fails leaves them to the rules."""
        memories = list({fact.id: fact for _, _, facts in rows for fact in facts}.values())
        system = self.prompt or page("curate")
        reply = yield from attempt(call(self.llm.ask, system, question(rows, memories), schema=SCHEMA))
        if isinstance(reply, Failure):
            answer.warnings.append(f"{self.llm.model} could not be asked, so rules decided: {reply}")
            return
        answer.usage += usage_of(reply)
        try:
            said = loads_forgiving(reply)
        except InvalidInput:
            answer.warnings.append(f"{self.llm.model} gave no decision that can be read, so rules decided.")
            answer.faults.append(str(reply))
            return
        _read(answer, said, rows, memories)


def _to_ask(scene: Scene, claim: Claim) -> bool:
    """Whether a model has anything to say: not of what is held word for word, in doubt, immutable, or a document."""
    exact = scene.same(claim)
    known = exact is not None and exact.expires > scene.now
    doubted = claim.kind == QUARANTINE or claim.modality == QUARANTINED
    fixed = claim.predicate is not None and predicate(claim.predicate).semantics is Semantics.IMMUTABLE
    kind = scene.kind(claim.kind)
    document = claim.predicate is None and kind is not None and policies.routed(kind, claim) is not None
    return not (known or doubted or fixed or document)


def _row(heard: Heard, number: int, found: Found, facts: Sequence[Fact]) -> Row:
    """A claim and the memories it is shown with: none of a source that is trusted less, whose words could mislead."""
    claim = judged(heard, found)
    return number, claim, [fact for fact in facts if source_of(fact) >= source_of(claim)]


def _apart(rows: Iterable[Row]) -> list[list[Row]]:
    """The claims that have memories to be held against, those of each source by themselves."""
    sources: dict[Trust, list[Row]] = {}
    for row in rows:
        if row[2]:
            sources.setdefault(source_of(row[1]), []).append(row)
    return list(sources.values())


def question(rows: Sequence[Row], memories: Sequence[Fact]) -> str:
    """What a model is asked: the memories and the facts, each on a line with its number."""
    numbers = {fact.id: number for number, fact in enumerate(memories, 1)}
    held = (f"{number}. [{iso(fact.updated_at)[:10]}] {_line(fact.text)}" for number, fact in enumerate(memories, 1))
    new = (
        f"{number}. {_line(claim.text)} (nearest memories: {', '.join(str(numbers[fact.id]) for fact in facts)})"
        for number, (_, claim, facts) in enumerate(rows, 1)
    )
    return "Memories:\n{}\n\nNew facts:\n{}".format("\n".join(held), "\n".join(new))


def _line(text: str) -> str:
    return " ".join(text.split())


# Reading what a model said --------------------------------------------------------------------------------------------


def _read(answer: Answer, said: object, rows: Sequence[Row], memories: Sequence[Fact]) -> None:
    ignored = 0
    for item in _items(said):
        number = _number(item.get("fact", 1 if len(rows) == 1 else None))
        proposal = _proposal(item, memories)
        if number is None or not 0 < number <= len(rows) or proposal is None:
            ignored += 1
            continue
        answer.proposals.setdefault(rows[number - 1][0], []).append(proposal)
    if ignored:
        answer.warnings.append(f"{ignored} decisions of the model name what it was not shown, and are ignored.")
    undecided = sum(number not in answer.proposals for number, _, _ in rows)
    if undecided:
        answer.warnings.append(f"The model left {undecided} facts undecided, so rules decided.")
    if undecided == len(rows) and said:
        answer.faults.append(str(said))


def _items(said: object) -> Iterator[Mapping[str, Any]]:
    """The objects of an answer, whichever of the usual shapes it has."""
    if isinstance(said, Mapping):
        listed = next((said[name] for name in LISTS if isinstance(said.get(name), list)), [said])
    else:
        listed = said if isinstance(said, list) else []
    return (item for item in listed if isinstance(item, Mapping))


def _proposal(item: Mapping[str, Any], memories: Sequence[Fact]) -> Proposal | None:
    event = str(item.get("event", "")).upper()
    number = _number(item.get("id"))
    fact = memories[number - 1] if number is not None and 0 < number <= len(memories) else None
    if event not in EVENTS or (fact is None and (event in ("UPDATE", "DELETE") or item.get("id") is not None)):
        return None
    text = next((item[name] for name in TEXTS if isinstance(item.get(name), str)), "")
    return Proposal(event, fact, _line(text))


def _number(value: object) -> int | None:
    """A number as models write it: 3, "3", "F3", "#3"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    digits = str(value).strip().lstrip("Ff#")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else None


# Checking what it proposes --------------------------------------------------------------------------------------------


def _accept(
    scene: Scene, heard: Heard, found: Found, proposals: Sequence[Proposal], touched: set[str], warnings: list[str]
) -> bool:
    """Carry out what a model proposes for a claim as far as it stands up; whether anything did."""
    claim = judged(heard, found)
    decisions: list[Decision] = []
    for proposal in proposals:
        reason = _objection(scene, claim, proposal, touched)
        if reason:
            warnings.append(f"The model proposed {proposal.event} of an unfit memory: {reason}.")
            continue
        decisions += _decided(scene, claim, proposal, alone=not decisions)
        touched.update(decision.fact.id for decision in decisions if decision.fact and decision.event != "NONE")
    for decision in decisions:
        scene.take(replace(decision, turn=found.turn))
        for gone in policies.evicted(scene, decision):
            scene.take(replace(gone, turn=found.turn))
    return bool(decisions)


def _objection(scene: Scene, claim: Claim, proposal: Proposal, touched: set[str]) -> str:
    """Why a proposal cannot be carried out, or nothing."""
    fact = proposal.fact
    if fact is None or proposal.event in ("ADD", "NONE"):
        return "" if fact is not None or proposal.event == "ADD" else "it names no memory that says so already"
    kind = scene.kind(fact.kind)
    if fact.id in touched:
        return "another fact has changed it already"
    if late(claim, fact, scene.now):
        return "it was said after the fact"
    if proposal.event == "UPDATE" and kind is not None and kind.write is Write.APPEND and fact.predicate is not None:
        return f"a {kind.name} is never overwritten"
    return "" if related(claim, fact) else "it speaks of something else"


def related(claim: Claim, fact: Fact) -> bool:
    """Whether a claim can bear on a memory: of what is said in so many words of two things, no model makes one."""
    if claim.predicate is None or fact.predicate is None:
        return True
    if claim.subject != fact.subject:
        return False
    likeness = compare(claim.object or "", fact.object or "", loose=loose(claim.predicate))
    if fact.predicate in OPPOSITES.get(claim.predicate, ()):
        return likeness is Likeness.SAME
    multiple = predicate(claim.predicate).semantics is Semantics.MULTI
    return fact.predicate in siblings(claim.predicate) and not (multiple and likeness is Likeness.OTHER)


def _decided(scene: Scene, claim: Claim, proposal: Proposal, *, alone: bool) -> list[Decision]:
    """What a sound proposal comes to; what a model takes for new, the rules look at once more."""
    fact = proposal.fact
    if fact is None or proposal.event == "ADD":
        return rules.weigh(scene, claim) if alone else []
    if proposal.event == "NONE":
        return [none(claim, fact, "the model says that it is held already")] if alone else []
    if not outranks(claim, fact):
        return [quarantined(claim, fact)] if alone else []
    if proposal.event == "DELETE" and (claim.polarity == NEGATED or not alone):
        return [delete(claim, fact, NEGATED)]
    merged = proposal.text if grounded(proposal.text, claim.text, fact.text) else claim.text
    why = "the model says that it changes this memory"
    return [update(replace(claim, text=merged, meta=joined(fact, claim)), fact, why)]


def grounded(text: str, *sources: str) -> bool:
    """Whether a text is made of the words of its sources, but for a few small ones."""
    known = {word for source in sources for word in words(source)}
    told = [word for word in words(text) if word not in STOP_WORDS]
    return bool(told) and sum(word not in known for word in told) <= OWN_WORDS * len(told)

"""The verbs about what was understood: what waits, what failed, what is in doubt, who and what is spoken of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from told.core.belief import Contradiction
from told.core.errors import ConfigError, InvalidInput, NotFoundError
from told.core.fact import QUARANTINE, Fact
from told.core.filter import parse
from told.core.policy import Action
from told.core.query import Receipt
from told.core.text import clean, label, shown
from told.engine.base import Base, named, verb
from told.flow import Flow, call
from told.ports import Fault
from told.read import entities, plan
from told.read.entities import Relation
from told.read.guard import denials
from told.tend import judge, summarise
from told.write import gate, messages, review, tools, understand
from told.write.change import held
from told.write.claims import understanding
from told.write.curate import contradictions as disputes
from told.write.curate import identity
from told.write.curate import revoke as revoking
from told.write.curate.identity import Likely
from told.write.tools import Output
from told.write.understand import Progress


class Minding(Base):
    """What was understood, what was not, and what is in doubt."""

    __slots__ = ()

    @verb(Action.DERIVE_CLAIMS)
    def catch_up(self) -> Flow[Progress]:
        """Ask the model about everything that waits for it."""
        attempts, alone = self.settings.consumer_attempts, self.mind.alone
        if self.mind.llm is None:
            return Progress({})
        return (yield from understand.drain(self.store, self.account, understanding(self.desk), attempts, alone))

    @verb(Action.READ_METADATA)
    def enough(self) -> Flow[bool]:
        """Whether so much waits for a model that it is worth a question."""
        return (yield from understand.enough(self.store, self.account, self.settings.extract_threshold))

    @verb(Action.READ_METADATA)
    def waiting(self) -> Flow[int]:
        """How many pieces of evidence wait for a model; none where no model was ever asked."""
        asked = self.mind.llm is not None or (yield from call(self.store.cursor, self.account, understand.CONSUMER))
        return (yield from understand.waiting(self.store, self.account)) if asked else 0

    @verb(Action.READ_CONTENT)
    def faults(self) -> Flow[Sequence[Fault]]:
        """What consumers could not do, with what a model answered."""
        return (yield from call(self.store.faults, self.account))

    @verb(Action.DERIVE_CLAIMS)
    def retry_faults(self, chosen: Any = None) -> Flow[Mapping[str, int]]:
        """Ask again about what failed."""
        ids = _numbers(chosen)
        yield from self._faults(ids)
        done = yield from understand.retry(
            self.store, self.account, understanding(self.desk), ids, self.settings.consumer_attempts, self.mind.alone
        )
        for again in (judge.retry, summarise.retry):
            mended, left = yield from again(self.desk, self.account, ids)
            done = done[0] + mended, done[1] + left
        return dict(zip(("mended", "left"), done, strict=True))

    @verb(Action.WRITE)
    def drop_faults(self, chosen: Any = None) -> Flow[int]:
        """Forget what failed; the words are kept."""
        ids = _numbers(chosen)
        return (yield from call(self.store.settle, self.account, (yield from self._faults(ids))))

    def _faults(self, ids: Sequence[int]) -> Flow[list[int]]:
        """The faults of these ids, or all; one of them at least must be there."""
        faults = yield from call(self.store.faults, self.account)
        known = [fault.id for fault in faults if not ids or fault.id in ids]
        if not known and ids:
            raise NotFoundError(f"There is no fault {ids[0]}.", hint="List them with faults().")
        return known

    @verb(Action.READ_CONTENT)
    def contradictions(self, ids: Mapping[str, Any]) -> Flow[Sequence[Contradiction]]:
        """Memories that say different things of the same."""
        found = yield from disputes.contradictions(self.store, self.scope(ids), self.store.mint.now())
        return [each for each in found if not denials(each.facts, self.eye.guards)]

    @verb(Action.READ_CONTENT)
    def entities(self, ids: Mapping[str, Any]) -> Flow[Sequence[Fact]]:
        """Whom and what a scope speaks of."""
        return self._seen((yield from entities.nodes(self.store, self.scope(ids), self.store.mint.now())))

    @verb(Action.READ_CONTENT)
    def relations(self, name: str, ids: Mapping[str, Any]) -> Flow[Sequence[Relation]]:
        """How one that is spoken of bears on others."""
        wanted = label(name, "name", limit=256)
        found = yield from entities.relations(self.store, self.scope(ids), wanted, self.store.mint.now())
        return [each for each in found if not denials((each.source, each.target), self.eye.guards)]

    @verb(Action.DERIVE_CLAIMS)
    def identify(self, ids: Mapping[str, Any]) -> Flow[Sequence[Likely]]:
        """Draw edges between names of a scope that may mean the same."""
        return (yield from identity.recognise(self.desk, self.scope(ids)))

    @verb(Action.READ_CONTENT)
    def quarantine(self, ids: Mapping[str, Any]) -> Flow[Sequence[Fact]]:
        """The claims that wait for a review."""
        at = yield from self.point()
        only = parse({"kind": QUARANTINE})
        return self._seen((yield from call(self.store.facts, plan.find(self.scope(ids), at, only, limit=None))))

    @verb(Action.ADMINISTER)
    def reveal(self, id: str, *, ids: Mapping[str, Any]) -> Flow[str]:
        """What a memory says with the secrets in it that are kept encrypted."""
        fact = yield from held(self.store, self.account, named(id), self.within(ids))
        if self.mind.vault is None:
            raise ConfigError("There is no vault here.", hint='Open the memory with secrets="encrypt" and its key.')
        return gate.revealed(fact.text, fact.meta, self.mind.vault)

    @verb(Action.WRITE)
    def review(self, id: str, *, accept: Any, ids: Mapping[str, Any]) -> Flow[Receipt]:
        """Let a claim out of quarantine, or give it up."""
        if not isinstance(accept, bool):
            raise InvalidInput(f"accept must be True or False, not {shown(accept)}.")
        return (yield from review.review(self.desk, self.account, named(id), self.within(ids), accept=accept))

    @verb(Action.WRITE)
    def tool_result(self, text: Any, ids: Mapping[str, Any], *, tool: Any, source: Any) -> Flow[Output]:
        """Keep a tool's output whole, and give back as much of it as an agent needs."""
        if not isinstance(text, str):
            raise InvalidInput(f"A tool's output is text, not {shown(text)}.")
        name = None if tool is None else label(tool, "tool", limit=256)
        origin = None if source is None else messages.check_source(source)
        words = clean(text, limit=self.settings.document_limit)
        return (yield from tools.keep(self.desk, self.scope(ids), words, name, origin))

    @verb(Action.WRITE)
    def revoke(self, source: Any) -> Flow[Receipt]:
        """Give up everything that was taken from a source."""
        return (yield from revoking.revoke(self.desk, self.account, messages.check_source(source)))

    def _seen(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """Those that no guard stops."""
        denied = denials(facts, self.eye.guards)
        return [fact for fact in facts if fact.seq not in denied]


def _numbers(chosen: Any) -> list[int]:
    given = [] if chosen is None else [chosen] if isinstance(chosen, int) else chosen
    if not isinstance(given, list | tuple) or not all(type(each) is int for each in given):
        raise InvalidInput(f"Faults are named by their numbers, not {shown(chosen)}.", hint="See faults().")
    return list(given)

"""The verbs about forgetting: how a memory fades, what is remembered and how well, and letting go of what has faded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.engine.base import check_memory_id, requires_action
from told.engine.minding import ExtractionVerbs
from told.errors import InvalidInput, NotFoundError
from told.flow import Flow, call
from told.ingest import edit
from told.maintenance import forgetting
from told.maintenance.forgetting import FORGOTTEN, ForgottenFact
from told.model.fact import Fact
from told.model.policy import Action
from told.model.query import AsOf, FactQuery
from told.model.salience import DecayClock
from told.retrieval import listing as remembering
from told.retrieval.candidates import find_denials
from told.retrieval.listing import MemoryDetail, measure_strengths
from told.text.tokens import format_value


class FadingVerbs(ExtractionVerbs):
    """How memories fade, and how they are let go."""

    __slots__ = ()

    @requires_action(Action.READ_CONTENT)
    def decay(
        self, id: str, *, clock: Any = None, as_of: Any = None, ids: Mapping[str, Any]
    ) -> Flow[MemoryDetail]:
        """How a memory fades, by the clock of its kind or another."""
        at = yield from self.resolve_point(as_of)
        fact = yield from self._get_visible_fact(id, at, ids)
        kinds = self.read_context.kinds
        kind = kinds.get(fact.kind)
        if kind is not None and clock is not None:
            kind = replace(kind, clock=_check_clock(clock))
            kinds = kinds.with_kinds(kind)
        strength_by_seq = yield from measure_strengths(
            replace(self.read_context, kinds=kinds),
            [fact],
            FactQuery(fact.scope, at),
            with_pace=True,
        )
        return MemoryDetail(fact, kind, strength_by_seq[fact.seq])

    @requires_action(Action.READ_CONTENT)
    def about(self, ids: Mapping[str, Any], *, as_of: Any = None) -> Flow[list[MemoryDetail]]:
        """Everything a scope remembers, from which words, how well, and for how long."""
        scope = self.resolve_scope(ids)
        return (
            yield from remembering.list_memory_details(
                self.read_context, FactQuery(scope, (yield from self.resolve_point(as_of)))
            )
        )

    @requires_action(Action.WRITE)
    def forget(self, id: str | None, ids: Mapping[str, Any]) -> Flow[Sequence[ForgottenFact]]:
        """Give up one memory, or everything of a scope that has faded."""
        if id is None:
            return (yield from forgetting.forget_faded(self.read_context, self.resolve_scope(ids)))
        now = yield from self.resolve_point()
        fact = yield from self._get_visible_fact(id, now, ids)
        [strength] = (
            yield from measure_strengths(self.read_context, [fact], FactQuery(fact.scope, now))
        ).values()
        yield from edit.retract_memory(
            self.write_context, self.account, fact.id, FORGOTTEN, self.resolve_optional_scope(ids)
        )
        return [ForgottenFact(fact, strength.weight)]

    def _get_visible_fact(self, id: str, at: AsOf, ids: Mapping[str, Any]) -> Flow[Fact]:
        """The memory of an id that a call may see."""
        fact = yield from call(self.store.get_fact, self.account, check_memory_id(id), at)
        scope = self.resolve_optional_scope(ids)
        if (
            fact is None
            or (scope and not scope.covers(fact.scope))
            or find_denials([fact], self.read_context.guards)
        ):
            raise NotFoundError(
                f"There is no memory {format_value(id)} here.",
                hint="It may have been given up already.",
            )
        return fact


def _check_clock(value: Any) -> DecayClock:
    if not isinstance(value, str) or value not in tuple(DecayClock):
        raise InvalidInput(
            f"There is no clock {format_value(value)}.", hint=f"Clocks: {', '.join(DecayClock)}."
        )
    return DecayClock(value)

"""The verbs about the tiers: consolidate what is cold, and see where everything is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from told.engine.base import requires_action
from told.engine.fading import FadingVerbs
from told.engine.topical import TopicVerbs
from told.flow import Flow
from told.maintenance import importance, summaries, tiers
from told.maintenance.importance import JudgeResult
from told.maintenance.summaries import FiledExchange
from told.maintenance.tiers import FollowUpStage, SweepResult, TierState
from told.model.policy import Action
from told.model.scope import Scope
from told.retrieval import request
from told.retrieval.candidates import find_denials


class TierVerbs(FadingVerbs, TopicVerbs):
    """Tail, index, registry."""

    __slots__ = ()

    @requires_action(Action.WRITE)
    def consolidate(self, ids: Mapping[str, Any], *, force: Any = False) -> Flow[SweepResult]:
        """Weigh what has left the tail and file what is cold, in a scope or, with no id, in the whole account."""
        is_forced = request.parse_flag(force, "force")
        return (
            yield from tiers.run_sweep(
                self.write_context,
                self.account,
                self.resolve_optional_scope(ids),
                force=is_forced,
                follow_ups=self._post_sweep_steps(),
            )
        )

    @requires_action(Action.DERIVE_CLAIMS)
    def judge(self, *, full: bool = False) -> Flow[JudgeResult]:
        """Ask the model how important turns are, if that is asked for at all."""
        return (yield from importance.judge_turns(self.write_context, self.account, full_only=full))

    @requires_action(Action.READ_CONTENT)
    def tiers(self, ids: Mapping[str, Any]) -> Flow[TierState]:
        """Where the turns of a scope are."""
        scope, guards = self.resolve_scope(ids), self.read_context.guards
        tier_state = yield from tiers.load_tier_state(
            self.write_context, scope, self.hot_buffers.get_hot_seqs(scope)
        )
        hidden = find_denials([*(entry.turn for entry in tier_state.tail), *tier_state.hot], guards)
        tail = tuple(entry for entry in tier_state.tail if entry.turn.seq not in hidden)
        return replace(
            tier_state,
            tail=tail,
            hot=tuple(fact for fact in tier_state.hot if fact.seq not in hidden),
        )

    @requires_action(Action.READ_CONTENT)
    def registry(
        self, ids: Mapping[str, Any], *, limit: Any = None
    ) -> Flow[Sequence[FiledExchange]]:
        """The exchanges of a scope that were said last."""
        scope, guards = self.resolve_scope(ids), self.read_context.guards
        size = request.parse_limit(limit, None, self.settings)
        scopes = yield from tiers.load_covered_scopes(self.write_context, self.account, scope)
        exchanges = yield from summaries.load_newest(self.write_context, scopes, size)
        return [exchange for exchange in exchanges if not find_denials(exchange.turns, guards)]

    # What comes after filing ------------------------------------------------------------------------------------------

    def _post_sweep_steps(self) -> tuple[FollowUpStage, ...]:
        """What works on what was filed, in this order."""
        return self._file_into_topics, self._forget_faded

    def _file_into_topics(self, _: Sequence[Scope]) -> Flow[SweepResult]:
        """Put what was filed into topics."""
        outcome = yield from self.file_topics()
        return SweepResult(topics=outcome.exchanges, warnings=tuple(outcome.warnings))

    def _forget_faded(self, scopes: Sequence[Scope]) -> Flow[SweepResult]:
        """Give up what has faded."""
        forgotten = 0
        for scope in tiers.select_widest_scopes(scopes):
            forgotten += len((yield from self.forget(None, scope.ids())))
        return SweepResult(forgotten=forgotten)

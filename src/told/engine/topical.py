"""The verbs about topics: what exchanges are about, which topics are one, and topics of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from told.core.errors import NotFoundError
from told.core.fact import TOPIC, Fact
from told.core.policy import Action
from told.core.query import LATEST, AsOf
from told.core.scope import Scope
from told.engine.base import named, verb
from told.engine.minding import Minding
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.read import cache, plan
from told.read import topics as reading
from told.read.guard import denials
from told.read.limits import thresholds
from told.read.topics import Listed
from told.tend import topics, uniting
from told.tend.filing import Files
from told.tend.topics import Filed, Wound
from told.tend.uniting import United


class Topical(Minding):
    """Topics and what they hold."""

    __slots__ = ()

    @verb(Action.READ_CONTENT)
    def topics(self, ids: Mapping[str, Any], *, as_of: Any = None) -> Flow[Sequence[Listed]]:
        """The topics of a scope."""
        at = yield from self.point(as_of)
        return (yield from self._listed(self.scope(ids), at))

    @verb(Action.READ_CONTENT)
    def topic(self, id: str, *, ids: Mapping[str, Any]) -> Flow[tuple[Listed, Sequence[Fact]]]:
        """One topic, with the turns in it."""
        wanted = named(id)
        missing = NotFoundError(f"There is no topic {wanted!r} here.", hint="List them with topics().")
        fact = yield from call(self.store.fact, self.account, wanted)
        scope = self.within(ids)
        if fact is None or fact.kind != TOPIC or (scope and not scope.covers(fact.scope)):
            raise missing
        found = yield from self._listed(fact.scope, AsOf(LATEST, self.store.mint.now()))
        one = next((each for each in found if each.fact.id == fact.id), None)
        if one is None:
            raise missing
        return one, self._seen([turn for exchange in one.exchanges for turn in exchange])

    @verb(Action.DERIVE_CLAIMS)
    def file_topics(self) -> Flow[Filed]:
        """Put every exchange that waits into a topic."""
        return (yield from topics.consume((yield from self._files()), self.account))

    @verb(Action.DERIVE_CLAIMS)
    def merge_topics(self, ids: Mapping[str, Any]) -> Flow[United]:
        """Make one of topics of a scope that are nearly the same."""
        return (yield from uniting.merge((yield from self._files()), self.scope(ids)))

    @verb(Action.DERIVE_CLAIMS)
    def abstract_topics(self, ids: Mapping[str, Any]) -> Flow[United]:
        """Make topics of the topics of a scope, named by a model if there is one."""
        return (yield from uniting.abstract((yield from self._files()), self.scope(ids), self.mind.llm))

    # What other verbs do to topics

    def _forsake(self, threads: Iterable[str]) -> Flow[dict[Scope, Wound]]:
        """Forget what is noted of threads that are about to be erased."""
        return (yield from topics.forsake((yield from self._files()), self.account, threads))

    def _mend(self, wounds: dict[Scope, Wound], threads: Iterable[str]) -> Flow[tuple[str, ...]]:
        """Make topics anew that lost something; what could not be done yet is a warning."""
        files = yield from self._files()
        done = yield from attempt(topics.mend(files, self.account, wounds, threads))
        return (f"Topics wait to be made anew: {done}",) if isinstance(done, Failure) else ()

    def _doubt(self, after: int) -> Flow[None]:
        """Forget what is noted of topics if anything was erased after a position."""
        yield from topics.doubt((yield from self._files()), self.account, after)

    def _renew(self) -> Flow[int]:
        """Make the means of all topics anew."""
        return (yield from topics.rebuild((yield from self._files()), self.account))

    def _files(self) -> Flow[Files]:
        """What topics are kept with; without an embedder, they are those of the store's model."""
        bound = None if self.embedder is not None else (yield from call(self.store.model))
        model = self.embedder.model if self.embedder is not None else bound[0] if bound else ""
        limits = thresholds(self.settings, self.embedder)
        return Files(self.store, self.store.mint, self.settings, limits, model, self.embedder, self.shelves)

    def _listed(self, scope: Scope, at: AsOf) -> Flow[Sequence[Listed]]:
        def met(store: Any, account: str, among: Sequence[str]) -> Flow[Any]:
            return (yield from cache.met(store, self.overlay, account, among))

        find = plan.find(scope, at, None, limit=None)
        found = yield from reading.listing(self.store, find, met)
        denied = denials([each.fact for each in found], self.eye.guards)
        return [each for each in found if each.fact.seq not in denied]

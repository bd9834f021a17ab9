"""Write turns and their claims straight into a store, as an extractor and a curator would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from told import Memory
from told.flow import run
from told.ingest import embedding
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft, Evidence, Linked, Observed, Retracted, Verb
from told.model.fact import NODE, QUARANTINE, TURN
from told.model.kind import lookup_predicate
from told.model.scope import Scope
from told.ports import Batch

EXTRACTOR = "local"


@dataclass(slots=True)
class Notebook:
    """Write turns, claims, nodes and links of one user; the caller chooses every id."""

    memory: Memory
    scope: Scope = field(default_factory=lambda: Scope(user_id="u"))

    def write(self, *verbs: Verb, author: str = EXTRACTOR) -> int:
        """Commit verbs together and return the new end of the ledger."""
        engine = self.memory.engine
        drafts = [
            Draft(verb, self.scope, "user" if isinstance(verb, Observed) else author)
            for verb in verbs
        ]
        vectors, _ = run(
            embedding.embed_before_commit(
                engine.store, engine.embedder, drafts, {}, embedding.EMPTY_LOOKUP
            )
        )
        model = engine.embedder.model if engine.embedder else None
        engine.store.commit(Batch("default", drafts, vectors=vectors, model=model), fold_all)
        return engine.store.get_head("default").seq

    def said(
        self, name: str, text: str, *claims: Verb, said_at: int | None = None, **more: Any
    ) -> int:
        """Write a turn `name` with evidence `name.said` and the claims extracted from it."""
        claim = Claim(text, TURN, evidence=f"{name}.said", role="user", said_at=said_at, **more)
        self.write(
            Observed(f"{name}.said", Evidence(text, said_at=said_at)),
            Asserted(name, claim),
            author="user",
        )
        return self.write(*claims) if claims else self.memory.engine.store.get_head("default").seq

    def node(self, name: str, text: str) -> None:
        """Write a node of the graph."""
        self.write(Asserted(name, Claim(text, NODE, meta={"slug": name})))

    def doubt(self, name: str, text: str, evidence: str) -> None:
        """Write a quarantined claim."""
        self.write(
            Asserted(
                name,
                Claim(text, QUARANTINE, evidence=evidence, meta={"kind": "profile", "why": "new"}),
            )
        )

    def link(self, src: str, rel: str, dst: str, weight: float = 1.0, **meta: Any) -> int:
        """Link two memories."""
        return self.write(Linked(src, rel, dst, weight, meta))

    def retract(self, thread: str) -> int:
        """Retract a claim."""
        return self.write(Retracted(thread, "negated"))


def claim(
    thread: str,
    text: str,
    turn: str,
    name: str = "likes",
    object: str | None = None,
    *,
    since: int | None = None,
    **more: Any,
) -> Asserted:
    """Build a claim from a turn; with `since`, a new version of its thread."""
    value = object or text.rsplit(maxsplit=1)[-1]
    fields: dict[str, Any] = {"role": "user", "subject": "User", "object": value, **more}
    kind = lookup_predicate(name).kind
    return Asserted(
        thread, Claim(text, kind, predicate=name, evidence=f"{turn}.said", **fields), since
    )


def texts(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the texts of some memories."""
    return [row["memory"] for row in rows]

"""What the local extractor makes of a few turns, as tests want to see it."""

from datetime import UTC, datetime

from told.extraction.rules import LocalExtractor
from told.flow import run
from told.ingest.messages import InputTurn
from told.ingest.types import ExtractionInput, ExtractionResult
from told.model.entry import Claim, Evidence
from told.model.scope import Scope
from told.text.dates import to_us

NOW = to_us(datetime(2026, 3, 18, 12, tzinfo=UTC))
"""A Wednesday."""


def hear(
    *turns: str | tuple[str, str], name: str | None = None, said_at: int | None = None
) -> ExtractionResult:
    """Everything that is found in turns of a user, or of the role that stands before the text."""
    told = [("user", turn) if isinstance(turn, str) else turn for turn in turns]
    heard = tuple(InputTurn(Evidence(text, role, name, said_at), {}) for role, text in told)
    return run(LocalExtractor().extract(ExtractionInput(heard, NOW, Scope("a", user_id="u"))))


def claims(
    *turns: str | tuple[str, str], name: str | None = None, said_at: int | None = None
) -> list[Claim]:
    """The claims that are found, in order."""
    return [found.claim for found in hear(*turns, name=name, said_at=said_at).claims]


def texts(*turns: str | tuple[str, str], name: str | None = None) -> list[str]:
    """The sentences of the claims that are found."""
    return [claim.text for claim in claims(*turns, name=name)]


def triples(
    *turns: str | tuple[str, str], name: str | None = None
) -> set[tuple[str | None, str | None, str | None]]:
    """Subject, predicate and object of the claims; a negated predicate has a minus before it."""
    return {
        (claim.subject, f"{'-' * (claim.polarity == 'negated')}{claim.predicate}", claim.object)
        for claim in claims(*turns, name=name)
    }

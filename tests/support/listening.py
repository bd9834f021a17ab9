"""Results of the local extractor on a few turns."""

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
    """Extract from turns of the user, or of the role given before the text."""
    told = [("user", turn) if isinstance(turn, str) else turn for turn in turns]
    heard = tuple(InputTurn(Evidence(text, role, name, said_at), {}) for role, text in told)
    return run(LocalExtractor().extract(ExtractionInput(heard, NOW, Scope("a", user_id="u"))))


def claims(
    *turns: str | tuple[str, str], name: str | None = None, said_at: int | None = None
) -> list[Claim]:
    """Return the extracted claims, in order."""
    return [found.claim for found in hear(*turns, name=name, said_at=said_at).claims]


def texts(*turns: str | tuple[str, str], name: str | None = None) -> list[str]:
    """Return the texts of the extracted claims."""
    return [claim.text for claim in claims(*turns, name=name)]


def triples(
    *turns: str | tuple[str, str], name: str | None = None
) -> set[tuple[str | None, str | None, str | None]]:
    """Return subject, predicate and object of the claims; a minus marks negation."""
    return {
        (claim.subject, f"{'-' * (claim.polarity == 'negated')}{claim.predicate}", claim.object)
        for claim in claims(*turns, name=name)
    }

"""Facts that somebody else extracted: they are read as they are, and nothing is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from told.flow import Flow
from told.ports import Usage
from told.write.extract.closed import check, concepts_of, proposed
from told.write.extract.facts import given
from told.write.extract.ground import Ground
from told.write.extract.items import Reader, unread
from told.write.extract.parse import Answer, take
from told.write.extract.settle import Rules, extracted, settle
from told.write.shape import CONCEPT, Extracted, Heard

TRUSTED = Rules(strict=False, replies=True)
"""Whoever gives facts answers for them: none is quarantined for its words."""


@dataclass(frozen=True, slots=True)
class GivenExtractor:
    """Reads facts that came with what was heard: sentences, triples, and lines of an ontology's form."""

    reader: Reader = unread
    name: str = "given"
    local: bool = True

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """The facts; a line of the form has to hold as if a model had filled it in."""
        lines = tuple(one for one in heard.facts if isinstance(one, Mapping) and CONCEPT in one)
        rest = tuple(one for one in heard.facts if not any(one is line for line in lines))
        done = given(replace(heard, facts=rest), self.reader)
        formed = _formed(heard, lines, self.reader)
        return replace(done, claims=(*done.claims, *formed.claims), dropped=(*done.dropped, *formed.dropped),
                       faults=(*done.faults, *formed.faults))  # fmt: skip
        yield  # a flow, though it asks for nothing


def _formed(heard: Heard, lines: tuple[Mapping[str, object], ...], reader: Reader) -> Extracted:
    ground = Ground(heard.turns)
    names = {concept.name: concept for concept in concepts_of(heard.ontology)}
    filled, answer = take(Answer(lines), lines, lambda line: check(line, names, ground, replies=True))
    return extracted(settle(heard, ground, proposed(heard, filled, reader), TRUSTED), answer, Usage())

"""The memory of a declared ontology, for agents that run their own loop: what may be remembered, and how it fades."""

from told.api.ontology import (
    DECAY,
    EXTRACTOR_SYSTEM,
    PRUNE_THRESHOLD,
    Fact,
    MemoryStore,
    build_concept_catalog,
    extract_facts,
    filtered_block,
)

__all__ = [
    "DECAY",
    "EXTRACTOR_SYSTEM",
    "PRUNE_THRESHOLD",
    "Fact",
    "MemoryStore",
    "build_concept_catalog",
    "extract_facts",
    "filtered_block",
]

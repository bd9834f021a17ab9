"""Facts of a declared ontology that fade over turns, for agents that run their own loop."""

from told.api.ontology.extraction import EXTRACTOR_SYSTEM, build_concept_catalog, extract_facts
from told.api.ontology.fact import DECAY, PRUNE_THRESHOLD, Fact
from told.api.ontology.store import MemoryStore, filtered_block

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

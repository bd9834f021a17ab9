"""The memory of a declared ontology, for agents that run their own loop: extract, upsert, tick, inject."""

from told.faces.ontology.extract import EXTRACTOR_SYSTEM, build_concept_catalog, extract_facts
from told.faces.ontology.fact import DECAY, PRUNE_THRESHOLD, Fact
from told.faces.ontology.render import filtered_block
from told.faces.ontology.store import MemoryStore

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

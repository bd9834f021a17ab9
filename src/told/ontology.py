"""The closed world for agents that run their own loop: `extract_facts`, its catalogue and its prompt."""

from told.faces.ontology import EXTRACTOR_SYSTEM, build_concept_catalog, extract_facts

__all__ = ["EXTRACTOR_SYSTEM", "build_concept_catalog", "extract_facts"]

"""Extract claims by rules: offline and deterministic."""

from told.extraction.rules.extractor import LocalExtractor

__all__ = ["LocalExtractor"]

"""Claims out of what people say, by rules alone: offline, deterministic, in a fraction of a millisecond a sentence."""

from told.extraction.rules.extractor import LocalExtractor

__all__ = ["LocalExtractor"]

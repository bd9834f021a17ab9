"""Extractors that ask a model, and what they share: reading its answers and holding them against what was said."""

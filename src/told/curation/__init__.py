"""Decide how claims change existing memories: by rules, by a model, and by kind."""

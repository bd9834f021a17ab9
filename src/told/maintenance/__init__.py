"""Tending: what is done with memories while nobody waits for it."""

"""The embedded store: one SQLite file."""

from __future__ import annotations

from told.backends.sqlite.store import SqliteStore, open_store

__all__ = ["SqliteStore", "open_store"]

"""Kinds that a call names though nobody knows them: neither declared, nor had by a memory that it could see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from told.core.filter import All, Filter, Some, Test
from told.core.query import MAX_LIMIT, AsOf, Find
from told.core.reading import meant
from told.core.scope import Scope
from told.core.text import shown
from told.flow import Flow, call
from told.read.gather import Eye
from told.read.guard import denials

ASKED = "No kind is called {}: it is not declared, and no memory here has it.{}"
KEPT = "No kind is called {}: what was said is kept under that name, by no rules of its own.{}"


def named(wanted: Filter) -> tuple[str, ...]:
    """The kinds that a filter asks for by their names."""
    match wanted:
        case Test("kind", "eq", str(name)):
            return (name,)
        case Test("kind", "in", tuple(names)):
            return tuple([str(name) for name in names])
        case All(parts) | Some(parts):
            return tuple([name for part in parts for name in named(part)])
        case _:
            return ()


def asked(eye: Eye, find: Find) -> Flow[tuple[str, ...]]:
    """A warning for every unknown kind a read asks for, as of the moment it asks about."""
    return (yield from _unknown(eye, find.scope, find.as_of, named(find.filter), ASKED))


def kept(eye: Eye, scope: Scope, now: AsOf, kind: str) -> Flow[tuple[str, ...]]:
    """A warning if something is about to be kept under an unknown kind."""
    return (yield from _unknown(eye, scope, now, (kind,), KEPT))


def _unknown(eye: Eye, scope: Scope, as_of: AsOf, names: Iterable[str], words: str) -> Flow[tuple[str, ...]]:
    undeclared = [name for name in dict.fromkeys(names) if name not in eye.kinds]
    if not undeclared:
        return ()
    anything = Find(scope, replace(as_of, valid_at=None), show_expired=True)
    had: frozenset[str] = frozenset()
    for name in undeclared:
        had |= yield from _had(eye, anything, Test("kind", "eq", name), MAX_LIMIT if eye.guards else 1)
    if had.issuperset(undeclared):
        return ()
    own = yield from _had(eye, anything, Test("kind", "nin", eye.kinds.names), MAX_LIMIT)
    known = (*eye.kinds, *own)
    unknown = [name for name in undeclared if name not in had]
    return tuple([words.format(shown(name), f" {meant(name, known)}".rstrip()) for name in unknown])


def _had(eye: Eye, anything: Find, only: Filter, most: int) -> Flow[frozenset[str]]:
    """The kinds of memories that a read finds and no guard stops."""
    found = yield from call(eye.store.facts, replace(anything, filter=only, limit=most))
    denied = denials(found, eye.guards)
    return frozenset(fact.kind for fact in found if fact.seq not in denied)

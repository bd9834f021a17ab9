"""What a read asks for: a scope, a point on both time axes, a filter and a size, all checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from told.core.belief import BELIEFS
from told.core.errors import InvalidInput, TimeError
from told.core.filter import All, parse, split_scope
from told.core.identity import Lens, lens_named
from told.core.ids import Mint
from told.core.query import LATEST, MAX_LIMIT, AsOf, Find
from told.core.scope import Scope, identifier
from told.core.text import label, shown
from told.core.when import from_us, instant, moment
from told.flow import Flow, call
from told.ports import Store
from told.read.assemble import FORMATS
from told.read.bundle import Order
from told.settings import Settings

MAX_OFFSET = 10**9
MAX_BUDGET = 10**9
MAX_POSITION = 10**15
MAX_CHANGES = 10 * MAX_LIMIT


def scope_and_filter(ids: Mapping[str, Any], filters: Any, account: str) -> tuple[Scope, Any]:
    """The scope named by arguments or inside the filters, and what is left of the filters."""
    inner, rest = split_scope(filters)
    if not inner:
        return Scope.of(**ids, account=account), rest
    outer = {name: identifier(value, name) for name, value in ids.items() if value is not None}
    for name in inner.keys() & outer.keys():
        if inner[name] != outer[name]:
            raise InvalidInput(f"{name} is {outer[name]!r} in the call and {inner[name]!r} in its filters.")
    return Scope.of(**inner, **{k: v for k, v in outer.items() if k not in inner}, account=account), rest


def point(
    store: Store, mint: Mint, account: str, settings: Settings, *, as_of: Any = None, valid_at: Any = None
) -> Flow[AsOf]:
    """A point on both axes; `as_of` is a time or a ledger position such as `#12`."""
    now = mint.now()
    world = None if valid_at is None else _instant(valid_at, now, settings)
    if as_of is None:
        return AsOf(LATEST, now, world)
    if isinstance(as_of, str) and as_of.startswith("#"):
        seq = _position(as_of)
        entries = yield from call(store.scan, account, seq - 1, 1)
        return AsOf(seq, entries[0].at if entries else now, world)
    at = _instant(as_of, now, settings)
    seq = yield from call(store.position, account, at)
    return AsOf(seq, at, world)


def _position(text: str) -> int:
    digits = text[1:] if len(text) <= len(str(MAX_POSITION)) else ""
    if not digits.isdecimal() or int(digits) < 1:
        raise TimeError(f"{shown(text)} is not a ledger position.", hint="Positions look like #12.")
    return int(digits)


def _instant(value: Any, now: int, settings: Settings) -> int:
    zone = settings.zone or None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, str):
        return moment(value, now=from_us(now), zone=zone)
    if isinstance(value, datetime) or not isinstance(value, bool):
        return instant(value, zone=zone)
    raise TimeError(f"{shown(value)} is not a time.")


def size(limit: Any, top_k: Any, settings: Settings) -> int:
    """How many results are wanted, by either name."""
    given = {"limit": limit, "top_k": top_k}
    wanted = {whole(value, name, 1, MAX_LIMIT) for name, value in given.items() if value is not None}
    if len(wanted) > 1:
        raise InvalidInput("limit and top_k are two names of one thing; give one of them.")
    return wanted.pop() if wanted else settings.limit


def whole(value: Any, name: str, least: int, most: int) -> int:
    """A whole number between two others."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{name} must be a whole number from {least} to {most}, not {shown(value)}.")
    return value


def flag(value: Any, name: str) -> bool:
    """A truth value; what merely counts as one is refused, for it may have been meant otherwise."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, not {shown(value)}.")
    return value


def find(
    scope: Scope, as_of: AsOf, filters: Any, *, limit: int | None, offset: Any = 0, show_expired: Any = False
) -> Find:
    """A read of facts."""
    expired, skip = flag(show_expired, "show_expired"), whole(offset, "offset", 0, MAX_OFFSET)
    return Find(scope, as_of, parse(filters), expired, limit, skip)


def of_kinds(find: Find, kinds: Any) -> Find:
    """The same read of some kinds only."""
    if kinds is None:
        return find
    given = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(given, list | tuple) or not given or not all(isinstance(kind, str) and kind for kind in given):
        raise InvalidInput(f"kinds must be a list of names, not {shown(kinds)}.", hint='Such as ["profile", "event"].')
    return replace(find, filter=All((find.filter, parse({"kind": {"in": list(given)}}))))


def least(threshold: Any, min_score: Any) -> float:
    """The lowest score a hit may have, by either name."""
    given = {"threshold": threshold, "min_score": min_score}
    wanted = {_share(value, name) for name, value in given.items() if value is not None}
    if len(wanted) > 1:
        raise InvalidInput("threshold and min_score are two names of one thing; give one of them.")
    return wanted.pop() if wanted else 0.0


def _share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1, not {shown(value)}.")
    return float(value)


def belief(value: Any) -> str:
    """Which side of a contradiction is shown; the latest, unless told otherwise."""
    if value is not None and not (isinstance(value, str) and value in BELIEFS):
        raise InvalidInput(f"There is no belief {shown(value)}.", hint=f"Use one of {', '.join(BELIEFS)}.")
    return value or "latest"


def lens(value: Any) -> Lens | None:
    """Which names are taken for one; each for itself, unless told otherwise."""
    return None if value is None else lens_named(label(value, "lens", limit=64))


def reference(value: Any, as_of: AsOf, settings: Settings) -> datetime | None:
    """The moment a question is asked from, which decides what "last week" is."""
    return None if value is None else from_us(_instant(value, as_of.at, settings))


def order(budget: Any, format: Any, tail: Any, settings: Settings) -> Order:
    """How a context is wanted."""
    tokens = settings.budget if budget is None else whole(budget, "budget", 1, MAX_BUDGET)
    turns = settings.tail if tail is None else whole(tail, "tail", 0, MAX_LIMIT)
    if format is not None and not (isinstance(format, str) and format in FORMATS):
        raise InvalidInput(f"There is no format {shown(format)}.", hint=f"Use one of {', '.join(FORMATS)}.")
    return Order(tokens, format or "text", turns)


def without_query(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a context that asks nothing; those that only a query gives a meaning are refused."""
    asking = ("threshold", "min_score", "rerank", "reference_date", "belief", "lens")
    for name in asking:
        if options.get(name) is not None and options[name] is not False:
            raise InvalidInput(f"{name} needs a query.", hint="Ask for something, or leave it out.")
    return {name: value for name, value in options.items() if name not in asking}

"""Templates of ctx:// names: `ctx://{{account_id}}/{{owner_space}}/memories/events/{{name}}_{{ts}}`.

A template may hold ids of the scope, `owner_space` (the owner's folder, such as `users/alice`), `id` and `ts` (what
makes a name unique) and fields of the memory. Fields go in as slugs. Ids go in as they are, or hashed where they could
not stand in an address, so that no two owners ever share a name. A template is split before it is filled, so that no
value can add a folder.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping

from told.core.errors import UriError
from told.core.lazy import regex
from told.core.reading import Spot
from told.core.scope import Scope, Uri

PLACEHOLDER = regex(r"\{\{\s*(\w+)\s*\}\}")
SCOPE_NAMES = ("account_id", "user_id", "agent_id", "run_id", "owner_space")
UNIQUE_NAMES = ("id", "ts")
SLUG_LIMIT = 120
_OWNERS = {"{{owner_space}}", "{{user_id}}", "{{agent_id}}", "{{run_id}}"}
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def slug(text: str) -> str:
    """The text as one segment of an address: lower case, without blanks, separators or dots that climb."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()).replace("..", "")
    short = "".join("_" if _unfit(char) else char for char in folded).strip("_")
    if len(short) <= SLUG_LIMIT:
        return short
    return f"{short[: SLUG_LIMIT - 9]}-{hashlib.sha256(short.encode()).hexdigest()[:8]}"


def _unfit(char: str) -> bool:
    return char in "/\\%" or char.isspace() or unicodedata.category(char) in _INVISIBLE


def segment(name: str) -> str:
    """An id as one segment of an address; different ids give different segments."""
    folded = unicodedata.normalize("NFKC", name)
    if name.startswith("~") or folded in (".", "..") or any(map(_unfit, folded.replace(" ", ""))):
        return f"~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return name


def holds(template: str) -> tuple[str, ...]:
    """The names of a template's placeholders."""
    return tuple(PLACEHOLDER.findall(template))


def check(template: str, names: Iterable[str], spot: Spot) -> None:
    """Refuse a template that holds an unknown name or that leaves its account or its owner."""
    known = (*SCOPE_NAMES, *UNIQUE_NAMES, *names)
    for name in holds(template):
        if name not in known:
            raise spot.unlike(name, known)
    if set("{}") & set(PLACEHOLDER.sub("", template)):
        raise spot.wrong(template, "placeholders such as {{slug}}")
    parts = _split(template)
    if not template.startswith("ctx://") or parts[0] != "{{account_id}}" or "" in parts:
        raise spot.wrong(template, "ctx://{{account_id}}/ and what is below it")
    if not _OWNERS & set(parts[:-1]):
        raise spot.wrong(template, "a folder of its owner, such as {{owner_space}}")
    if any("{{owner_space}}" in part and part != "{{owner_space}}" for part in parts):
        raise spot.wrong(template, "{{owner_space}} as a folder of its own")


def fill(template: str, scope: Scope, owner: str, values: Mapping[str, object]) -> Uri:
    """The address a template gives to these values of an owner in a scope."""
    said = {name: value for name, value in values.items() if value is not None and name not in SCOPE_NAMES}
    known = {name: slug(str(value)) for name, value in said.items()}
    known |= {name: segment(value) for name, value in (scope.ids() | {"account_id": scope.account}).items()}

    def put(found: re.Match[str]) -> str:
        if not known.get(found[1]):
            raise UriError(f"The address {template} needs {found[1]}.", hint="Give it a value that is not empty.")
        return known[found[1]]

    path: list[str] = []
    for part in _split(template):
        path += owner_space(scope, owner) if part == "{{owner_space}}" else [PLACEHOLDER.sub(put, part)]
    return Uri(path[0], tuple(path[1:]))


def owner_space(scope: Scope, owner: str) -> tuple[str, str]:
    """The folder of the scope's user or agent; of the nearest id there is, where the scope does not name the owner."""
    ids = scope.ids()
    order = sorted(("user", "agent", "run"), key=lambda space: space != owner)
    return next((f"{space}s", segment(ids[f"{space}_id"])) for space in order if f"{space}_id" in ids)


def _split(template: str) -> list[str]:
    return [PLACEHOLDER.sub(r"{{\1}}", part) for part in template.removeprefix("ctx://").split("/")]

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
from told.core.lazy import lazy_regex
from told.core.reading import ConfigLocation
from told.core.scope import Scope, Uri

PLACEHOLDER_PATTERN = lazy_regex(r"\{\{\s*(\w+)\s*\}\}")
SCOPE_PLACEHOLDERS = ("account_id", "user_id", "agent_id", "run_id", "owner_space")
UNIQUE_PLACEHOLDERS = ("id", "ts")
SLUG_LIMIT = 120
_OWNER_PLACEHOLDERS = {"{{owner_space}}", "{{user_id}}", "{{agent_id}}", "{{run_id}}"}
_UNSAFE_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def slugify(text: str) -> str:
    """The text as one segment of an address: lower case, without blanks, separators or dots that climb."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()).replace(
        "..", ""
    )
    short = "".join("_" if _is_unsafe_char(char) else char for char in folded).strip("_")
    if len(short) <= SLUG_LIMIT:
        return short
    return f"{short[: SLUG_LIMIT - 9]}-{hashlib.sha256(short.encode()).hexdigest()[:8]}"


def _is_unsafe_char(char: str) -> bool:
    return char in "/\\%" or char.isspace() or unicodedata.category(char) in _UNSAFE_CATEGORIES


def escape_segment(name: str) -> str:
    """An id as one segment of an address; different ids give different segments."""
    folded = unicodedata.normalize("NFKC", name)
    if (
        name.startswith("~")
        or folded in (".", "..")
        or any(map(_is_unsafe_char, folded.replace(" ", "")))
    ):
        return f"~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return name


def list_placeholders(template: str) -> tuple[str, ...]:
    """The names of a template's placeholders."""
    return tuple(PLACEHOLDER_PATTERN.findall(template))


def validate_template(template: str, field_names: Iterable[str], spot: ConfigLocation) -> None:
    """Refuse a template that holds an unknown name or that leaves its account or its owner."""
    allowed_names = (*SCOPE_PLACEHOLDERS, *UNIQUE_PLACEHOLDERS, *field_names)
    for name in list_placeholders(template):
        if name not in allowed_names:
            raise spot.choice_error(name, allowed_names)
    if set("{}") & set(PLACEHOLDER_PATTERN.sub("", template)):
        raise spot.value_error(template, "placeholders such as {{slug}}")
    parts = _split_template(template)
    if not template.startswith("ctx://") or parts[0] != "{{account_id}}" or "" in parts:
        raise spot.value_error(template, "ctx://{{account_id}}/ and what is below it")
    if not _OWNER_PLACEHOLDERS & set(parts[:-1]):
        raise spot.value_error(template, "a folder of its owner, such as {{owner_space}}")
    if any("{{owner_space}}" in part and part != "{{owner_space}}" for part in parts):
        raise spot.value_error(template, "{{owner_space}} as a folder of its own")


def fill_template(template: str, scope: Scope, owner: str, values: Mapping[str, object]) -> Uri:
    """The address a template gives to these values of an owner in a scope."""
    given_values = {
        name: value
        for name, value in values.items()
        if value is not None and name not in SCOPE_PLACEHOLDERS
    }
    replacements = {name: slugify(str(value)) for name, value in given_values.items()}
    replacements |= {
        name: escape_segment(value)
        for name, value in (scope.ids() | {"account_id": scope.account}).items()
    }

    def substitute(match: re.Match[str]) -> str:
        if not replacements.get(match[1]):
            raise UriError(
                f"The address {template} needs {match[1]}.",
                hint="Give it a value that is not empty.",
            )
        return replacements[match[1]]

    path: list[str] = []
    for part in _split_template(template):
        path += (
            owner_folder(scope, owner)
            if part == "{{owner_space}}"
            else [PLACEHOLDER_PATTERN.sub(substitute, part)]
        )
    return Uri(path[0], tuple(path[1:]))


def owner_folder(scope: Scope, owner: str) -> tuple[str, str]:
    """The folder of the scope's user or agent; of the nearest id there is, where the scope does not name the owner."""
    ids = scope.ids()
    spaces = sorted(("user", "agent", "run"), key=lambda space: space != owner)
    return next(
        (f"{space}s", escape_segment(ids[f"{space}_id"]))
        for space in spaces
        if f"{space}_id" in ids
    )


def _split_template(template: str) -> list[str]:
    return [
        PLACEHOLDER_PATTERN.sub(r"{{\1}}", part)
        for part in template.removeprefix("ctx://").split("/")
    ]

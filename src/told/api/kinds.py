"""Find, load, check and draft kind files, and propose kinds for quarantined claims."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from told.errors import ConfigError, InvalidInput
from told.ingest.types import CONCEPT
from told.model import kind
from told.model.fact import Fact
from told.model.kind import Kind, Ontology, load_builtin_ontology, load_kind, load_ontology
from told.runtime import config_folders
from told.settings import Settings

DEFAULT_KIND = "memory"
TEMPLATE = """\
name: {name}
label: {label}
description: >-
  What a memory of this kind says, and when to make one.
write: {write}  # merge, aggregate, append or cumulative
{key}owner: user  # user or agent
tier: long_term  # permanent, long_term, session or ephemeral
weight: 0.5
semantics: {semantics}  # functional, multi or immutable
fields:
{fields}examples:
{examples}"""


def find_kinds_folder(settings: Settings) -> Path:
    """Return the folder of kind files: the setting `kinds`, `.told/kinds`, or the user's config."""
    if settings.kinds:
        return Path(settings.kinds).expanduser()
    local_folder, user_folder = (folder / "kinds" for folder in config_folders())
    return local_folder if local_folder.is_dir() else user_folder


def resolve_ontology(given: Any, settings: Settings) -> tuple[Ontology, Ontology]:
    """Return all kinds, and the kinds that extraction may use.

    An ontology that is given, or that is the file of the setting `kinds`, limits extraction to
    its kinds; a folder of kinds adds to the built-in ones.
    """
    own_kinds = _load_given(given, settings)
    all_kinds = load_builtin_ontology().with_kinds(*own_kinds.kinds)
    is_closed = own_kinds.kinds and (
        given not in (None, "auto") or find_kinds_folder(settings).is_file()
    )
    chosen = own_kinds if is_closed else all_kinds
    usable = tuple(kind for kind in chosen.kinds if kind.enabled and not kind.system)
    return all_kinds, Ontology(usable, own_kinds.version, own_kinds.description)


def _load_given(given: Any, settings: Settings) -> Ontology:
    """Load the ontology that the caller gave, or else the files of the setting `kinds`."""
    if isinstance(given, Ontology):
        return given
    if given is None or given == "auto":
        folder = find_kinds_folder(settings)
        if settings.kinds and not folder.exists():
            raise ConfigError(
                f"The setting kinds names {folder}, which does not exist.",
                hint="Create it, or unset it.",
            )
        return load_ontology(folder) if folder.is_file() or _has_kind_files(folder) else Ontology()
    if isinstance(given, Kind):
        return Ontology((given,))
    if isinstance(given, list | tuple):
        return Ontology(
            tuple(kind if isinstance(kind, Kind) else load_kind(kind) for kind in given)
        )
    if isinstance(given, Mapping | str | os.PathLike):
        return load_ontology(given)
    hint = "A path, a mapping with concepts, a list of kinds, or a told Ontology."
    raise ConfigError(f"ontology cannot be {type(given).__name__}.", hint=hint)


def _has_kind_files(folder: Path) -> bool:
    return any(folder.glob("*.yaml")) or any(folder.glob("*.yml"))


def kind_to_dict(kind: Kind, origin: str) -> dict[str, Any]:
    """Serialise a kind with all its rules and its origin."""
    rules = {
        "write": kind.write.value,
        "owner": kind.owner.value,
        "tier": kind.tier.value,
        "weight": kind.weight,
        "semantics": kind.semantics.value,
        "half_life_days": kind.half_life,
        "cardinality": kind.cardinality,
        "eviction": kind.eviction.value,
        "levels": [level.value for level in kind.levels],
        "template": kind.template,
        "system": kind.system,
        "enabled": kind.enabled,
    }
    return {**rules, **kind.as_json(), "origin": origin}


def check_paths(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Check files and folders of kinds; return their kinds or their problems."""
    return [_check_path(path) for path in paths]


def _check_path(path: Path) -> dict[str, Any]:
    try:
        is_single_kind = path.is_file() and path.suffix in (".yaml", ".yml")
        ontology = Ontology((load_kind(path),)) if is_single_kind else load_ontology(path)
    except ConfigError as error:
        return {"path": str(path), "ok": False, "problem": error.message, "hint": error.hint}
    return {"path": str(path), "ok": True, "kinds": list(ontology.names)}


def create_kind_file(
    name: str, folder: Path, *, write: str = "aggregate", fields: Iterable[str] = ()
) -> Path:
    """Write a draft of a kind, check that it loads, and return its path."""
    slug = kind.slugify(name)
    target = folder / f"{slug}.yaml"
    if target.exists():
        raise InvalidInput(f"{target} already exists.", hint="Edit it, or choose another name.")
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(draft_kind(slug, write=write, fields=fields), "utf-8")
    try:
        load_kind(target)
    except ConfigError:
        target.unlink()
        raise
    return target


def draft_kind(
    name: str, *, write: str = "aggregate", fields: Iterable[str] = (), examples: Iterable[str] = ()
) -> str:
    """Return a draft of a kind as YAML."""
    has_key = write in ("aggregate", "cumulative")
    names = [*(["slug"] if has_key else []), *fields, "content"]
    rows = "".join(
        f'  - {{name: {item}, required: true, description: "What {item} says."}}\n'
        for item in names
    )
    lines = (
        "".join(f"  - {_quote_text(item)}\n" for item in examples)
        or '  - "Something somebody said."\n'
    )
    return TEMPLATE.format(
        name=name,
        label=name.replace("_", " ").capitalize(),
        write=write,
        key="key: slug\n" if has_key else "",
        semantics="functional" if has_key else "multi",
        fields=rows,
        examples=lines,
    )


def _quote_text(text: str) -> str:
    import json

    return json.dumps(" ".join(text.split())[:200], ensure_ascii=False)


def propose_kinds(claims: Iterable[Fact], ontology: Ontology) -> list[dict[str, Any]]:
    """Propose kinds for quarantined claims, most frequent first, each with a draft."""
    texts_by_kind: dict[str, list[str]] = defaultdict(list)
    known_slugs = {kind.slugify(name) for name in ontology}
    for fact in claims:
        has_default_kind = fact.meta.get("kind", DEFAULT_KIND) == DEFAULT_KIND
        slug = kind.slugify(
            str(fact.meta.get(CONCEPT) or (fact.predicate if has_default_kind else None) or "")
        )
        if slug and slug not in known_slugs:
            texts_by_kind[slug].append(fact.text)
    ordered = sorted(texts_by_kind.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            "name": name,
            "claims": len(texts),
            "examples": texts[:3],
            "yaml": draft_kind(name, examples=texts[:3]),
        }
        for name, texts in ordered
    ]

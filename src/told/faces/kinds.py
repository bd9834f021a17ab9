"""Kinds as files: which folder they live in, how a new one begins, and which ones what was refused asks for."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from told.core import address
from told.core.errors import ConfigError, InvalidInput
from told.core.fact import Fact
from told.core.kind import Kind, Ontology, builtin, load_kind, load_ontology
from told.settings import Settings
from told.write.shape import CONCEPT

PLAIN = "memory"
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


def folder(settings: Settings) -> Path:
    """Where this user's kinds live: the setting `kinds`, else `.told/kinds` here, else in the configuration folder."""
    if settings.kinds:
        return Path(settings.kinds).expanduser()
    here = Path(".told/kinds")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return here if here.is_dir() else home / "told" / "kinds"


def ontology(given: Any, settings: Settings) -> tuple[Ontology, Ontology]:
    """All kinds there are, and those that extraction may use: the ones given, or all that told does not make itself.

    An ontology, given here or as the file that the setting `kinds` names, is the whole world; a folder only adds to it.
    """
    own = _given(given, settings)
    everything = builtin().plus(*own.kinds)
    closed = own.kinds and (given not in (None, "auto") or folder(settings).is_file())
    chosen = own if closed else everything
    usable = tuple(kind for kind in chosen.kinds if kind.enabled and not kind.system)
    return everything, Ontology(usable, own.version, own.description)


def _given(given: Any, settings: Settings) -> Ontology:
    if isinstance(given, Ontology):
        return given
    if given is None or given == "auto":
        place = folder(settings)
        if settings.kinds and not place.exists():
            raise ConfigError(f"The setting kinds names {place}, which is not there.", hint="Create it, or unset it.")
        return load_ontology(place) if place.is_file() or _kinds_in(place) else Ontology()
    if isinstance(given, Kind):
        return Ontology((given,))
    if isinstance(given, list | tuple):
        return Ontology(tuple(each if isinstance(each, Kind) else load_kind(each) for each in given))
    if isinstance(given, Mapping | str | os.PathLike):
        return load_ontology(given)
    hint = "A path, a mapping with concepts, a list of kinds, or a told Ontology."
    raise ConfigError(f"ontology cannot be {type(given).__name__}.", hint=hint)


def _kinds_in(place: Path) -> bool:
    return any(place.glob("*.yaml")) or any(place.glob("*.yml"))


def written(kind: Kind, origin: str) -> dict[str, Any]:
    """A kind with every rule it has, and where it comes from."""
    rules = {"write": kind.write.value, "owner": kind.owner.value, "tier": kind.tier.value, "weight": kind.weight,
             "semantics": kind.semantics.value, "half_life_days": kind.half_life, "cardinality": kind.cardinality,
             "eviction": kind.eviction.value, "levels": [level.value for level in kind.levels],
             "template": kind.template, "system": kind.system, "enabled": kind.enabled}  # fmt: skip
    return {**rules, **kind.as_json(), "origin": origin}


def check(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """What each file or folder of kinds holds, or what is wrong with it."""
    return [_checked(path) for path in paths]


def _checked(path: Path) -> dict[str, Any]:
    try:
        one = path.is_file() and path.suffix in (".yaml", ".yml")
        found = Ontology((load_kind(path),)) if one else load_ontology(path)
    except ConfigError as error:
        return {"path": str(path), "ok": False, "problem": error.message, "hint": error.hint}
    return {"path": str(path), "ok": True, "kinds": list(found.names)}


def new(name: str, place: Path, *, write: str = "aggregate", fields: Iterable[str] = ()) -> Path:
    """Write a kind to begin with; it is read back, so what stands there is sound."""
    slug = address.slug(name)
    target = place / f"{slug}.yaml"
    if target.exists():
        raise InvalidInput(f"{target} is there already.", hint="Edit it, or choose another name.")
    place.mkdir(parents=True, exist_ok=True)
    target.write_text(drafted(slug, write=write, fields=fields), "utf-8")
    try:
        load_kind(target)
    except ConfigError:
        target.unlink()
        raise
    return target


def drafted(name: str, *, write: str = "aggregate", fields: Iterable[str] = (), examples: Iterable[str] = ()) -> str:
    """The text of a kind to begin with."""
    keyed = write in ("aggregate", "cumulative")
    names = [*(["slug"] if keyed else []), *fields, "content"]
    rows = "".join(f'  - {{name: {each}, required: true, description: "What {each} says."}}\n' for each in names)
    lines = "".join(f"  - {_quoted(each)}\n" for each in examples) or '  - "Something somebody said."\n'
    return TEMPLATE.format(
        name=name, label=name.replace("_", " ").capitalize(), write=write, key="key: slug\n" if keyed else "",
        semantics="functional" if keyed else "multi", fields=rows, examples=lines,
    )  # fmt: skip


def _quoted(text: str) -> str:
    import json

    return json.dumps(" ".join(text.split())[:200], ensure_ascii=False)


def inferred(refused: Iterable[Fact], known: Ontology) -> list[dict[str, Any]]:
    """The kinds that claims in quarantine ask for, the most wanted first, each with a draft of its file."""
    wanted: dict[str, list[str]] = defaultdict(list)
    there = {address.slug(name) for name in known}
    for fact in refused:
        homeless = fact.meta.get("kind", PLAIN) == PLAIN
        slug = address.slug(str(fact.meta.get(CONCEPT) or (fact.predicate if homeless else None) or ""))
        if slug and slug not in there:
            wanted[slug].append(fact.text)
    ordered = sorted(wanted.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {"name": name, "claims": len(texts), "examples": texts[:3], "yaml": drafted(name, examples=texts[:3])}
        for name, texts in ordered
    ]

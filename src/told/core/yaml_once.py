"""YAML in which no key stands twice; a module of its own, for it takes longer to load than most of what told reads."""

from __future__ import annotations

from typing import Any

import yaml

from told.core.reading import once

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(content: str) -> Any:
    """What a text of YAML holds; one that cannot be read is a ValueError."""
    loader = _LOADER(content)
    try:
        node = loader.get_single_node()
        _once_below(node)
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    finally:
        loader.dispose()


def _once_below(node: yaml.Node | None) -> None:
    match node:
        case yaml.MappingNode(value=pairs):
            once(key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode))
            for _, below in pairs:
                _once_below(below)
        case yaml.SequenceNode(value=items):
            for below in items:
                _once_below(below)
        case _:
            pass

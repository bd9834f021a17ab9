"""YAML in which no key stands twice; a module of its own, for it takes longer to load than most of what told reads."""

from __future__ import annotations

from typing import Any

import yaml

from told.core.reading import check_unique

_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_unique_yaml(content: str) -> Any:
    """What a text of YAML holds; one that cannot be read is a ValueError."""
    loader = _YAML_LOADER(content)
    try:
        node = loader.get_single_node()
        _check_unique_yaml_keys(node)
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    finally:
        loader.dispose()


def _check_unique_yaml_keys(node: yaml.Node | None) -> None:
    match node:
        case yaml.MappingNode(value=pairs):
            check_unique(key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode))
            for _, child in pairs:
                _check_unique_yaml_keys(child)
        case yaml.SequenceNode(value=items):
            for child in items:
                _check_unique_yaml_keys(child)
        case _:
            pass

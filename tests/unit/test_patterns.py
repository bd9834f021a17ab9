"""Regular expressions behave the same on every supported Python."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from told import Memory

LIST_PATTERNS_SCRIPT = """
import pkgutil, re
from importlib import import_module
compiled, made = re.compile, {}
def note(pattern, flags=0):
    if isinstance(pattern, (str, bytes)):
        made[pattern, int(flags)] = None
    return compiled(pattern, flags)
re.compile = note
from told import runtime
class Noted(runtime._LazyPattern):
    def __init__(self, pattern, flags):
        super().__init__(pattern, flags)
        made[pattern, int(flags)] = None
runtime._LazyPattern = Noted
import told
for module in pkgutil.walk_packages(told.__path__, "told."):
    if not module.name.startswith("told.testing") and not module.name.endswith(("__main__", "_child")):
        import_module(module.name)
from told.extraction.rules import lexicon
for name in lexicon._load_pattern_flags():
    lexicon.get_pattern(name)
print(repr([(pattern, flags) for pattern, flags in made]))
"""  # noqa: E501
SINGLE_CHARACTER_OPS = {
    _constants.IN,
    _constants.LITERAL,
    _constants.NOT_LITERAL,
    _constants.ANY,
    _constants.CATEGORY,
}


def find_atomic_groups(items: Any) -> list[Any]:
    """Return atomic groups and possessive repeats of more than one character."""
    found: list[Any] = []
    for op, value in items:
        if op is _constants.ATOMIC_GROUP:
            found.append(value)
        if op is _constants.POSSESSIVE_REPEAT and (
            len(value[2]) != 1 or value[2][0][0] not in SINGLE_CHARACTER_OPS
        ):
            found.append(value[2])
        found += [kept for part in subpatterns(value) for kept in find_atomic_groups(part)]
    return found


def subpatterns(value: Any) -> list[Any]:
    """Return the subpatterns inside a parser operation's argument."""
    if isinstance(value, _parser.SubPattern):
        return [value]
    return (
        [part for each in value for part in subpatterns(each)]
        if isinstance(value, list | tuple)
        else []
    )


@pytest.mark.parametrize("pattern", ["(?:ab)*+", "x(?:(?:,\\w)?+|b)", "(?>ab)"])
def test_an_atomic_group_is_detected(pattern: str) -> None:
    assert find_atomic_groups(_parser.parse(pattern))


def test_no_pattern_has_a_possessive_group_which_python_before_3_11_5_misreads() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LIST_PATTERNS_SCRIPT], capture_output=True, text=True, check=True
    )
    made: list[tuple[Any, int]] = literal_eval(ran.stdout)
    assert len(made) > 500
    assert [
        pattern for pattern, flags in made if find_atomic_groups(_parser.parse(pattern, flags))
    ] == []


@pytest.mark.parametrize("word", ["is", "was", "and", "very", "a"])
def test_a_repeated_word_is_matched_in_one_pass(word: str) -> None:
    """Two ways to match each word would mean 2**40 ways in total, which never ends."""
    with Memory("ram://", embedder="none") as memory:
        assert memory.add(f"I like tea {f'{word} ' * 40}Q", user_id="ann")["results"]

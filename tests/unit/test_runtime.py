"""Lazily compiled patterns and cached properties."""

import copy
import gc
import pickle
import re
import threading
from importlib import import_module
from pathlib import Path

import pytest

import told
from told import runtime
from told.runtime import cached_property, lazy_regex


def test_a_pattern_is_compiled_once_on_first_use(monkeypatch):
    compiled, compile_ = [], re.compile
    monkeypatch.setattr(
        re, "compile", lambda source, flags: compiled.append(source) or compile_(source, flags)
    )
    letters = lazy_regex("[a-c]+", re.IGNORECASE)
    assert compiled == []
    assert [letters.findall("ab Bd C"), letters.findall("x"), letters.sub("-", "cab!")] == [
        ["ab", "B", "C"],
        [],
        "-!",
    ]
    assert compiled == ["[a-c]+"]


def test_a_lazy_pattern_has_every_pattern_attribute():
    word = lazy_regex(r"(?P<first>\w)\w*")
    assert (word.pattern, word.groups, dict(word.groupindex)) == (
        r"(?P<first>\w)\w*",
        1,
        {"first": 1},
    )
    assert word.flags == re.compile(word.pattern).flags
    assert word.match("told")["first"] == "t"


def test_bytes_patterns_are_supported():
    assert lazy_regex(rb"\d+").search(b"no 12")[0] == b"12"


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_a_lazy_pattern_can_be_copied_and_pickled_before_and_after_use(again):
    word = lazy_regex("A+", re.IGNORECASE)
    for _ in range(2):
        assert again(word).findall("aab") == word.findall("aab") == ["aa"]


def test_an_invalid_pattern_raises_on_first_use():
    with pytest.raises(re.error, match="unterminated"):
        lazy_regex("(").search("")


def test_every_lazy_pattern_in_told_compiles():
    root = Path(told.__file__).parent
    for floor in ("model", "text", "retrieval", "ingest", "extraction", "curation", "maintenance"):
        for file in (root / floor).rglob("*.py"):
            import_module(
                ".".join(("told", *file.relative_to(root).with_suffix("").parts)).removesuffix(
                    ".__init__"
                )
            )
    gc.collect()
    waiting = [one for one in gc.get_objects() if isinstance(one, runtime._LazyPattern)]
    assert len(waiting) > 150
    assert all(re.compile(one.pattern, one._flags) for one in waiting)


def test_a_cached_property_is_computed_once_without_blocking_other_objects():
    class SlowObject:
        def __init__(self, length):
            self.length, self.begun, self.over = length, 0, threading.Event()

        @cached_property
        def computed(self):
            """Return the computed value once the event is set."""
            self.begun += 1
            assert self.over.wait(20)
            return self.length * 2

    slow, quick = SlowObject(1), SlowObject(2)
    pupil = threading.Thread(target=lambda: slow.computed, daemon=True)
    pupil.start()
    quick.over.set()
    other = threading.Thread(target=lambda: quick.computed, daemon=True)
    other.start()
    other.join(5)
    waited = other.is_alive()
    slow.over.set()
    pupil.join(5)
    assert not waited
    assert [slow.computed, quick.computed, quick.computed, quick.begun] == [2, 4, 4, 1]

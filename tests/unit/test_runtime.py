"""Patterns that wait until they are asked."""

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


def test_a_pattern_is_compiled_once_when_it_is_first_asked(monkeypatch):
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


def test_it_has_all_that_a_pattern_has():
    word = lazy_regex(r"(?P<first>\w)\w*")
    assert (word.pattern, word.groups, dict(word.groupindex)) == (
        r"(?P<first>\w)\w*",
        1,
        {"first": 1},
    )
    assert word.flags == re.compile(word.pattern).flags
    assert word.match("told")["first"] == "t"


def test_bytes_have_patterns_too():
    assert lazy_regex(rb"\d+").search(b"no 12")[0] == b"12"


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_it_can_be_copied_and_pickled_before_it_is_asked_and_after(again):
    word = lazy_regex("A+", re.IGNORECASE)
    for _ in range(2):
        assert again(word).findall("aab") == word.findall("aab") == ["aa"]


def test_what_is_no_pattern_says_so_when_it_is_asked():
    with pytest.raises(re.error, match="unterminated"):
        lazy_regex("(").search("")


def test_every_pattern_of_told_is_one():
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


def test_a_property_is_worked_out_once_and_while_one_is_at_it_nobody_waits_for_another_object():
    class Lesson:
        def __init__(self, length):
            self.length, self.begun, self.over = length, 0, threading.Event()

        @cached_property
        def learned(self):
            """What is known thereafter."""
            self.begun += 1
            assert self.over.wait(20)
            return self.length * 2

    slow, quick = Lesson(1), Lesson(2)
    pupil = threading.Thread(target=lambda: slow.learned, daemon=True)
    pupil.start()
    quick.over.set()
    other = threading.Thread(target=lambda: quick.learned, daemon=True)
    other.start()
    other.join(5)
    waited = other.is_alive()
    slow.over.set()
    pupil.join(5)
    assert not waited
    assert [slow.learned, quick.learned, quick.learned, quick.begun] == [2, 4, 4, 1]

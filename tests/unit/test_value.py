"""A quick value is a frozen dataclass in everything but the time it takes to make one."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from told.runtime import fast_frozen_init


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    size: int = 3
    notes: dict[str, int] = field(default_factory=dict)
    kind: str = "sort"

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("less than nothing")


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Quick:
    name: str
    size: int = 3
    notes: dict[str, int] = field(default_factory=dict)
    kind: str = "sort"

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("less than nothing")


@pytest.mark.parametrize(
    ("args", "given"), [(("a",), {}), (("a", 1), {"notes": {"b": 2}}), ((), {"name": "a"})]
)
def test_a_quick_value_holds_what_a_plain_one_holds(args, given):
    plain, made = Plain(*args, **given), Quick(*args, **given)
    assert type(made) is Quick
    assert [getattr(made, each.name) for each in fields(Quick)] == [
        getattr(plain, each.name) for each in fields(Plain)
    ]
    assert repr(made) == repr(plain).replace("Plain", "Quick")


def test_nothing_in_a_quick_value_can_be_changed():
    made = Quick("a")
    for change in (
        lambda: setattr(made, "size", 4),
        lambda: delattr(made, "size"),
        lambda: setattr(made, "new", 1),
    ):
        with pytest.raises((FrozenInstanceError, TypeError)):
            change()
    assert made == Quick("a")


def test_each_quick_value_has_a_default_of_its_own():
    assert Quick("a").notes is not Quick("a").notes


@pytest.mark.parametrize("args", [(), ("a", 1, {}, "sort", "more")])
def test_wrong_arguments_are_refused(args):
    with pytest.raises(TypeError, match="argument"):
        Quick(*args)


def test_what_is_checked_after_a_value_is_made_is_still_checked():
    with pytest.raises(ValueError, match="less than nothing"):
        Quick("a", -1)


def test_a_quick_value_can_be_copied_replaced_pickled_matched_and_looked_at():
    made = Quick("a", 4, {"b": 2})
    assert copy.copy(made) == made == pickle.loads(pickle.dumps(made))
    assert replace(made, size=3) == Quick("a", notes={"b": 2})
    match made:
        case Quick(name, size=4):
            assert name == "a"
        case _:
            pytest.fail("it does not match its own pattern")
    assert inspect.signature(Quick) == inspect.signature(Plain)


def test_what_extends_a_quick_value_is_what_it_was_made_as():
    class Longer(Quick):
        __slots__ = ()

    assert type(Longer("a")) is Longer

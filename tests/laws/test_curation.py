"""Properties of curation, for any claims in any order, on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curating import DAY, World, claim, denied, world
from histories import tried
from told.curation.decisions import is_ended, is_tentative
from told.curation.predicates import OPPOSITES, get_slot
from told.errors import Conflict
from told.flow import run
from told.ledger.history import load_history
from told.model.entry import Asserted, Claim, Retracted
from told.model.fact import UNLISTED_KINDS, Fact
from told.model.kind import Semantics, lookup_predicate
from told.text.dates import Interval

NOW = 1_767_600_000_000_000
VALUES = {
    "lives_in": ("Rome", "Rome, Italy", "Oslo"),
    "works_at": ("Acme", "Google"),
    "works_as": ("nurse", "cook"),
    "works_in": ("tech",),
    "likes": ("tea", "green tea", "jazz"),
    "dislikes": ("tea", "jazz"),
    "has_pet": ("dog", "dog named Rex", "cat"),
    "favourite_colour": ("blue", "red"),
    "born_in": ("Lima", "Bonn"),
    "diet": ("vegetarian", "vegan"),
    "did": ("yoga",),
    "favourite_food": ("pizza",),
}
VERBS = {
    "works_at": "works at",
    "works_as": "works as a",
    "works_in": "works in",
    "lives_in": "lives in",
}
subjects = st.sampled_from(("User", "Bob"))
times = st.sampled_from((None, None, -30 * DAY, -DAY, 0))


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    """Draw any claim: present or past, early or late, certain or not, asserted or denied."""
    name = draw(st.sampled_from(sorted(VALUES)))
    value, subject = draw(st.sampled_from(VALUES[name])), draw(subjects)
    said = draw(times)
    more: dict[str, Any] = {"said_at": None if said is None else NOW + said, "subject": subject}
    text = f"{subject} {VERBS.get(name, name.replace('_', ' '))} {value}"
    match draw(st.sampled_from(("now", "now", "now", "now", "past", "hedged", "ended", "not"))):
        case "past":
            return claim(
                name,
                value,
                f"{text}, once",
                valid=Interval(NOW - 90 * DAY, NOW - 60 * DAY, "day"),
                **more,
            )
        case "hedged":
            return claim(name, value, f"{text}, perhaps", modality="hedged", **more)
        case "ended":
            return denied(name, value, f"{text} no longer", **more)
        case "not":
            return denied(name, value, f"It is not true that {text}", **more)
        case _:
            return claim(name, value, text, **more)


turns = st.lists(
    st.tuples(
        st.lists(claims(), min_size=1, max_size=3),
        st.sampled_from(("user", "user", "user", "tool", "assistant")),
    ),
    min_size=1,
    max_size=7,
)


def get_subject(fact: Fact | Claim) -> tuple[str | None, str]:
    return fact.subject, get_slot(fact.predicate or "")


def is_about(said: list[Claim], fact: Fact) -> bool:
    """Check whether any of these claims is about the same thing as a memory."""
    opposites = {
        (each.subject, name) for each in said for name in OPPOSITES.get(each.predicate or "", ())
    }
    return (
        get_subject(fact) in map(get_subject, said) or (fact.subject, fact.predicate) in opposites
    )


@pytest.mark.parametrize("store", ["ram", "sqlite"])
@given(script=turns)
@tried(30)
def test_only_memories_a_claim_is_about_are_retired(
    store: str, script: list[tuple[list[Claim], str]]
) -> None:
    with world(store) as here:
        for said, role in script:
            before = {fact.id: fact for fact in here.facts()}
            here.tell(*said, role=role)
            after = {fact.id: fact.text for fact in here.facts()}
            untouched = [fact for fact in before.values() if not is_about(said, fact)]
            assert [after.get(fact.id) for fact in untouched] == [fact.text for fact in untouched]
            assert all(decision.why for decision in here.curated.decisions)
            assert len({decision.turn for decision in here.curated.decisions}) == 1


@pytest.mark.parametrize("store", ["ram", "sqlite"])
@given(script=turns)
@tried(30)
def test_functional_slot_holds_one_value(store: str, script: list[tuple[list[Claim], str]]) -> None:
    with world(store) as here:
        for said, role in script:
            here.tell(*said, role=role)
            assert list_overfull_slots(here) == []


def list_overfull_slots(here: World) -> list[tuple[str | None, str]]:
    """Return the functional slots that hold more than one certain current value."""
    now = here.clock.now
    settled = [
        get_subject(fact)
        for fact in here.facts()
        if lookup_predicate(fact.predicate or "").semantics is Semantics.FUNCTIONAL
        and fact.polarity == "asserted"
        and fact.kind not in UNLISTED_KINDS
        and not is_ended(fact, now)
        and not is_tentative(fact, now)
    ]
    return sorted({pair for pair in settled if settled.count(pair) > 1}, key=str)


@pytest.mark.parametrize("store", ["ram", "sqlite"])
@given(script=turns)
@tried(20)
def test_history_holds_exactly_the_changes(
    store: str, script: list[tuple[list[Claim], str]]
) -> None:
    with world(store) as here:
        told: dict[str, list[str]] = {}
        for said, role in script:
            for event in here.tell(*said, role=role):
                if event.event != "NONE":
                    told.setdefault(event.id, []).append(event.event)
        for thread, events in told.items():
            steps = run(load_history(here.store, "default", thread))
            assert [step.event for step in steps if step.event != "NONE"] == events
        wrote = [
            entry
            for entry in here.store.scan_entries("default", 0, 10_000)
            if isinstance(entry.verb, Asserted | Retracted)
        ]
        assert len(wrote) == sum(map(len, told.values()))


@pytest.mark.parametrize("store", ["ram", "sqlite"])
@given(script=turns, last=claims())
@tried(30)
def test_repeating_a_claim_changes_nothing(
    store: str, script: list[tuple[list[Claim], str]], last: Claim
) -> None:
    """Except a denial that retired something: when repeated it denies nothing, so it is new."""
    with world(store) as here:
        for said, role in script:
            here.tell(*said, role=role)
        first = here.events(last)
        if last.polarity == "negated" and set(first) & {"DELETE", "UPDATE"}:
            here.tell(last)
        held = here.texts()
        assert set(here.events(last)) == {"NONE"}
        assert here.texts() == held


@pytest.mark.parametrize("store", ["ram", "sqlite"])
@given(script=turns)
@tried(20)
def test_only_the_user_retires_what_the_user_said(
    store: str, script: list[tuple[list[Claim], str]]
) -> None:
    with world(store) as here:
        for said, role in script:
            before = {
                fact.id: fact.text
                for fact in here.facts()
                if fact.role == "user" and fact.kind not in UNLISTED_KINDS
            }
            here.tell(*said, role=role)
            if role != "user":
                after = {fact.id: fact.text for fact in here.facts()}
                assert {thread: after.get(thread) for thread in before} == before


@pytest.mark.parametrize("store", ["ram", "sqlite"])
@given(script=turns)
@tried(20)
def test_contradiction_never_leaves_a_slot_empty(
    store: str, script: list[tuple[list[Claim], str]]
) -> None:
    """A slot that was mentioned is empty only if its last claim was a denial."""
    with world(store) as here:
        for said, role in script:
            before = {get_subject(fact) for fact in here.facts()}
            here.tell(*said, role=role)
            after = {get_subject(fact) for fact in here.facts()}
            denials = {get_subject(each) for each in said if each.polarity == "negated"}
            opposed = {
                (each.subject, name)
                for each in said
                for name in OPPOSITES.get(each.predicate or "", ())
            }
            assert before - after <= denials | opposed


@pytest.mark.parametrize("store", ["ram", "sqlite"])
def test_concurrent_writers_never_both_win_a_slot(store: str) -> None:
    """A writer that lost the race decides again, so one value is current and none is lost."""
    cities = [f"Town {number}" for number in range(6)]
    with world(store) as here:
        ready = Barrier(len(cities))

        def move(city: str) -> str:
            mine = replace(here)
            ready.wait()
            while True:
                with suppress(Conflict):
                    [event] = mine.tell(
                        claim("lives_in", city, f"User lives in {city}"), claim("likes", "tea")
                    )[:1]
                    return event.event

        with ThreadPoolExecutor(len(cities)) as pool:
            events = list(pool.map(move, cities))
        assert sorted(events) == ["ADD"] + ["UPDATE"] * (len(cities) - 1)
        home, tea = sorted(here.facts(), key=lambda fact: fact.predicate != "lives_in")
        assert tea.text == "User likes tea"
        said = [step.new for step in run(load_history(here.store, "default", home.id))]
        assert sorted(map(str, said)) == sorted(f"User lives in {city}" for city in cities)


@given(script=turns)
@tried(20)
def test_every_store_reaches_the_same_state(script: list[tuple[list[Claim], str]]) -> None:
    with world("ram") as one, world("sqlite") as other:
        for said, role in script:
            assert one.tell(*said, role=role) == other.tell(*said, role=role)
            assert one.facts() == other.facts()

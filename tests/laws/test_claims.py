"""Properties of turns and their claims: as-of reads are stable, no evidence is lost, and every
store agrees.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimed import Notebook, claim
from histories import stage, tried
from told.model.fact import NEVER

U: dict[str, Any] = {"user_id": "u"}
KINDS = ["ram", "sqlite"]
PLACES = ("Oslo", "Rome", "Lima", "Bonn")
QUERIES = (
    "Where does the user live?",
    "Oslo",
    "where did the user live before?",
    "tea in Rome",
    "work",
    "zebra",
)
THREADS = ("home", "tea", "job", "ann")
PREDICATES = {"home": "lives_in", "tea": "likes", "job": "works_at", "ann": "born_in"}

threads = st.lists(st.sampled_from(THREADS), max_size=2, unique=True)
steps = st.one_of(
    st.tuples(st.just("say"), threads, st.sampled_from(PLACES)),
    st.tuples(st.just("say"), threads, st.sampled_from(PLACES)),
    st.tuples(st.just("plain"), st.just(()), st.sampled_from(PLACES)),
    st.tuples(
        st.just("retract"), st.lists(st.sampled_from(THREADS), min_size=1, max_size=1), st.just("")
    ),
    st.tuples(
        st.just("link"),
        st.lists(st.sampled_from(THREADS), min_size=2, max_size=2, unique=True),
        st.sampled_from(("contradicts", "supersedes", "relates_to", "supports")),
    ),
    st.tuples(
        st.just("mention"), st.lists(st.sampled_from(THREADS), min_size=1, max_size=1), st.just("")
    ),
    st.tuples(st.just("doubt"), st.just(()), st.sampled_from(PLACES)),
)
pasts = st.lists(steps, min_size=1, max_size=9)


class Actor:
    """Perform steps on a notebook; each result depends only on the steps before it."""

    def __init__(self, notes: Notebook) -> None:
        self.notes = notes
        self.held: set[str] = set()
        self.turns = 0

    def act(self, step: tuple[str, Any, str]) -> None:
        notes = self.notes
        match step:
            case "say", threads, place:
                self.turns += 1
                name = f"t{self.turns}"
                made = [self._claim(thread, place, name) for thread in threads]
                notes.said(
                    name,
                    f"I said {self.turns} of {place}: {' and '.join(threads)}",
                    *made,
                    said_at=self.turns,
                )
            case "plain", _, place:
                notes.memory.add(f"we walked to {place}", **U, infer=False)
            case "retract", [thread], _ if thread in self.held:
                notes.retract(thread)
                self.held.discard(thread)
            case "link", [one, other], rel if {one, other} <= self.held:
                notes.link(one, rel, other, 0.8)
            case "mention", [thread], _ if thread in self.held:
                notes.node("oslo", "Oslo (place)")
                notes.link(thread, "mentions", "oslo")
            case "doubt", _, place:
                notes.doubt(f"doubt {place}", f"User hides in {place}", "t1.said")

    def _claim(self, thread: str, place: str, turn: str) -> Any:
        verbs = {
            "home": "lives in",
            "tea": "drinks tea in",
            "job": "works in",
            "ann": "was born in",
        }
        since = 1 if thread in self.held else None
        self.held.add(thread)
        text = f"User {verbs[thread]} {place}"
        return claim(thread, text, turn, PREDICATES[thread], since=since, said_at=self.turns)


def collect_answers(notes: Notebook, query: str, **options: Any) -> dict[str, Any]:
    """Return the results of every read verb, without timing figures."""
    memory, asking = notes.memory, {**U, **options}
    explained = memory.explain(query, **asking)
    for step in explained["steps"]:
        del step["micros"]
    bundle = memory.context(query, budget=150, tail=1, **asking)
    return {
        "search": memory.search(query, explain=True, **asking),
        "explain": explained,
        "text": bundle.text,
        "hits": [
            (replace(hit.fact, until=NEVER, gone=NEVER), hit.score, hit.also) for hit in bundle.hits
        ],
        "all": memory.get_all(**asking),
        "sided": memory.get_all(**asking, belief="latest"),
        "every side": memory.search(query, **asking, belief="all"),
    }


@pytest.mark.parametrize("kind", KINDS)
@given(past=pasts, later=pasts, query=st.sampled_from(QUERIES))
@tried(15)
def test_as_of_read_gives_the_answers_given_at_that_time(kind, past, later, query):
    with stage(kind) as here:
        notes = Notebook(here.memory)
        acted = Actor(notes)
        for step in past:
            acted.act(step)
        moment = here.head
        before = collect_answers(notes, query, as_of=f"#{moment}") if moment else None
        for step in later:
            acted.act(step)
        if before is not None:
            assert collect_answers(notes, query, as_of=f"#{moment}") == before


@given(past=pasts, query=st.sampled_from(QUERIES))
@tried(20)
def test_every_store_gives_the_same_answers(past, query):
    with ExitStack() as stack:
        said = []
        for kind in KINDS:
            notes = Notebook(stack.enter_context(stage(kind)).memory)
            acted = Actor(notes)
            for step in past:
                acted.act(step)
            said.append(
                [collect_answers(notes, query, as_of="#1000"), notes.memory.stats()["memories"]]
            )
        assert said[0] == said[1]


@pytest.mark.parametrize("kind", KINDS)
@given(
    past=pasts,
    query=st.sampled_from(QUERIES),
    limits=st.lists(st.integers(1, 12), min_size=1, max_size=3),
)
@tried(15)
def test_larger_limit_keeps_the_order_of_the_first_results(kind, past, query, limits):
    with stage(kind, spare=0) as here:
        notes = Notebook(here.memory)
        acted = Actor(notes)
        for step in past:
            acted.act(step)
        asking = {**U, "as_of": f"#{max(here.head, 1)}"}
        everything = here.memory.search(query, **asking, limit=150)["results"]
        for limit in limits:
            few = here.memory.search(query, **asking, limit=limit)["results"]
            assert [(row["id"], row["score"]) for row in few] == [
                (row["id"], row["score"]) for row in everything[:limit]
            ]


@pytest.mark.parametrize("kind", KINDS)
@given(past=pasts, query=st.sampled_from(QUERIES))
@tried(20)
def test_grouping_never_hides_the_only_evidence(kind, past, query):
    """Every hidden memory is superseded by a visible one, deleted, or only a lead."""
    with stage(kind) as here:
        notes = Notebook(here.memory)
        acted = Actor(notes)
        for step in past:
            acted.act(step)
        rows = {row["id"]: row for row in here.memory.explain(query, **U, limit=150)["candidates"]}
        shown = {row["id"] for row in here.memory.search(query, **U, limit=150)["results"]}
        for row in rows.values():
            if row["id"] not in shown and row["reason"].startswith(
                ("folded into", "superseded by", "contradicted by")
            ):
                assert _leads_to(rows, row["id"], shown), row
        bundle = here.memory.context(query, **U, budget=100_000)
        printed = {hit.fact.id for hit in bundle.hits} | {
            thread for hit in bundle.hits for thread in hit.also
        }
        given_up = {row["id"] for row in rows.values() if "given up" in row["reason"]}
        assert shown <= printed | given_up


def _leads_to(rows: dict[str, Any], thread: str, shown: set[str]) -> bool:
    """Check whether a hidden memory leads, within a few steps, to a visible one."""
    for _ in range(10):
        if thread in shown:
            return True
        thread = rows[thread]["reason"].rpartition(" ")[2]
        if thread not in rows:
            return False
    return False


@pytest.mark.parametrize("kind", KINDS)
@given(past=pasts)
@tried(10)
def test_rebuilt_views_equal_incremental_views(kind, past):
    with stage(kind) as here:
        acted = Actor(Notebook(here.memory))
        for step in past:
            acted.act(step)
        grown = here.rows()
        here.memory.rebuild()
        assert here.rows() == grown
        assert here.memory.verify()["ok"]

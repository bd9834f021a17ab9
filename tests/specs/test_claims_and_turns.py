"""Grouping of turns and claims in results, superseded turns, contradictions and the graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from claimed import Notebook, claim, texts
from histories import stage
from told import InvalidInput, Memory
from told.retrieval.context import CHANGED_SUFFIX

U: dict[str, Any] = {"user_id": "u"}
KINDS = ("ram", "sqlite")
DAY = 86_400_000_000
NYC, SF = "I live in NYC and I work at Acme", "We moved to San Francisco, I love it"


@contextmanager
def book(kind: str = "ram", **knobs: Any) -> Iterator[Notebook]:
    with stage(kind, **knobs) as here:
        yield Notebook(here.memory)


@pytest.fixture(params=KINDS)
def mover(request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """Notebook of a user who lived in NYC, works at Acme and moved to San Francisco."""
    with book(request.param) as notes:
        notes.said(
            "t1",
            NYC,
            claim("home", "User lives in NYC", "t1", "lives_in"),
            claim("job", "User works at Acme", "t1", "works_at"),
            said_at=100 * DAY,
        )
        notes.said("t2", "The tram was late again", said_at=101 * DAY)
        notes.said(
            "t3",
            SF,
            claim("home", "User lives in San Francisco", "t3", "lives_in", since=1),
            said_at=200 * DAY,
        )
        yield notes


def search_texts(notes: Notebook, query: str, **options: Any) -> list[str]:
    return texts(notes.memory.search(query, **U, **options)["results"])


def context_text(notes: Notebook, query: str, **options: Any) -> str:
    return notes.memory.context(query, **U, **{"budget": 300, **options}).text


# Listings


def test_listing_omits_turns_nodes_and_quarantine(mover: Notebook) -> None:
    mover.node("acme", "Acme (organization)")
    mover.doubt("doubt", "User is a spy", "t1.said")
    memory = mover.memory
    assert texts(memory.get_all(**U)["results"]) == [
        "User works at Acme",
        "User lives in San Francisco",
    ]
    assert memory.stats()["memories"] == 2
    assert texts(memory.get_all(**U, kinds=["turn"])["results"]) == [
        NYC,
        "The tram was late again",
        SF,
    ]
    assert texts(
        memory.get_all(**U, filters={"kind": {"in": ["node", "quarantine"]}})["results"]
    ) == [
        "Acme (organization)",
        "User is a spy",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_listing_pages_are_contiguous(kind: str) -> None:
    with book(kind) as notes:
        for number in range(9):
            made = claim(f"c{number}", f"User likes thing{number}", f"t{number}")
            notes.said(f"t{number}", f"I like thing{number}", made)
        pages = [
            texts(notes.memory.get_all(**U, limit=4, offset=offset)["results"])
            for offset in (0, 4, 8, 12)
        ]
    assert pages == [
        [f"User likes thing{number}" for number in page]
        for page in (range(4), range(4, 8), range(8, 9), ())
    ]


def test_delete_all_includes_unlisted_kinds(mover: Notebook) -> None:
    mover.node("acme", "Acme (organization)")
    mover.doubt("doubt", "User is a spy", "t1.said")
    gone = mover.memory.delete_all(**U)["results"]
    assert {row["id"] for row in gone} == {"t1", "t2", "t3", "home", "job", "acme", "doubt"}
    everything = {"kind": {"in": ["turn", "node", "quarantine"]}}
    assert mover.memory.get_all(**U, filters=everything)["results"] == []
    certificate = mover.memory.erase(**U)
    assert {"t1", "acme", "doubt"} <= set(certificate["memories"])
    assert mover.memory.verify()["ok"]


def test_quarantined_claim_appears_only_in_quarantine(mover: Notebook) -> None:
    mover.doubt("doubt", "User lives on the moon", "t1.said")
    memory = mover.memory
    shown = [
        memory.search("lives moon", **U),
        memory.explain("lives moon", **U),
        context_text(mover, "lives moon", tail=9),
    ]
    assert "the moon" not in repr(shown)
    assert "the moon" not in memory.context(None, **U, budget=500).text
    reason = memory.why_not("lives moon", "doubt", **U)
    assert (reason["found"], "quarantine" in reason["reason"]) == (False, True)
    assert memory.verify()["ok"]


# Grouping turns and claims


def test_search_returns_claim_and_names_its_turn(mover: Notebook) -> None:
    first = mover.memory.search("Where does the user work, at Acme?", **U)["results"][0]
    assert (first["memory"], first["also"]) == ("User works at Acme", ["t1"])
    rows = {row["id"]: row for row in mover.memory.explain("work at Acme", **U)["candidates"]}
    assert (rows["t1"]["kept"], rows["t1"]["stage"], rows["t1"]["reason"]) == (
        False,
        "fold",
        "folded into job",
    )
    missing = mover.memory.why_not("work at Acme", "t1", **U)
    assert (missing["found"], missing["reason"]) == (False, "folded into job")


def test_claim_takes_the_better_score_of_claim_and_turn() -> None:
    with book(embedder=None) as notes:
        notes.said(
            "t", "my green violin tea garden", claim("c", "User likes gardens and green", "t")
        )
        notes.memory.add("a red tea", **U, infer=False)
        [first, *_] = notes.memory.search("green violin tea garden", **U, explain=True)["results"]
    assert first["id"] == "c"
    assert first["score_details"]["turn"] > 0


def test_turn_is_returned_if_none_of_its_claims_match() -> None:
    with book(embedder=None) as notes:
        notes.said(
            "t",
            "I bought a red canoe, it hangs in the boathouse",
            claim("c", "User owns something", "t"),
        )
        assert search_texts(notes, "boathouse") == [
            "I bought a red canoe, it hangs in the boathouse"
        ]


def test_context_prints_turn_once_and_folds_its_claims(mover: Notebook) -> None:
    text = context_text(mover, "What is the job at Acme?", limit=2).split("Recalled:")[1]
    assert text.count("Acme") == 1
    assert "11 Apr user: I live in NYC and I work at Acme" in text
    bundle = mover.memory.context("job at Acme", **U, budget=300)
    assert next(hit for hit in bundle.hits if hit.fact.id == "t1").also == ("job",)


def test_matching_claim_brings_its_turn_into_context() -> None:
    with book(embedder=None) as notes:
        notes.said(
            "t",
            "so I said, why not move up north",
            claim("c", "User lives in Tromsø", "t", "likes"),
        )
        assert "so I said, why not move up north" in context_text(notes, "Tromsø")
        assert "Tromsø" not in context_text(notes, "Tromsø")
        assert search_texts(notes, "Tromsø") == ["User lives in Tromsø"]


def test_context_limited_to_claims_prints_claims(mover: Notebook) -> None:
    text = context_text(mover, "What is the job at Acme?", kinds=["profile"])
    assert "User works at Acme" in text
    assert NYC not in text


def test_search_for_turns_returns_turns(mover: Notebook) -> None:
    assert search_texts(mover, "work at Acme", kinds=["turn"])[0] == NYC


def test_tail_returns_latest_turns_verbatim(mover: Notebook) -> None:
    bundle = mover.memory.context("zebra", **U, budget=300, tail=2, kinds=None, min_score=1.0)
    assert [hit.fact.id for hit in bundle.hits if hit.fact.kind == "turn"][:2] == ["t3", "t2"]


def test_guarded_turn_is_not_mentioned_by_its_claim() -> None:
    with book(guard=lambda row: "I live" not in row["memory"]) as notes:
        notes.said(
            "t1",
            "I live in NYC with a parrot",
            claim("home", "User lives in NYC", "t1", "lives_in"),
        )
        seen = [
            notes.memory.search("NYC", **U),
            notes.memory.explain("NYC", **U),
            context_text(notes, "NYC"),
        ]
    assert "parrot" not in repr(seen)
    assert "t1" not in repr(seen[0]["results"][0].get("also"))
    assert texts(seen[0]["results"]) == ["User lives in NYC"]


# Superseded turns


def test_current_claim_ranks_above_superseded_turn(mover: Notebook) -> None:
    query = "Where does the user live?"
    rows = mover.memory.search(query, **U)["results"]
    assert rows[0]["memory"] == "User lives in San Francisco"
    assert NYC not in texts(rows)
    bundle = mover.memory.context(query, **U, budget=300)
    ids = [hit.fact.id for hit in sorted(bundle.hits, key=lambda hit: -hit.score)]
    assert ids.index("t3") < ids.index("t1")
    assert f"{NYC}{CHANGED_SUFFIX}" in bundle.text
    assert {hit.fact.id: hit.superseded for hit in bundle.hits}["t1"] == "home"


def test_stale_turn_names_the_superseding_claim(mover: Notebook) -> None:
    rows = {
        row["id"]: row
        for row in mover.memory.explain("Where does the user live?", **U)["candidates"]
    }
    assert (rows["t1"]["stage"], rows["t1"]["reason"]) == ("fold", "superseded by home")
    assert (
        mover.memory.why_not("Where does the user live?", "t1", **U)["reason"]
        == "superseded by home"
    )


def test_claim_that_still_holds_is_not_marked_stale(mover: Notebook) -> None:
    assert search_texts(mover, "Does the user work at Acme?")[0] == "User works at Acme"
    assert CHANGED_SUFFIX not in context_text(mover, "Does the user work at Acme?")


@pytest.mark.parametrize(
    "query", ["Where did the user live before San Francisco?", "Where did I live previously?"]
)
def test_query_about_the_past_returns_superseded_turn(mover: Notebook, query: str) -> None:
    row = next(row for row in mover.memory.search(query, **U)["results"] if row["id"] == "t1")
    assert (row["memory"], row["superseded_by"]) == (NYC, "home")
    assert NYC in context_text(mover, query)


def test_as_of_returns_the_earlier_state(mover: Notebook) -> None:
    assert search_texts(mover, "Where does the user live?", as_of="#4")[0] == "User lives in NYC"
    assert [row["new_memory"] for row in mover.memory.history("home")] == [
        "User lives in NYC",
        "User lives in San Francisco",
    ]
    assert f"{NYC}\n" in context_text(mover, "Where does the user live?", as_of="#4")


def test_belief_all_includes_superseded_turns(mover: Notebook) -> None:
    rows = mover.memory.search("Where does the user live?", **U, belief="all")["results"]
    assert {row["id"]: row.get("superseded_by") for row in rows}["t1"] == "home"


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_claim_is_not_recalled_through_its_turn(kind: str) -> None:
    with book(kind) as notes:
        notes.said(
            "t",
            "I'm vegetarian and I play the violin",
            claim("diet", "User is vegetarian", "t", "diet"),
        )
        notes.memory.delete("diet")
        assert search_texts(notes, "Is the user vegetarian?") == []
        assert "vegetarian" not in context_text(notes, "Is the user vegetarian?")
        reason = notes.memory.why_not("Is the user vegetarian?", "t", **U)
        assert (reason["found"], reason["reason"]) == (False, "what was taken from it was given up")
        assert search_texts(notes, "Who plays the violin?") == [
            "I'm vegetarian and I play the violin"
        ]
        assert search_texts(notes, "Was the user vegetarian before?") == [
            "I'm vegetarian and I play the violin"
        ]


def test_metadata_update_does_not_make_turn_stale(mover: Notebook) -> None:
    mover.memory.update("job", metadata={"checked": True})
    assert CHANGED_SUFFIX not in context_text(mover, "Does the user work at Acme?")
    assert search_texts(mover, "Does the user work at Acme?")[0] == "User works at Acme"


def test_corrected_claim_ranks_above_its_turn(mover: Notebook) -> None:
    mover.memory.update("job", text="User works at Initech")
    assert search_texts(mover, "Where does the user work?")[0] == "User works at Initech"


# Contradictions


@pytest.fixture(params=KINDS)
def born(request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """Notebook with two birthplaces: the user said Rome twice, a tool said Oslo later."""
    with book(request.param) as notes:

        def at(thread: str, town: str, turn: str, day: int, role: str = "user") -> Any:
            return claim(
                thread, f"User was born in {town}", turn, "born_in", role=role, said_at=day * DAY
            )

        notes.said("t1", "I was born in Rome", at("rome", "Rome", "t1", 1), said_at=DAY)
        notes.said(
            "t2", "records: born in Oslo", at("oslo", "Oslo", "t2", 2, "tool"), said_at=2 * DAY
        )
        notes.link("oslo", "contradicts", "rome", slot="born_in")
        notes.link("t1.said", "supports", "rome", said="again")
        yield notes


@pytest.mark.parametrize(
    ("belief", "towns"),
    [
        (None, ["Oslo"]),
        ("latest", ["Oslo"]),
        ("majority", ["Rome"]),
        ("trusted", ["Rome"]),
        ("all", ["Oslo", "Rome"]),
    ],
)
def test_belief_option_selects_side_of_contradiction(
    born: Notebook, belief: str | None, towns: list[str]
) -> None:
    query = "Where was the user born?"
    rows = born.memory.search(query, **U, kinds=["profile"], belief=belief)["results"]
    assert sorted(row["memory"].split()[-1] for row in rows) == towns
    other = {"rome": ["oslo"], "oslo": ["rome"]}
    assert all(row["conflicts"] == other[row["id"]] for row in rows)
    text = context_text(born, query, kinds=["profile"], belief=belief)
    assert [town for town in ("Oslo", "Rome") if town in text] == towns
    if belief:
        listed = born.memory.get_all(**U, belief=belief)["results"]
        assert sorted(row["memory"].split()[-1] for row in listed) == towns


def test_rejected_side_names_the_contradicting_claim(born: Notebook) -> None:
    rows = {
        row["id"]: row for row in born.memory.explain("Where was the user born?", **U)["candidates"]
    }
    assert (rows["rome"]["stage"], rows["rome"]["reason"]) == ("believe", "contradicted by oslo")
    assert (
        born.memory.why_not("Where was the user born?", "rome", **U)["reason"]
        == "contradicted by oslo"
    )


def test_listing_without_belief_includes_both_sides(born: Notebook) -> None:
    assert len(born.memory.get_all(**U)["results"]) == 2


def test_contradicted_hit_is_kept_if_other_side_does_not_match() -> None:
    with book(embedder=None) as notes:
        notes.said("t1", "aaa", claim("one", "User likes canoes", "t1"), said_at=DAY)
        notes.said("t2", "bbb", claim("two", "User hates rowing", "t2"), said_at=2 * DAY)
        notes.link("two", "contradicts", "one")
        [row] = notes.memory.search("canoes", **U)["results"]
        assert (row["id"], row["conflicts"], row["superseded_by"]) == ("one", ["two"], "two")


@pytest.mark.parametrize(
    ("option", "value"), [("belief", "mine"), ("belief", 3), ("lens", "sharp"), ("lens", 0.9)]
)
def test_unknown_option_values_are_rejected(mover: Notebook, option: str, value: Any) -> None:
    with pytest.raises(InvalidInput):
        mover.memory.search("live", **U, **{option: value})
    with pytest.raises(InvalidInput):
        mover.memory.context("live", **U, **{option: value})


def test_query_options_are_rejected_without_a_query(mover: Notebook) -> None:
    every: tuple[dict[str, Any], ...] = ({"belief": "all"}, {"lens": "likely"})
    for options in every:
        with pytest.raises(InvalidInput):
            mover.memory.context(None, **U, **options)


# The graph


@pytest.fixture(params=KINDS)
def graph(request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """Notebook in which Alice works at Google; one claim about her names neither."""
    with book(request.param, embedder=None) as notes:
        notes.node("google", "Google (organization)")
        notes.node("alice", "Alice (person)")
        notes.said(
            "t1", "she got the job", claim("hired", "Alice works at Google", "t1", "works_at")
        )
        notes.said(
            "t2", "and she is good at it", claim("chess", "Her openings win every tournament", "t2")
        )
        notes.said("t3", "rain all day", claim("rain", "It rains in Bergen", "t3"))
        notes.link("alice", "works_at", "google", 0.9)
        notes.link("hired", "mentions", "google")
        notes.link("hired", "mentions", "alice")
        notes.link("chess", "mentions", "alice")
        yield notes


def test_matching_node_expands_to_connected_entities(graph: Notebook) -> None:
    assert search_texts(graph, "Google") == [
        "Alice works at Google",
        "Her openings win every tournament",
    ]
    rows = {row["id"]: row for row in graph.memory.explain("Google", **U)["candidates"]}
    assert "graph" in rows["chess"]["sources"]
    assert (rows["google"]["kept"], rows["google"]["stage"]) == (False, "expand")


def test_nodes_are_returned_only_on_request(graph: Notebook) -> None:
    assert search_texts(graph, "Google", kinds=["node"]) == [
        "Google (organization)",
        "Alice (person)",
    ]
    assert "(organization)" not in context_text(graph, "Google")
    assert "(organization)" not in graph.memory.context(None, **U, budget=300).text


def test_memory_does_not_expand_to_all_shared_mentions(graph: Notebook) -> None:
    assert search_texts(graph, "works") == ["Alice works at Google"]


def test_node_wider_than_expand_width_is_not_expanded() -> None:
    with book(embedder=None, expand_width=3) as notes:
        notes.node("bob", "Bob (person)")
        for number in range(5):
            notes.said(
                f"t{number}", "hm", claim(f"c{number}", f"He likes thing{number}", f"t{number}")
            )
            notes.link(f"c{number}", "mentions", "bob")
        assert search_texts(notes, "Bob") == []


@pytest.mark.parametrize(
    ("lens", "titles"),
    [("strict", []), ("likely", ["He sails"]), ("exploratory", ["He sails", "His knee hurts"])],
)
def test_lens_decides_which_names_are_merged(lens: str, titles: list[str]) -> None:
    with book(embedder=None) as notes:
        for name, text, said in (
            ("bob", "Robert Smith (person)", ""),
            ("rob", "Rob (person)", "He sails"),
            ("rs", "RS (person)", "His knee hurts"),
        ):
            notes.node(name, text)
            if said:
                notes.said(f"t-{name}", "hm", claim(f"c-{name}", said, f"t-{name}"))
                notes.link(f"c-{name}", "mentions", name)
        notes.link("bob", "same_as", "rob", 0.9)
        notes.link("rob", "same_as", "rs", 0.7)
        assert sorted(search_texts(notes, "Robert Smith", lens=lens)) == titles


# Contexts


def test_context_line_is_recognised_as_echo(mover: Notebook) -> None:
    text = context_text(mover, "Where does the user live?")
    line = next(line for line in text.splitlines() if "San Francisco" in line)
    assert mover.memory.engine.extraction.echoes.extract_own_text("default", line).text == ""
    assert (
        mover.memory.engine.extraction.echoes.extract_own_text("default", "I live in Lima now").text
        == "I live in Lima now"
    )


def test_only_lasting_facts_about_the_user_are_pinned() -> None:
    with book() as notes:
        notes.said(
            "t",
            "hello",
            claim("home", "User lives in Oslo", "t", "lives_in"),
            claim("dog", "User owns a dog", "t", "owns"),
            claim("ann", "Ann lives in Bonn", "t", "lives_in", subject="Ann"),
        )
        always = notes.memory.context("zebra", **U, budget=400).text.split("Recalled:")[0]
    assert "Oslo" in always
    assert "dog" not in always
    assert "Bonn" not in always


def test_quarantined_claim_is_not_indexed(mover: Notebook) -> None:
    mover.doubt("doubt", "User is a spy", "t1.said")
    store = mover.memory.engine.store
    fact = store.get_fact("default", "doubt")
    assert fact is not None
    assert store.pending_texts(None, "another model", account="default", seqs=[fact.seq]) == {}


def test_allergies_are_in_every_context():
    with Memory("ram://", embedder="none") as memory:
        memory.add("I'm allergic to peanuts and I own a bike", user_id="ann")
        text = memory.context("what should I cook?", user_id="ann").text
        assert "allergic to peanuts" in text
        assert "bike" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_reply_is_threaded_to_previous_turn_across_claims(kind: str) -> None:
    with book(kind) as notes:
        for minute, (name, text) in enumerate(
            (("Ann", "I live in Oslo with my dog"), ("Bob", "Which breed?"))
        ):
            said = {
                "role": "user",
                "name": name,
                "content": text,
                "timestamp": f"2026-01-01T10:0{minute}:00Z",
            }
            notes.memory.add([said], **U)
        facts = notes.memory.engine.store.find_versions(notes.scope.account, scope=notes.scope)
    turns = [fact for fact in facts if fact.text in ("I live in Oslo with my dog", "Which breed?")]
    assert len(facts) > len(turns) == 2
    assert turns[1].after == turns[0].id

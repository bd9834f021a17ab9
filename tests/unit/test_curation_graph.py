"""The graph: nodes, relations, mentions and possible aliases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from curating import World, world
from tables import each_row
from told import Memory
from told.curation.decisions import PlanContext
from told.curation.graph import (
    NameReference,
    build_identity_edges,
    find_identity_edges,
    plan_graph,
    score_name_match,
)
from told.errors import InvalidInput
from told.flow import run
from told.ingest.types import Entity, Relation
from told.ledger.views import fold_all
from told.model.beliefs import LENSES, Lens, get_lens, resolve_identities
from told.model.entry import Draft
from told.model.fact import NODE, Link
from told.ports import Batch
from told.testing import HashingEmbedder

ALICE = Entity("Alice", "person")
GOOGLE = Entity("Google", "organization", "a search company")
WORKS = Relation("Alice", "works_at", "Google", 0.9)


@pytest.fixture(params=["ram", "sqlite"])
def env(request: pytest.FixtureRequest) -> Iterator[World]:
    with world(request.param) as made:
        yield made


def draw(
    env: World,
    entities: Sequence[Entity],
    relations: Sequence[Relation] = (),
    claims: Sequence[tuple[str, str]] = (),
    role: str = "user",
) -> int:
    """Write to the graph and return the number of entries written."""
    env.clock.tick()
    place = PlanContext(
        env.scope, "local", env.store.get_head("default").seq, env.clock.now, env.store.mint
    )
    drawn = run(plan_graph(env.store, place, entities, relations, claims, ["evidence"], role))
    if drawn.drafts:
        env.store.commit(Batch("default", drawn.drafts, drawn.guards), fold_all)
    return len(drawn.drafts)


def graph_edges(env: World) -> list[tuple[str, str, str]]:
    names = {fact.id: fact.meta.get("name", fact.id) for fact in env.facts()}
    links = {link.seq: link for link in env.store.find_links("default", list(names))}
    return [(names.get(x.src, x.src), x.rel, names.get(x.dst, x.dst)) for x in links.values()]


def test_entities_are_nodes_and_relations_are_links(env: World) -> None:
    assert draw(env, [ALICE, GOOGLE], [WORKS]) == 3
    assert [(fact.text, fact.kind) for fact in env.facts()] == [
        ("Alice (person)", NODE),
        ("Google (organization): a search company", NODE),
    ]
    assert graph_edges(env) == [("Alice", "works_at", "Google")]


def test_nodes_and_links_are_not_written_twice(env: World) -> None:
    draw(env, [ALICE, GOOGLE], [WORKS, WORKS])
    assert (
        draw(env, [Entity("alice", "person"), GOOGLE], [Relation("ALICE", "works_at", "google")])
        == 0
    )
    assert len(env.facts()) == 2


def test_a_mention_is_not_written_twice(env: World) -> None:
    claims = [("thread", "Alice works at Google")]
    assert draw(env, [ALICE, GOOGLE], claims=claims) == 4
    assert draw(env, [ALICE, GOOGLE], claims=claims) == 0


def test_adding_a_link_does_not_read_every_link_of_the_node(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only matching links are read to decide whether a link is new."""
    liked = [Relation("Alice", "likes", f"thing {number}") for number in range(20)]
    draw(env, [ALICE], liked)
    read: list[Link] = []
    links = env.store.find_links

    def counted(account: str, threads: Sequence[str]) -> Sequence[Link]:
        read.extend(found := links(account, threads))
        return found

    monkeypatch.setattr(env.store, "find_links", counted)
    draw(
        env,
        [ALICE],
        [Relation("Alice", "likes", "tea"), liked[3]],
        [("thread", "Alice likes tea and thing 3")],
    )
    assert [link.rel for link in read] == ["likes"]


def test_a_node_is_extended_with_new_details(env: World) -> None:
    draw(env, [Entity("Google")])
    assert draw(env, [GOOGLE]) == 1
    assert draw(env, [Entity("Google", "organization", "a company in Mountain View")]) == 1
    [node] = env.facts()
    assert node.text == "Google (organization): a search company; a company in Mountain View"
    assert draw(env, [Entity("Google", "organization", "a company")]) == 0


def test_a_document_does_not_overwrite_a_node(env: World) -> None:
    draw(env, [GOOGLE])
    assert draw(env, [Entity("Google", "organization", "a fraud")], role="tool") == 0


def test_an_entity_named_only_in_a_relation_becomes_a_node(env: World) -> None:
    assert draw(env, [], [WORKS]) == 3
    assert sorted(fact.text for fact in env.facts()) == ["Alice (thing)", "Google (thing)"]


def test_claims_are_linked_to_entities_they_mention_as_whole_words(env: World) -> None:
    claims = [("c1", "Alice works at Google"), ("c2", "Googlers like Malice")]
    draw(env, [ALICE, GOOGLE], [], claims)
    assert graph_edges(env) == [("c1", "mentions", "Alice"), ("c1", "mentions", "Google")]
    assert draw(env, [ALICE], [], claims) == 0


# Names


@each_row(
    ("one", "other", "lens"),
    [
        ("Google", "google", "strict"),
        ("I.B.M.", "IBM", "strict"),
        ("Acme Inc.", "ACME", "strict"),
        ("José", "Jose", "strict"),
        ("Annie Davis", "Annie Mary Davis", "likely"),
        ("A. Davis", "Annie Davis", "exploratory"),
        ("Annie", "Annie Davis", "exploratory"),
        ("IBM", "International Business Machines", "exploratory"),
        ("Microsoft", "Mircosoft", "exploratory"),
    ],
)
def test_possible_aliases_are_joined_by_a_lens(one: str, other: str, lens: str) -> None:
    weight = score_name_match(one, other)
    assert weight == score_name_match(other, one)
    assert weight >= LENSES[lens].same
    stricter = [each.same for each in LENSES.values() if each.same > LENSES[lens].same]
    assert all(weight < same for same in stricter)


@each_row(
    ("one", "other"),
    [
        ("Alice", "Bob"),
        ("GPT-3", "GPT-4"),
        ("Anna Smith", "Anna Jones"),
        ("Bob Davis", "Annie Davis"),
        ("", "x"),
        ("Ann", "Jan"),
    ],
)
def test_distinct_names_are_not_joined(one: str, other: str) -> None:
    assert score_name_match(one, other) < LENSES["exploratory"].same


def test_an_edge_records_how_it_was_found() -> None:
    people = [
        NameReference("1", "Annie Davis", "person"),
        NameReference("2", "Annie M Davis", "person"),
    ]
    place = NameReference("3", "Annie Davis", "place")
    [edge] = build_identity_edges([*people, place])
    assert (edge.src, edge.rel, edge.dst, edge.weight, edge.meta) == (
        "2",
        "same_as",
        "1",
        0.9,
        {"method": "fuzzy"},
    )


def test_embeddings_find_aliases_that_spelling_does_not() -> None:
    cars = [NameReference("1", "car"), NameReference("2", "automobile"), NameReference("3", "tree")]
    vectors = {"1": [1.0, 0.0], "2": [0.95, 0.05], "3": [0.0, 1.0]}
    [edge] = build_identity_edges(cars, vectors)
    assert {edge.src, edge.dst} == {"1", "2"}
    assert edge.meta == {"method": "embedding"}
    assert 0.60 <= edge.weight <= 0.9


def test_the_nodes_of_a_scope_are_compared_only_once(env: World) -> None:
    draw(
        env,
        [
            Entity("Annie Davis", "person"),
            Entity("Annie M Davis", "person"),
            Entity("Rome", "place"),
        ],
    )
    [edge] = run(find_identity_edges(env.store, env.scope, env.clock.now, HashingEmbedder()))
    env.store.commit(Batch("default", [Draft(edge, env.scope)]), fold_all)
    assert run(find_identity_edges(env.store, env.scope, env.clock.now)) == []
    assert len(env.facts()) == 3


# Lenses


def link(src: str, rel: str, dst: str, weight: float, seq: int = 1) -> Link:
    return Link(seq, src, rel, dst, None, weight)  # type: ignore[arg-type]


def test_a_lens_joins_edges_above_its_threshold() -> None:
    links = [
        link("b", "same_as", "a", 0.99),
        link("c", "same_as", "b", 0.9),
        link("d", "same_as", "c", 0.7),
    ]
    seen = {name: dict(resolve_identities(lens, links)) for name, lens in LENSES.items()}
    assert seen == {
        "strict": {"a": "a", "b": "a"},
        "likely": {"a": "a", "b": "a", "c": "a"},
        "exploratory": {"a": "a", "b": "a", "c": "a", "d": "a"},
    }


def test_distinct_referents_are_never_joined_even_transitively() -> None:
    links = [
        link("b", "same_as", "a", 0.99),
        link("c", "same_as", "b", 0.985),
        link("a", "distinct_referent", "c", 0.99),
    ]
    assert dict(resolve_identities(LENSES["strict"], links)) == {"a": "a", "b": "a"}


def test_only_the_exploratory_lens_lets_a_stronger_same_as_edge_win() -> None:
    links = [link("b", "same_as", "a", 0.99), link("a", "distinct_referent", "b", 0.98)]
    seen = {name: bool(resolve_identities(lens, links)) for name, lens in LENSES.items()}
    assert seen == {"strict": False, "likely": False, "exploratory": True}
    unsure = [link("b", "same_as", "a", 0.99), link("a", "distinct_referent", "b", 0.5)]
    assert all(resolve_identities(lens, unsure) for lens in LENSES.values())


def test_a_lens_has_a_short_and_a_versioned_name() -> None:
    assert get_lens("likely") is get_lens("likely_identity_v1") is LENSES["likely"]
    assert isinstance(get_lens("strict"), Lens)
    with pytest.raises(InvalidInput, match="strict, likely, exploratory"):
        get_lens("rosy")


def test_a_relation_is_removed_and_restored_with_its_claim():
    def list_relations():
        rows = memory.relations("User", user_id="u")["results"]
        return {(row["source"], row["relation"], row["target"]) for row in rows}

    with Memory("ram://", embedder=None) as memory:
        memory.add("I live in Berlin and work at Acme. My sister Ann lives in Oslo.", user_id="u")
        assert ("User", "lives_in", "Berlin") in list_relations()
        memory.add("I moved to Tokyo", user_id="u")
        memory.add("I no longer work at Acme", user_id="u")
        assert list_relations() == {("User", "has_sibling", "Ann"), ("User", "lives_in", "Tokyo")}
        memory.add("I moved to Berlin", user_id="u")
        assert list_relations() == {("User", "has_sibling", "Ann"), ("User", "lives_in", "Berlin")}

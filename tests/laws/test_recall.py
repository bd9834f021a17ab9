"""Properties of reads: as-of answers are stable, denied memories stay hidden, and reads change
nothing.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from histories import Stage, stage, tried
from told import Memory
from told.api import serialize
from told.ids import hash_text
from told.model.fact import NEVER
from told.model.scope import Scope
from told.testing import HashingEmbedder

KINDS = ["ram", "sqlite"]
U = {"user_id": "u"}


def embedded_hashes(store, hashes):
    """Return the text hashes that have a vector."""
    return store.lookup_existing(Scope(), (), (), None, hashes).vectors


# Conversations

WORDS = "tea coffee Berlin Tokyo sister garden violin river".split()
CLAIMS = (
    "I live in Berlin",
    "I moved to Tokyo",
    "I love green tea",
    "I don't drink coffee any more",
    "My sister plays the violin",
    "I have a garden by the river",
)
PEOPLE = ("Ann", "Bob", "Annabel Lee", None)
QUERIES = (
    "tea",
    "green tea in Berlin",
    "What did Ann say about the river?",
    "Anna and Bob",
    "violin on 2 May 2023",
    "when was the garden?",
    "what did you tell me about coffee?",
    "zebra",
    "how was the tea before?",
)
LONG = " ".join(f"Sentence {number} speaks of the {WORDS[number % 8]}." for number in range(40))

sayings = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join) | st.just(LONG)
sayings |= st.sampled_from(CLAIMS)
shorter = st.sampled_from(
    ({}, {}, {"abstract": "a river of tea"}, {"overview": "the garden", "abstract": "Berlin"})
)
turns = st.builds(
    lambda text, who, minute, meta, role: {
        "role": role if who is None else "user",
        "content": text,
        "metadata": meta,
        **({"name": who} if who else {}),
        **({} if minute is None else {"timestamp": f"2023-05-02T10:{minute:02}:00Z"}),
    },
    sayings,
    st.sampled_from(PEOPLE),
    st.none() | st.integers(0, 59),
    shorter,
    st.sampled_from(("user", "assistant")),
)
pick = st.integers(0, 20)
steps = st.one_of(
    st.tuples(
        st.just("add"),
        st.lists(turns, min_size=1, max_size=4),
        st.sampled_from((U, {**U, "run_id": "r"})),
    ),
    st.tuples(st.just("add"), st.lists(turns, min_size=1, max_size=4), st.just(U)),
    st.tuples(
        st.just("update"),
        pick,
        st.sampled_from(({"text": "tea again"}, {"metadata": {"abstract": "Tokyo"}})),
    ),
    st.tuples(st.just("delete"), pick, st.none()),
    st.tuples(
        st.just("link"),
        st.tuples(pick, pick),
        st.sampled_from(("part_of", "relates_to", "supports")),
    ),
    st.tuples(st.just("read"), st.sampled_from(QUERIES), st.sampled_from((1, 100))),
)
pasts = st.lists(steps, min_size=1, max_size=7)


def act(here: Stage, step: tuple[str, Any, Any], ids: list[str]) -> None:
    """Perform one step; `ids` are the memories that still exist."""
    memory = here.memory
    match step:
        case "add", said, scope:
            made = memory.add(said, **scope)["results"]
            ids += [row["id"] for row in made if row["event"] == "ADD"]
        case "read", query, limit:
            memory.search(query, **U, limit=limit)
            memory.context(query, **U, budget=40 * limit)
        case "link", (one, other), rel if ids:
            memory.link(ids[one % len(ids)], rel, ids[other % len(ids)], **U, weight=0.7)
        case "update", number, change if ids:
            memory.update(ids[number % len(ids)], **change)
        case "delete", number, _ if ids:
            memory.delete(ids.pop(number % len(ids)))
    here.clock.tick()


def collect_answers(memory: Memory, query: str, **options: Any) -> dict[str, Any]:
    """Return the results of every read verb, without timing figures."""
    asking = {**U, **options}
    explained = memory.explain(query, **asking)
    for step in explained["steps"]:
        del step["micros"]
    bundle = memory.context(query, budget=120, tail=2, **asking)
    return {
        "search": memory.search(query, explain=True, **asking),
        "few": memory.search(query, limit=2, **asking),
        "explain": explained,
        "text": (bundle.text, bundle.tokens, bundle.warnings),
        "hits": [
            (replace(hit.fact, until=NEVER, gone=NEVER), hit.score, dict(hit.parts))
            for hit in bundle.hits
        ],
        "candidates": [candidate.as_dict() for candidate in bundle.trace.candidates],
    }


# As-of reads


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "knobs", [{}, {"rank_hotness": 3.0, "expand_hot": 0.2, "rank_recency": 1.0}], ids=["", "hot"]
)
@given(past=pasts, later=pasts, query=st.sampled_from(QUERIES))
@tried(12)
def test_as_of_read_gives_the_answers_given_at_that_time(kind, knobs, past, later, query):
    """Later reads and writes have no effect; recalls count only for current reads."""
    with stage(kind, **knobs) as here:
        ids: list[str] = []
        then: dict[int, Any] = {}
        for step in (*past, *later):
            act(here, step, ids)
            if here.head and here.head not in then and len(then) < 4:
                then[here.head] = collect_answers(here.memory, query, as_of=f"#{here.head}")
        for seq, before in then.items():
            assert collect_answers(here.memory, query, as_of=f"#{seq}") == before


@pytest.mark.parametrize("kind", KINDS)
def test_later_derived_memories_do_not_displace_results_of_as_of_reads(kind):
    from told.ledger.views import fold_all
    from told.model.entry import Asserted, Claim, Draft
    from told.model.scope import Scope
    from told.ports import Batch

    with stage(kind) as here:
        memory, store = here.memory, here.memory.engine.store
        [said] = memory.add("we walked along the river for hours", **U)["results"]
        fact = store.get_fact("default", said["id"])
        scope = Scope(user_id="u")

        def derive(first: int, last: int, kind: str = "event") -> None:
            drafts = [
                Draft(
                    Asserted(f"d{n}", Claim(f"walk number {n}", kind, evidence=fact.evidence)),
                    scope,
                )
                for n in range(first, last)
            ]
            store.commit(Batch("default", drafts), fold_all)

        derive(0, 3)
        moment = f"#{here.head}"
        before = collect_answers(memory, "walk number 1", as_of=moment)
        derive(3, 60)
        assert collect_answers(memory, "walk number 1", as_of=moment) == before


# Denied memories

SECRET = "Zanzibar"


def mark_denied_turns(
    said: list[dict[str, Any]], denied: set[int], start: int
) -> list[dict[str, Any]]:
    """Make every turn unique and add to the denied ones a word that no query contains."""
    told = []
    for number, turn in enumerate(said, start):
        row = {**turn, "content": f"{turn['content']} number{number}"}
        if number in denied:
            row["content"] += f" {SECRET}text{number}"
            row["metadata"] = {
                "note": f"{SECRET}meta{number}",
                "abstract": f"tea {SECRET}abstract{number}",
            }
            if "name" in row:
                row["name"] = f"{SECRET}name{number}"
        told.append(row)
    return told


def is_allowed(row: dict[str, Any]) -> bool | str:
    return "not for you" if SECRET in str(row) else True


talks = st.lists(st.lists(turns, min_size=1, max_size=5), min_size=1, max_size=3)


def list_with_permission(
    here: Stage, talk: list[list[dict[str, Any]]], denied: set[int]
) -> list[tuple[str, bool]]:
    """Return the memories and their evidence, each with whether it may be seen."""
    count = 0
    for said in talk:
        here.memory.add(mark_denied_turns(said, denied, count), **U)
        count += len(said)
        here.clock.tick()
    facts = here.memory.engine.store.find_versions("default", scope=Scope(user_id="u"))
    return [(fact.id, SECRET not in str(fact)) for fact in facts if fact.until == NEVER]


@pytest.mark.parametrize("kind", KINDS)
@given(
    talk=talks,
    denied=st.sets(st.integers(0, 14), max_size=8),
    query=st.sampled_from(QUERIES),
    data=st.data(),
)
@tried(20)
def test_denied_memories_never_appear_in_any_answer(kind, talk, denied, query, data):
    with stage(kind, guard=is_allowed, spare=0) as here:
        memory = here.memory
        ids = list_with_permission(here, talk, denied)
        for _ in range(2):
            one, other = (data.draw(st.sampled_from(ids))[0] for _ in range(2))
            memory.link(one, data.draw(st.sampled_from(("part_of", "relates_to"))), other, **U)
        hidden = [memory_id for memory_id, shown in ids if not shown]
        told = [
            memory.search(query, **U, explain=True),
            memory.search(query, **U, limit=1),
            memory.get_all(**U),
            *(
                serialize.bundle_to_dict(
                    memory.context(query, **U, budget=60 + 400 * tail, tail=tail)
                )
                for tail in (0, 5)
            ),
            serialize.bundle_to_dict(memory.context(None, **U)),
            memory.explain(query, **U),
            memory.explain(query, **U, limit=1),
            *(memory.why_not(query, memory_id, **U, limit=1) for memory_id, shown in ids if shown),
        ]
        written = repr(told)
        assert SECRET not in written
        assert not any(memory_id in written for memory_id in hidden)
        for memory_id in hidden:
            assert memory.get(memory_id) is None
            answer = memory.why_not(query, memory_id, **U)
            assert (answer["stage"], answer["found"]) == ("guard", False)
            assert SECRET not in repr(answer)
            assert answer.keys() <= {"id", "found", "stage", "reason", "sources"}


@pytest.mark.parametrize("kind", KINDS)
@given(
    talk=talks,
    denied=st.sets(st.integers(0, 14), max_size=8),
    query=st.sampled_from(QUERIES),
    limit=st.integers(1, 6),
)
@tried(20)
def test_search_with_denied_memories_equals_search_without_them(kind, talk, denied, query, limit):
    """Newest-first looks at the first five visible results, so it is disabled here.

    A memory that replaced a denied one is left out: only a reader of both sees the replacement.
    """
    with stage(kind, guard=is_allowed, newest_among=0) as here:
        ids = list_with_permission(here, talk, denied)
        shown = {memory_id for memory_id, seen in ids if seen}
        versions = here.memory.engine.store.find_versions("default", scope=Scope(user_id="u"))
        assume(not shown & {fact.id for fact in versions if SECRET in str(fact)})
        found = here.memory.search(query, **U, limit=limit, explain=True)["results"]
        explained = here.memory.explain(query, **U, limit=limit)
        engine = here.memory.engine
        here.memory._engine = replace(engine, guards=())
        everything = here.memory.search(query, **U, explain=True)["results"]
        candidates = here.memory.explain(query, **U)["candidates"]
        assert found == [row for row in everything if row["id"] in shown][:limit]
        [step] = [step for step in explained["steps"] if step["stage"] == "guard"]
        hidden = {row["id"] for row in candidates} - shown
        assert step["dropped"] == len(hidden)
        assert step["note"] == (f"{len(hidden)} not for you" if hidden else "")
        assert {row["id"] for row in explained["candidates"]} == {
            row["id"] for row in candidates
        } & shown


@pytest.mark.parametrize("kind", KINDS)
def test_only_subscribed_kinds_are_returned(kind):
    with stage(kind, subscribes=("skill",)) as here:
        here.memory.add("run make ship to deploy", **U, memory_type="procedural_memory")
        here.memory.add("deploy on Friday, says Zanzibar", **U)
        told = [
            here.memory.search("deploy", **U),
            here.memory.context("deploy", **U),
            here.memory.get_all(**U),
        ]
        assert SECRET not in repr(told)
        assert "make ship" in told[1].text


# Reading changes nothing


@pytest.mark.parametrize("kind", KINDS)
@given(past=pasts, queries=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4))
@tried(12)
def test_reads_change_no_entry_export_or_row(kind, past, queries):
    with stage(kind, access_flush=1) as here:
        ids: list[str] = []
        for step in past:
            act(here, step, ids)
        store, account = here.memory.engine.store, here.memory.engine.account
        before = (store.get_head(account), here.exported(), here.rows(), here.memory.timeline(**U))
        for query in queries:
            collect_answers(here.memory, query)
            collect_answers(here.memory, query, as_of=f"#{max(here.head, 1)}")
            for memory_id in ids[:2]:
                here.memory.why_not(query, memory_id, **U)
        assert (
            store.get_head(account),
            here.exported(),
            here.rows(),
            here.memory.timeline(**U),
        ) == before
        assert here.memory.verify()["ok"]


# Larger limits


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"spare": 0},
        {"rank_recency": 1.0},
        {"diversity": 2.0},
        {"fusion": "rrf"},
        {"fusion": "fused"},
    ],
    ids=str,
)
@given(
    past=pasts,
    query=st.sampled_from(QUERIES),
    limits=st.lists(st.integers(1, 20), min_size=1, max_size=3),
)
@tried(8)
def test_larger_limit_keeps_the_order_of_the_first_results(kind, knobs, past, query, limits):
    """Up to a retriever's candidate count; newest-first and diversity look past the limit."""
    with stage(kind, **knobs) as here:
        ids: list[str] = []
        for step in past:
            act(here, step, ids)
        moment = f"#{max(here.head, 1)}"
        everything = here.memory.search(query, **U, limit=150, as_of=moment, explain=True)[
            "results"
        ]
        for limit in limits:
            few = here.memory.search(query, **U, limit=limit, as_of=moment, explain=True)["results"]
            assert [row["id"] for row in few] == [row["id"] for row in everything[:limit]]
            assert [row["score"] for row in few] == [row["score"] for row in everything[:limit]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
def test_linked_claim_does_not_displace_a_higher_score(kind, limit):
    said = (
        "river tea",
        "I moved to Tokyo",
        "tea",
        "I love green tea",
        "violin river",
        "I live in Berlin",
        "I love green tea",
        "I moved to Tokyo",
    )
    with stage(kind, spare=0, newest_among=0) as here:
        for number, text in enumerate(said):
            here.memory.add(f"{text} number{number}", **U)
            here.clock.tick()
        asking = {**U, "as_of": f"#{here.head}"}
        everything = here.memory.search("Where do I live? Berlin", **asking)["results"]
        few = here.memory.search("Where do I live? Berlin", **asking, limit=limit)["results"]
        assert [row["id"] for row in few] == [row["id"] for row in everything[:limit]]


@pytest.mark.parametrize("kind", KINDS)
def test_time_question_has_the_same_first_result_at_every_limit(kind):
    with stage(kind, embedder=None) as here:
        here.memory.add(
            ["big garden yesterday at nine", *(f"big garden {name}" for name in "abcdefghijklmno")],
            **U,
        )
        found = [
            here.memory.search("when was the garden big?", **U, limit=limit)["results"]
            for limit in (1, 3, 100)
        ]
        assert {rows[0]["memory"] for rows in found} == {"big garden yesterday at nine"}


@pytest.mark.parametrize(("worth", "looked"), [(0.0, 0), (1.0, 1)])
def test_recall_counts_are_read_only_when_they_are_scored(worth, looked, monkeypatch):
    with stage("sqlite", embedder=None, rank_hotness=worth) as here:
        here.memory.add("big garden yesterday at nine", **U)
        store, asked = here.memory.engine.store, list[object]()
        touched = store.access_counts
        monkeypatch.setattr(
            store, "access_counts", lambda *names: asked.append(names) or touched(*names)
        )
        here.memory.search("when was the garden big?", **U)
        assert len(asked) == looked


# Turns of a conversation


def turn(name: str, text: str, minute: int) -> dict[str, Any]:
    return {
        "role": "user",
        "name": name,
        "content": text,
        "timestamp": f"2023-05-02T10:{minute:02}:00Z",
    }


TALK = [
    turn("Ann", "shall we meet", 0),
    turn("Bob", f"in the hotel by the river {SECRET}", 1),
    turn("Ann", "thanks, noted", 2),
    turn("Bob", "see you at the bridge", 3),
]
BEFORE = hash_text(f"Bob: in the hotel by the river {SECRET}\nAnn: thanks, noted")
ALONE = hash_text("Ann: thanks, noted")


@pytest.mark.parametrize("kind", KINDS)
def test_erasing_a_turn_removes_its_text_from_the_next_turns_vector(kind):
    with stage(kind, extract="verbatim") as here:
        memory, store = here.memory, here.memory.engine.store
        _, secret, thanks, bridge = (row["id"] for row in memory.add(TALK, **U)["results"])
        assert embedded_hashes(store, [BEFORE]) == {BEFORE}
        certificate = memory.erase(secret)
        assert certificate["destroyed"]["vectors"] == 2, "its own, and the one it lent its words to"
        assert embedded_hashes(store, [BEFORE, ALONE]) == {ALONE}, (
            "what is left is embedded anew, alone"
        )
        assert memory.stats()["pending_vectors"] == 0
        store.put_vectors({BEFORE: [1.0] * 64})
        assert embedded_hashes(store, [BEFORE]) == frozenset(), (
            "a vector that comes too late is not kept"
        )
        assert memory.search("bridge", **U)["results"][0]["id"] == bridge
        [best, *_] = memory.search("thanks noted", **U, explain=True)["results"]
        assert best["id"] == thanks
        assert best["score_details"]["cosine"] == pytest.approx(
            _cosine("thanks noted", "Ann: thanks, noted"), abs=0.02
        )
        grown = here.rows()
        memory.rebuild()
        assert here.rows() == grown
        assert memory.verify()["ok"]


def _cosine(one: str, other: str) -> float:
    a, b = HashingEmbedder().embed([one, other])
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_vector_shared_with_another_turn_survives_an_erasure(kind):
    with stage(kind, extract="verbatim") as here:
        memory, store = here.memory, here.memory.engine.store
        first = [row["id"] for row in memory.add(TALK, **U)["results"]]
        memory.add(TALK, user_id="v")
        memory.erase(first[1])
        assert embedded_hashes(store, [BEFORE]) == {BEFORE}, (
            "another's conversation went the same way"
        )
        memory.erase(user_id="v")
        assert embedded_hashes(store, [BEFORE]) == frozenset()


@pytest.mark.parametrize("kind", KINDS)
@given(
    talk=st.lists(st.lists(turns, min_size=2, max_size=5), min_size=1, max_size=2),
    picks=st.sets(st.integers(0, 9), min_size=1, max_size=3),
)
@tried(15)
def test_after_any_erasure_every_vector_belongs_to_a_stored_text(kind, talk, picks):
    """A rebuild equals the incremental state, and every vector is filled in again."""
    with stage(kind) as here:
        memory, store = here.memory, here.memory.engine.store
        ids = []
        for said in talk:
            ids += [row["id"] for row in memory.add(said, **U)["results"] if row["event"] == "ADD"]
        hashes = set(
            store.pending_texts(
                None, "another model", account="default", seqs=range(1, here.head + 1)
            )
        )
        for number in picks:
            if memory.get(ids[number % len(ids)]):
                memory.erase(ids[number % len(ids)])
        left = set(
            store.pending_texts(
                None, "another model", account="default", seqs=range(1, here.head + 1)
            )
        )
        assert embedded_hashes(store, list(hashes)) <= left, "no vector of a text that is not there"
        before = [collect_answers(memory, query, as_of=f"#{here.head}") for query in QUERIES[:3]]
        grown = here.rows()
        memory.rebuild()
        assert here.rows() == grown
        assert [
            collect_answers(memory, query, as_of=f"#{here.head}") for query in QUERIES[:3]
        ] == before
        memory.reindex()
        assert embedded_hashes(store, list(left)) == left
        assert dict(store.pending_texts()) == {}


def test_no_byte_of_an_erased_turn_is_left_in_any_file(tmp_path):
    embedder = HashingEmbedder()
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=embedder, extract="verbatim") as memory:
        _, secret, *_ = (row["id"] for row in memory.add(TALK, **U)["results"])
        with memory.engine.store._database.read_transaction() as db:
            [(code,)] = db.execute(
                "SELECT code FROM embedding WHERE hash = ?", (BEFORE,)
            ).fetchall()

        def traces() -> list[str]:
            files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
            forms = {
                "word": SECRET.encode(),
                "term": SECRET.lower().encode(),
                "vector": bytes(code),
                "hash": BEFORE,
            }
            return [
                f"{name} in {file}"
                for file, body in files.items()
                for name, form in forms.items()
                if form in body
            ]

        assert {trace.split()[0] for trace in traces()} == {"word", "term", "vector", "hash"}
        memory.erase(secret)
        assert traces() == []
    assert traces() == []


# Views


@pytest.mark.parametrize("kind", KINDS)
@given(past=pasts, data=st.data())
@tried(15)
def test_conversations_chunks_and_levels_are_rebuilt_identically(kind, past, data):
    with stage(kind) as here:
        ids: list[str] = []
        for step in past:
            act(here, step, ids)
        if ids and data.draw(st.booleans()):
            here.memory.erase(data.draw(st.sampled_from(ids)))
        query = data.draw(st.sampled_from(QUERIES))
        moment = f"#{max(here.head, 1)}"
        grown, before = here.rows(), collect_answers(here.memory, query, as_of=moment)
        here.memory.rebuild()
        assert here.rows() == grown
        assert collect_answers(here.memory, query, as_of=moment) == before
        with stage(kind, seed="elsewhere") as there:
            there.memory.import_(here.exported())
            assert there.rows() == grown

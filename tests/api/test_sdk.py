"""The SDK accepts both generations of the common call style and returns the documented shapes."""

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import pytest

from histories import stage
from told import AsyncMemory, ConfigError, InvalidInput, Memory, NotFoundError, ScopeError
from told.errors import ModelMismatch, StoreClosed, TooLarge, Unsupported
from told.testing import HashingEmbedder

ITEM = {"id", "memory", "hash", "metadata", "score", "created_at", "updated_at"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}


@pytest.fixture(params=["ram", "sqlite"])
def memory(request):
    with stage(request.param) as here:
        yield here.memory


def list_texts(memory, **scope):
    return [row["memory"] for row in memory.get_all(**(scope or {"user_id": "u"}))["results"]]


# Argument aliases


def test_ids_may_be_arguments_or_filters(memory):
    memory.add(["tea", "soup"], user_id="u", metadata={"tag": "food"})
    memory.add("tea", user_id="v")
    for verb, first in (
        ("search", ("tea",)),
        ("get_all", ()),
        ("explain", ("tea",)),
        ("context", ("tea",)),
    ):
        ask = getattr(memory, verb)
        at_the_top = ask(*first, user_id="u", filters={"tag": "food"})
        in_filters = ask(*first, filters={"user_id": "u", "tag": "food"})
        nested = ask(*first, filters={"AND": [{"user_id": "u"}, {"tag": "food"}]})
        both = ask(*first, user_id="u", filters={"user_id": "u", "tag": "food"})
        shapes = [_without_times(answer) for answer in (at_the_top, in_filters, nested, both)]
        assert shapes[0]
        assert shapes.count(shapes[0]) == 4


def _without_times(answer):
    if not isinstance(answer, dict):
        return answer.text
    return answer.get("results") or answer["candidates"]


def test_contradicting_ids_are_rejected(memory):
    with pytest.raises(InvalidInput, match="user_id"):
        memory.search("tea", user_id="u", filters={"user_id": "v"})


@pytest.mark.parametrize("verb", ["search", "get_all", "context", "explain"])
def test_limit_and_top_k_are_aliases(memory, verb):
    memory.add([f"tea {n}" for n in range(5)], user_id="u")
    first = () if verb == "get_all" else ("tea",)
    ask = getattr(memory, verb)
    by_limit, by_top_k = ask(*first, user_id="u", limit=2), ask(*first, user_id="u", top_k=2)
    assert _without_times(by_limit) == _without_times(by_top_k)
    with pytest.raises(InvalidInput, match="the same option"):
        ask(*first, user_id="u", limit=2, top_k=3)
    for wrong in (0, -1, 1001, 2.0, "2", True):
        with pytest.raises(InvalidInput):
            ask(*first, user_id="u", limit=wrong)


def test_text_and_data_are_aliases(memory):
    [row] = memory.add("tea", user_id="u")["results"]
    memory.update(row["id"], data="soup")
    assert list_texts(memory) == ["soup"]
    memory.update(row["id"], text="cake")
    assert list_texts(memory) == ["cake"]
    memory.update(row["id"], text="pie", data="pie")
    with pytest.raises(InvalidInput, match="the same option"):
        memory.update(row["id"], text="one", data="other")
    for nothing in ({}, {"text": ""}, {"data": "   "}, {"text": 7}):
        with pytest.raises(InvalidInput):
            memory.update(row["id"], **nothing)
    assert list_texts(memory) == ["pie"]


def test_legacy_arguments_are_accepted_and_ineffective_ones_are_reported(memory):
    done = memory.add(
        "tea", user_id="u", infer=False, prompt="extract drinks", filters={"tag": "x"}
    )
    assert [row["event"] for row in done["results"]] == ["ADD"]
    assert {note.split(" ", 1)[0] for note in done["warnings"]} == {"prompt", "filters"}
    found = memory.search(
        "tea", user_id="u", rerank=True, threshold=0.0, explain=False, reference_date="2026-01-01"
    )
    assert [note.split(" ", 1)[0] for note in found["warnings"]] == ["rerank"]
    assert "warnings" not in memory.search("tea", user_id="u")
    assert "warnings" not in memory.add("soup", user_id="u", infer=True)


def test_memory_keeps_the_kind_it_was_added_with(memory):
    memory.add("Ann is allergic to nuts", user_id="u", kind="profile")
    memory.add("The nuts are in the cupboard", user_id="u")
    [row] = memory.search("nuts", user_id="u", kinds=["profile"])["results"]
    assert (row["memory"], row["kind"]) == ("Ann is allergic to nuts", "profile")
    lines = memory.context("cupboard", user_id="u", budget=200).text.splitlines()
    assert lines.index("Always:") < lines.index("Recalled:")
    with pytest.raises(InvalidInput, match="pass one of them"):
        memory.add("tea", user_id="u", kind="profile", memory_type="procedural_memory")


def test_unknown_memory_type_is_rejected(memory):
    [row] = memory.add("how to brew tea", user_id="u", memory_type="procedural_memory")["results"]
    assert memory.get(row["id"])["kind"] == "skill"
    with pytest.raises(InvalidInput, match="memory_type"):
        memory.add("tea", user_id="u", memory_type="nonsense")


def test_ids_are_trimmed(memory):
    memory.add("tea", user_id=" u ")
    assert list_texts(memory, user_id="u") == list_texts(memory, user_id="u\n") == ["tea"]
    assert memory.get_all(filters={"user_id": " u "})["results"][0]["user_id"] == "u"


# Result shapes


def test_item_has_the_documented_keys_and_no_empty_optional_ones(memory):
    [plain] = memory.add("tea", agent_id="a")["results"]
    assert memory.get(plain["id"]).keys() == ITEM | {"agent_id", "role"}
    [full] = memory.add(
        {"role": "assistant", "content": "soup", "name": "Ann", "timestamp": "2020-01-01"},
        user_id="u",
        agent_id="a",
        run_id="r",
        source="chat",
        expiration_date="2031",
        metadata={"a": 1},
    )["results"]
    item = memory.get(full["id"])
    assert item.keys() == ITEM | {
        "user_id",
        "agent_id",
        "run_id",
        "role",
        "actor_id",
        "source",
        "said_at",
        "expiration_date",
    }
    assert (item["role"], item["actor_id"], item["source"]) == ("assistant", "Ann", "chat")
    assert full.keys() >= {"id", "memory", "event", "actor_id", "role"}


def test_search_can_return_the_parts_of_its_scores(memory):
    memory.add(["green tea", "black tea"], user_id="u")
    for row in memory.search("green tea", user_id="u", explain=True)["results"]:
        assert row["score_details"]["final_score"] == row["score"]
        assert {"cosine", "bm25", "cosine_rank", "bm25_rank"} <= row["score_details"].keys()
    assert "score_details" not in memory.search("green tea", user_id="u")["results"][0]


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "0.5", True, float("nan")])
def test_threshold_outside_0_to_1_is_rejected(memory, threshold):
    with pytest.raises(InvalidInput, match="threshold"):
        memory.search("tea", user_id="u", threshold=threshold)


def test_threshold_drops_lower_scores(memory):
    memory.add([f"tea {n}" for n in range(9)], user_id="u")
    found = memory.search("tea 3", user_id="u")["results"]
    middle = found[4]["score"]
    assert memory.search("tea 3", user_id="u", threshold=middle)["results"] == [
        row for row in found if row["score"] >= middle
    ]


def test_explanation_lists_every_candidate(memory):
    memory.add([f"tea number {n}" for n in range(6)], user_id="u")
    found = memory.explain("tea", user_id="u", limit=2)
    assert [row["kept"] for row in found["candidates"]] == [True, True, False, False, False, False]
    assert {row["reason"] for row in found["candidates"][2:]} == {"after the limit"}
    kept = [row["id"] for row in found["candidates"] if row["kept"]]
    assert kept == [row["id"] for row in memory.search("tea", user_id="u", limit=2)["results"]]
    assert [step["stage"] for step in found["steps"]]


@pytest.fixture
def crowd(memory):
    """Add more memories than a retriever returns candidates."""
    words = "tea coffee Berlin Tokyo sister brother garden violin river bridge cup pot leaf".split()
    memory.add(
        [f"{words[n % 13]} {words[n * 5 % 11]} {words[n // 13 % 13]} {n}" for n in range(260)],
        user_id="u",
    )
    return memory


def rank(memory, limit):
    found = memory.search("tea pot in Berlin", user_id="u", limit=limit)["results"]
    return [(row["id"], row["score"]) for row in found]


def test_limit_truncates_the_ranking_without_changing_it(crowd):
    longest = rank(crowd, 250)
    for limit in (1, 10, 50, 150):
        assert rank(crowd, limit) == longest[:limit]


def test_explanation_matches_the_search(crowd):
    candidates = crowd.explain("tea pot in Berlin", user_id="u", limit=60)["candidates"]
    assert [(row["id"], row["score"]) for row in candidates if row["kept"]] == rank(crowd, 60)


# Reading


def search_texts(memory, query, **options):
    return [row["memory"] for row in memory.search(query, user_id="u", **options)["results"]]


def test_reference_date_resolves_relative_dates(memory):
    for month, text in (("2026-03", "I planted a fig"), ("2026-05", "I planted a pear")):
        memory.add(text, user_id="u", timestamp=f"{month}-10T12:00:00Z")
    query = "what did I plant last month?"
    assert search_texts(memory, query, reference_date="2026-04-15")[0] == "I planted a fig"
    assert search_texts(memory, query, reference_date="2026-06-15")[0] == "I planted a pear"
    understood = memory.explain(query, user_id="u", reference_date="2026-06-15")["asked"]
    assert [span["from"][:10] for span in understood["times"]] == ["2026-05-01"]


def test_kinds_filter_memories(memory):
    memory.add("how to brew tea", user_id="u", memory_type="procedural_memory")
    memory.add("tea is my drink", user_id="u")
    assert (
        search_texts(memory, "tea", kinds="skill")
        == search_texts(memory, "tea", kinds=["skill"])
        == ["how to brew tea"]
    )
    assert search_texts(memory, "tea", kinds=["memory"]) == ["tea is my drink"]
    assert [hit.fact.text for hit in memory.context("tea", user_id="u", kinds="skill").hits] == [
        "how to brew tea"
    ]


def test_search_returns_confidence_and_supporting_memories(memory):
    first, second, _ = (
        memory.add(text, user_id="u", run_id=run)["results"][0]["id"]
        for run, text in (("r1", "I like tea"), ("r2", "i like tea"), ("r1", "My bike is blue"))
    )
    sure = memory.search("tea", user_id="u")
    assert 0.0 <= memory.search("weather", user_id="u")["confidence"] <= sure["confidence"] <= 1.0
    assert {first, second} <= {sure["results"][0]["id"], *sure["results"][0]["also"]}
    assert memory.search("tea", user_id="nobody") == {"results": [], "confidence": 0.0}


def test_reranker_decides_the_final_order(memory):
    def shortest_first(query, texts):
        return [-len(text) for text in texts]

    with Memory("ram://", embedder="none", reranker=shortest_first) as judged:
        judged.add(["tea, tea and more tea", "tea", "some tea"], user_id="u")
        assert search_texts(judged, "tea", rerank=True) == [
            "tea",
            "some tea",
            "tea, tea and more tea",
        ]
        own = judged.search("tea", user_id="u")["results"]
        judge = judged.search("tea", user_id="u", rerank=True)
        assert [row["score"] for row in judge["results"]] == [row["score"] for row in own]
        assert not [note for note in judge["warnings"] if "rerank" in note]


def test_guard_hides_denied_memories_without_a_trace():
    with Memory(
        "ram://", embedder="none", guard=lambda row: "private" not in row["metadata"] or "private"
    ) as guarded:
        guarded.add("tea at four", user_id="u")
        [hidden] = guarded.add("tea with Ann", user_id="u", metadata={"private": True})["results"]
        assert search_texts(guarded, "tea") == list_texts(guarded) == ["tea at four"]
        assert "Ann" not in str(guarded.context("tea", user_id="u"))
        explained = guarded.explain("tea", user_id="u")
        assert [row["memory"] for row in explained["candidates"]] == ["tea at four"]
        assert [step["note"] for step in explained["steps"] if step["stage"] == "guard"] == [
            "1 private"
        ]
        assert guarded.why_not("tea", hidden["id"], user_id="u")["stage"] == "guard"


@pytest.mark.parametrize("kinds", ["skill", ["skill"], ("skill", "profile")])
def test_subscription_returns_only_its_kinds(kinds):
    with Memory("ram://", embedder="none", subscribes=kinds) as subscriber:
        subscriber.add("tea is my drink", user_id="u")
        subscriber.add("how to brew tea", user_id="u", memory_type="procedural_memory")
        assert search_texts(subscriber, "tea") == ["how to brew tea"]


def test_why_not_names_the_first_obstacle(memory):
    rows = [
        memory.add(f"tea number {n}", user_id="u", metadata={"n": n})["results"][0]["id"]
        for n in range(4)
    ]
    order = [row["id"] for row in memory.search("tea", user_id="u")["results"]]
    last = order[-1]
    there = memory.why_not("tea", order[1], user_id="u", limit=2)
    assert (there["found"], there["place"]) == (True, 2)
    late = memory.why_not("tea", last, user_id="u", limit=2)
    assert (late["found"], late["stage"], late["reason"], late["place"]) == (
        False,
        "select",
        "after the limit",
        4,
    )
    assert (
        late["score"]
        <= late["least"]
        == memory.search("tea", user_id="u", limit=2)["results"][1]["score"]
    )
    assert (
        memory.why_not("tea", last, user_id="u", min_score=1)["reason"] == "below the least score"
    )
    assert (
        memory.why_not("tea", rows[0], user_id="u", filters={"n": 3})["reason"]
        == "the filters leave it out"
    )
    memory.delete(rows[0])
    assert memory.why_not("tea", rows[0], user_id="u")["reason"] == "it was given up"
    for stranger in ({"user_id": "other"}, {"user_id": "u", "run_id": "r"}):
        with pytest.raises(NotFoundError):
            memory.why_not("tea", last, **stranger)


FRAMES = {"text": "<memory ", "markdown": "## ", "xml": "<memories "}


@pytest.mark.parametrize("format", FRAMES)
def test_context_has_the_requested_format(memory, format):
    memory.add("I like <b>tea</b>", user_id="u")
    bundle = memory.context("tea", user_id="u", format=format)
    assert bundle.text.startswith(FRAMES[format])
    assert bundle.messages == ()
    assert bundle.tokens <= bundle.budget


def test_messages_context_is_ready_for_a_chat_model(memory):
    memory.add("I like tea", user_id="u")
    bundle = memory.context("tea", user_id="u", format="messages", budget=120)
    assert [message["role"] for message in bundle.messages] == ["system"]
    assert "\n\n".join(message["content"] for message in bundle.messages) == str(bundle)
    assert "I like tea" in str(bundle)
    assert bundle.tokens <= 120


def test_tail_ends_a_context_with_the_last_messages(memory):
    memory.add(["tea is my drink", "my bike is blue", "it rains"], user_id="u")
    text = str(memory.context("tea", user_id="u", tail=1, limit=1))
    assert text.index("tea is my drink") < text.index("it rains")
    assert "bike" not in text


def test_two_memories_are_linked(memory):
    one, two = (row["id"] for row in memory.add(["one", "two"], user_id="u")["results"])
    before = memory.stats()["links"]
    done = memory.link(one, "supersedes", two, user_id="u", weight=0.5, metadata={"why": "newer"})
    assert {"src": one, "rel": "supersedes", "dst": two}.items() <= done.items()
    assert memory.stats()["links"] == before + 1
    for wrong in (-0.1, 1.1, "1", True, float("nan")):
        with pytest.raises(InvalidInput):
            memory.link(one, "supersedes", two, user_id="u", weight=wrong)
    with pytest.raises(NotFoundError):
        memory.link(one, "supersedes", "fake-id", user_id="u")
    with pytest.raises(NotFoundError):
        memory.link(one, "supersedes", two, user_id="v")
    with pytest.raises(ScopeError):
        memory.link(one, "supersedes", two)


def test_link_from_a_wider_scope_hides_no_history(memory):
    one, two = (
        row["id"] for row in memory.add(["one", "two"], user_id="u", agent_id="a")["results"]
    )
    memory.link(one, "relates_to", two, user_id="u")
    assert memory.get(two, user_id="u", agent_id="a")
    assert memory.history(two, user_id="u", agent_id="a") == memory.history(two)


# Messages


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("tea", ["tea"]),
        ({"role": "user", "content": "tea"}, ["tea"]),
        ({"content": "tea"}, ["tea"]),
        (
            [{"role": "user", "content": "tea"}, {"role": "assistant", "content": "soup"}],
            ["tea", "soup"],
        ),
        (["tea", {"role": "tool", "content": "soup"}], ["tea", "soup"]),
        (({"role": "user", "content": "tea"},), ["tea"]),
        (
            [
                {"role": "system", "content": "be kind"},
                "tea",
                {"role": "developer", "content": "x"},
            ],
            ["tea"],
        ),
        (
            [{"role": "user", "content": ""}, "tea", {"role": "assistant", "content": None}, "  "],
            ["tea"],
        ),
        (
            {"content": [{"type": "text", "text": "green"}, {"type": "text", "text": "tea"}]},
            ["green\ntea"],
        ),
        ({"role": "user", "content": {"type": "text", "text": "tea"}}, ["tea"]),
        ([{"role": "system", "content": "be kind"}], []),
    ],
)
def test_messages_are_a_string_a_message_or_a_list(memory, said, kept):
    done = memory.add(said, user_id="u")
    assert [row["memory"] for row in done["results"]] == list_texts(memory) == kept
    total = len(said) if isinstance(said, list | tuple) else 1
    assert len(done["results"]) + len(done.get("skipped", ())) == total, (
        "each message is accounted for"
    )


@pytest.mark.parametrize(
    "said",
    [
        None,
        7,
        b"tea",
        [],
        [None],
        [7],
        {},
        {"role": "user"},
        {"role": "king", "content": "x"},
        {"content": 7},
        {"role": "user", "content": "x", "name": 7},
        {"role": "user", "content": "x", "name": " "},
        {"role": "user", "content": "x", "metadata": "tag"},
        {"role": "user", "content": "x", "metadata": {1: 2}},
        {"role": "user", "content": "x", "metadata": {"f": float("nan")}},
        {"role": ["user"], "content": "x"},
        {"role": "user", "content": "x", "metadata": {"s": {1, 2}}},
        {"role": None, "content": "x"},
    ],
)
def test_malformed_messages_are_rejected_as_a_whole(memory, said):
    with pytest.raises(InvalidInput):
        memory.add(said, user_id="u")
    with pytest.raises(InvalidInput):
        memory.add(["tea", said] if said != [] else [], user_id="u")
    assert list_texts(memory) == [], "nothing is half-read"


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "input_audio"}],
        {"type": "file"},
        [{"type": "text", "text": "look"}, {"type": "video"}],
        [7],
    ],
)
def test_unsupported_content_parts_are_rejected_clearly(memory, content):
    with pytest.raises(Unsupported, match="only text and images are supported") as refused:
        memory.add(["tea", {"role": "user", "content": content}], user_id="u")
    assert "Message 1" in str(refused.value)
    assert "in words" in refused.value.hint
    assert list_texts(memory) == []


def test_url_of_an_unfetched_image_is_kept(memory):
    done = memory.add(
        {"role": "user", "content": [IMAGE, {"type": "text", "text": "look"}]}, user_id="u"
    )
    assert done["results"][0]["memory"].endswith("[image #1: https://example.org/cat.png]")
    assert "fetching URLs is disabled" in done["warnings"][0]


@pytest.mark.parametrize("content", [[IMAGE], IMAGE])
def test_url_of_an_image_is_kept_when_fetching_is_disabled(memory, content):
    done = memory.add({"role": "user", "content": content}, user_id="u")
    assert [row["memory"] for row in done["results"]] == ["[image #1: https://example.org/cat.png]"]
    assert "fetching URLs is disabled" in done["warnings"][0]
    target = io.BytesIO()
    memory.export(target)
    assert b"https://example.org/cat.png" in target.getvalue()


def test_message_has_its_own_name_time_and_metadata(memory):
    talk = [
        {
            "role": "user",
            "content": "tea",
            "name": "Ann",
            "timestamp": "2020-01-01",
            "metadata": {"a": 2, "b": 3},
        },
        {"role": "user", "content": "soup"},
    ]
    ann, other = memory.add(talk, user_id="u", metadata={"a": 1}, timestamp="2021-01-01")["results"]
    first, second = memory.get(ann["id"]), memory.get(other["id"])
    assert (first["actor_id"], first["said_at"][:10], first["metadata"]) == (
        "Ann",
        "2020-01-01",
        {"a": 2, "b": 3},
    )
    assert ("actor_id" in second, second["said_at"][:10], second["metadata"]) == (
        False,
        "2021-01-01",
        {"a": 1},
    )
    assert memory.search("Ann", user_id="u")["results"][0]["memory"] == "tea"
    assert ann["actor_id"] == "Ann"


def test_text_is_stored_verbatim(memory):
    given = (
        "  two  spaces  ",
        "line\nbreak\r\n",
        "\tTab",
        "\u00e9",
        "e\u0301",
        "👩‍👩‍👧",
        "\u202ertl",
        "\ufb01",
    )
    for number, text in enumerate(given):
        [row] = memory.add(text, user_id=f"u{number}")["results"]
        assert memory.get(row["id"])["memory"] == text


def test_oversized_input_is_rejected_with_the_limit():
    with stage("ram", text_limit=10, batch_limit=3, metadata_limit=20) as here:
        for said, more in (("x" * 11, {}), (["a"] * 4, {}), ("a", {"metadata": {"k": "v" * 20}})):
            with pytest.raises(TooLarge, match=r"limit|at most"):
                here.memory.add(said, user_id="u", **more)
        assert list_texts(here.memory) == []


def test_metadata_is_copied(memory):
    mine = {"list": [1, 2], "deep": {"k": [1]}}
    [row] = memory.add("tea", user_id="u", metadata=mine)["results"]
    mine["list"].append(3)
    mine["deep"]["k"].append(2)
    assert memory.get(row["id"])["metadata"] == {"list": [1, 2], "deep": {"k": [1]}}
    memory.get(row["id"])["metadata"]["list"].append(9)
    memory.get_all(user_id="u")["results"][0]["metadata"]["deep"]["k"].append(9)
    assert memory.get(row["id"])["metadata"] == {"list": [1, 2], "deep": {"k": [1]}}


def test_update_replaces_metadata_as_a_whole(memory):
    [row] = memory.add("tea", user_id="u", metadata={"a": 1})["results"]
    memory.update(row["id"], metadata={"b": 2})
    assert memory.get(row["id"])["metadata"] == {"b": 2}
    memory.update(row["id"], metadata={})
    assert memory.get(row["id"])["metadata"] == {}
    assert memory.get(row["id"])["memory"] == "tea"


# Opening and closing


def test_closed_memory_raises_and_may_be_closed_again(tmp_path):
    memory = Memory(f"sqlite:///{tmp_path}/m.db", embedder="none")
    memory.close()
    memory.close()
    with pytest.raises(StoreClosed):
        memory.add("tea", user_id="u")

    async def main():
        waiting = AsyncMemory("ram://", embedder="none")
        waiting.close()
        with pytest.raises(StoreClosed):
            await waiting.get_all(user_id="u")

    asyncio.run(main())


def test_added_memory_is_there_after_reopening(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    program = (
        f"from told import Memory; Memory({url!r}, embedder='none').add('green tea', user_id='u')"
    )
    with Memory(url, embedder="none") as memory:
        assert list_texts(memory) == []
        subprocess.run([sys.executable, "-c", program], check=True)
        assert list_texts(memory) == ["green tea"]
        assert [row["memory"] for row in memory.search("tea", user_id="u")["results"]] == [
            "green tea"
        ]


def test_different_embedder_is_rejected_with_a_hint(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    with Memory(url, embedder=HashingEmbedder()) as memory:
        memory.add(["tea", "soup"], user_id="u")
    other = HashingEmbedder(32, "hash-32")
    with pytest.raises(ModelMismatch, match="reindex"):
        Memory(url, embedder=other)
    with Memory(url, embedder=HashingEmbedder()) as memory:
        assert memory.reindex(other) == {"embedded": 2, "model": "hash-32", "dim": 32}
        assert memory.embedder is other
        assert memory.search("tea", user_id="u")["results"][0]["memory"] == "tea"
    with Memory(url, embedder=other) as memory:
        assert memory.stats()["pending_vectors"] == 0
        assert memory.reindex()["embedded"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"store": "nonsense"}, "store URL"),
        ({"store": "sqlite://"}, "SQLite"),
        ({"store": "sqllite:///x"}, "sqlite"),
        ({"store": "ram://", "llm": "openai"}, "OPENAI_API_KEY"),
        ({"store": "ram://", "durabilty": "full"}, "durability"),
        ({"store": "ram://", "durability": "maybe"}, "full"),
        ({"store": "ram://", "limit": 0}, "limit"),
        ({"store": "ram://", "embedder": "nonsense"}, "nonsense"),
        ({"store": "ram://", "embedder": 7}, "embedder"),
        ({"store": "ram://x"}, "ram"),
        ({"store": "ram://", "subscribes": {"skill"}}, "subscribes"),
        ({"store": "ram://", "guard": 7}, "guard"),
        ({"store": "ram://", "reranker": 7}, "reranker"),
    ],
)
def test_failed_open_says_why_and_what_to_do(arguments, said):
    with pytest.raises(ConfigError, match=said):
        Memory(**arguments)


def test_export_and_import_accept_paths_bytes_and_files(memory, tmp_path):
    memory.add("tea", user_id="u", metadata={"a": "\u2028", "é": 1})
    path, file = tmp_path / "ledger.jsonl", io.BytesIO()
    assert (
        memory.export(path)["entries"]
        == memory.export(str(tmp_path / "again.jsonl"))["entries"]
        == 2
    )
    memory.export(file)
    assert Path(path).read_bytes() == file.getvalue() == (tmp_path / "again.jsonl").read_bytes()
    for number, source in enumerate(
        (path, str(path), file.getvalue(), io.BytesIO(file.getvalue()))
    ):
        with Memory("ram://", embedder="none") as other:
            assert other.import_(source)["entries"] == 2, number
            assert other.import_(file.getvalue())["entries"] == 0, "once is enough"
            copy = io.BytesIO()
            other.export(copy)
            assert copy.getvalue() == file.getvalue()


@pytest.mark.parametrize(
    "source", [b"", b"nonsense", b"{}\n", b'{"format":"told-ledger/2"}\n', b"\xff\n"]
)
def test_import_rejects_data_that_is_not_an_export(memory, source):
    with pytest.raises(InvalidInput, match="told export"):
        memory.import_(source)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"7",
        b"null",
        b'{"seq":1}',
        b'{"seq":"1","tx":1,"at":1,"sort":"asserted","thread":null}',
    ],
)
def test_unreadable_import_line_is_named(memory, line):
    with pytest.raises(InvalidInput, match="Line 2"):
        memory.import_(b'{"account":"default","format":"told-ledger/1"}\n' + line + b"\n")


def test_backup_is_an_independent_store(tmp_path):
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder=HashingEmbedder()) as memory:
        memory.add("tea", user_id="u")
        memory.backup(tmp_path / "copy.db")
        memory.add("soup", user_id="u")
    with Memory(f"sqlite:///{tmp_path}/copy.db", embedder=HashingEmbedder()) as copy:
        assert list_texts(copy) == ["tea"]
        assert copy.verify()["ok"]
        assert copy.search("tea", user_id="u")["results"]


def test_search_without_an_embedder_uses_words_and_warns():
    with stage("ram", embedder=None) as here:
        here.memory.add("green tea", user_id="u")
        found = here.memory.search("tea", user_id="u")
        assert [row["memory"] for row in found["results"]] == ["green tea"]
        assert "keywords only" in found["warnings"][0]
        assert "keywords only" in here.memory.context("tea", user_id="u").warnings[0]
        with pytest.raises(Unsupported, match="reindex"):
            here.memory.reindex()


@pytest.mark.parametrize("query", ["", "   ", None, 7, b"tea", "a\0b", "\ud800"])
def test_empty_query_is_rejected(memory, query):
    with pytest.raises(InvalidInput):
        memory.search(query, user_id="u")
    with pytest.raises(InvalidInput):
        memory.explain(query, user_id="u")


@pytest.mark.parametrize("wrong", ["", "  ", None, 7, ["id"]])
def test_memory_id_must_be_text(memory, wrong):
    for ask in (
        memory.get,
        memory.delete,
        memory.history,
        memory.retract,
        lambda value: memory.update(value, "x"),
    ):
        with pytest.raises(InvalidInput):
            ask(wrong)

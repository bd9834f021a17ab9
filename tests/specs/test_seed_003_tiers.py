"""Cache tiers: tail, importance, write-back, model judge, summaries, sweep and registry."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from math import exp
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from told import AsyncMemory, InvalidInput, LLMError, Memory, ScopeError
from told.engine import Engine
from told.flow import run
from told.ledger.commit import commit_batch
from told.maintenance.importance import JudgeResult, judge_turns, parse_scores
from told.maintenance.summaries import pair_turns
from told.maintenance.tail import get_cursor_name
from told.maintenance.tiers import select_widest_scopes
from told.model.entry import Asserted, Claim, Draft, Linked, Observed, Retracted
from told.model.fact import TOPIC, Fact
from told.model.salience import (
    DAY_US,
    MINUTE_US,
    compute_recency,
    fuse_scores,
    is_cold,
    score_member,
)
from told.model.scope import Scope
from told.model.topics import SUPER
from told.ports import Batch
from told.settings import Settings
from told.testing import HashingEmbedder, ManualClock, ScriptedLLM, seeded_mint
from told.text.importance import extract_summary, score_importance

U = {"user_id": "u"}
SCOPE = Scope("default", user_id="u")
DAYS, MINUTES = DAY_US, MINUTE_US
CHAT = [
    "haha that's so funny",
    "how are you today?",
    "nice weather today!",
    "what's up?",
    "tell me a joke",
]


class Stage:
    """A memory on a manual clock, with shorthands for a conversation."""

    def __init__(self, memory: Memory, clock: ManualClock) -> None:
        self.memory = memory
        self.clock = clock

    def add_turn(self, text: str, role: str = "user", **more: Any) -> str:
        """Add a turn one second after the previous one; return its id."""
        self.clock.tick()
        ids = {
            name: more.pop(name) for name in ("user_id", "agent_id", "run_id") if name in more
        } or U
        done = self.memory.add({"role": role, "content": text}, **ids, **{"infer": False, **more})
        return str(done["results"][0]["id"])

    def add_exchange(self, number: int) -> tuple[str, str]:
        """Add a user turn that states a decision, and the answer of the agent."""
        asked = self.add_turn(f"We decided that service {number} listens on port {8000 + number}")
        return asked, self.add_turn(
            f"Then service {number} needs firewall rule {number}.", "assistant"
        )

    def fill_tail(self, count: int = 20) -> list[str]:
        """Add enough turns to push all earlier ones out of the tail."""
        return [
            self.add_turn(f"Filler fact {number}: the budget is {number} euros")
            for number in range(count)
        ]

    def list_texts(self) -> list[str]:
        """List the texts of all current memories."""
        return [row["memory"] for row in self.memory.get_all(**U, limit=1000)["results"]]

    def read_ledger(self, sort: type) -> list[Any]:
        """List the readable ledger entries of a verb."""
        entries = self.memory.engine.store.scan_entries("default", 0, 100_000)
        return [entry for entry in entries if isinstance(entry.verb, sort)]

    def list_links(self, rel: str) -> list[Linked]:
        """List the links of a relation."""
        return [entry.verb for entry in self.read_ledger(Linked) if entry.verb.rel == rel]

    def list_exchanges(self) -> list[list[str]]:
        """List the texts of filed exchanges, oldest first."""
        rows = self.memory.registry(**U, limit=1000)["results"]
        return [[text for text in (row["user"], row["agent"]) if text] for row in reversed(rows)]


@pytest.fixture(params=["ram", "sqlite"])
def open_stage(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Callable[..., Stage]]:
    opened: list[Memory] = []

    def opener(name: str = "m", clock: ManualClock | None = None, **settings: Any) -> Stage:
        clock = clock or ManualClock()
        url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/{name}.db"
        opened.append(
            Memory(url, **{"embedder": "none", "mint": seeded_mint(name, clock), **settings})
        )
        return Stage(opened[-1], clock)

    yield opener
    for memory in opened:
        memory.close()


@pytest.fixture
def stage(open_stage: Callable[..., Stage]) -> Stage:
    return open_stage()


# Scoring and ranking


def test_fused_score_weighs_similarity_recency_and_importance() -> None:
    assert fuse_scores(1, 0, 0) == 0.6
    assert fuse_scores(0, 1, 0) == 0.3
    assert fuse_scores(0, 0, 1) == 0.1
    assert fuse_scores(0.5, 0.4, 0.2) == pytest.approx(0.44)


def test_topic_member_score_weighs_similarity_recency_and_importance() -> None:
    assert score_member(1, 0, 0) == 0.5
    assert score_member(0, 1, 0) == 0.3
    assert score_member(0, 0, 1) == 0.2
    assert score_member(0.5, 0.4, 0.2) == pytest.approx(0.41)


def test_recency_decays_exponentially_with_the_days_of_its_tier() -> None:
    settings = Settings()
    assert (settings.index_days, settings.registry_days) == (7, 30)
    assert compute_recency(0, 7) == 1
    assert compute_recency(7 * DAYS, 7) == pytest.approx(exp(-1))
    assert compute_recency(30 * DAYS, 30) == pytest.approx(exp(-1))
    assert compute_recency(15 * DAYS, 30) == pytest.approx(exp(-0.5))
    assert compute_recency(-5 * DAYS, 7) == 1


def test_cold_means_recency_below_a_fifth_and_older_than_five_minutes() -> None:
    assert is_cold(12 * DAYS, 7, 0.2, 5)
    assert not is_cold(11 * DAYS, 7, 0.2, 5)
    assert not is_cold(4 * MINUTES, 1e-9, 0.2, 5)
    assert is_cold(6 * MINUTES, 1e-9, 0.2, 5)


def test_default_settings_match_the_seed() -> None:
    wanted = {
        "tail_size": 20,
        "keep_importance": 0.5,
        "sweep_seconds": 300,
        "cold_recency": 0.2,
        "cold_minutes": 5,
        "hot_size": 20,
        "index_most": 0,
        "sweep": False,
        "judge": False,
        "summarise": False,
    }
    assert {name: getattr(Settings(), name) for name in wanted} == wanted


# Importance

HIGH = [
    "We use Redis for session caching",
    "We decided to go with PostgreSQL",
    "Never push to main on a Friday",
    "The deadline is March 3",
    "My name is Ada",
    "I am allergic to peanuts",
    "The release is due next week",
    "Ich wohne in Berlin",
    "我们决定使用 PostgreSQL",
    "The migration is up to Ana",
    "The limit is 512 MB",
]
MIDDLE = [
    "When do we use MongoDB?",
    "What about the colour of the box?",
    "the sky is blue",
    "Is it raining in Oslo?",
]
LOW = [
    *CHAT,
    "hi",
    "ok thanks!",
    "haha",
    "👍",
    "Good morning! How was your weekend?",
    "see you later",
    "lol I'm bored",
    "Guten Morgen, wie geht es dir?",
    "connection refused",
    "that's interesting, tell me more",
]
REPLIES = [
    "Hello! How can I help you today?",
    "You're welcome! Let me know if you need anything else.",
]
FOREIGN = [
    "tervehdys kaikille hyvää päivää",
    "Ελληνικά είναι ωραία",
    "我喜欢喝茶",
    "ik ga morgen naar de markt",
]


@pytest.mark.parametrize("text", HIGH)
def test_facts_decisions_rules_and_deadlines_are_important(text: str) -> None:
    assert 0.7 <= score_importance(text, "user") <= 1


@pytest.mark.parametrize("text", MIDDLE)
def test_questions_and_plain_statements_have_medium_importance(text: str) -> None:
    assert 0.4 <= score_importance(text, "user") <= 0.6


@pytest.mark.parametrize("text", LOW)
def test_small_talk_and_filler_have_low_importance(text: str) -> None:
    assert 0 <= score_importance(text, "user") <= 0.3


@pytest.mark.parametrize("text", REPLIES)
def test_polite_assistant_replies_have_low_importance(text: str) -> None:
    assert score_importance(text, "assistant") <= 0.3


@pytest.mark.parametrize("text", FOREIGN)
def test_text_in_an_unsupported_language_is_kept(text: str) -> None:
    assert score_importance(text, "user") >= 0.5


@pytest.mark.parametrize("text", HIGH)
def test_assistant_text_scores_no_higher_than_the_same_user_text_and_is_kept(text: str) -> None:
    assert 0.5 <= score_importance(text, "assistant") <= score_importance(text, "user")


# The tail


def test_tail_holds_the_newest_twenty_turns(stage: Stage) -> None:
    said = [stage.add_exchange(number) for number in range(11)]
    tail = stage.memory.tiers(**U)["tail"]
    assert [row["id"] for row in tail] == [id_ for pair in said[1:] for id_ in pair]
    assert [row["role"] for row in tail[:2]] == ["user", "assistant"]


def test_tail_survives_a_restart(tmp_path: Any) -> None:
    with Memory(f"sqlite:///{tmp_path}/kept.db", embedder="none") as memory:
        memory.add(["We use port 1", "We meet on Friday"], **U)
        before = memory.tiers(**U)["tail"]
    with Memory(f"sqlite:///{tmp_path}/kept.db", embedder="none") as memory:
        assert len(before) == 2
        assert memory.tiers(**U)["tail"] == before


def test_turns_rejected_by_the_gate_are_not_in_the_tail(stage: Stage) -> None:
    stage.memory.add(["ok thanks", "We use Redis for sessions"], **U)
    assert [row["memory"] for row in stage.memory.tiers(**U)["tail"]] == [
        "We use Redis for sessions"
    ]


def test_each_conversation_has_its_own_tail(stage: Stage) -> None:
    one = stage.add_turn("The red run uses port 1", run_id="red")
    for number in range(20):
        stage.add_turn(f"The blue run uses port {number}", run_id="blue")
    stage.clock.tick(20 * DAYS)
    stage.memory.consolidate()
    assert [row["id"] for row in stage.memory.tiers(run_id="red")["tail"]] == [one]
    assert stage.memory.tiers(run_id="red")["registry"]["exchanges"] == 0


# Write-back


def test_small_talk_leaving_the_tail_is_dropped_and_its_evidence_kept(stage: Stage) -> None:
    chat = stage.add_turn(CHAT[0])
    assert stage.memory.consolidate(**U)["dropped"] == 0
    stage.fill_tail()
    assert CHAT[0] in stage.list_texts()
    done = stage.memory.consolidate(**U)
    assert (done["left"], done["dropped"]) == (1, 1)
    assert CHAT[0] not in stage.list_texts()
    assert stage.memory.search("funny", **U)["results"] == []
    assert stage.memory.history(chat)[-1]["why"] == "unimportant"
    words = [entry.verb.evidence.content for entry in stage.read_ledger(Observed)]
    assert CHAT[0] in words


def test_important_turns_stay_in_the_index(stage: Stage) -> None:
    stage.add_exchange(1)
    stage.fill_tail()
    done = stage.memory.consolidate(**U)
    assert (done["left"], done["dropped"]) == (2, 0)
    assert stage.memory.tiers(**U)["index"] == {"count": 2, "cold": 0}
    assert stage.memory.search("service port", **U)["results"]


def test_importance_of_exactly_one_half_is_kept(stage: Stage) -> None:
    stage.add_turn("whatever it may be", metadata={"importance": 0.5})
    stage.add_turn("whatever else it may be", metadata={"importance": 0.49})
    stage.fill_tail()
    stage.memory.consolidate(**U)
    assert "whatever it may be" in stage.list_texts()
    assert "whatever else it may be" not in stage.list_texts()


def test_importance_set_by_the_user_wins(stage: Stage) -> None:
    stage.add_turn(CHAT[0], metadata={"importance": 1.0})
    stage.add_turn("We use Redis for sessions", metadata={"importance": 0})
    stage.fill_tail()
    stage.memory.consolidate(**U)
    assert CHAT[0] in stage.list_texts()
    assert "We use Redis for sessions" not in stage.list_texts()


def test_turn_with_an_extracted_fact_is_not_dropped(stage: Stage) -> None:
    stage.clock.tick()
    stage.memory.add(CHAT[0], **U, facts=["User lives in Lima"])
    stage.fill_tail()
    assert stage.memory.consolidate(**U)["dropped"] == 0


def test_turn_with_an_explicit_kind_is_not_dropped(stage: Stage) -> None:
    stage.add_turn(CHAT[0], kind="event")
    stage.fill_tail()
    assert stage.memory.consolidate(**U)["dropped"] == 0


def test_recalled_text_repeated_by_the_agent_is_not_stored_again(stage: Stage) -> None:
    stage.add_exchange(1)
    recalled = stage.memory.context("which port does service 1 listen on", **U)
    before = stage.list_texts()
    stage.clock.tick()
    done = stage.memory.add([{"role": "assistant", "content": recalled.text}], **U)
    assert done["results"] == []
    assert done["skipped"]
    assert stage.list_texts() == before


def test_recalled_memories_enter_the_hot_buffer_and_not_the_tail(stage: Stage) -> None:
    first, _ = stage.add_exchange(1)
    stage.fill_tail()
    assert stage.memory.tiers(**U)["hot"] == []
    stage.memory.search("service port", **U, limit=1)
    state = stage.memory.tiers(**U)
    assert [row["id"] for row in state["hot"]] == [first]
    assert first not in [row["id"] for row in state["tail"]]


# The judge


def score_reply(*values: Any) -> str:
    return json.dumps(
        {
            "scores": [
                {"turn": number, "importance": value} for number, value in enumerate(values, 1)
            ]
        }
    )


def test_model_judges_only_when_the_setting_is_on(open_stage: Callable[..., Stage]) -> None:
    llm = ScriptedLLM([])
    stage = open_stage(llm=llm)
    stage.add_exchange(1)
    stage.memory.wait()
    stage.memory.consolidate(**U)
    assert llm.asked == []


def open_judged(
    open_stage: Callable[..., Stage], *replies: Any, **settings: Any
) -> tuple[Stage, ScriptedLLM]:
    """Open a stage whose model judges when it is waited for."""
    llm = ScriptedLLM(replies, "judge-1")
    return open_stage(llm=llm, judge=True, **{"judge_batch": 50, **settings}), llm


def test_turns_are_judged_in_one_call_and_scores_are_entries_of_the_model(
    open_stage: Any,
) -> None:
    stage, llm = open_judged(open_stage, score_reply(0.9, 0.2))
    asked, answered = stage.add_exchange(1)
    done = stage.memory.wait()
    assert done["judged"] == 2
    assert len(llm.asked) == 1
    assert [(link.dst, link.weight) for link in stage.list_links("importance")] == [
        (asked, 0.9),
        (answered, 0.2),
    ]
    assert {entry.draft.author for entry in stage.read_ledger(Linked)} == {"judge-1"}
    assert [row["importance"] for row in stage.memory.tiers(**U)["tail"]] == [0.9, 0.2]
    assert stage.memory.wait()["judged"] == 0


def test_turns_are_judged_in_batches(open_stage: Any) -> None:
    stage, llm = open_judged(open_stage, score_reply(0.9, 0.8), score_reply(0.7), judge_batch=2)
    for number in range(3):
        stage.add_turn(f"The port is {number}")
    stage.memory.wait()
    assert len(llm.asked) == 2
    assert [link.weight for link in stage.list_links("importance")] == [0.9, 0.8, 0.7]


def test_worker_judges_a_full_batch_by_itself(open_stage: Any) -> None:
    stage, llm = open_judged(open_stage, score_reply(0.9, 0.8), judge_batch=2)
    stage.add_turn("The port is 1")
    stage.add_turn("The port is 2")
    wait_until(lambda: len(stage.list_links("importance")) == 2)
    assert len(llm.asked) == 1


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (score_reply(0.8, 0.1), {1: 0.8, 2: 0.1}),
        ("[0.8, 0.1]", {1: 0.8, 2: 0.1}),
        ('{"1": 0.8, "2": "0.1"}', {1: 0.8, 2: 0.1}),
        (
            '```json\n[{"turn": "2", "score": 7}, {"id": 1, "importance": -3}]\n```',
            {1: 0.0, 2: 1.0},
        ),
        (
            'Sure! {"scores": [{"turn": 1, "importance": 0.8}, {"turn": 9, "importance": 1}]}',
            {1: 0.8},
        ),
        ('{"scores": [{"turn": 1, "importance": true}, {"turn": 2, "importance": "high"}]}', {}),
        ('{"importance": 0.4}', {}),
        ("I would rather not say.", {}),
    ],
)
def test_scores_are_parsed_from_common_formats_and_clamped(reply: str, found: Any) -> None:
    assert parse_scores(reply, 2) == (
        found if reply != '{"importance": 0.4}' else parse_scores(reply, 1) and {1: 0.4}
    )


def test_unparseable_reply_is_a_fault_and_is_skipped_after_all_attempts(
    open_stage: Any,
) -> None:
    stage, _ = open_judged(open_stage, "no", "never", score_reply(0.9), consumer_attempts=2)
    stage.add_turn("The port is 1")
    assert any("no score" in note for note in stage.memory.wait()["warnings"])
    assert stage.memory.wait()["judged"] == 0
    [fault] = stage.memory.faults()["results"]
    assert (fault["consumer"], fault["attempts"], fault["raw"]) == ("judging", 2, "never")
    assert stage.memory.wait()["warnings"] == []
    assert stage.memory.retry_faults() == {"mended": 1, "left": 0}
    assert stage.memory.faults()["results"] == []
    assert [link.weight for link in stage.list_links("importance")] == [0.9]


def test_turns_of_different_users_are_never_judged_in_one_call(
    open_stage: Any,
) -> None:
    stage, llm = open_judged(open_stage, score_reply(0.9), score_reply(0.8), score_reply(0.7))
    for user in ("alice", "bob"):
        stage.add_turn(f"The port of {user} is 1", user_id=user)
    stage.add_turn("The port of a run is 2", user_id="alice", run_id="one")
    assert stage.memory.consolidate(user_id="alice", run_id="one")["judged"] == 1
    assert stage.memory.consolidate(user_id="alice")["judged"] == 1
    assert "bob" not in str(llm.asked)
    assert stage.memory.consolidate(user_id="alice")["judged"] == 0
    assert stage.memory.consolidate()["judged"] == 1
    assert "alice" not in str(llm.asked[2:])
    assert stage.memory.wait()["judged"] == 0
    assert len(llm.asked) == 3


def test_worker_waits_until_one_conversation_fills_a_batch(open_stage: Any) -> None:
    stage, llm = open_judged(open_stage, score_reply(0.9, 0.8), score_reply(0.7), judge_batch=2)
    engine = stage.memory.engine
    for user in ("alice", "bob", "alice"):
        run(judge_turns(engine.write_context, "default", full_only=True))
        stage.add_turn(f"The port of {user} is {stage.clock()}", user_id=user)
    run(judge_turns(engine.write_context, "default", full_only=True))
    assert len(llm.asked) == 1
    assert "bob" not in str(llm.asked)
    assert stage.memory.wait()["judged"] == 1


def test_worker_judges_partial_batches_when_too_many_turns_wait(
    open_stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, llm = open_judged(open_stage, *[score_reply(0.9)] * 3, judge_batch=2)
    for user in ("alice", "bob", "carol"):
        stage.add_turn(f"The port of {user} is 1", user_id=user)
    engine = stage.memory.engine
    run(judge_turns(engine.write_context, "default", full_only=True))
    assert llm.asked == []
    monkeypatch.setattr("told.maintenance.importance.MAX_WAITING", 3)
    run(judge_turns(engine.write_context, "default", full_only=True))
    assert len(llm.asked) == 3


def test_unavailable_judge_loses_nothing(open_stage: Any) -> None:
    stage, _ = open_judged(open_stage, LLMError("down"), score_reply(0.9))
    stage.add_turn("The port is 1")
    done = stage.memory.consolidate(**U)
    assert done["judged"] == 0
    assert any("down" in note for note in done["warnings"])
    assert stage.memory.consolidate(**U)["judged"] == 1
    assert stage.memory.faults()["results"] == []


def test_turn_judged_while_in_the_index_keeps_its_score(open_stage: Any) -> None:
    stage, _ = open_judged(open_stage, score_reply(1.0, *[0.5] * 21))
    stage.add_exchange(1)
    stage.fill_tail()
    sweep_without_judge(stage)
    assert stage.memory.tiers(**U)["index"]["count"] == 2
    stage.memory.wait()
    stage.clock.tick(20 * DAYS)
    stage.fill_tail()
    sweep_without_judge(stage)
    assert stage.list_links("in_exchange")[0].weight == 1.0


def sweep_without_judge(stage: Stage) -> dict[str, Any]:
    """Consolidate while the judge returns nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("told.maintenance.importance.judge_turns", _judge_nothing)
        return stage.memory.consolidate(**U)


def _judge_nothing(*_: Any, **__: Any) -> Any:
    return JudgeResult()
    yield


def test_dropped_turn_judged_important_is_restored(open_stage: Any) -> None:
    stage, _ = open_judged(
        open_stage, score_reply(0.9, 0.1, *[0.5] * 20), embedder=HashingEmbedder()
    )
    back, gone = stage.add_turn(CHAT[0]), stage.add_turn(CHAT[1])
    stage.fill_tail()
    assert sweep_without_judge(stage)["dropped"] == 2
    done = stage.memory.consolidate(**U)
    assert done["returned"] == 1
    assert CHAT[0] in stage.list_texts()
    assert CHAT[1] not in stage.list_texts()
    assert stage.memory.search("funny", **U)["results"][0]["id"] == back
    assert stage.memory.get(gone) is None
    assert [row["event"] for row in stage.memory.history(back)] == ["ADD", "DELETE", "ADD"]
    assert stage.memory.consolidate(**U)["dropped"] == 0


def test_restored_turn_is_filed_like_any_other(open_stage: Any) -> None:
    stage, _ = open_judged(open_stage, score_reply(0.9, *[0.5] * 20))
    stage.add_turn(CHAT[0])
    stage.fill_tail()
    sweep_without_judge(stage)
    stage.memory.wait()
    stage.clock.tick(20 * DAYS)
    stage.memory.consolidate(**U, force=True)
    assert [CHAT[0]] in stage.list_exchanges()


def test_turn_judged_important_during_the_sweep_is_not_dropped(open_stage: Any) -> None:
    """The score arrives between the decision of the sweep and its commit."""
    stage, _ = open_judged(open_stage, score_reply(0.9, *[0.5] * 20))
    stage.add_turn(CHAT[0])
    stage.fill_tail()
    store = stage.memory.engine.store
    once, commit = [True], type(store).commit

    def judge_then_commit(self: Any, batch: Any, fold: Any) -> Any:
        if once and any(isinstance(draft.verb, Retracted) for draft in batch.drafts):
            once.clear()
            run(judge_turns(stage.memory.engine.write_context, "default"))
        return commit(self, batch, fold)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(store), "commit", judge_then_commit)
        done = sweep_without_judge(stage)
    assert not once
    assert done["dropped"] == 0
    assert CHAT[0] in stage.list_texts()


def test_importance_set_by_the_user_wins_over_the_model(
    open_stage: Any,
) -> None:
    stage, _ = open_judged(open_stage, score_reply(0.9))
    stage.add_turn("Redis runs on port 6380", metadata={"importance": 0.2})
    stage.memory.wait()
    assert stage.memory.consolidate(**U, force=True)["dropped"] == 1
    assert stage.list_texts() == []


def test_model_does_not_restore_what_the_user_marked_unimportant(open_stage: Any) -> None:
    stage, _ = open_judged(open_stage, score_reply(0.9, *[0.5] * 20))
    stage.add_turn("Redis runs on port 6380", metadata={"importance": 0.2})
    stage.fill_tail()
    assert sweep_without_judge(stage)["dropped"] == 1
    assert stage.memory.consolidate(**U)["returned"] == 0
    assert "Redis runs on port 6380" not in stage.list_texts()


def test_score_of_an_erased_turn_is_discarded(open_stage: Any) -> None:
    class Erasing(ScriptedLLM):
        def ask(self, system: str, user: str, *, schema: Any = None) -> str:
            stage.memory.erase(doomed)
            return super().ask(system, user, schema=schema)

    llm = Erasing([score_reply(0.9, 0.8)])
    stage = open_stage(llm=llm, judge=True, judge_batch=50)
    doomed = stage.add_turn("The port is 1")
    kept = stage.add_turn("We meet on Friday")
    assert stage.memory.wait()["judged"] == 1
    assert [link.dst for link in stage.list_links("importance")] == [kept]
    assert stage.memory.get(doomed) is None
    assert stage.memory.faults()["results"] == []


def test_deleted_turn_is_not_judged(open_stage: Any) -> None:
    stage, _ = open_judged(open_stage, score_reply(0.9))
    gone = stage.add_turn("The port is 1")
    stage.memory.delete(gone)
    stage.memory.wait()
    assert stage.list_texts() == []
    assert stage.list_links("importance") == []


def test_erasing_a_turn_erases_its_score_and_faults(
    open_stage: Any,
) -> None:
    stage, _ = open_judged(open_stage, score_reply(0.9), "garbled port 2", consumer_attempts=1)
    one = stage.add_turn("The port is 1")
    stage.memory.wait()
    two = stage.add_turn("The port is 2")
    stage.memory.wait()
    assert stage.memory.faults()["results"][0]["raw"] == "garbled port 2"
    stage.memory.erase(one)
    assert stage.list_links("importance") == []
    stage.memory.erase(two)
    assert all("port 2" not in str(fault) for fault in stage.memory.faults()["results"])


# Condensed summaries

LONG = (
    "Thanks for the call. We talked for a while about the weather. We decided to move billing to "
    "PostgreSQL 16 by "
    "March 3. Everybody was in a good mood. Ana owns the migration and Bob reviews it. The rest "
    "was about plants that "
    "nobody waters. Never run the migration without a backup. And then we had some coffee in the "
    "kitchen downstairs."
)


def test_short_text_is_its_own_summary() -> None:
    assert extract_summary("  We use\nRedis. ", 100) == "We use Redis."
    assert extract_summary("", 100) == ""


def test_summary_keeps_the_most_important_sentences_in_order() -> None:
    short = extract_summary(LONG, 160)
    assert short == (
        "We decided to move billing to PostgreSQL 16 by March 3. Ana owns the migration and Bob "
        "reviews it. "
        "Never run the migration without a backup."
    )
    assert extract_summary(LONG, 160) == short


@pytest.mark.parametrize("most", [20, 60, 100, 240, 300])
@pytest.mark.parametrize("text", [LONG, "word " * 200, "x" * 700, "短い文。" * 100])
def test_summary_is_never_empty_or_longer_than_the_limit(text: str, most: int) -> None:
    assert 0 < len(extract_summary(text, most)) <= most


def test_exchange_summary_without_a_model_is_extractive(stage: Stage) -> None:
    stage.add_turn(LONG)
    stage.add_turn("Noted: 3 people.", "assistant")
    stage.memory.consolidate(**U, force=True)
    [row] = stage.memory.registry(**U)["results"]
    assert row["summary"] == f"User: {extract_summary(LONG, 240)} → Agent: Noted: 3 people."
    assert stage.list_links("summary") == []


def test_model_summary_is_an_entry_of_the_model(
    open_stage: Any,
) -> None:
    llm = ScriptedLLM(['"Billing moves to PostgreSQL 16; Ana migrates."'], "pen-1")
    stage = open_stage(llm=llm, summarise=True)
    turn = stage.add_turn(LONG)
    stage.add_turn("Noted: 3 people.", "assistant")
    assert stage.memory.consolidate(**U)["summarised"] == 0
    assert stage.memory.consolidate(**U, force=True)["summarised"] == 1
    [entry] = [each for each in stage.read_ledger(Linked) if each.verb.rel == "summary"]
    assert (entry.verb.dst, entry.draft.author) == (turn, "pen-1")
    assert "Billing moves" in stage.memory.registry(**U)["results"][0]["summary"]
    assert stage.memory.consolidate(**U, force=True)["summarised"] == 0
    assert len(llm.asked) == 1


def test_summary_of_a_turn_updated_since_is_not_shown(open_stage: Any) -> None:
    stage = open_stage(llm=ScriptedLLM(["Billing moves to PostgreSQL 16."]), summarise=True)
    turn = stage.add_turn(LONG)
    stage.memory.consolidate(**U, force=True)
    stage.memory.update(turn, metadata={"seen": True})
    assert "Billing moves" in stage.memory.registry(**U)["results"][0]["summary"]
    stage.memory.update(turn, text="We keep the old database")
    assert stage.memory.registry(**U)["results"][0]["summary"] == "User: We keep the old database"


def test_model_summarises_only_when_the_setting_is_on(open_stage: Any) -> None:
    llm = ScriptedLLM([])
    stage = open_stage(llm=llm)
    stage.add_turn(LONG)
    stage.memory.consolidate(**U, force=True)
    assert llm.asked == []


def test_overlong_model_summary_is_truncated(open_stage: Any) -> None:
    stage = open_stage(llm=ScriptedLLM(["word " * 500]), summarise=True, summary_chars=50)
    stage.add_turn(LONG)
    stage.memory.consolidate(**U, force=True)
    assert len(stage.list_links("summary")[0].meta["text"]) <= 50


def test_erasing_a_turn_erases_its_summary(open_stage: Any) -> None:
    stage = open_stage(llm=ScriptedLLM(["Billing moves."]), summarise=True)
    turn = stage.add_turn(LONG)
    stage.memory.consolidate(**U, force=True)
    assert stage.list_links("summary")
    stage.memory.erase(turn)
    entries = stage.memory.engine.store.scan_entries("default", 0, 1000)
    assert all(b"Billing moves" not in (entry.envelope or b"") for entry in entries)
    assert stage.memory.registry(**U)["results"] == []


def test_failed_summary_is_a_fault_and_can_be_retried(open_stage: Any) -> None:
    replies = [LLMError("down"), LLMError("down"), "Billing moves."]
    stage = open_stage(llm=ScriptedLLM(replies), summarise=True, consumer_attempts=2)
    stage.add_turn(LONG)
    assert any("down" in note for note in stage.memory.consolidate(**U, force=True)["warnings"])
    stage.memory.consolidate(**U, force=True)
    [fault] = stage.memory.faults()["results"]
    assert (fault["consumer"], fault["attempts"]) == ("summaries", 2)
    assert stage.memory.retry_faults() == {"mended": 1, "left": 0}
    assert stage.list_links("summary")[0].meta["text"] == "Billing moves."


# The sweep and the registry


def make_turn(role: str, minute: float, number: int = 0) -> Fact:
    return Fact(
        f"{role} {minute} {number}",
        number,
        0,
        SCOPE,
        "",
        "",
        role=role,
        said_at=round(minute * MINUTES),
    )


def pair_roles(*turns: tuple[str, float]) -> list[str]:
    said = [
        make_turn("user" if side == "u" else "assistant", minute, place)
        for place, (side, minute) in enumerate(turns)
    ]
    return [
        "+".join("u" if turn.role == "user" else "a" for turn in each)
        for each in pair_turns(said, 30)
    ]


def test_user_turn_and_its_answer_form_one_exchange() -> None:
    assert pair_roles(("u", 0), ("a", 1), ("u", 2), ("a", 3)) == ["u+a", "u+a"]


def test_unpaired_turn_is_an_exchange_of_one() -> None:
    assert pair_roles(("u", 0), ("u", 1), ("a", 2)) == ["u", "u+a"]
    assert pair_roles(("a", 0), ("u", 1), ("a", 2), ("a", 3)) == ["a", "u+a", "a"]
    assert pair_roles(("u", 0), ("a", 29)) == ["u+a"]
    assert pair_roles(("u", 0), ("a", 31)) == ["u", "a"]


def test_sweep_files_only_cold_turns(stage: Stage) -> None:
    old = stage.add_exchange(1)
    stage.clock.tick(6 * DAYS)
    stage.add_exchange(2)
    stage.fill_tail()
    stage.clock.tick(6 * DAYS)
    assert stage.memory.tiers(**U)["index"] == {"count": 4, "cold": 2}
    assert stage.memory.consolidate(**U)["filed"] == 1
    [row] = stage.memory.registry(**U)["results"]
    assert row["memories"] == list(old)
    assert stage.memory.tiers(**U)["index"] == {"count": 2, "cold": 0}


def test_cold_turn_in_the_tail_is_not_filed(stage: Stage) -> None:
    stage.add_exchange(1)
    stage.clock.tick(100 * DAYS)
    assert stage.memory.consolidate(**U)["filed"] == 0


def test_turn_of_the_last_five_minutes_is_not_filed(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(index_days=0.001, tail_size=1, pair_minutes=0.5)
    stage.add_turn("The port is 1")
    stage.add_turn("The port is 2")
    stage.clock.tick(4 * MINUTES)
    assert stage.memory.consolidate(**U)["filed"] == 0
    stage.clock.tick(2 * MINUTES)
    assert stage.memory.consolidate(**U)["filed"] == 1


def test_force_files_everything_including_the_tail(stage: Stage) -> None:
    stage.add_exchange(1)
    stage.add_turn(CHAT[0])
    done = stage.memory.consolidate(**U, force=True)
    assert (done["filed"], done["dropped"]) == (1, 1)
    assert len(stage.list_exchanges()) == 1


def test_exchange_is_stored_as_links_from_its_turns_weighted_by_importance(
    stage: Stage,
) -> None:
    asked, answered = stage.add_exchange(1)
    stage.memory.consolidate(**U, force=True)
    first, second = stage.list_links("in_exchange")
    assert (first.src, second.src) == (asked, answered)
    assert first.dst == second.dst
    assert first.weight == score_importance(
        "We decided that service 1 listens on port 8001", "user"
    )
    assert second.weight >= 0.5
    assert first.meta == second.meta == {}


def test_filing_does_not_change_search_results(stage: Stage) -> None:
    stage.add_exchange(1)
    before = stage.memory.search("service port", **U)["results"]
    stage.memory.consolidate(**U, force=True)
    assert [row["id"] for row in stage.memory.search("service port", **U)["results"]] == [
        row["id"] for row in before
    ]


def test_question_is_filed_only_when_its_answer_is_cold(stage: Stage) -> None:
    stage.add_turn("Which port does billing use?")
    stage.clock.tick(20 * MINUTES)
    stage.add_turn("Billing uses port 8010.", "assistant")
    stage.fill_tail()
    stage.clock.tick(round(11.27 * DAYS) - 15 * MINUTES)
    assert stage.memory.tiers(**U)["index"] == {"count": 2, "cold": 1}
    assert stage.memory.consolidate(**U)["filed"] == 0
    stage.clock.tick(DAYS)
    stage.memory.consolidate(**U)
    assert stage.list_exchanges() == [["Which port does billing use?", "Billing uses port 8010."]]


def test_index_cap_files_the_oldest_unimportant_turns_first(
    open_stage: Callable[..., Stage],
) -> None:
    stage = open_stage(index_most=3, tail_size=1, pair_minutes=0)
    for text in (
        "the sky is blue",
        "We decided to use port 1",
        "the grass is green",
        "the sea is wide",
        "My cat is 3",
    ):
        stage.add_turn(text)
    stage.add_turn("the end is near")
    assert stage.memory.consolidate(**U)["filed"] == 2
    assert stage.list_exchanges() == [["the sky is blue"], ["the grass is green"]]
    assert stage.memory.tiers(**U)["index"]["count"] == 3
    assert stage.memory.consolidate(**U)["filed"] == 0
    stage.clock.tick(20 * DAYS)
    assert stage.memory.consolidate(**U)["filed"] == 3


def test_index_cap_holds_when_every_turn_is_important(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(index_most=2, tail_size=1)
    for number in range(4):
        stage.add_exchange(number)
    stage.memory.consolidate(**U)
    assert stage.memory.tiers(**U)["index"]["count"] <= 2
    assert stage.list_exchanges()[0][0].startswith("We decided that service 0")


def test_registry_lists_newest_first_up_to_the_limit(stage: Stage) -> None:
    for number in range(5):
        stage.add_exchange(number)
    stage.memory.consolidate(**U, force=True)
    rows = stage.memory.registry(**U, limit=2)["results"]
    assert [row["user"].split()[4] for row in rows] == ["4", "3"]
    with pytest.raises(InvalidInput):
        stage.memory.registry(**U, limit=0)
    with pytest.raises(ScopeError):
        stage.memory.registry()


def test_consolidate_covers_the_given_scope_or_every_scope(stage: Stage) -> None:
    for user in ("ann", "bob"):
        stage.add_turn(f"The port of {user} is 1", user_id=user)
    stage.memory.consolidate(user_id="ann", force=True)
    assert stage.memory.registry(user_id="bob")["results"] == []
    assert stage.memory.consolidate(force=True)["filed"] == 1
    assert len(stage.memory.registry(user_id="bob")["results"]) == 1


def test_consolidating_a_user_covers_all_runs(stage: Stage) -> None:
    for name in ("one", "two"):
        stage.add_turn("Which port is free?", user_id="u", run_id=name)
        stage.add_turn(
            f"Port {len(name)} is free in {name}.", "assistant", user_id="u", run_id=name
        )
    assert stage.memory.consolidate(**U, force=True)["filed"] == 2
    assert stage.memory.tiers(**U)["registry"]["exchanges"] == 2
    assert len(stage.memory.tiers(**U)["tail"]) == 4
    assert len(stage.memory.registry(run_id="one")["results"]) == 1


def test_memories_hidden_by_a_guard_are_in_no_tier(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(guard=lambda row: "secret" not in row["memory"])
    stage.add_turn("The secret port is 1")
    stage.add_turn("The open port is 2", "assistant")
    stage.memory.consolidate(**U, force=True)
    assert [row["memory"] for row in stage.memory.tiers(**U)["tail"]] == ["The open port is 2"]
    assert stage.memory.registry(**U)["results"] == []


def test_async_client_consolidates_and_lists_tiers() -> None:
    async def consolidate_async() -> tuple[Any, Any, Any]:
        async with AsyncMemory("ram://", embedder="none") as memory:
            await memory.add("We use port 1", **U)
            done = await memory.consolidate(**U, force=True)
            return done, await memory.tiers(**U), await memory.registry(**U)

    done, state, filed = asyncio.run(consolidate_async())
    assert done["filed"] == state["registry"]["exchanges"] == len(filed["results"]) == 1
    assert set(state) == {"tail", "index", "hot", "registry", "topics"}


def test_scopes_covered_by_a_wider_one_are_skipped() -> None:
    ids = [
        {"user_id": "u"},
        {"user_id": "u", "run_id": "r"},
        {"agent_id": "a", "run_id": "r"},
        {"run_id": "s"},
        {"user_id": "v", "agent_id": "b", "run_id": "s"},
        {"user_id": "v", "agent_id": "b"},
    ]
    scopes = [Scope("default", **each) for each in ids]
    assert select_widest_scopes(scopes) == [scopes[0], scopes[2], scopes[3], scopes[5]]
    assert select_widest_scopes(scopes) == [
        one for one in scopes if not any(two != one and two.covers(one) for two in scopes)
    ]


def test_topics_and_forgetting_run_after_filing(stage: Stage) -> None:
    """Topics come first, then forgetting in the swept scopes; failures are warnings and faults."""

    class Working(Engine):
        __slots__ = ()
        seen: ClassVar[list[Any]] = []

        def file_topics(self) -> Any:
            self.seen.append(("topics", len(stage.list_links("in_exchange"))))
            return SimpleNamespace(exchanges=3, warnings=("slow",))
            yield

        def forget(self, id: str | None, ids: Any) -> Any:
            self.seen.append((id, dict(ids)))
            if ids == {"user_id": "w"}:
                raise OSError("no room to forget")
            return ["one", "two"]
            yield

    stage.add_exchange(1)
    stage.add_turn("The port is 1", user_id="v")
    engine = stage.memory.engine
    working = Working(**{each.name: getattr(engine, each.name) for each in fields(engine)})
    done = run(working.consolidate(U, force=True))
    assert Working.seen == [("topics", 2), (None, U)]
    assert (done.topics, done.forgotten, done.warnings) == (3, 2, ("slow",))
    stage.add_turn("The port is 2", user_id="w")
    failed = run(working.consolidate({}, force=True))
    assert failed.warnings == ("slow", "Not consolidated: OSError: no room to forget")
    assert [fault["consumer"] for fault in stage.memory.faults()["results"]] == ["sweep"]


# Properties


def add_conversation(stage: Stage, count: int = 12) -> None:
    """Add a conversation with pairs, unpaired turns, small talk and pauses."""
    for number in range(count):
        stage.add_turn(f"We decided that service {number} uses port {number}")
        if number % 3:
            stage.add_turn(f"Service {number} is noted.", "assistant")
        if number % 4 == 0:
            stage.add_turn(f"{CHAT[number % len(CHAT)]} {'!' * number}")
        if number % 5 == 0:
            stage.clock.tick(40 * MINUTES)
            stage.add_turn(f"By the way, backup {number} is done.", "assistant")


def test_consolidating_twice_changes_nothing(stage: Stage) -> None:
    add_conversation(stage)
    stage.fill_tail()
    stage.clock.tick(20 * DAYS)
    stage.memory.consolidate(**U)
    entries, filed = stage.memory.stats()["entries"], stage.list_exchanges()
    assert filed
    done = stage.memory.consolidate(**U)
    assert (done["left"], done["dropped"], done["filed"]) == (0, 0, 0)
    assert stage.memory.stats()["entries"] == entries
    assert stage.list_exchanges() == filed


@pytest.mark.parametrize("page", [1, 2, 3, 5])
def test_consolidation_result_does_not_depend_on_page_size(
    open_stage: Callable[..., Stage], page: int
) -> None:
    whole, parts = open_stage("whole"), open_stage("parts", consumer_batch=page)
    for stage in (whole, parts):
        add_conversation(stage)
        stage.memory.consolidate(**U, force=True)
    assert parts.list_exchanges() == whole.list_exchanges()
    assert parts.list_texts() == whole.list_texts()


def test_consolidation_result_does_not_depend_on_frequency(
    open_stage: Callable[..., Stage],
) -> None:
    often, once = open_stage("often"), open_stage("once")
    for stage in (often, once):
        add_conversation(stage)
        stage.fill_tail()
        for _ in range(48):
            stage.clock.tick(DAYS // 4 + 7 * MINUTES)
            if stage is often:
                stage.memory.consolidate(**U)
        stage.clock.tick(20 * DAYS)
        stage.memory.consolidate(**U)
    assert once.list_exchanges()
    assert often.list_exchanges() == once.list_exchanges()
    assert often.list_texts() == once.list_texts()


def test_rebuilt_registry_equals_the_original(stage: Stage) -> None:
    add_conversation(stage)
    stage.memory.consolidate(**U, force=True)
    before = stage.memory.registry(**U, limit=1000), stage.memory.tiers(**U)
    assert before[0]["results"]
    stage.memory.rebuild()
    assert (stage.memory.registry(**U, limit=1000), stage.memory.tiers(**U)) == before


def test_imported_ledger_is_not_filed_again(
    open_stage: Callable[..., Stage], tmp_path: Any
) -> None:
    stage, other = open_stage("here"), open_stage("there")
    add_conversation(stage)
    stage.memory.consolidate(**U, force=True)
    stage.memory.export(tmp_path / "ledger.jsonl")
    other.memory.import_(tmp_path / "ledger.jsonl")
    assert other.memory.consolidate(**U, force=True)["filed"] == 0
    assert other.memory.registry(**U, limit=1000) == stage.memory.registry(**U, limit=1000)


def test_erased_turn_is_removed_from_its_exchange(stage: Stage) -> None:
    asked, answered = stage.add_exchange(1)
    stage.memory.consolidate(**U, force=True)
    stage.memory.erase(asked)
    [row] = stage.memory.registry(**U)["results"]
    assert (row["user"], row["memories"]) == (None, [answered])
    stage.memory.erase(answered)
    assert stage.memory.registry(**U)["results"] == []
    assert stage.memory.tiers(**U)["registry"] == {"exchanges": 0, "newest": None}
    assert stage.list_links("in_exchange") == []
    assert stage.memory.verify()["ok"]


def test_deleted_turn_is_removed_from_its_exchange(stage: Stage) -> None:
    asked, answered = stage.add_exchange(1)
    stage.memory.consolidate(**U, force=True)
    stage.memory.delete(answered)
    assert stage.memory.registry(**U)["results"][0]["memories"] == [asked]


def test_cursor_names_do_not_reveal_ids() -> None:
    assert "alice" not in get_cursor_name("tail", Scope("default", user_id="alice"))
    assert get_cursor_name("tail", SCOPE) != get_cursor_name("tail", replace(SCOPE, run_id="r"))


# Background sweep


def wait_until(done: Callable[[], bool]) -> None:
    """Poll a condition, with a timeout that suits a busy machine."""
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.01)


def test_background_sweep_is_off_by_default(stage: Stage) -> None:
    assert stage.memory._sweeper._thread is None


def test_background_sweep_runs_until_the_memory_is_closed(
    open_stage: Callable[..., Stage],
) -> None:
    stage = open_stage(
        sweep=True, sweep_seconds=0.02, tail_size=1, index_days=0.001, pair_minutes=0
    )
    stage.add_turn("The port is 1")
    stage.add_turn("The port is 2")
    stage.clock.tick(DAYS)
    wait_until(lambda: len(stage.list_links("in_exchange")) == 1)
    thread = stage.memory._sweeper._thread
    stage.memory.close()
    assert thread is not None
    assert not thread.is_alive()


def test_sweep_failure_of_one_scope_is_a_fault_and_the_rest_continue(
    open_stage: Callable[..., Stage],
) -> None:
    stage = open_stage()
    for user in ("ann", "bob", "cid"):
        stage.add_turn(f"The port of {user} is 1", user_id=user)
    turns = type(stage.memory.engine.store).list_turns

    def failing(self: Any, scope: Scope, *args: Any, **more: Any) -> Any:
        if scope.user_id == "bob":
            raise OSError("the disk is on fire")
        return turns(self, scope, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(stage.memory.engine.store), "list_turns", failing)
        done = stage.memory.consolidate(force=True)
    assert done["filed"] == 2
    assert any("on fire" in note for note in done["warnings"])
    [fault] = stage.memory.faults()["results"]
    assert fault["consumer"] == "sweep"
    assert stage.memory.consolidate(force=True)["filed"] == 1
    assert stage.memory.faults()["results"] == []


def test_background_sweep_survives_errors(open_stage: Callable[..., Stage]) -> None:
    stage = open_stage(sweep=True, sweep_seconds=0.02)
    store = type(stage.memory.engine.store)
    met: list[int] = []

    def failing(self: Any, account: str) -> Any:
        met.append(1)
        raise OSError("the disk is on fire")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "list_scopes", failing)
        wait_until(lambda: bool(met))
    assert stage.memory._sweeper._thread is not None
    assert stage.memory._sweeper._thread.is_alive()


# Deleted and updated turns

BICYCLE = "I bought a red bicycle for 300 euros"


def remove_all(stage: Stage, way: str) -> None:
    """Delete or forget all current memories."""
    for row in stage.memory.get_all(**U, limit=1000)["results"]:
        getattr(stage.memory, way)(row["id"])


@pytest.mark.parametrize("way", ["forget", "delete"])
def test_turn_whose_facts_were_all_removed_is_in_no_tier_and_not_filed(
    stage: Stage, way: str
) -> None:
    stage.add_turn(BICYCLE, infer=True)
    remove_all(stage, way)
    stage.add_turn("We decided to use port 8080")
    assert [row["memory"] for row in stage.memory.tiers(**U)["tail"]] == [
        "We decided to use port 8080"
    ]
    assert stage.memory.consolidate(**U, force=True)["filed"] == 1
    assert len(stage.list_links("in_exchange")) == 1
    assert stage.list_exchanges() == [["We decided to use port 8080"]]


def test_exchange_whose_facts_were_all_forgotten_is_not_listed_or_counted(
    stage: Stage,
) -> None:
    stage.add_turn(BICYCLE, infer=True)
    stage.memory.consolidate(**U, force=True)
    assert stage.list_exchanges() == [[BICYCLE]]
    remove_all(stage, "forget")
    assert stage.list_exchanges() == []
    assert stage.memory.tiers(**U)["registry"] == {"exchanges": 0, "newest": None}
    stage.add_exchange(1)
    stage.memory.consolidate(**U, force=True)
    assert len(stage.memory.registry(**U, limit=1)["results"]) == 1


def test_turn_with_a_current_or_replaced_fact_stays_in_its_tiers(stage: Stage) -> None:
    stage.add_turn("I live in Rome", infer=True)
    stage.add_turn("I live in Paris", infer=True)
    assert [row["memory"] for row in stage.memory.tiers(**U)["tail"]] == [
        "I live in Rome",
        "I live in Paris",
    ]
    assert stage.memory.consolidate(**U, force=True)["filed"] == 2


def test_model_is_not_asked_about_a_turn_whose_facts_were_all_forgotten(open_stage: Any) -> None:
    llm = ScriptedLLM([])
    stage = open_stage(
        llm=llm, extract="local", judge=True, summarise=True, summary_chars=20, judge_batch=50
    )
    stage.add_turn(BICYCLE, infer=True)
    remove_all(stage, "forget")
    stage.memory.consolidate(**U, force=True)
    assert llm.asked == []


def test_tier_counts_match_the_listings(stage: Stage) -> None:
    for number in range(5):
        stage.add_exchange(number)
    stage.memory.consolidate(**U, force=True)
    assert stage.memory.tiers(**U)["registry"]["exchanges"] == 5
    stage.memory.delete(stage.memory.registry(**U)["results"][0]["memories"][0])
    assert stage.memory.tiers(**U)["registry"]["exchanges"] == len(stage.list_exchanges()) == 5
    stage.memory.delete_all(**U)
    assert stage.memory.tiers(**U)["registry"] == {"exchanges": 0, "newest": None}


def test_super_topic_is_not_counted_as_a_topic(stage: Stage) -> None:
    super_topic = Asserted("above", Claim("everything", TOPIC, meta={SUPER: True}))
    topic = Asserted("below", Claim("ports", TOPIC))
    batch = Batch("default", [Draft(verb, SCOPE, "told") for verb in (super_topic, topic)])
    run(commit_batch(stage.memory.engine.store, batch))
    assert stage.memory.tiers(**U)["topics"] == {"count": 1}


@pytest.mark.parametrize(
    "change", [{"metadata": {"seen": True}}, {"text": "We decided on port 9000 instead"}]
)
def test_updated_turn_keeps_its_position_and_its_answer(
    stage: Stage, change: dict[str, Any]
) -> None:
    asked, answered = stage.add_exchange(1)
    later = stage.add_turn("The budget is 5 euros")
    stage.memory.update(asked, **change)
    assert [row["id"] for row in stage.memory.tiers(**U)["tail"]] == [asked, answered, later]
    assert stage.memory.consolidate(**U, force=True)["filed"] == 2
    rows = stage.memory.registry(**U)["results"]
    assert [row["memories"] for row in reversed(rows)] == [[asked, answered], [later]]
    assert stage.memory.consolidate(**U, force=True)["filed"] == 0


def test_updated_turn_is_judged_by_its_current_text_and_erased_with_its_score(
    open_stage: Any,
) -> None:
    stage, llm = open_judged(open_stage, score_reply(0.9))
    turn = stage.add_turn("We decided on port 8000")
    stage.memory.update(turn, text="We decided on port 9000")
    assert stage.memory.wait()["judged"] == 1
    assert "port 9000" in str(llm.asked)
    assert "port 8000" not in str(llm.asked)
    assert stage.memory.tiers(**U)["tail"][0]["importance"] == 0.9
    stage.memory.erase(turn)
    assert stage.list_links("importance") == []
    assert stage.memory.tiers(**U)["tail"] == []
    assert all("port" not in str(entry) for entry in stage.read_ledger(Observed))

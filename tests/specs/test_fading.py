"""Decay: memories fade by the clock of their kind, are then hidden, and deleted only by forget."""

from dataclasses import replace
from itertools import accumulate

import pytest

from tables import each_row
from told import InvalidInput, Memory, NotFoundError, ScopeError
from told.ids import uuid7, uuid7_created_at
from told.ledger import clocks as counting
from told.ledger.views import fold_all
from told.model.beliefs import TRUST_KEY
from told.model.decay import group_repetitions, list_mentions
from told.model.entry import Draft, Evidence, Observed
from told.model.fact import Fact, Link
from told.model.kind import Kind, load_builtin_ontology, load_kind, load_ontology
from told.model.salience import DecayClock, Tier, find_fade_time
from told.model.scope import Scope
from told.ports import Batch
from told.settings import load_settings
from visits import VISIT, visit

STORES = ["ram", "sqlite"]
TICK = Evidence("", "user", sort="tick", meta={"turns": 1, "tokens": 0})


@pytest.fixture(params=STORES)
def here(request):
    """New museum visit on each backend."""
    with visit(request.param) as started:
        yield started


def about_row(here, value, **options):
    rows = here.memory.about(**here.ids, **options)["results"]
    return next(item for item in rows if item["memory"].endswith(value))


# Kinds


@pytest.mark.parametrize(
    ("tier", "turns"), [("permanent", None), ("long_term", 230), ("session", 15), ("ephemeral", 4)]
)
def test_tier_fades_after_documented_number_of_turns(tier, turns):
    assert find_fade_time(Kind("k", tier=Tier(tier), weight=1.0).build_curve(), [0], 0) == turns


def test_decay_clock_defaults_to_turns_without_half_life_or_clock():
    assert Kind("k").decay_clock is DecayClock.TURNS
    assert Kind("k", half_life_days=3).decay_clock is DecayClock.TIME
    assert Kind("k", half_life_days=3, clock=DecayClock.TOKENS).decay_clock is DecayClock.TOKENS
    assert {
        kind.decay_clock
        for kind in load_builtin_ontology().values()
        if kind.tier is not Tier.PERMANENT
    } == {DecayClock.TIME}
    assert {
        kind.decay_clock for kind in load_ontology({"concepts": VISIT["concepts"]}).values()
    } == set(DecayClock)


def test_clock_round_trips_through_yaml(tmp_path):
    (tmp_path / "mood.yaml").write_text("name: mood\ntier: session\nclock: tokens\n")
    kind = load_kind(tmp_path / "mood.yaml")
    assert (kind.clock, load_kind(kind.as_json())) == (DecayClock.TOKENS, kind)


def test_unknown_clock_is_rejected():
    with pytest.raises(Exception, match=r"clock.*found 'turn'.*turns"):
        load_kind({"name": "mood", "clock": "turn"})


def test_time_clock_without_half_life_uses_tier_default():
    curve = Kind("k", tier=Tier.SESSION, clock=DecayClock.TIME, weight=0.8).build_curve(
        confidence=0.5
    )
    assert (curve.base, curve.decay, curve.is_permanent) == (0.4, 0.5, False)


# Settings


def test_prune_threshold_variable_is_honoured_without_prefix():
    assert load_settings({}).settings.prune_threshold == 0.10
    plain = load_settings({"PRUNE_THRESHOLD": "0.3"})
    assert (plain.settings.prune_threshold, plain.origin["prune_threshold"]) == (
        0.3,
        "PRUNE_THRESHOLD",
    )
    assert (
        load_settings({"PRUNE_THRESHOLD": " "}).origin["prune_threshold"]
        == load_settings({"PRUNE_THRESHOLD": ""}).origin["store"]
    )
    both = load_settings({"PRUNE_THRESHOLD": "0.3", "TOLD_PRUNE_THRESHOLD": "0.2"})
    assert (both.settings.prune_threshold, both.origin["prune_threshold"]) == (
        0.2,
        "TOLD_PRUNE_THRESHOLD",
    )


def test_higher_prune_threshold_fades_earlier():
    with visit(prune_threshold=0.5) as here:
        here.says("Art.Style", "cubism")
        here.passes(33)
        assert not about_row(here, "cubism")["faded"]
        here.passes(1)
        assert about_row(here, "cubism")["faded"]


def test_turn_events_sets_messages_per_turn():
    with visit(turn_events=4.0) as here:
        here.says("Need.Coffee", "tea")
        here.passes(4)
        assert here.weights()["tea"] == pytest.approx(0.9 * 0.55)


# Clocks


def test_memory_fades_by_the_clock_of_its_kind(here):
    for kind, value in (
        ("Need.Coffee", "tea"),
        ("Mood.Day", "glad"),
        ("Mood.Talk", "calm"),
        ("Need.Deaf", "deaf"),
    ):
        here.says(kind, value)
    before = here.weights()
    here.passes(2)
    here.passes(0, tokens=300)
    here.passes(0, days=2)
    after = here.weights()
    assert after["tea"] == pytest.approx(before["tea"] * 0.55**2)
    assert after["glad"] == pytest.approx(before["glad"] / 4, rel=1e-6)
    assert after["calm"] == pytest.approx(before["calm"] * 0.85**1.5)
    assert after["deaf"] == 1.0


def test_clock_is_shared_by_runs_of_a_user_and_not_by_other_users(here):
    run = {"user_id": "ann", "run_id": "r1"}
    here.says("Need.Coffee", "tea", **run)
    here.says("Need.Coffee", "milk", user_id="bob")
    here.passes(2)
    here.ids = run
    assert here.weights()["tea"] == pytest.approx(0.9 * 0.55**2)
    here.ids = {"user_id": "bob"}
    assert here.weights()["milk"] == pytest.approx(0.9)


def test_read_across_users_weighs_each_by_own_turns(here):
    here.says("Need.Coffee", "tea", user_id="ann", agent_id="guide")
    here.says("Need.Coffee", "milk", user_id="bob", agent_id="guide")
    here.passes(2)
    here.ids = {"agent_id": "guide"}
    assert here.weights() == pytest.approx({"tea": 0.9 * 0.55**2, "milk": 0.9})


def test_turns_are_counted_from_the_start_of_a_long_conversation(here):
    [deaf, *_] = here.says("Need.Deaf", "deaf")
    [style, *_] = here.says("Art.Style", "cubism")
    passed = [
        Draft(Observed(here.here.memory.engine.store.mint.new_id(), TICK), Scope.create(**here.ids))
        for _ in range(4200)
    ]
    here.memory.engine.store.commit(Batch("default", passed), fold_all)
    here.says("Art.Style", "cubism")
    found = here.memory.decay(deaf["id"])
    assert (found["now"], found["said"], found["salience"]) == (4202.0, [0.0], 1.0)
    found = here.memory.decay(style["id"])
    assert (found["now"], found["said"], found["fades_at"]["left"]) == (
        4201.0,
        [0.0, 4201.0],
        194.0,
    )
    assert [point[0] for point in found["curve"]][::59] == [0.0, 4395.0]
    assert about_row(here, "cubism")["fades_at"]["left"] == 194.0


def test_fade_date_is_estimated_from_recent_pace(here, monkeypatch):
    monkeypatch.setattr(counting, "PACE_WINDOW", 4)
    here.says("Art.Style", "cubism")
    for days in (9.0, 9.0, 1.0, 1.0, 1.0):
        here.passes(1, days=days)
    ends = here.memory.decay(here.memory.about(**here.ids)["results"][0]["id"])["fades_at"]
    assert (ends["left"], ends["time"][:10]) == (189.0, "2026-08-03")


def test_creation_time_is_read_from_uuid7_only():
    assert uuid7_created_at(uuid7(1_767_600_000_123, bytes(10))) == 1_767_600_000_123_000
    for name in (
        "",
        "e9",
        "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "zzzzzzzz-zzzz-7011-b42d-00c04fc964ff",
    ):
        assert uuid7_created_at(name) is None


# Repetition


def test_repetition_adds_three_tenths_of_base_capped_at_one(here):
    here.says("Art.Style", "cubism")
    here.passes(9)
    here.says("Art.Style", "cubism")
    assert here.weights()["cubism"] == pytest.approx(0.7 * 0.99**10 + 0.21)
    for _ in range(3):
        here.says("Art.Style", "cubism")
    assert here.weights()["cubism"] == 1.0
    assert about_row(here, "cubism")["said"] == 5


def test_repeating_faded_memory_resets_salience(here):
    here.says("Need.Coffee", "tea")
    here.passes(20)
    here.says("Need.Coffee", "tea")
    assert here.weights()["tea"] == pytest.approx(0.9)


def test_version_with_same_statement_does_not_change_salience(here):
    [made, *_] = here.says("Art.Style", "cubism")
    for _ in range(3):
        here.passes(1)
        here.says("Art.Style", "cubism")
    here.passes(150, days=1)
    before, said = here.weights()["cubism"], about_row(here, "cubism")["said"]
    here.memory.update(made["id"], metadata={"value": "cubism", "tag": "x"})
    here.here.clock.tick()
    assert here.weights()["cubism"] == pytest.approx(before)
    assert about_row(here, "cubism")["said"] == said == 4
    here.memory.apply_delta(
        [{"op": "update_confidence", "id": made["id"], "confidence": 0.5, "lane": "machine"}]
    )
    here.here.clock.tick()
    assert here.weights()["cubism"] < before
    here.passes(250)
    assert "cubism" not in here.memory.context(**here.ids).text
    here.here.clock.tick()
    here.memory.update(made["id"], metadata={"value": "cubism", "tag": "y"})
    assert "cubism" not in here.memory.context(**here.ids).text
    here.here.clock.tick()
    here.says("Art.Style", "cubism")
    assert here.weights()["cubism"] == pytest.approx(0.35)


def test_rewording_resets_decay_and_keeps_past_salience(here):
    [made, *_] = here.says("Art.Style", "cubism")
    here.passes(1)
    here.says("Art.Style", "cubism")
    here.passes(20, days=1)
    then, before = here.here.head, here.weights()["cubism"]
    here.memory.update(made["id"], "Likes: fauvism", metadata={"value": "fauvism"})
    anew = here.memory.decay(made["id"])
    assert (anew["now"], anew["said"]) == (0.0, [0.0])
    assert here.weights() == {"fauvism": anew["salience"]}
    assert here.weights(as_of=f"#{then}") == pytest.approx({"cubism": before})
    here.passes(3, days=1)
    here.memory.update(made["id"], metadata={"value": "fauvism", "tag": "x"})
    assert here.weights() == pytest.approx({"fauvism": anew["salience"] * 0.99**3})


def versions(*changes):
    """Return versions of one fact, one second and one sequence number apart."""
    first = Fact("t", 1, 1, Scope(user_id="ann"), "likes tea", "", role="user", evidence="e1")
    numbered = enumerate(
        accumulate(changes, lambda before, change: replace(before, **change), initial=first), 1
    )
    return [replace(fact, seq=seq, updated_at=seq * 1_000_000) for seq, fact in numbered]


@each_row(
    ("changes", "seqs"),
    [
        ([{"meta": {"tag": "x"}}, {"confidence": 0.2}, {"valid_to": 9}], [1]),
        ([{"text": "likes mate", "evidence": "e2"}], [2]),
        ([{"object": "mate"}, {"meta": {"tag": "x"}}], [2]),
        ([{"text": "likes mate", "role": "tool"}], [1]),
        (
            [
                {"text": "likes mate", "role": None, "author": "model"},
                {"text": "likes milk", "role": "user"},
            ],
            [3],
        ),
        ([{"text": "likes mate", "meta": {TRUST_KEY: "inference"}}], [1]),
        ([{"evidence": "e2"}, {"evidence": "e2", "confidence": 0.3}], [1, 2]),
        ([{"evidence": "e2", "role": "assistant"}], [1]),
    ],
)
def test_mentions_are_user_changes_of_statement_or_evidence(changes, seqs):
    *before, fact = versions(*changes)
    assert [item.seq for item in list_mentions(fact, versions=[*before, fact])] == seqs
    link = Link(len(changes) + 1, uuid7(9_000, bytes(10)), "supports", "t", fact.scope)
    assert [
        item.seq
        for item in list_mentions(fact, [replace(link, seq=0), replace(link, seq=99)], before)
    ] == [*seqs, 99]


def test_only_user_repetitions_are_counted():
    scope = Scope(user_id="ann")
    mine = Link(3, "e1", "supports", "t", scope, meta={"said": "again"})
    tool = Link(4, "e2", "supports", "t", scope, meta={"said": "again", TRUST_KEY: "tool"})
    other = Link(5, "t2", "supports", "t", scope)
    assert group_repetitions([mine, tool, other]) == {"t": [mine]}


def test_recency_eviction_removes_least_recently_mentioned(here):
    for value in ("ink", "oil", "wool"):
        here.here.clock.tick()
        here.says("Art.Last", value)
    here.here.clock.tick()
    here.says("Art.Last", "ink")
    here.here.clock.tick()
    here.says("Art.Last", "clay")
    assert here.held() == {"ink", "wool", "clay"}


def test_salience_eviction_removes_currently_weakest(here):
    for value in ("ink", "oil", "wool"):
        here.says("Art.Few", value)
    here.passes(5)
    here.says("Art.Few", "ink")
    here.says("Art.Few", "clay")
    assert here.held() == {"ink", "wool", "clay"}


# Reading


def test_faded_memory_is_hidden_from_default_context_and_found_by_query(here):
    here.says("Need.Coffee", "coffee")
    here.says("Need.Deaf", "deaf")
    before = here.here.head
    here.passes(9)
    shown = here.memory.context(**here.ids)
    assert "coffee" not in shown.text
    assert "deaf" in shown.text
    assert [(item.stage, item.reason) for item in shown.trace.candidates if not item.kept] == [
        ("fade", "has faded")
    ]
    assert "coffee" in here.memory.context("coffee", **here.ids).text
    assert "ephemeral: coffee" in [
        hit["memory"] for hit in here.memory.search("coffee", **here.ids)["results"]
    ]
    assert "coffee" in here.memory.context(**here.ids, as_of=f"#{before}").text
    assert here.held() == {"coffee", "deaf"}


def test_pinned_memory_is_hidden_once_faded():
    with visit(pinned_kinds="Need.Coffee Need.Deaf", sources="time") as here:
        for kind, value in (("Need.Coffee", "tea"), ("Need.Deaf", "deaf")):
            here.memory.add(f"All about {value}", **here.ids, kind=kind, metadata={"value": value})
        assert "tea" in here.memory.context("bronze statue", **here.ids).text
        here.passes(9)
        text = here.memory.context("bronze statue", **here.ids).text
        assert "deaf" in text
        assert "tea" not in text


def test_context_is_filled_with_unfaded_memories(here):
    here.says("Need.Deaf", "deaf")
    for number in range(30):
        here.says("Need.Coffee", f"thing number {number}")
    here.passes(9)
    text = here.memory.context(**here.ids, budget=60).text
    assert "deaf" in text
    assert "thing" not in text


def test_rank_salience_setting_adds_salience_to_score():
    with visit(rank_salience=1.0) as here:
        here.says("Need.Coffee", "green tea")
        here.passes(2)
        found = here.memory.search("green tea", **here.ids, explain=True, kinds=["Need.Coffee"])[
            "results"
        ]
        assert found[0]["score_details"]["salience"] == pytest.approx(0.9 * 0.55**2)


# decay


def test_decay_returns_the_curve_and_its_parameters(here):
    [made, *_] = here.says("Plan.Hours", "one hour")
    here.passes(2)
    here.says("Plan.Hours", "one hour")
    here.passes(1)
    found = here.memory.decay(made["id"], points=5, **here.ids)
    weight = (0.6 * 0.85**3 + 0.18) * 0.85
    assert (found["id"], found["memory"], found["kind"]) == (
        made["id"],
        "session: one hour",
        "Plan.Hours",
    )
    assert (found["tier"], found["clock"], found["threshold"]) == ("session", "turns", 0.1)
    assert (found["now"], found["said"], found["faded"]) == (4.0, [0.0, 3.0], False)
    assert found["salience"] == pytest.approx(weight)
    ends = found["fades_at"]
    assert (ends["left"], ends["reading"], ends["unit"], ends["estimated"]) == (
        10.0,
        14.0,
        "turns",
        True,
    )
    assert weight * 0.85**10 < 0.1 <= weight * 0.85**9
    readings, weights = zip(*found["curve"], strict=True)
    assert readings == (0.0, 3.5, 7.0, 10.5, 14.0)
    assert weights[0] == 0.6
    assert weights[-1] < 0.1


def test_decay_date_is_exact_for_time_and_estimated_for_turns(here):
    [mood, *_] = here.says("Mood.Day", "glad")
    here.passes(1, days=1)
    [style, *_] = here.says("Art.Style", "cubism")
    day = here.memory.decay(mood["id"])["fades_at"]
    assert (day["left"], day["unit"], day["estimated"], day["time"][:10]) == (
        3.0,
        "days",
        False,
        "2026-01-09",
    )
    turns = here.memory.decay(style["id"])["fades_at"]
    assert (turns["left"], turns["estimated"]) == (194.0, True)
    assert turns["time"] > day["time"]


def test_permanent_memory_never_fades_and_has_a_flat_curve(here):
    [made, *_] = here.says("Need.Deaf", "deaf")
    found = here.memory.decay(made["id"], points=3)
    assert (found["fades_at"], found["faded"]) == (None, False)
    assert [weight for _, weight in found["curve"]] == [1.0, 1.0, 1.0]
    assert found["curve"][-1][0] > 0


def test_memory_of_undeclared_kind_does_not_fade(here):
    [made] = here.memory.add("x marks the spot", **here.ids, kind="odd", infer=False)["results"]
    here.passes(500, days=5000)
    found = here.memory.decay(made["id"])
    assert (found["tier"], found["fades_at"], found["faded"]) == (None, None, False)


def test_decay_accepts_clock_and_as_of(here):
    [made, *_] = here.says("Need.Coffee", "tea")
    moment = here.here.head
    here.passes(3, days=1)
    assert here.memory.decay(made["id"])["faded"] is False
    by_time = here.memory.decay(made["id"], clock="time")
    assert (by_time["clock"], by_time["faded"]) == ("time", True)
    assert here.memory.decay(made["id"], as_of=f"#{moment}")["salience"] == 0.9


def test_decay_rejects_invalid_arguments(here):
    [made, *_] = here.says("Need.Coffee", "tea")
    with pytest.raises(NotFoundError, match="nothing"):
        here.memory.decay("nothing")
    with pytest.raises(NotFoundError):
        here.memory.decay(made["id"], user_id="bob")
    with pytest.raises(InvalidInput, match="turns, time, tokens"):
        here.memory.decay(made["id"], clock="sun")
    with pytest.raises(InvalidInput, match="points"):
        here.memory.decay(made["id"], points=1)


# about


def test_about_lists_memories_with_origin_strongest_first(here):
    here.says("Need.Coffee", "tea")
    here.says("Art.Style", "cubism")
    here.says("Art.Style", "fauvism")
    here.says("Need.Deaf", "deaf")
    here.says("Art.Style", "fauvism")
    rows = here.memory.about(**here.ids)["results"]
    assert [item["memory"].rpartition(" ")[2] for item in rows] == [
        "deaf",
        "fauvism",
        "cubism",
        "tea",
    ]
    [deaf, fauvism, *_, tea] = rows
    assert deaf["words"] == "In turn 4 I say deaf"
    assert (deaf["fades_at"], deaf["tier"], deaf["role"], deaf["user_id"]) == (
        None,
        "permanent",
        "user",
        "ann",
    )
    assert (fauvism["said"], fauvism["words"]) == (2, "In turn 3 I say fauvism")
    assert fauvism["fades_at"]["unit"] == "turns"
    assert tea["said_at"].startswith("2026-01-05")
    assert tea["faded"] is True


def test_about_quotes_only_the_matching_sentence(here):
    said = (
        f"{'The halls are bright and wide. ' * 20}I say I love cubism. "
        f"{'It rains outside today. ' * 20}"
    )
    fact = {
        "concept": "Art.Style",
        "value": "cubism",
        "polarity": "asserted",
        "evidence": "I love cubism",
    }
    here.memory.add(said, **here.ids, facts=[fact])
    assert about_row(here, "cubism")["words"] == "I say I love cubism."


def test_about_omits_turns_and_other_users(here):
    here.says("Need.Coffee", "tea", user_id="bob")
    here.says("Need.Coffee", "milk")
    rows = here.memory.about(**here.ids)["results"]
    assert [item["memory"] for item in rows] == ["ephemeral: milk"]
    with pytest.raises(ScopeError):
        here.memory.about()


def test_about_returns_more_than_one_page(here, monkeypatch):
    monkeypatch.setattr("told.retrieval.listing.PAGE_SIZE", 3)
    for number in range(8):
        here.says("Need.Deaf", f"need {number}")
    assert len(here.memory.about(**here.ids)["results"]) == 8


def test_guard_applies_to_about_decay_and_forget():
    with visit(guard=lambda memory: memory.get("kind") != "Need.Coffee") as here:
        [need, *_] = here.says("Need.Coffee", "tea")
        here.says("Art.Style", "cubism")
        here.passes(9)
        assert list(here.weights()) == ["cubism"]
        for verb in (here.memory.decay, here.memory.forget):
            with pytest.raises(NotFoundError):
                verb(need["id"])
        assert here.memory.forget(**here.ids) == {"results": []}


def test_about_does_not_quote_guarded_turn():
    for guard, quoted in (
        (lambda _: True, "I live in Lisbon"),
        (lambda memory: memory.get("kind") != "turn", None),
    ):
        with Memory("ram://", embedder="none", guard=guard) as memory:
            memory.add("I live in Lisbon", user_id="ann")
            [row] = memory.about(user_id="ann")["results"]
            assert (row["memory"], row.get("words")) == ("User lives in Lisbon", quoted)


# forget


def test_forget_deletes_faded_memories_and_keeps_history(here):
    [tea, *_] = here.says("Need.Coffee", "tea")
    here.says("Need.Deaf", "deaf")
    moment = here.here.head
    here.passes(9)
    [lost] = here.memory.forget(**here.ids)["results"]
    assert (lost["id"], lost["event"], lost["memory"], lost["kind"]) == (
        tea["id"],
        "DELETE",
        "ephemeral: tea",
        "Need.Coffee",
    )
    assert lost["salience"] == pytest.approx(0.9 * 0.55**10)
    assert here.held() == {"deaf"}
    assert here.memory.get(tea["id"], as_of=f"#{moment}")["memory"] == "ephemeral: tea"
    assert here.memory.history(tea["id"])[-1]["why"] == "faded"
    assert here.memory.verify()["ok"]


def test_forgotten_memory_can_be_added_again(here):
    here.says("Need.Coffee", "tea")
    here.passes(9)
    here.memory.forget(**here.ids)
    assert here.says("Need.Coffee", "tea")[0]["event"] == "ADD"
    assert here.weights()["tea"] == pytest.approx(0.9)


def test_forget_with_id_deletes_unfaded_memory(here):
    [deaf, *_] = here.says("Need.Deaf", "deaf")
    [lost] = here.memory.forget(deaf["id"], **here.ids)["results"]
    assert (lost["id"], lost["salience"]) == (deaf["id"], 1.0)
    assert here.held() == set()
    assert here.memory.history(deaf["id"])[-1]["why"] == "forgotten"
    with pytest.raises(NotFoundError):
        here.memory.forget(deaf["id"])


def test_forget_requires_a_scope(here):
    with pytest.raises(ScopeError):
        here.memory.forget()


def test_forget_processes_every_page_once(here, monkeypatch):
    monkeypatch.setattr("told.maintenance.forgetting.PAGE", 3)
    for number in range(5):
        here.says("Need.Coffee", f"drink {number}")
        here.says("Need.Deaf", f"need {number}")
    here.passes(9)
    assert len(here.memory.forget(**here.ids)["results"]) == 5
    assert here.held() == {f"need {number}" for number in range(5)}


def test_forget_does_not_delete_turns(here):
    here.says("Need.Coffee", "tea")
    here.passes(9, days=5000)
    here.memory.forget(**here.ids)
    found = here.memory.search("In turn 1 I say tea", **here.ids)["results"]
    assert [item["memory"] for item in found] == ["In turn 1 I say tea"]

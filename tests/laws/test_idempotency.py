"""Properties of retries: adding twice equals adding once, and a key stands for one request."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import (
    any_step,
    messages,
    metadata,
    said,
    scopes,
    scripts,
    sources,
    stage,
    timestamps,
    tried,
)
from told.errors import IdempotencyConflict, InvalidInput

KINDS = ["ram", "sqlite"]
requests = st.fixed_dictionaries(
    {"messages": said}, optional={"metadata": metadata, "timestamp": timestamps, "source": sources}
)


def entries(here):
    return here.memory.stats()["entries"]


@pytest.mark.parametrize("kind", KINDS)
@given(before=scripts(any_step, 5), scope=scopes, request=requests)
@tried(30)
def test_same_evidence_is_stored_once(kind, before, scope, request):
    with stage(kind) as here:
        here.player.play(before)
        first = here.memory.add(**request, **scope, infer=False)
        grown, rows = entries(here), here.rows()
        again = here.memory.add(**request, **scope, infer=False)
        assert [row["event"] for row in again["results"]] == ["NONE"] * len(first["results"])
        assert [row["id"] for row in again["results"]] == [row["id"] for row in first["results"]]
        assert (entries(here), here.rows()) == (grown, rows), "nothing was written"


@pytest.mark.parametrize("kind", KINDS)
@given(scope=scopes, request=requests, after=scripts(any_step, 6))
@tried(30)
def test_idempotency_key_returns_its_first_receipt(kind, scope, request, after):
    with stage(kind) as here:
        first = here.memory.add(**request, **scope, idempotency_key="the key")
        kept = [step for step in after if step.verb != "erase"]
        here.player.play(kept)
        grown = entries(here)
        assert here.memory.add(**request, **scope, idempotency_key="the key") == strip_skipped_text(
            first
        )
        assert entries(here) == grown


def strip_skipped_text(receipt):
    """Drop the text of skipped messages: a key stores none, so that an erasure leaves none."""
    rows = [
        {name: value for name, value in row.items() if name != "fact"}
        for row in receipt.get("skipped", ())
    ]
    return {**receipt, **({"skipped": rows} if rows else {})}


@pytest.mark.parametrize("kind", KINDS)
def test_replayed_receipt_equals_the_first_with_several_speakers(kind):
    with stage(kind) as here:
        said = [
            {"role": "user", "content": "tea"},
            {"role": "assistant", "content": "tea", "name": "Ann"},
        ]
        first = here.memory.add(said, user_id="u", idempotency_key="k")
        assert here.memory.add(said, user_id="u", idempotency_key="k") == first


@pytest.mark.parametrize("kind", KINDS)
@given(request=requests, other=requests)
@tried(30)
def test_idempotency_key_rejects_a_different_request(kind, request, other):
    with stage(kind) as here:
        here.memory.add(**request, user_id="u", idempotency_key="the key")
        grown = entries(here)
        told = {"messages": other["messages"], "metadata": other.get("metadata")}
        with pytest.raises(IdempotencyConflict):
            here.memory.add(
                [told["messages"], "and more"] if isinstance(told["messages"], str) else "another",
                metadata=told["metadata"],
                user_id="u",
                idempotency_key="the key",
            )
        with pytest.raises(IdempotencyConflict):
            here.memory.add(**request, user_id="v", idempotency_key="the key")
        with pytest.raises(IdempotencyConflict):
            here.memory.add(
                **request, user_id="u", expiration_date="2031", idempotency_key="the key"
            )
        assert entries(here) == grown


@pytest.mark.parametrize("kind", KINDS)
@given(message=messages.filter(lambda message: message["role"] != "system"))
@tried(20)
def test_idempotency_key_rejects_a_request_with_any_message_field_changed(kind, message):
    changes = (
        {"content": "something else"},
        {"name": "Zoe"},
        {"metadata": {"zz": 1}},
        {"timestamp": "2001-01-01"},
    )
    with stage(kind) as here:
        here.memory.add(message, user_id="u", idempotency_key="the key")
        for change in changes:
            with pytest.raises(IdempotencyConflict):
                here.memory.add({**message, **change}, user_id="u", idempotency_key="the key")


@pytest.mark.parametrize("kind", KINDS)
def test_idempotency_key_ignores_how_the_scope_is_spelled(kind):
    with stage(kind) as here:
        first = here.memory.add("tea", user_id="alice", idempotency_key="k")
        assert here.memory.add("tea", user_id=" alice ", idempotency_key="k") == first


@pytest.mark.parametrize("kind", KINDS)
def test_idempotency_key_covers_messages_that_are_not_stored(kind):
    with stage(kind) as here:
        system = {"role": "system", "content": "be kind"}
        here.memory.add([system, "tea"], user_id="u", idempotency_key="k")
        with pytest.raises(IdempotencyConflict):
            here.memory.add("tea", user_id="u", idempotency_key="k")


@pytest.mark.parametrize("key", ["", "   ", "x" * 257, 7, "a\0b"])
def test_invalid_idempotency_key_is_rejected(key):
    with stage("ram") as here, pytest.raises(InvalidInput):
        here.memory.add("tea", user_id="u", idempotency_key=key)


@pytest.mark.parametrize("kind", KINDS)
def test_idempotency_key_used_by_many_threads_writes_once(kind):
    with stage(kind) as here, ThreadPoolExecutor(8) as pool:
        receipts = list(
            pool.map(lambda _: here.memory.add("tea", user_id="u", idempotency_key="k"), range(16))
        )
        assert all(receipt == receipts[0] for receipt in receipts)
        assert entries(here) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_same_text_added_by_many_threads_is_one_memory(kind):
    with stage(kind) as here, ThreadPoolExecutor(8) as pool:
        receipts = list(
            pool.map(lambda _: here.memory.add("tea", user_id="u")["results"][0], range(16))
        )
        assert len({row["id"] for row in receipts}) == 1
        assert sorted(row["event"] for row in receipts) == ["ADD"] + ["NONE"] * 15
        assert entries(here) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_idempotency_key_is_free_after_its_memory_is_erased(kind):
    with stage(kind) as here:
        [row] = here.memory.add("tea", user_id="u", idempotency_key="k")["results"]
        here.memory.erase(row["id"])
        [again] = here.memory.add("tea", user_id="u", idempotency_key="k")["results"]
        assert again["event"] == "ADD"
        assert again["id"] != row["id"]


@pytest.mark.parametrize("kind", KINDS)
def test_added_text_is_found_even_if_an_equal_memory_had_expired(kind):
    with stage(kind) as here:
        here.memory.add(
            "The office code is 1234", user_id="u", expiration_date="2026-01-05T09:00:00Z"
        )
        here.clock.tick(7_200_000_000)
        assert here.memory.get_all(user_id="u")["results"] == []
        here.memory.add("The office code is 1234", user_id="u")
        assert [
            row["memory"] for row in here.memory.search("office code", user_id="u")["results"]
        ] == ["The office code is 1234"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{"metadata": {"tag": "work"}}, {"expiration_date": "2031"}])
def test_add_applies_every_option_or_reports_that_it_did_not(kind, more):
    with stage(kind) as here:
        here.memory.add("tea", user_id="u")
        receipt = here.memory.add("tea", user_id="u", **more)
        [row] = here.memory.get_all(user_id="u")["results"]
        name, value = next(iter(more.items()))
        done = value == row.get(name) or str(value) in str(row.get(name, ""))
        assert done or receipt.get("warnings"), f"{name} was dropped in silence"


def test_every_pair_of_guard_kinds_is_needed():
    """Equal text with other evidence is support; the same evidence for a deleted text is a new
    memory.
    """
    for kind, (first, second) in itertools.product(KINDS, [("chat", "mail"), (None, "chat")]):
        with stage(kind) as here:
            [one] = here.memory.add("tea", user_id="u", source=first)["results"]
            [two] = here.memory.add("tea", user_id="u", source=second)["results"]
            assert (two["event"], two["id"]) == ("NONE", one["id"])
            assert [change["event"] for change in here.memory.history(one["id"])] == ["ADD", "NONE"]
            here.memory.delete(one["id"])
            [three] = here.memory.add("tea", user_id="u", source=first)["results"]
            assert three["event"] == "ADD"
            assert three["id"] != one["id"]
            assert here.memory.stats()["evidence"] == 2

"""Laws of what a curator looks up: what a scope holds of a subject or of a kind, and that nobody added to it since."""

from __future__ import annotations

import pytest

from told.core.entry import Asserted, Claim
from told.core.errors import Conflict
from told.core.scope import Scope
from told.ports import VIEWS, Guard, KindNotGrown, ThreadUntouched, UnchangedSlot
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, AccountHarness, ContractBase

ALICE_WITH_AGENT = Scope(ACCOUNT, user_id="alice", agent_id="work")
LIVES_IN = ("User", "lives_in")

CHANGED_GUARDS: dict[str, Guard] = {
    "a new fact": UnchangedSlot(ALICE, "User", ("lives_in",), 2),
    "a new version": UnchangedSlot(ALICE, "User", ("likes",), 2),
    "a fact of another predicate of the slot": UnchangedSlot(
        ALICE, "User", ("works_at", "lives_in"), 2
    ),
    "another fact of a kind": KindNotGrown(ALICE, "place", 2),
    "a version since then": ThreadUntouched("tea", 3),
    "a retraction since then": ThreadUntouched("bike", 4),
    "a link since then": ThreadUntouched("bob", 6),
}
UNCHANGED_GUARDS: dict[str, Guard] = {
    "what was there already": UnchangedSlot(ALICE, "User", ("lives_in",), 3),
    "another subject": UnchangedSlot(ALICE, "Bob", ("lives_in",), 0),
    "another predicate": UnchangedSlot(ALICE, "User", ("works_at",), 0),
    "no predicate": UnchangedSlot(ALICE, "User", (), 0),
    "another scope": UnchangedSlot(BOB, "User", ("lives_in",), 0),
    "one scope below": UnchangedSlot(ALICE_WITH_AGENT, "User", ("lives_in",), 0),
    "what was given up": UnchangedSlot(ALICE, "User", ("owns",), 0),
    "a kind since its last fact": KindNotGrown(ALICE, "place", 3),
    "a kind of which all was given up": KindNotGrown(ALICE, "thing", 0),
    "a kind of another scope": KindNotGrown(BOB, "place", 0),
    "the kind that says nothing": KindNotGrown(ALICE, "memory", 0),
    "a thread since its last version": ThreadUntouched("tea", 4),
    "a thread since its last link": ThreadUntouched("bob", 7),
    "what a link comes from": ThreadUntouched("home", 3),
    "a thread that never was": ThreadUntouched("nothing", 0),
}


class CurrentFactsContract(ContractBase):
    """A scope holds what was said last of a subject, until it is given up, replaced or expired."""

    def test_current_facts_are_found_by_subject_and_predicate(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim(
            "User lives in Rome", "home", subject="User", predicate="lives_in", object="Rome"
        )
        harness.assert_claim(
            "User likes tea", "tea", subject="User", predicate="likes", object="tea"
        )
        harness.assert_claim(
            "User likes jazz", "jazz", subject="User", predicate="likes", object="jazz"
        )
        harness.assert_claim(
            "Bob lives in Oslo", "bob", subject="Bob", predicate="lives_in", object="Oslo"
        )
        harness.assert_claim("likes tea", "plain")
        assert self._list_current_ids(harness, LIVES_IN) == ["home"]
        assert self._list_current_ids(
            harness, LIVES_IN, ("User", "likes"), LIVES_IN, ("User", "owns")
        ) == ["home", "tea", "jazz"]
        assert (
            self._list_current_ids(harness)
            == self._list_current_ids(harness, ("user", "lives_in"))
            == self._list_current_ids(harness, ("User", ""))
            == []
        )

    def test_current_facts_are_returned_complete(self, harness: AccountHarness) -> None:
        fact = harness.assert_claim(
            "User lives in Rome",
            "home",
            subject="User",
            predicate="lives_in",
            object="Rome",
            kind="profile",
            polarity="negated",
            modality="hedged",
            confidence=0.25,
            expires=10**18,
            meta={"a": [1, {"b": None}]},
        )
        assert list(harness.store.current_facts(ALICE, 0, slots=[LIVES_IN])) == [fact]
        assert list(harness.store.current_facts(ALICE, 0, kinds=["profile"])) == [fact]

    def test_replaced_retracted_and_expired_facts_are_not_current(
        self, harness: AccountHarness
    ) -> None:
        for text, thread in (("Rome", "a"), ("Oslo", "a"), ("Lima", "b")):
            harness.assert_claim(text, thread, subject="User", predicate="lives_in")
        harness.assert_claim("Kyiv", "c", subject="User", predicate="lives_in", expires=50)
        harness.assert_claim("Bonn, it was", "d", subject="User", predicate="lives_in")
        harness.assert_claim("Bonn", "d", subject="User", predicate="visited")
        harness.retract_thread("b")
        facts = harness.store.current_facts(ALICE, 49, slots=[LIVES_IN])
        assert [fact.text for fact in facts] == ["Oslo", "Kyiv"]
        assert self._list_current_ids(harness, LIVES_IN, now=50) == ["a"]

    def test_current_facts_come_from_the_exact_scope(self, harness: AccountHarness) -> None:
        for scope, thread in ((ALICE, "a"), (ALICE_WITH_AGENT, "w"), (BOB, "b")):
            harness.assert_claim(
                "Rome", thread, scope, subject="User", predicate="lives_in", kind="profile"
            )
        other_scope = Scope("umbrella", user_id="alice")
        for scope, threads in (
            (ALICE, ["a"]),
            (ALICE_WITH_AGENT, ["w"]),
            (BOB, ["b"]),
            (other_scope, []),
        ):
            assert [
                fact.id for fact in harness.store.current_facts(scope, 0, slots=[LIVES_IN])
            ] == threads
            assert [
                fact.id for fact in harness.store.current_facts(scope, 0, kinds=["profile"])
            ] == threads

    def test_current_facts_of_a_kind_come_in_ledger_order(self, harness: AccountHarness) -> None:
        harness.assert_claim("Acme", "node", kind="node")
        harness.assert_claim("tea", "taste", kind="preference", subject="User", predicate="likes")
        harness.assert_claim("Acme Corp", "node", kind="node")
        harness.assert_claim("plain", "plain")
        kinds = ["preference", "node", "memory", "nothing"]
        assert [fact.id for fact in harness.store.current_facts(ALICE, 0, kinds=kinds)] == [
            "taste",
            "node",
        ]
        assert [fact.id for fact in harness.store.current_facts(ALICE, 0, kinds=["memory"])] == []
        combined = harness.store.current_facts(
            ALICE, 0, slots=[("User", "likes")], kinds=["preference", "node"]
        )
        assert [fact.id for fact in combined] == ["taste", "node"]

    def test_a_rebuild_keeps_current_facts(self, harness: AccountHarness) -> None:
        harness.assert_claim("Rome", "a", subject="User", predicate="lives_in", kind="profile")
        harness.assert_claim("Oslo", "a", subject="User", predicate="lives_in", kind="profile")
        before = list(harness.store.current_facts(ALICE, 0, slots=[LIVES_IN], kinds=["profile"]))
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert (
            list(harness.store.current_facts(ALICE, 0, slots=[LIVES_IN], kinds=["profile"]))
            == before
        )

    @pytest.mark.parametrize("guard", CHANGED_GUARDS.values(), ids=CHANGED_GUARDS.keys())
    def test_a_guard_on_changed_state_rejects_the_batch(
        self, harness: AccountHarness, guard: Guard
    ) -> None:
        self._write_claims(harness)
        with pytest.raises(Conflict):
            harness.commit(Asserted("new", Claim("new")), guards=[guard], read_seq=2)
        assert harness.head_seq == 7

    @pytest.mark.parametrize("guard", UNCHANGED_GUARDS.values(), ids=UNCHANGED_GUARDS.keys())
    def test_a_guard_on_unchanged_state_accepts_the_batch(
        self, harness: AccountHarness, guard: Guard
    ) -> None:
        self._write_claims(harness)
        harness.commit(Asserted("new", Claim("new")), guards=[guard], read_seq=2)
        assert harness.head_seq == 8

    def _write_claims(self, harness: AccountHarness) -> None:
        harness.assert_claim("User likes tea", "tea", subject="User", predicate="likes")
        harness.assert_claim(
            "User owns a bike", "bike", subject="User", predicate="owns", kind="thing"
        )
        harness.assert_claim(
            "User lives in Rome", "home", subject="User", predicate="lives_in", kind="place"
        )
        harness.assert_claim("User likes green tea", "tea", subject="User", predicate="likes")
        harness.retract_thread("bike")
        harness.assert_claim("Bob lives in Oslo", "bob", BOB, subject="Bob", predicate="lives_in")
        harness.add_link("home", "near", "bob")

    def _list_current_ids(
        self, harness: AccountHarness, *pairs: tuple[str, str], now: int = 0
    ) -> list[str]:
        return [fact.id for fact in harness.store.current_facts(ALICE, now, slots=pairs)]

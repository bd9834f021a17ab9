"""Laws of a conversation as it was said: whose there are, which memories are turns, and their order page by page."""

from __future__ import annotations

from told.core.entry import Retracted
from told.core.scope import Scope
from told.ports import ScopeTally
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, AccountHarness, ContractBase
from told.testing.fakes import ManualClock

ALICE_RUN = Scope(ACCOUNT, user_id="alice", run_id="one")


def add_spoken_turn(
    harness: AccountHarness, text: str, role: str = "user", scope: Scope = ALICE
) -> str:
    """A turn with evidence of its own; its thread is its text."""
    harness.add_evidence(text, f"said {text}", scope)
    return harness.assert_claim(text, text, scope, evidence=f"said {text}", role=role).id


def list_turn_texts(
    harness: AccountHarness, scope: Scope = ALICE, **options: int | bool
) -> list[str]:
    """The texts of a scope's turns."""
    return [turn.fact.text for turn in harness.store.list_turns(scope, **options)]  # type: ignore[arg-type]


class TurnContract(ContractBase):
    """A turn is what somebody said, once, for as long as it is held."""

    def test_turns_come_in_ledger_order(self, harness: AccountHarness) -> None:
        for text, role in (("one", "user"), ("two", "assistant"), ("three", "user")):
            add_spoken_turn(harness, text, role)
        assert list_turn_texts(harness) == ["one", "two", "three"]

    def test_only_user_and_assistant_messages_are_turns(self, harness: AccountHarness) -> None:
        for role in ("tool", "document", "system"):
            add_spoken_turn(harness, f"by a {role}", role)
        harness.assert_claim("nobody said it", "a")
        harness.assert_claim("without evidence", "b", role="user")
        assert list_turn_texts(harness) == []

    def test_the_first_thread_of_some_evidence_is_the_turn(self, harness: AccountHarness) -> None:
        add_spoken_turn(harness, "I live in Rome")
        harness.assert_claim(
            "User lives in Rome",
            "claim",
            evidence="said I live in Rome",
            role="user",
            predicate="lives_in",
        )
        assert list_turn_texts(harness) == ["I live in Rome"]
        harness.retract_thread("I live in Rome")
        assert list_turn_texts(harness) == []
        harness.assert_claim(
            "I live in Rome", "I live in Rome", evidence="said I live in Rome", role="user"
        )
        assert list_turn_texts(harness) == ["I live in Rome"]

    def test_nodes_and_quarantined_facts_are_not_turns(self, harness: AccountHarness) -> None:
        for kind in ("node", "quarantine"):
            harness.assert_claim(kind, kind, evidence=f"said {kind}", role="user", kind=kind)
        assert list_turn_texts(harness) == []

    def test_turns_can_be_paged_between_two_positions(self, harness: AccountHarness) -> None:
        for number in range(5):
            add_spoken_turn(harness, str(number))
        harness.assert_claim("1", "1", evidence="said 1", role="user", meta={"looked": "at again"})
        positions = [turn.said_seq for turn in harness.store.list_turns(ALICE)]
        assert list_turn_texts(harness, after=positions[1]) == ["2", "3", "4"]
        assert list_turn_texts(harness, before=positions[3]) == ["0", "1", "2"]
        assert list_turn_texts(harness, after=positions[0], limit=2) == ["1", "2"]
        assert list_turn_texts(harness, limit=2, newest=True) == ["3", "4"]
        assert list_turn_texts(harness, before=positions[3], limit=2, newest=True) == ["1", "2"]

    def test_turns_come_from_the_exact_scope(self, harness: AccountHarness) -> None:
        add_spoken_turn(harness, "at home")
        add_spoken_turn(harness, "once", scope=ALICE_RUN)
        assert (
            list_turn_texts(harness),
            list_turn_texts(harness, ALICE_RUN),
            list_turn_texts(harness, BOB),
        ) == (["at home"], ["once"], [])
        assert list_turn_texts(harness, Scope("umbrella", user_id="alice")) == []

    def test_a_corrected_turn_keeps_its_position(self, harness: AccountHarness) -> None:
        for text in ("one", "two", "three"):
            add_spoken_turn(harness, text)
        positions = [turn.said_seq for turn in harness.store.list_turns(ALICE)]
        harness.assert_claim("one, again", "one", evidence="said one", role="user")
        harness.assert_claim("two, corrected", "two", role="user")
        assert list_turn_texts(harness) == ["one, again", "two, corrected", "three"]
        turns_after = harness.store.list_turns(ALICE)
        assert [turn.said_seq for turn in turns_after] == positions
        assert all(turn.fact.seq > turn.said_seq for turn in turns_after[:2])

    def test_a_restated_turn_moves_to_its_new_position(self, harness: AccountHarness) -> None:
        for text in ("one", "two", "three"):
            add_spoken_turn(harness, text)
        harness.add_evidence("one, anew", "said anew")
        harness.assert_claim("one, anew", "one", evidence="said anew", role="user")
        assert list_turn_texts(harness) == ["two", "three", "one, anew"]
        harness.retract_thread("two")
        harness.assert_claim("two", "two", evidence="said two", role="user")
        harness.assert_claim("two, corrected", "two", role="user")
        assert list_turn_texts(harness) == ["three", "one, anew", "two, corrected"]
        harness.assert_claim("one", "one", evidence="said one", role="user")
        assert list_turn_texts(harness) == ["three", "two, corrected", "one"]

    def test_each_non_empty_scope_is_listed_once(self, harness: AccountHarness) -> None:
        assert list(harness.store.list_scopes(ACCOUNT)) == []
        add_spoken_turn(harness, "at home")
        add_spoken_turn(harness, "at home again")
        add_spoken_turn(harness, "once", scope=ALICE_RUN)
        harness.add_evidence("only evidence", "e", BOB)
        assert set(harness.store.list_scopes(ACCOUNT)) == {ALICE, ALICE_RUN, BOB}
        assert len(harness.store.list_scopes(ACCOUNT)) == 3
        assert list(harness.store.list_scopes("umbrella")) == []

    def test_a_tally_has_memory_count_and_first_and_last_write(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        begun = harness.add_evidence("I live in Rome", "e").at
        clock.tick()
        harness.assert_claim("I live in Rome", "turn", evidence="e", role="user", kind="turn")
        harness.assert_claim("User lives in Rome", "home")
        harness.assert_claim("User lives in Bari", "home")
        harness.assert_claim("User likes tea", "tea", expires=begun)
        ended = harness.add_link("tea", "relates_to", "home").at
        other = harness.assert_claim("gone", "gone", BOB).updated_at
        harness.commit(Retracted("gone"), scope=BOB)
        assert list(harness.store.scope_tallies(ACCOUNT)) == [
            ScopeTally(ALICE, 2, begun, ended),
            ScopeTally(BOB, 0, other, other),
        ]
        assert [tally.scope for tally in harness.store.scope_tallies(ACCOUNT)] == list(
            harness.store.list_scopes(ACCOUNT)
        )
        assert list(harness.store.scope_tallies("umbrella")) == []

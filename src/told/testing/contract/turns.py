"""Laws of turns, ticks and scopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from told.model.entry import Retracted
from told.model.fact import NEVER, Tick
from told.model.scope import Scope
from told.ports import (
    VIEWS,
    ScopeTally,
)
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    LONE_SURROGATE,
    OTHER_ACCOUNT,
    AccountHarness,
    ContractBase,
    add_turn,
    erase_entries,
)
from told.testing.fakes import ManualClock

ALICE_AGENT_RUN = Scope(ACCOUNT, user_id="alice", agent_id="clerk", run_id="r1")

ALICE_RUN = Scope(ACCOUNT, user_id="alice", run_id="one")


def add_spoken_turn(
    harness: AccountHarness, text: str, role: str = "user", scope: Scope = ALICE
) -> str:
    """Add a turn with its own evidence; its thread is its text."""
    harness.add_evidence(text, f"said {text}", scope)
    return harness.assert_claim(text, text, scope, evidence=f"said {text}", role=role).id


def list_turn_texts(
    harness: AccountHarness, scope: Scope = ALICE, **options: int | bool
) -> list[str]:
    """Return the texts of a scope's turns."""
    return [turn.fact.text for turn in harness.store.list_turns(scope, **options)]  # type: ignore[arg-type]


class TurnContract(ContractBase):
    """Each message is listed once, as long as it is current."""

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


class TickContract(ContractBase):
    """User turns are counted per partition."""

    def test_user_turns_are_ticks_and_agent_turns_are_not(self, harness: AccountHarness) -> None:
        first = add_turn(harness, "one two three four")
        add_turn(harness, "an answer", role="assistant")
        add_turn(harness, "a document", sort="document")
        second = add_turn(harness, "", sort="tick", meta={"turns": 3, "tokens": 90})
        ats = [entry.at for entry in harness.list_entries() if entry.seq in (first, second)]
        ticks = list(harness.list_ticks(ALICE))
        assert [(tick.seq, tick.scope, tick.turns, tick.at) for tick in ticks] == [
            (first, ALICE, 1, ats[0]),
            (second, ALICE, 3, ats[1]),
        ]
        assert (ticks[0].tokens > 0, ticks[1].tokens) == (True, 90)

    def test_ticks_are_shared_by_all_runs_of_a_home(self, harness: AccountHarness) -> None:
        alice_seq, agent_seq, bob_seq = (
            add_turn(harness, "a"),
            add_turn(harness, "b", ALICE_AGENT_RUN),
            add_turn(harness, "c", BOB),
        )
        for scope in (
            ALICE,
            ALICE_AGENT_RUN,
            Scope(ACCOUNT, user_id="alice", agent_id="nobody yet"),
        ):
            assert [(tick.seq, tick.scope) for tick in harness.list_ticks(scope)] == [
                (alice_seq, ALICE),
                (agent_seq, ALICE_AGENT_RUN),
            ]
        assert [tick.seq for tick in harness.list_ticks(BOB)] == [bob_seq]
        for empty_scope in (
            Scope(ACCOUNT, user_id="nobody"),
            Scope(OTHER_ACCOUNT, user_id="alice"),
            Scope(ACCOUNT, user_id=LONE_SURROGATE),
        ):
            assert list(harness.list_ticks(empty_scope)) == []

    def test_ticks_up_to_a_position_are_the_newest_in_order(self, harness: AccountHarness) -> None:
        seqs = [add_turn(harness, f"turn {number}") for number in range(6)]
        assert [tick.seq for tick in harness.list_ticks(ALICE, limit=2)] == seqs[-2:]
        assert [tick.seq for tick in harness.list_ticks(ALICE, seqs[3], 2)] == seqs[2:4]
        assert [tick.seq for tick in harness.list_ticks(ALICE, seqs[0])] == seqs[:1]
        assert [tick.seq for tick in harness.list_ticks(ALICE, 1 << 50)] == seqs
        assert (
            list(harness.list_ticks(ALICE, 0)),
            list(harness.list_ticks(ALICE, limit=0)),
        ) == ([], [])

    def test_tick_totals_are_summed_up_to_each_position(self, harness: AccountHarness) -> None:
        first = add_turn(harness, "", sort="tick", meta={"turns": 1, "tokens": 10})
        add_turn(harness, "", BOB, sort="tick", meta={"turns": 50, "tokens": 50})
        second = add_turn(harness, "", ALICE_AGENT_RUN, sort="tick", meta={"turns": 4, "tokens": 0})
        last = add_turn(harness, "", sort="tick", meta={"turns": 2, "tokens": 7})
        places = [last, 0, first, second - 1, second, 1 << 50, NEVER, last]
        assert dict(harness.store.tick_totals(ALICE_AGENT_RUN, places).totals) == {
            0: (0, 0),
            first: (1, 10),
            second - 1: (1, 10),
            second: (5, 10),
            last: (7, 17),
            1 << 50: (7, 17),
            NEVER: (7, 17),
        }
        assert dict(harness.store.tick_totals(ALICE, []).totals) == {}
        for empty_scope in (
            Scope(ACCOUNT, user_id="nobody"),
            Scope(OTHER_ACCOUNT, user_id="alice"),
            Scope(ACCOUNT, user_id=LONE_SURROGATE),
        ):
            assert dict(harness.store.tick_totals(empty_scope, [last]).totals) == {last: (0, 0)}
        erase_entries(harness, [first])
        assert dict(harness.store.tick_totals(ALICE, [last]).totals) == {last: (6, 7)}

    def test_erased_turns_are_not_ticks_even_after_a_rebuild(self, harness: AccountHarness) -> None:
        seqs = [
            add_turn(harness, f"turn {number}", scope)
            for number, scope in enumerate((ALICE, ALICE_AGENT_RUN, BOB, ALICE))
        ]
        erase_entries(harness, [seqs[0], seqs[2]])
        rows_before = harness.dump_views()
        assert [tick.seq for tick in harness.list_ticks(ALICE)] == [seqs[1], seqs[3]]
        assert list(harness.list_ticks(BOB)) == []
        assert len(rows_before["ticks"]) == 2
        assert harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))["ticks"] == 2
        assert harness.dump_views() == rows_before
        assert [tick.seq for tick in harness.list_ticks(ALICE)] == [seqs[1], seqs[3]]

    def test_ticks_can_be_rebuilt_alone_and_no_view_is_stale(self, harness: AccountHarness) -> None:
        add_turn(harness, "one")
        before: Sequence[Tick] = list(harness.list_ticks(ALICE))
        assert harness.store.rebuild(ACCOUNT, ["ticks"], harness.folding(["ticks"])) == {"ticks": 1}
        assert list(harness.list_ticks(ALICE)) == before
        assert (
            list(harness.store.list_accounts().get(ACCOUNT, ()))
            == list(harness.store.list_accounts().get(OTHER_ACCOUNT, ()))
            == []
        )

    def test_imported_turns_are_ticks(
        self, harness: AccountHarness, open_harness: Callable[[], AccountHarness]
    ) -> None:
        seqs = [add_turn(harness, "one"), add_turn(harness, "two")]
        other = open_harness()
        other.store.import_entries(ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert list(other.list_ticks(ALICE)) == list(harness.list_ticks(ALICE))
        erase_entries(harness, seqs[:1])
        other.store.import_entries(ACCOUNT, harness.list_entries(), harness.folding(VIEWS))
        assert [tick.seq for tick in other.list_ticks(ALICE)] == seqs[1:]

"""Laws of importing a ledger, resetting an account and rebuilding views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from told.errors import Diverged, StoreCorrupt
from told.ids import hash_text, sha256
from told.model.entry import (
    GENESIS,
    Draft,
    Entry,
    Ruled,
    compute_chain_hash,
    seal_entry,
)
from told.model.scope import Scope
from told.ports import VIEWS, View
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    AccountHarness,
    ContractBase,
    assert_chained,
    erase_entries,
    make_idempotency_record,
)
from told.testing.fakes import ManualClock

RESET_DRAFT = Draft(Ruled("ledger", "reset", {}), None, author="told")


def import_entries(harness: AccountHarness, entries: Sequence[Entry]) -> int:
    """Import entries into the harness's account."""
    return harness.store.import_entries(harness.account, entries, harness.folding(VIEWS))


def write_random_history(harness: AccountHarness, seed: int, steps: int = 40) -> None:
    """Write random but repeatable claims, retractions, evidence, links and erasures."""
    random = Random(seed)  # noqa: S311
    for step in range(steps):
        thread, scope = f"t{random.randrange(6)}", random.choice([ALICE, BOB])
        match random.randrange(8):
            case 0:
                harness.add_evidence(f"said {step}", f"e{step}", scope)
            case 1:
                harness.retract_thread(thread)
            case 2:
                harness.add_link(f"e{random.randrange(steps)}", "supports", thread)
            case 3 if harness.head_seq:
                erase_entries(
                    harness, sorted({random.randint(1, harness.head_seq) for _ in range(2)})
                )
            case _:
                harness.assert_claim(
                    f"claim {step}",
                    thread,
                    scope,
                    evidence=random.choice([None, f"e{random.randrange(steps)}"]),
                )


class ImportContract(ContractBase):
    """An imported ledger equals its source, and a view equals its fold."""

    # Importing

    def test_an_imported_ledger_equals_its_source(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.add_evidence("said", "e1")
        source.assert_claim("claimed", "t1", evidence="e1", meta={"n": 1})
        source.assert_claim("claimed anew", "t1")
        assert import_entries(target, source.list_entries()) == 3
        assert list(target.list_entries()) == list(source.list_entries())
        assert target.store.get_head(ACCOUNT) == source.store.get_head(ACCOUNT)
        assert target.dump_views() == source.dump_views()
        assert target.search_texts("claimed") == source.search_texts("claimed")

    def test_importing_skips_existing_entries(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("one")
        import_entries(target, source.list_entries())
        source.assert_claim("two")
        assert import_entries(target, source.list_entries()) == 1
        assert import_entries(target, source.list_entries()) == 0
        assert target.list_texts() == ["one", "two"]

    def test_an_imported_ledger_can_be_extended(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("one", "t1")
        import_entries(target, source.list_entries())
        target.assert_claim("two", "t1")
        assert_chained(target.list_entries())
        assert import_entries(source, target.list_entries()) == 1
        assert source.list_texts() == ["two"]

    def test_a_ledger_can_be_imported_under_another_account_name(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source = open_harness()
        source.assert_claim("ours")
        target = self.use_account(open_harness(), "umbrella")
        import_entries(target, source.list_entries())
        assert target.list_texts(Scope("umbrella", user_id="alice")) == ["ours"]
        assert list(target.store.list_accounts()) == ["umbrella"]
        assert target.list_texts(ALICE) == []

    def test_importing_a_diverged_ledger_is_refused(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("one")
        source.assert_claim("two")
        target.assert_claim("another one")
        before = target.dump_views(), list(target.list_entries())
        with pytest.raises(Diverged):
            import_entries(target, source.list_entries())
        assert (target.dump_views(), list(target.list_entries())) == before

    @pytest.mark.parametrize(
        "damage",
        [
            lambda entries: [
                entries[0],
                replace(entries[1], envelope=entries[0].envelope),
                entries[2],
            ],
            lambda entries: [entries[0], replace(entries[1], salt=bytes(16)), entries[2]],
            lambda entries: [entries[0], replace(entries[1], digest=sha256(b"x")), entries[2]],
            lambda entries: [entries[0], replace(entries[1], at=entries[1].at + 1), entries[2]],
            lambda entries: [entries[0], replace(entries[1], sort="retracted"), entries[2]],
            lambda entries: [entries[0], replace(entries[2], seq=2)],
        ],
        ids=["envelope", "salt", "digest", "instant", "sort", "missing"],
    )
    def test_importing_a_damaged_entry_is_refused(
        self,
        open_harness: Callable[[], AccountHarness],
        damage: Callable[[Sequence[Entry]], Sequence[Entry]],
    ) -> None:
        source, target = open_harness(), open_harness()
        for number in range(3):
            source.assert_claim(f"fact {number}")
        with pytest.raises(StoreCorrupt, match=r"\b2\b"):
            import_entries(target, damage(source.list_entries()))
        assert target.head_seq == 0
        assert target.list_texts() == []

    def test_importing_a_gap_is_refused(self, open_harness: Callable[[], AccountHarness]) -> None:
        source, target = open_harness(), open_harness()
        for number in range(3):
            source.assert_claim(f"fact {number}")
        import_entries(target, source.list_entries()[:1])
        with pytest.raises(StoreCorrupt, match=r"\b3\b"):
            import_entries(target, source.list_entries()[2:])
        head = target.store.get_head(ACCOUNT)
        forged = seal_entry(
            RESET_DRAFT, prev=head.hash, seq=5, tx=5, at=head.at + 1, salt=bytes(16)
        )
        with pytest.raises(StoreCorrupt, match=r"\b5\b"):
            import_entries(target, [forged])
        assert target.head_seq == 1

    def test_importing_an_old_copy_restores_nothing_erased(self, harness: AccountHarness) -> None:
        harness.assert_claim("kept", "t1")
        harness.assert_claim("secret", "t2")
        copy = list(harness.list_entries())
        erase_entries(harness, [2])
        assert import_entries(harness, copy) == 0
        assert harness.list_texts() == ["kept"]
        assert harness.list_entries()[1].envelope is None

    def test_importing_into_another_account_restores_nothing_erased(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("kept", "t1")
        harness.assert_claim("secret", "t2")
        copy = list(harness.list_entries())
        erase_entries(harness, [2])
        other = self.use_account(harness, "umbrella")
        assert import_entries(other, copy) == 2
        other_scope = Scope("umbrella", user_id="alice")
        assert other.list_texts(other_scope) == ["kept"]
        assert other.search_texts("secret", other_scope) == {}
        assert other.list_entries()[1].envelope is None
        assert_chained(other.list_entries())

    def test_an_erased_entry_is_imported_without_content(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        erased = source.list_entries()[1]
        erase_entries(source, [2])
        assert import_entries(target, source.list_entries()) == 3
        assert list(target.list_entries()) == list(source.list_entries())
        assert target.dump_views() == source.dump_views()
        assert target.store.tombstoned_digests([erased.digest]) == {erased.digest}

    def test_an_imported_tombstone_erases_content(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        copy = list(source.list_entries())
        import_entries(target, copy)
        target.store.bind_model("m", 2)
        target.store.put_vectors({hash_text("secret"): [1.0, 0.0]})
        erase_entries(source, [2])
        assert import_entries(target, [*copy, *source.list_entries()[2:]]) == 1
        assert not target.embedded_hashes([hash_text("secret")])
        assert target.list_texts() == ["kept"]
        assert target.search_texts("secret") == {}
        assert list(target.list_entries()) == list(source.list_entries())

    def test_missing_content_without_a_tombstone_is_not_erased(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        entries = source.list_entries()
        cut = replace(entries[1], salt=None, envelope=None, draft=None)
        assert import_entries(target, [entries[0], cut]) == 2
        assert not target.store.tombstoned_digests([cut.digest])

    def test_a_later_tombstone_explains_an_empty_entry(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("kept", "t1")
        source.assert_claim("secret", "t2")
        erase_entries(source, [2])
        pages = source.list_entries()
        import_entries(target, pages[:2])
        assert not target.store.tombstoned_digests([pages[1].digest])
        import_entries(target, pages[2:])
        assert target.store.tombstoned_digests([pages[1].digest]) == {pages[1].digest}
        assert target.dump_views() == source.dump_views()

    def test_an_entry_with_a_mismatched_thread_is_refused(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("claimed", "t1")
        entry = source.list_entries()[0]
        forged_hash = compute_chain_hash(
            GENESIS,
            seq=entry.seq,
            tx=entry.tx,
            at=entry.at,
            sort=entry.sort,
            thread="t2",
            digest=entry.digest,
        )
        with pytest.raises(StoreCorrupt, match=r"\b1\b"):
            import_entries(target, [replace(entry, thread="t2", hash=forged_hash)])
        assert target.head_seq == 0

    # Resetting

    def test_a_reset_account_starts_a_new_chain(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.commit(idempotency=make_idempotency_record("key"))
        harness.add_evidence("said", "e1")
        harness.assert_claim("forgotten", "t1", evidence="e1")
        harness.store.put_vectors({hash_text("forgotten"): [1.0, 0.0]})
        harness.store.update_consumer(ACCOUNT, "graph", cursor=2)
        harness.store.record_fault(ACCOUNT, "graph", 2, "lost")
        entry = harness.store.reset(ACCOUNT, RESET_DRAFT)
        assert list(harness.list_entries()) == [entry]
        assert (entry.seq, entry.tx, entry.draft) == (1, 1, RESET_DRAFT)
        assert_chained(harness.list_entries())
        assert not any(harness.dump_views().values())
        assert harness.search_texts("forgotten") == {}
        assert harness.store.lookup_existing(ALICE, [], [], "key").idempotency is None
        assert not harness.embedded_hashes([hash_text("forgotten")])
        assert harness.store.get_cursor(ACCOUNT, "graph") == 0
        assert list(harness.store.list_faults(ACCOUNT)) == []
        harness.assert_claim("new")
        assert harness.list_texts() == ["new"]

    def test_a_reset_account_uses_the_clock_again(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        now = clock.now
        clock.tick(10**12)
        harness.assert_claim("by a clock that was ahead", "t1")
        clock.now = now
        assert harness.store.reset(ACCOUNT, RESET_DRAFT).at == now

    def test_a_reset_affects_no_other_account(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        other_scope = Scope("umbrella", user_id="alice")
        other = self.use_account(harness, "umbrella")
        other.assert_claim("tea", "t1", other_scope)
        harness.assert_claim("tea", "t1")
        harness.store.put_vectors({hash_text("tea"): [1.0, 0.0]})
        harness.store.reset(ACCOUNT, RESET_DRAFT)
        assert other.list_texts(other_scope) == ["tea"]
        assert other.search_texts(scope=other_scope, vector=[1.0, 0.0])["tea"].cosine == 1.0

    def test_importing_an_old_copy_after_a_reset_restores_nothing(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("secret", "t1")
        copy = list(harness.list_entries())
        harness.store.reset(ACCOUNT, RESET_DRAFT)
        with pytest.raises(Diverged):
            import_entries(harness, copy)
        other = self.use_account(harness, "umbrella")
        import_entries(other, copy)
        other_scope = Scope("umbrella", user_id="alice")
        assert other.list_texts(other_scope) == []
        assert other.search_texts("secret", other_scope) == {}
        assert other.list_entries()[0].envelope is None
        assert_chained(other.list_entries())

    # Rebuilding

    @pytest.mark.parametrize("seed", range(4))
    def test_a_rebuild_changes_no_view(self, harness: AccountHarness, seed: int) -> None:
        write_random_history(harness, seed)
        rows_before, hits_before = harness.dump_views(), harness.search_texts("claim")
        counts = harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert harness.dump_views() == rows_before
        assert harness.search_texts("claim") == hits_before
        stats = harness.store.get_stats(ACCOUNT)
        kept = {name: counts[name] for name in ("evidence", "links")}
        assert kept == {name: stats[name] for name in kept}
        assert counts["facts"] == counts["passages"] == stats["versions"] > 0

    @pytest.mark.parametrize("view", VIEWS)
    def test_each_view_can_be_rebuilt_alone(self, harness: AccountHarness, view: View) -> None:
        write_random_history(harness, 7)
        rows_before = harness.dump_views()
        assert list(harness.store.rebuild(ACCOUNT, [view], harness.folding([view]))) == [view]
        assert harness.dump_views() == rows_before

    @pytest.mark.parametrize("seed", range(2))
    def test_imported_views_equal_their_source(
        self, open_harness: Callable[[], AccountHarness], seed: int
    ) -> None:
        source, target = open_harness(), open_harness()
        for step in range(12):
            source.assert_claim(f"claim {step}", f"t{(step + seed) % 4}", [ALICE, BOB][step % 2])
        source.retract_thread("t1")
        import_entries(target, source.list_entries())
        assert target.dump_views() == source.dump_views()

    def test_metadata_rows_ignore_key_order(
        self, open_harness: Callable[[], AccountHarness]
    ) -> None:
        source, target = open_harness(), open_harness()
        source.assert_claim("tea", "t1", meta={"z": 1, "a": {"y": "\u00fc", "b": [1.0, None]}})
        import_entries(target, source.list_entries())
        rows_before = source.dump_views()
        assert target.dump_views() == rows_before
        source.store.rebuild(ACCOUNT, VIEWS, source.folding(VIEWS))
        assert source.dump_views() == rows_before

    def test_a_rebuild_keeps_vectors(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.assert_claim("tea")
        harness.store.put_vectors({hash_text("tea"): [1.0, 0.0]})
        harness.store.rebuild(ACCOUNT, VIEWS, harness.folding(VIEWS))
        assert harness.search_texts(vector=[1.0, 0.0])["tea"].cosine == 1.0
        assert dict(harness.store.pending_texts()) == {}

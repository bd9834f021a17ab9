"""Laws of writing: all or nothing, guards, tickets, and many writers at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any, TypeVar

import pytest

from told.core.entry import Asserted, Claim, Draft, Entry, Erased, Evidence, Observed, Retracted
from told.core.errors import Conflict, InvalidInput, ScopeError
from told.core.ids import text_hash
from told.core.scope import Scope
from told.core.text import md5
from told.ports import VIEWS, Batch, Guard, Intact, NoEvidence, NoFact, RowOp, ThreadAt
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe, assert_chained, ticket

T = TypeVar("T")
WRITERS = 8
ALICE_AT_WORK = Scope(ACCOUNT, user_id="alice", agent_id="work")

HALF = "half \ud800"
UNWRITABLE: dict[str, Callable[[Scribe], Any]] = {
    "a claim": lambda book: book.tell(HALF),
    "a thread": lambda book: book.tell("tea", HALF),
    "metadata": lambda book: book.tell("tea", meta={"deep": [HALF]}),
    "a scope": lambda book: book.tell("tea", scope=Scope(ACCOUNT, user_id=HALF)),
    "a ticket": lambda book: book.write(ticket=ticket(HALF)),
    "an account": lambda book: book.store.reset(HALF, Draft(Retracted("t"), None)),
    "a consumer": lambda book: book.store.advance(ACCOUNT, HALF, 1),
    "a fault": lambda book: book.store.fault(ACCOUNT, "graph", 1, HALF),
    "a model": lambda book: book.store.put_vectors({b"x": [1.0, 0.0]}, HALF),
}

BROKEN: dict[str, Guard] = {
    "an older version": ThreadAt("t1", 1),
    "no version where there is one": ThreadAt("t1", None),
    "a retracted version": ThreadAt("gone", 2),
    "a version of nothing": ThreadAt("nobody", 7),
    "a text that is held": NoFact(ALICE, (md5("second"),)),
    "one of the texts that is held": NoFact(ALICE, (md5("first"), md5("second"))),
    "evidence that is there": NoEvidence(ALICE, (Evidence("said").digest(),)),
    "some evidence that is there": NoEvidence(ALICE, (Evidence("below").digest(), Evidence("said").digest())),
    "an entry that was erased": Intact(8),
    "an entry that is to come": Intact(99),
}
HELD: dict[str, Guard] = {
    "the latest version": ThreadAt("t1", 3),
    "no version after a retraction": ThreadAt("gone", None),
    "no version of nothing": ThreadAt("nobody", None),
    "no text": NoFact(ALICE, ()),
    "no evidence": NoEvidence(ALICE, ()),
    "a text of a closed version": NoFact(ALICE, (md5("first"),)),
    "a text that was given up": NoFact(ALICE, (md5("given up"),)),
    "a text another holds": NoFact(BOB, (md5("second"),)),
    "a text held one scope above": NoFact(ALICE_AT_WORK, (md5("second"),)),
    "a text held one scope below": NoFact(ALICE, (md5("below"),)),
    "a text in other letters": NoFact(ALICE, (md5("SECOND"),)),
    "evidence of another": NoEvidence(BOB, (Evidence("said").digest(),)),
    "evidence one scope below": NoEvidence(ALICE, (Evidence("below").digest(),)),
    "an entry with its content": Intact(5),
    "evidence in another role": NoEvidence(ALICE, (Evidence("said", "assistant").digest(),)),
}


class WritingLaws(Laws):
    """Two writers never both win what only one may have, and a loser leaves no trace."""

    def test_a_fold_that_fails_leaves_nothing_behind(self, book: Scribe) -> None:
        book.tell("here before", "t1")
        book.store.use_model("m", 2)
        before = book.rows(), list(book.entries())

        def broken(entries: Sequence[Entry]) -> Sequence[RowOp]:
            raise ZeroDivisionError(len(entries))

        draft = Draft(Asserted("t1", Claim("never")), ALICE)
        vectors = {text_hash("never"): [1.0, 0.0]}
        with pytest.raises(ZeroDivisionError):
            book.store.commit(Batch(ACCOUNT, [draft], ticket=ticket("key"), vectors=vectors), broken)
        assert (book.rows(), list(book.entries())) == before
        assert book.store.known(ALICE, [], [], "key").ticket is None
        assert not book.store.cached([text_hash("never")])

    def test_a_draft_of_another_account_is_refused(self, book: Scribe) -> None:
        foreign = Scope("umbrella", user_id="alice")
        with pytest.raises(ScopeError):
            book.write(Asserted("t1", Claim("ours")), Asserted("t2", Claim("theirs")), scope=foreign)
        assert book.seq == 0

    @pytest.mark.parametrize("guard", BROKEN.values(), ids=BROKEN.keys())
    def test_a_broken_guard_refuses_the_whole_batch(self, book: Scribe, guard: Guard) -> None:
        self._history(book)
        before = book.rows(), list(book.entries())
        with pytest.raises(Conflict):
            book.write(Asserted("new", Claim("new")), guards=[ThreadAt("nobody", None), guard], seen=2)
        assert (book.rows(), list(book.entries())) == before

    @pytest.mark.parametrize("guard", HELD.values(), ids=HELD.keys())
    def test_a_guard_that_holds_lets_the_batch_through(self, book: Scribe, guard: Guard) -> None:
        self._history(book)
        book.write(Asserted("new", Claim("new")), guards=[guard], seen=2)
        assert "new" in book.texts()

    def _history(self, book: Scribe) -> None:
        """A thread of two versions, one retracted, and evidence; some of each one scope below; and an erased entry."""
        book.tell("first", "t1")
        book.tell("given up", "gone")
        book.tell("second", "t1")
        book.retract("gone")
        book.observe("said", "e1")
        book.tell("below", "t2", ALICE_AT_WORK)
        book.observe("below", "e2", ALICE_AT_WORK)
        book.observe("erased", "e3")
        book.store.erase(ACCOUNT, [8], Draft(Erased((8,)), None))

    def test_a_ticket_is_known_once_its_batch_is_in(self, book: Scribe) -> None:
        book.tell("before")
        book.write(Asserted("t1", Claim("once")), Asserted("t2", Claim("and more")), ticket=ticket("key", "t1", "t2"))
        book.tell("after")
        kept = replace(ticket("key", "t1", "t2"), seq=3)
        assert book.store.known(ALICE, [], [], "key").ticket == kept
        assert book.store.known(BOB, [], [], "key").ticket == kept
        assert book.store.known(ALICE, [], [], "other").ticket is None
        assert book.store.known(ALICE, [], [], None).ticket is None

    def test_a_ticket_is_taken_once_even_by_who_read_at_the_head(self, book: Scribe) -> None:
        book.write(Asserted("t1", Claim("once")), ticket=ticket("key"))
        with pytest.raises(Conflict):
            book.write(Asserted("t2", Claim("twice")), ticket=ticket("key"), seen=1)
        assert book.texts() == ["once"]

    def test_tickets_of_one_account_mean_nothing_in_another(self, book: Scribe) -> None:
        other = self.elsewhere(book, "umbrella")
        theirs = Scope("umbrella", user_id="alice")
        book.write(Asserted("t1", Claim("ours")), ticket=ticket("key", digest=b"a"))
        other.write(Asserted("t1", Claim("theirs")), scope=theirs, ticket=ticket("key", digest=b"b"))
        found = book.store.known(ALICE, [], [], "key").ticket, book.store.known(theirs, [], [], "key").ticket
        assert [each.digest for each in found if each] == [b"a", b"b"]

    def test_a_request_that_wrote_nothing_is_remembered_too(self, book: Scribe) -> None:
        assert list(book.write(ticket=ticket("key"))) == []
        assert book.seq == 0
        assert book.store.known(ALICE, [], [], "key").ticket == ticket("key")

    def test_known_is_what_exactly_the_scope_holds(self, book: Scribe) -> None:
        self._history(book)
        digest, below = Evidence("said").digest(), Evidence("below").digest()
        texts = [md5(text) for text in ("second", "first", "given up", "below")]
        known = book.store.known(ALICE, texts, [digest, below, b"?"], None)
        assert known.seen == book.seq
        assert {key: fact.id for key, fact in known.facts.items()} == {md5("second"): "t1"}
        assert dict(known.evidence) == {digest: "e1"}
        for scope in (BOB, ALICE_AT_WORK, Scope("umbrella", user_id="alice")):
            known = book.store.known(scope, [md5("second")], [digest], None)
            assert (dict(known.facts), dict(known.evidence)) == ({}, {})

    def test_of_facts_with_one_text_the_newest_is_known(self, book: Scribe) -> None:
        for thread in ("t3", "t1", "t2"):
            book.tell("tea", thread)
        for texts in ([md5("tea")], [md5("tea"), md5("coffee")]):
            assert book.store.known(ALICE, texts, [b"x"], None).facts[md5("tea")].id == "t2"

    @pytest.mark.parametrize("name", UNWRITABLE)
    def test_what_is_not_even_text_cannot_be_written(self, book: Scribe, name: str) -> None:
        book.store.use_model("m", 2)
        with pytest.raises(InvalidInput):
            UNWRITABLE[name](book)
        assert book.seq == 0

    def test_eight_writers_lose_no_write(self, book: Scribe) -> None:
        def write(writer: int) -> None:
            for number in range(5):
                thread = f"{writer}/{number}"
                book.write(Asserted(thread, Claim(thread)), Asserted("shared", Claim(thread)))

        self._at_once(write)
        assert_chained(book.entries())
        assert book.seq == 2 * 5 * WRITERS
        assert all(entry.tx == entry.seq - (entry.seq + 1) % 2 for entry in book.entries())
        wanted = {f"{writer}/{number}" for writer in range(WRITERS) for number in range(5)}
        assert {text for text in book.texts() if text in wanted} == wanted
        [latest] = [fact for fact in book.store.facts(book.find()) if fact.id == "shared"]
        assert latest.seq == book.seq
        grown = book.rows()
        book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert book.rows() == grown

    def test_of_eight_writers_of_one_text_one_wins(self, book: Scribe) -> None:
        seen = book.tell("somebody else was here").seq

        def write(writer: int) -> bool:
            try:
                book.write(Asserted(f"t{writer}", Claim("same")), guards=[NoFact(ALICE, (md5("same"),))], seen=seen)
            except Conflict:
                return False
            return True

        assert sorted(self._at_once(write)) == [False] * (WRITERS - 1) + [True]
        assert book.texts().count("same") == 1

    def test_of_eight_updates_of_one_version_one_wins(self, book: Scribe) -> None:
        seen = book.tell("before", "t1").seq

        def write(writer: int) -> bool:
            try:
                book.write(Asserted("t1", Claim(f"by {writer}")), guards=[ThreadAt("t1", seen)], seen=seen)
            except Conflict:
                return False
            return True

        assert sum(self._at_once(write)) == 1
        assert len(book.store.thread(ACCOUNT, "t1")) == 2

    def test_readers_never_see_half_a_batch(self, book: Scribe) -> None:
        def work(worker: int) -> list[int]:
            if worker:
                return [len(book.texts()) for _ in range(20)]
            for number in range(10):
                book.write(Asserted(f"a{number}", Claim("a")), Asserted(f"b{number}", Claim("b")))
            return []

        assert all(count % 2 == 0 for counts in self._at_once(work) for count in counts)

    def _at_once(self, work: Callable[[int], T]) -> list[T]:
        """What eight threads make of a task they begin together."""
        start = Barrier(WRITERS)

        def begin(worker: int) -> T:
            start.wait()
            return work(worker)

        patience = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # let them get into each other's way
        try:
            with ThreadPoolExecutor(WRITERS) as pool:
                return list(pool.map(begin, range(WRITERS)))
        finally:
            sys.setswitchinterval(patience)

    def test_what_was_retracted_can_be_said_again(self, book: Scribe) -> None:
        book.write(Asserted("t1", Claim("tea")), Observed("e1", Evidence("I like tea")))
        book.write(Retracted("t1"))
        book.write(Asserted("t1", Claim("tea after all")), guards=[ThreadAt("t1", None)])
        assert book.texts() == ["tea after all"]
        assert book.texts(seq=2) == ["tea"]
        assert book.texts(seq=3) == []

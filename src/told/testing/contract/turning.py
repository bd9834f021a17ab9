"""Laws of a conversation as it was said: whose there are, which memories are turns, and their order page by page."""

from __future__ import annotations

from told.core.entry import Retracted
from told.core.scope import Scope
from told.ports import Tally
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe
from told.testing.fakes import ManualClock

ALICE_ONCE = Scope(ACCOUNT, user_id="alice", run_id="one")


def say(book: Scribe, text: str, role: str = "user", scope: Scope = ALICE) -> str:
    """A turn with evidence of its own; its thread is its text."""
    book.observe(text, f"said {text}", scope)
    return book.tell(text, text, scope, evidence=f"said {text}", role=role).id


def turns(book: Scribe, scope: Scope = ALICE, **more: int | bool) -> list[str]:
    """The texts of a scope's turns."""
    return [turn.fact.text for turn in book.store.turns(scope, **more)]  # type: ignore[arg-type]


class TurnLaws(Laws):
    """A turn is what somebody said, once, for as long as it is held."""

    def test_turns_come_in_the_order_of_the_ledger(self, book: Scribe) -> None:
        for text, role in (("one", "user"), ("two", "assistant"), ("three", "user")):
            say(book, text, role)
        assert turns(book) == ["one", "two", "three"]

    def test_only_what_users_and_assistants_said_is_a_turn(self, book: Scribe) -> None:
        for role in ("tool", "document", "system"):
            say(book, f"by a {role}", role)
        book.tell("nobody said it", "a")
        book.tell("without evidence", "b", role="user")
        assert turns(book) == []

    def test_of_all_that_was_taken_from_the_same_words_the_first_thread_is_the_turn(self, book: Scribe) -> None:
        say(book, "I live in Rome")
        book.tell("User lives in Rome", "claim", evidence="said I live in Rome", role="user", predicate="lives_in")
        assert turns(book) == ["I live in Rome"]
        book.retract("I live in Rome")
        assert turns(book) == []
        book.tell("I live in Rome", "I live in Rome", evidence="said I live in Rome", role="user")
        assert turns(book) == ["I live in Rome"]

    def test_what_is_in_doubt_or_only_spoken_of_is_no_turn(self, book: Scribe) -> None:
        for kind in ("node", "quarantine"):
            book.tell(kind, kind, evidence=f"said {kind}", role="user", kind=kind)
        assert turns(book) == []

    def test_a_page_lies_between_two_positions(self, book: Scribe) -> None:
        for number in range(5):
            say(book, str(number))
        book.tell("1", "1", evidence="said 1", role="user", meta={"looked": "at again"})
        places = [turn.place for turn in book.store.turns(ALICE)]
        assert turns(book, after=places[1]) == ["2", "3", "4"]
        assert turns(book, before=places[3]) == ["0", "1", "2"]
        assert turns(book, after=places[0], limit=2) == ["1", "2"]
        assert turns(book, limit=2, newest=True) == ["3", "4"]
        assert turns(book, before=places[3], limit=2, newest=True) == ["1", "2"]

    def test_only_exactly_this_scope_is_looked_at(self, book: Scribe) -> None:
        say(book, "at home")
        say(book, "once", scope=ALICE_ONCE)
        assert (turns(book), turns(book, ALICE_ONCE), turns(book, BOB)) == (["at home"], ["once"], [])
        assert turns(book, Scope("umbrella", user_id="alice")) == []

    def test_a_new_version_stands_where_it_was_said(self, book: Scribe) -> None:
        for text in ("one", "two", "three"):
            say(book, text)
        places = [turn.place for turn in book.store.turns(ALICE)]
        book.tell("one, again", "one", evidence="said one", role="user")
        book.tell("two, corrected", "two", role="user")
        assert turns(book) == ["one, again", "two, corrected", "three"]
        found = book.store.turns(ALICE)
        assert [turn.place for turn in found] == places
        assert all(turn.fact.seq > turn.place for turn in found[:2])

    def test_what_is_said_anew_or_held_again_stands_where_that_happened(self, book: Scribe) -> None:
        for text in ("one", "two", "three"):
            say(book, text)
        book.observe("one, anew", "said anew")
        book.tell("one, anew", "one", evidence="said anew", role="user")
        assert turns(book) == ["two", "three", "one, anew"]
        book.retract("two")
        book.tell("two", "two", evidence="said two", role="user")
        book.tell("two, corrected", "two", role="user")
        assert turns(book) == ["three", "one, anew", "two, corrected"]
        book.tell("one", "one", evidence="said one", role="user")
        assert turns(book) == ["three", "two, corrected", "one"]

    def test_every_scope_with_something_in_it_is_listed_once(self, book: Scribe) -> None:
        assert list(book.store.scopes(ACCOUNT)) == []
        say(book, "at home")
        say(book, "at home again")
        say(book, "once", scope=ALICE_ONCE)
        book.observe("only evidence", "e", BOB)
        assert set(book.store.scopes(ACCOUNT)) == {ALICE, ALICE_ONCE, BOB}
        assert len(book.store.scopes(ACCOUNT)) == 3
        assert list(book.store.scopes("umbrella")) == []

    def test_a_scope_is_tallied_by_what_is_listed_and_by_when_it_was_first_and_last_written(
        self, book: Scribe, clock: ManualClock
    ) -> None:
        begun = book.observe("I live in Rome", "e").at
        clock.tick()
        book.tell("I live in Rome", "turn", evidence="e", role="user", kind="turn")
        book.tell("User lives in Rome", "home")
        book.tell("User lives in Bari", "home")
        book.tell("User likes tea", "tea", expires=begun)
        ended = book.link("tea", "relates_to", "home").at
        other = book.tell("gone", "gone", BOB).updated_at
        book.write(Retracted("gone"), scope=BOB)
        assert list(book.store.tallies(ACCOUNT)) == [Tally(ALICE, 2, begun, ended), Tally(BOB, 0, other, other)]
        assert [tally.scope for tally in book.store.tallies(ACCOUNT)] == list(book.store.scopes(ACCOUNT))
        assert list(book.store.tallies("umbrella")) == []

"""Laws of what a curator looks up: what a scope holds of a subject or of a kind, and that nobody added to it since."""

from __future__ import annotations

import pytest

from told.core.entry import Asserted, Claim
from told.core.errors import Conflict
from told.core.scope import Scope
from told.ports import VIEWS, Guard, NoMore, NoNews, Still
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe

ALICE_AT_WORK = Scope(ACCOUNT, user_id="alice", agent_id="work")
HOME = ("User", "lives_in")

BROKEN: dict[str, Guard] = {
    "a new fact": NoNews(ALICE, "User", ("lives_in",), 2),
    "a new version": NoNews(ALICE, "User", ("likes",), 2),
    "a fact of another predicate of the slot": NoNews(ALICE, "User", ("works_at", "lives_in"), 2),
    "another fact of a kind": NoMore(ALICE, "place", 2),
    "a version since then": Still("tea", 3),
    "a retraction since then": Still("bike", 4),
    "a link since then": Still("bob", 6),
}
KEPT: dict[str, Guard] = {
    "what was there already": NoNews(ALICE, "User", ("lives_in",), 3),
    "another subject": NoNews(ALICE, "Bob", ("lives_in",), 0),
    "another predicate": NoNews(ALICE, "User", ("works_at",), 0),
    "no predicate": NoNews(ALICE, "User", (), 0),
    "another scope": NoNews(BOB, "User", ("lives_in",), 0),
    "one scope below": NoNews(ALICE_AT_WORK, "User", ("lives_in",), 0),
    "what was given up": NoNews(ALICE, "User", ("owns",), 0),
    "a kind since its last fact": NoMore(ALICE, "place", 3),
    "a kind of which all was given up": NoMore(ALICE, "thing", 0),
    "a kind of another scope": NoMore(BOB, "place", 0),
    "the kind that says nothing": NoMore(ALICE, "memory", 0),
    "a thread since its last version": Still("tea", 4),
    "a thread since its last link": Still("bob", 7),
    "what a link comes from": Still("home", 3),
    "a thread that never was": Still("nothing", 0),
}


class HoldingLaws(Laws):
    """A scope holds what was said last of a subject, until it is given up, replaced or expired."""

    def test_what_is_held_of_a_subject_is_found_by_its_predicates(self, book: Scribe) -> None:
        book.tell("User lives in Rome", "home", subject="User", predicate="lives_in", object="Rome")
        book.tell("User likes tea", "tea", subject="User", predicate="likes", object="tea")
        book.tell("User likes jazz", "jazz", subject="User", predicate="likes", object="jazz")
        book.tell("Bob lives in Oslo", "bob", subject="Bob", predicate="lives_in", object="Oslo")
        book.tell("likes tea", "plain")
        assert self._of(book, HOME) == ["home"]
        assert self._of(book, HOME, ("User", "likes"), HOME, ("User", "owns")) == ["home", "tea", "jazz"]
        assert self._of(book) == self._of(book, ("user", "lives_in")) == self._of(book, ("User", "")) == []

    def test_the_whole_fact_is_found(self, book: Scribe) -> None:
        told = book.tell(
            "User lives in Rome", "home", subject="User", predicate="lives_in", object="Rome", kind="profile",
            polarity="negated", modality="hedged", confidence=0.25, expires=10**18, meta={"a": [1, {"b": None}]},
        )  # fmt: skip
        assert list(book.store.held(ALICE, 0, about=[HOME])) == [told]
        assert list(book.store.held(ALICE, 0, kinds=["profile"])) == [told]

    def test_what_was_replaced_given_up_or_expired_is_not_held(self, book: Scribe) -> None:
        for text, thread in (("Rome", "a"), ("Oslo", "a"), ("Lima", "b")):
            book.tell(text, thread, subject="User", predicate="lives_in")
        book.tell("Kyiv", "c", subject="User", predicate="lives_in", expires=50)
        book.tell("Bonn, it was", "d", subject="User", predicate="lives_in")
        book.tell("Bonn", "d", subject="User", predicate="visited")
        book.retract("b")
        facts = book.store.held(ALICE, 49, about=[HOME])
        assert [fact.text for fact in facts] == ["Oslo", "Kyiv"]
        assert self._of(book, HOME, now=50) == ["a"]

    def test_only_exactly_this_scope_is_looked_at(self, book: Scribe) -> None:
        for scope, thread in ((ALICE, "a"), (ALICE_AT_WORK, "w"), (BOB, "b")):
            book.tell("Rome", thread, scope, subject="User", predicate="lives_in", kind="profile")
        elsewhere = Scope("umbrella", user_id="alice")
        for scope, threads in ((ALICE, ["a"]), (ALICE_AT_WORK, ["w"]), (BOB, ["b"]), (elsewhere, [])):
            assert [fact.id for fact in book.store.held(scope, 0, about=[HOME])] == threads
            assert [fact.id for fact in book.store.held(scope, 0, kinds=["profile"])] == threads

    def test_what_is_held_of_a_kind_is_found_in_ledger_order(self, book: Scribe) -> None:
        book.tell("Acme", "node", kind="node")
        book.tell("tea", "taste", kind="preference", subject="User", predicate="likes")
        book.tell("Acme Corp", "node", kind="node")
        book.tell("plain", "plain")
        kinds = ["preference", "node", "memory", "nothing"]
        assert [fact.id for fact in book.store.held(ALICE, 0, kinds=kinds)] == ["taste", "node"]
        assert [fact.id for fact in book.store.held(ALICE, 0, kinds=["memory"])] == []
        both = book.store.held(ALICE, 0, about=[("User", "likes")], kinds=["preference", "node"])
        assert [fact.id for fact in both] == ["taste", "node"]

    def test_a_rebuilt_view_holds_the_same(self, book: Scribe) -> None:
        book.tell("Rome", "a", subject="User", predicate="lives_in", kind="profile")
        book.tell("Oslo", "a", subject="User", predicate="lives_in", kind="profile")
        before = list(book.store.held(ALICE, 0, about=[HOME], kinds=["profile"]))
        book.store.rebuild(ACCOUNT, VIEWS, book.folding(VIEWS))
        assert list(book.store.held(ALICE, 0, about=[HOME], kinds=["profile"])) == before

    @pytest.mark.parametrize("guard", BROKEN.values(), ids=BROKEN.keys())
    def test_what_came_since_refuses_the_batch(self, book: Scribe, guard: Guard) -> None:
        self._claims(book)
        with pytest.raises(Conflict):
            book.write(Asserted("new", Claim("new")), guards=[guard], seen=2)
        assert book.seq == 7

    @pytest.mark.parametrize("guard", KEPT.values(), ids=KEPT.keys())
    def test_what_did_not_change_lets_the_batch_through(self, book: Scribe, guard: Guard) -> None:
        self._claims(book)
        book.write(Asserted("new", Claim("new")), guards=[guard], seen=2)
        assert book.seq == 8

    def _claims(self, book: Scribe) -> None:
        book.tell("User likes tea", "tea", subject="User", predicate="likes")
        book.tell("User owns a bike", "bike", subject="User", predicate="owns", kind="thing")
        book.tell("User lives in Rome", "home", subject="User", predicate="lives_in", kind="place")
        book.tell("User likes green tea", "tea", subject="User", predicate="likes")
        book.retract("bike")
        book.tell("Bob lives in Oslo", "bob", BOB, subject="Bob", predicate="lives_in")
        book.link("home", "near", "bob")

    def _of(self, book: Scribe, *pairs: tuple[str, str], now: int = 0) -> list[str]:
        return [fact.id for fact in book.store.held(ALICE, now, about=pairs)]

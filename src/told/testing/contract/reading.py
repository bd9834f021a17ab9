"""Laws of reading: both axes of time, scopes, filters, and the views one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from told.core.entry import Asserted, Claim, Linked
from told.core.fact import NEVER
from told.core.query import Probe
from told.core.scope import Scope
from told.core.text import md5
from told.core.when import Interval
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Scribe
from told.testing.fakes import ManualClock

HALF = "half \ud800"
HOMES = {
    "u": Scope(ACCOUNT, user_id="u"),
    "ua": Scope(ACCOUNT, user_id="u", agent_id="a"),
    "uar": Scope(ACCOUNT, user_id="u", agent_id="a", run_id="r"),
    "a": Scope(ACCOUNT, agent_id="a"),
    "ar": Scope(ACCOUNT, agent_id="a", run_id="r"),
    "r": Scope(ACCOUNT, run_id="r"),
    "v": Scope(ACCOUNT, user_id="v"),
    "va": Scope(ACCOUNT, user_id="v", agent_id="a"),
}


def years(first: int | None, last: int | None) -> Interval:
    """A stretch of the world's time, counted in whole units for the eye."""
    return Interval(first, last, "instant")


class ReadingLaws(Laws):
    """A read sees what its scope held at its point in time, and nothing else."""

    # The axis of the ledger

    def test_a_read_sees_the_latest_version_of_each_thread(self, book: Scribe) -> None:
        book.tell("lives in Rome", "home")
        book.tell("likes tea", "drink")
        book.tell("lives in Oslo", "home")
        assert book.texts() == ["likes tea", "lives in Oslo"]

    def test_a_read_in_the_past_sees_what_was_held_then(self, book: Scribe) -> None:
        book.tell("lives in Rome", "home")
        book.tell("lives in Oslo", "home")
        book.retract("home")
        assert [book.texts(seq=seq) for seq in range(4)] == [[], ["lives in Rome"], ["lives in Oslo"], []]

    def test_a_version_knows_when_it_was_the_latest_and_when_it_was_given_up(self, book: Scribe) -> None:
        book.tell("one", "t")
        book.tell("two", "t")
        book.tell("other", "u")
        book.retract("t")
        lives = {fact.text: (fact.seq, fact.until, fact.gone) for fact in book.store.lives(ALICE)}
        assert lives == {"one": (1, 2, 4), "two": (2, 4, 4), "other": (3, NEVER, NEVER)}

    def test_a_thread_that_was_given_up_twice_keeps_both_ends(self, book: Scribe) -> None:
        book.tell("one", "t")
        book.retract("t")
        book.tell("two", "t")
        book.retract("t")
        lives = [(fact.seq, fact.until, fact.gone) for fact in book.store.lives(ALICE)]
        assert lives == [(1, 2, 2), (3, 4, 4)]

    def test_tellings_are_every_version_of_some_threads(self, book: Scribe) -> None:
        book.tell("one", "t")
        book.tell("other", "u")
        book.tell("two", "t")
        book.tell("third", "v")
        book.retract("t")
        found = [(fact.text, fact.seq, fact.gone) for fact in book.store.tellings(ACCOUNT, ["v", "t", "nobody"])]
        assert found == [("one", 1, 5), ("two", 3, 5), ("third", 4, NEVER)]
        assert list(book.store.tellings(ACCOUNT, [])) == list(book.store.tellings("umbrella", ["t"])) == []

    def test_versions_of_one_batch_follow_each_other(self, book: Scribe) -> None:
        book.write(Asserted("t", Claim("one")), Asserted("t", Claim("two")))
        assert book.texts() == ["two"]
        assert book.texts(seq=1) == ["one"]

    # The axis of the world

    def test_a_question_about_the_past_is_answered_by_what_held_then(self, book: Scribe) -> None:
        book.tell("lives in Rome", "home", valid=years(100, 200))
        book.tell("lives in Oslo", "home", valid=years(200, None))
        assert book.texts() == ["lives in Oslo"]
        assert book.texts(valid_at=99) == []
        assert book.texts(valid_at=100) == ["lives in Rome"]
        assert book.texts(valid_at=199) == ["lives in Rome"]
        assert book.texts(valid_at=200) == ["lives in Oslo"]

    def test_of_two_versions_that_hold_at_once_the_later_one_counts(self, book: Scribe) -> None:
        book.tell("born in 1979", "birth", valid=years(100, None))
        book.tell("born in 1980", "birth", valid=years(150, 300))
        assert book.texts(valid_at=120) == ["born in 1979"]
        assert book.texts(valid_at=150) == ["born in 1980"]
        assert book.texts(valid_at=300) == ["born in 1979"]

    def test_both_axes_are_asked_at_once(self, book: Scribe) -> None:
        book.tell("Rome", "home", valid=years(100, None))
        book.tell("Oslo", "home", valid=years(200, None))
        book.tell("Lima, it turned out", "home", valid=years(150, None))
        believed = [[book.texts(seq=seq, valid_at=at) for at in (120, 170, 220)] for seq in (1, 2, 3)]
        assert believed == [
            [["Rome"], ["Rome"], ["Rome"]],
            [["Rome"], ["Rome"], ["Oslo"]],
            [["Rome"], ["Lima, it turned out"], ["Lima, it turned out"]],
        ]

    def test_what_was_retracted_holds_at_no_time_but_did_before_the_retraction(self, book: Scribe) -> None:
        book.tell("Rome", "home", valid=years(100, 200))
        book.tell("Oslo", "home", valid=years(200, None))
        book.retract("home")
        book.tell("Lima", "home", valid=years(300, None))
        assert book.texts(valid_at=150) == []
        assert book.texts(valid_at=350) == ["Lima"]
        assert book.texts(seq=2, valid_at=150) == ["Rome"]
        assert book.texts(seq=4, valid_at=250) == []

    def test_a_claim_without_a_beginning_holds_from_when_it_was_said(self, book: Scribe, clock: ManualClock) -> None:
        book.tell("plain", "a")
        book.tell("reported", "b", said_at=clock.now - 500)
        assert book.texts(valid_at=clock.now) == ["plain", "reported"]
        assert book.texts(valid_at=clock.now - 1) == ["reported"]
        assert book.texts(valid_at=clock.now - 501) == []

    def test_what_has_expired_is_hidden_unless_asked_for(self, book: Scribe, clock: ManualClock) -> None:
        until = clock.now + 1000
        book.tell("for a while", expires=until)
        assert book.texts(at=until - 1) == ["for a while"]
        assert book.texts(at=until) == []
        assert book.texts(at=until, show_expired=True) == ["for a while"]
        assert book.texts(at=until, valid_at=until) == []

    # Scopes

    @pytest.mark.parametrize(
        ("asked", "seen"),
        {"u": "u ua uar", "ua": "ua uar", "uar": "uar", "a": "a ar ua uar va", "ar": "ar uar", "r": "ar r uar",
         "v": "v va", "va": "va"}.items(),
    )  # fmt: skip
    def test_a_scope_sees_what_was_written_in_it_or_below_it(self, book: Scribe, asked: str, seen: str) -> None:
        for name, scope in HOMES.items():
            book.tell(name, scope=scope)
        assert sorted(book.texts(HOMES[asked])) == seen.split()
        assert sorted(fact.text for fact in book.store.lives(HOMES[asked])) == seen.split()

    @pytest.mark.parametrize("name", ["ALICE", "alice ", "alic", "alice2", "%", "*", "a_ice", "' OR 1=1 --"])
    def test_no_other_spelling_of_an_id_sees_it(self, book: Scribe, name: str) -> None:
        book.tell("mine")
        assert book.texts(Scope(ACCOUNT, user_id=name)) == []
        assert book.texts(Scope(name, user_id="alice")) == []
        assert book.texts(Scope(ACCOUNT, agent_id="alice")) == []

    def test_the_same_words_belong_to_each_who_said_them(self, book: Scribe) -> None:
        book.tell("likes tea", "t1", ALICE)
        book.tell("likes tea", "t2", BOB)
        book.retract("t1")
        assert book.texts(ALICE) == []
        assert book.texts(BOB) == ["likes tea"]

    def test_a_thread_of_the_same_name_in_another_account_is_another_thread(self, book: Scribe) -> None:
        other, theirs = self.elsewhere(book, "umbrella"), Scope("umbrella", user_id="alice")
        other.tell("theirs", "t1", theirs)
        book.tell("ours", "t1")
        book.tell("ours anew", "t1")
        book.retract("t1")
        assert [(fact.until, fact.gone) for fact in book.store.lives(theirs)] == [(NEVER, NEVER)]
        assert [(fact.until, fact.gone) for fact in book.store.lives(ALICE)] == [(2, 3), (3, 3)]
        held = book.store.fact("umbrella", "t1")
        assert held is not None
        assert held.text == "theirs"
        assert list(other.search("theirs", theirs)) == ["theirs"]

    # Order, pages and filters

    def test_facts_come_oldest_first_in_pages(self, book: Scribe) -> None:
        for number in range(5):
            book.tell(f"fact {number}", f"t{number}")
        book.tell("fact 0 again", "t0")
        assert book.texts(limit=2) == ["fact 1", "fact 2"]
        assert book.texts(limit=2, offset=2) == ["fact 3", "fact 4"]
        assert book.texts(offset=4) == ["fact 0 again"]
        assert book.texts(limit=0) == []
        assert book.texts(offset=9) == []
        first = book.store.facts(book.find(limit=2))[-1].seq
        assert book.texts(limit=2, after=first) == ["fact 3", "fact 4"]
        assert book.texts(after=first, offset=1, where={"never": {"ne": "said"}}) == ["fact 4", "fact 0 again"]

    @pytest.mark.parametrize(
        ("where", "seen"),
        [
            ({}, "plain work play odd"),
            ({"tag": "work"}, "work"),
            ({"tag": {"ne": "work"}}, "plain play odd"),
            ({"tag": None}, "odd"),
            ({"rank": {"gte": 2, "lt": 5}}, "work"),
            ({"rank": {"gt": 2}}, "play"),
            ({"rank": 2.0}, "work"),
            ({"rank": "2"}, "odd"),
            ({"rank": {"in": [2, 5]}}, "work play"),
            ({"rank": {"nin": [2, 5]}}, "plain odd"),
            ({"tags": {"contains": "b"}}, "work"),
            ({"tag": {"contains": "or"}}, "work"),
            ({"tag": {"icontains": "ORK"}}, "work"),
            ({"done": True}, "play"),
            ({"done": 1}, "odd"),
            ({"a.b": "dotted"}, "odd"),
            ({"OR": [{"tag": "work"}, {"tag": "play"}]}, "work play"),
            ({"NOT": {"tag": "work"}}, "plain play odd"),
            ({"tag": "work", "rank": 5}, ""),
            ({"kind": "profile"}, "play"),
            ({"memory": "plain"}, "plain"),
            ({"role": "assistant"}, "play"),
            ({"metadata.role": "boss"}, "work"),
            ({"agent_id": "a"}, "odd"),
            ({"agent_id": None}, "plain work play"),
            ({"tag": "w%"}, ""),
            ({"x') OR 1=1 --": "y"}, ""),
        ],
        ids=repr,
    )
    def test_a_filter_keeps_what_it_says(self, book: Scribe, where: Mapping[str, Any], seen: str) -> None:
        book.tell("plain", "plain")
        book.tell("work", "work", meta={"tag": "work", "rank": 2, "tags": ["a", "b"], "role": "boss"})
        book.tell("play", "play", meta={"tag": "play", "rank": 5, "done": True}, kind="profile", role="assistant")
        odd = {"tag": None, "rank": "2", "done": 1, "tags": "abc"[:1], "a.b": "dotted"}
        book.tell("odd", "odd", Scope(ACCOUNT, user_id="alice", agent_id="a"), meta=odd)
        assert book.texts(where=where) == seen.split()

    def test_pages_are_cut_after_the_filter(self, book: Scribe) -> None:
        for number in range(8):
            book.tell(f"fact {number}", meta={"even": number % 2 == 0})
        assert book.texts(where={"even": True}, limit=2, offset=1) == ["fact 2", "fact 4"]

    def test_a_filter_never_widens_the_scope(self, book: Scribe) -> None:
        book.tell("hers", scope=ALICE)
        book.tell("his", scope=BOB)
        assert book.texts(ALICE, where={"OR": [{"user_id": "bob"}, {"user_id": "alice"}]}) == ["hers"]

    # One thing at a time

    def test_a_thread_has_one_latest_version_at_each_position(self, book: Scribe) -> None:
        book.tell("one", "t")
        book.tell("two", "t")
        book.retract("t")
        found = [book.store.fact(ACCOUNT, "t", book.find(seq=seq).as_of) for seq in (0, 1, 2, 3)]
        assert [fact and fact.text for fact in found] == [None, "one", "two", None]
        assert book.store.fact(ACCOUNT, "t") is None
        assert book.store.fact(ACCOUNT, "nobody") is None
        assert book.store.fact("umbrella", "t", book.find(seq=1).as_of) is None

    def test_a_thread_has_one_version_at_each_point_of_both_axes(self, book: Scribe, clock: ManualClock) -> None:
        book.tell("Rome", "home", valid=years(100, 200), expires=clock.now)
        book.tell("Oslo", "home", valid=years(150, None))
        points = [(1, 99), (1, 170), (2, 120), (2, 170), (2, 300)]
        found = [book.store.fact(ACCOUNT, "home", book.find(seq=s, valid_at=at).as_of) for s, at in points]
        assert [fact and fact.text for fact in found] == [None, "Rome", "Rome", "Oslo", "Oslo"]

    def test_versions_are_found_by_their_entries(self, book: Scribe) -> None:
        book.tell("one", "t")
        book.observe("said", "e")
        book.tell("two", "t")
        found = book.store.versions(ACCOUNT, [3, 2, 1, 99])
        assert {seq: fact.text for seq, fact in found.items()} == {1: "one", 3: "two"}
        assert dict(book.store.versions("umbrella", [1])) == {}

    def test_a_fact_keeps_all_that_was_claimed(self, book: Scribe, clock: ManualClock) -> None:
        claim = Claim(
            "Ann moved", "event", "Ann", "moved_to", "Oslo", "negated", "inferred", 0.5, years(10, 20), 30, "e1",
            (0, 3), "user", "Ann", 5, "chat", "t0", {"deep": {"list": [1, 2.5, None, True, "\u00e9"]}},
        )  # fmt: skip
        book.write(Asserted("t", claim, since=7))
        [fact] = book.store.facts(book.find(show_expired=True))
        shared = [name for name in fact.__dataclass_fields__ if name in claim.__dataclass_fields__]
        assert {name: getattr(fact, name) for name in shared} == {name: getattr(claim, name) for name in shared}
        assert fact.valid() == claim.valid
        assert (fact.created_at, fact.updated_at) == (7, clock.now)
        assert (fact.id, fact.seq, fact.tx, fact.scope) == ("t", 1, 1, ALICE)

    def test_links_are_found_from_both_ends_at_a_position(self, book: Scribe) -> None:
        book.tell("claimed", "t1")
        book.write(Linked("t1", "relates_to", "t3"))
        book.write(Linked("t2", "supersedes", "t1", 0.5, {"why": "newer"}))
        found = book.store.links(ACCOUNT, ["t1"])
        assert [(link.src, link.rel, link.dst, link.weight) for link in found] == [
            ("t1", "relates_to", "t3", 1.0),
            ("t2", "supersedes", "t1", 0.5),
        ]
        assert [link.rel for link in book.store.links(ACCOUNT, ["t1"], 2)] == ["relates_to"]
        assert [link.rel for link in book.store.links(ACCOUNT, ["t3", "t2"])] == ["relates_to", "supersedes"]
        assert list(book.store.links(ACCOUNT, [])) == []
        assert list(book.store.links("umbrella", ["t1"])) == []

    def test_what_was_taken_from_evidence_is_found_by_it(self, book: Scribe) -> None:
        book.observe("said", "e1")
        book.tell("one claim", "t1", evidence="e1")
        book.tell("another", "t2", evidence="e1")
        book.tell("changed since", "t1")
        book.tell("from elsewhere", "t3", evidence="e2")
        assert list(book.store.derived(ACCOUNT, ["e1"])) == ["t1", "t2"]
        assert list(book.store.derived(ACCOUNT, ["e1", "e2"])) == ["t1", "t2", "t3"]
        assert list(book.store.derived(ACCOUNT, [])) == list(book.store.derived("umbrella", ["e1"])) == []

    def test_evidence_and_a_thread_of_the_same_name_are_not_taken_for_each_other(self, book: Scribe) -> None:
        book.observe("said", "same")
        book.tell("told", "same", evidence="same")
        book.tell("told again", "same", evidence="other")
        assert [entry.seq for entry in book.store.thread(ACCOUNT, "same")] == [2, 3]
        assert [seen.seq for seen in book.store.witnesses(ACCOUNT, ids=["same"])] == [1]
        assert list(book.store.derived(ACCOUNT, ["same"])) == list(book.store.derived(ACCOUNT, ["other"])) == ["same"]
        book.observe("more", "other")
        assert [entry.seq for entry in book.store.thread(ACCOUNT, "other")] == []

    def test_the_lives_of_what_was_taken_from_evidence_are_told_whole(self, book: Scribe) -> None:
        first = book.tell("lives in Rome", "home", evidence="e1")
        book.tell("likes tea", "drink", evidence="e1")
        book.tell("from elsewhere", "other", evidence="e2")
        book.tell("lives in Oslo", "home", evidence="e3")
        book.retract("drink")
        lives = book.store.taken(ACCOUNT, ["e1"])
        assert [(fact.text, fact.until) for fact in lives] == [
            ("lives in Rome", 4), ("likes tea", 5), ("lives in Oslo", NEVER),
        ]  # fmt: skip
        assert lives[0].seq == first.seq
        assert [fact.id for fact in book.store.taken(ACCOUNT, ["e3", "e2"])] == ["home", "other", "home"]
        assert list(book.store.taken(ACCOUNT, [])) == list(book.store.taken("umbrella", ["e1"])) == []

    def test_the_last_turn_is_what_was_said_and_no_claim_or_node(self, book: Scribe) -> None:
        turn = book.tell("I live in Rome", "turn", kind="turn")
        book.tell("User lives in Rome", "home", predicate="lives_in")
        book.tell("Rome (place)", "rome", kind="node")
        book.tell("User is a spy", "doubt", kind="quarantine")
        assert book.store.known(ALICE, [], [], None, last=True).last == turn

    def test_what_is_in_quarantine_is_held_and_found_by_nothing(self, book: Scribe) -> None:
        book.tell("xyzzy", "doubt", kind="quarantine")
        assert book.texts() == ["xyzzy"]
        assert book.search("xyzzy") == {}
        assert not book.store.check()
        assert book.store.stats(ACCOUNT)["memories"] == 0

    def test_evidence_is_found_by_scope_source_and_id(self, book: Scribe) -> None:
        below = Scope(ACCOUNT, user_id="alice", run_id="r")
        book.observe("one", "e1", source="a.txt")
        book.observe("two", "e2", below, source="b.txt")
        book.observe("three", "e3", BOB, source="a.txt")
        store = book.store
        assert [w.id for w in store.witnesses(ACCOUNT, scope=ALICE)] == ["e1", "e2"]
        assert [w.id for w in store.witnesses(ACCOUNT, source="a.txt")] == ["e1", "e3"]
        assert [w.id for w in store.witnesses(ACCOUNT, ids=["e3", "e2", "e9"])] == ["e2", "e3"]
        assert [w.id for w in store.witnesses(ACCOUNT, scope=ALICE, source="a.txt")] == ["e1"]
        assert list(store.witnesses("umbrella", ids=["e1"])) == []

    def test_evidence_asked_for_by_nothing_is_not_all_of_it(self, book: Scribe) -> None:
        book.observe("one", "e1")
        assert list(book.store.witnesses(ACCOUNT)) == []
        assert list(book.store.witnesses(ACCOUNT, ids=[])) == []

    # What is handed out

    def test_metadata_that_is_handed_out_is_the_readers_own(self, book: Scribe) -> None:
        link = Linked("t", "supports", "t", meta={"n": [1]})
        wrote = book.write(Asserted("t", Claim("tea", meta={"deep": [1]})), link)
        store: Any = book.store
        facts = [
            *store.known(ALICE, [md5("tea")], [], None).facts.values(), *store.facts(book.find()), *store.lives(ALICE),
            *store.versions(ACCOUNT, [1]).values(), store.fact(ACCOUNT, "t"),
        ]  # fmt: skip
        entries: list[Any] = [wrote[0], book.entries()[0], store.thread(ACCOUNT, "t")[0]]
        for meta in [*(fact.meta for fact in facts), *(entry.verb.claim.meta for entry in entries)]:
            meta["deep"].append(2)
        store.links(ACCOUNT, ["t"])[0].meta["n"].append(2)
        assert store.fact(ACCOUNT, "t").meta == {"deep": [1]}
        assert store.scan(ACCOUNT)[0].verb.claim.meta == {"deep": [1]}
        assert store.links(ACCOUNT, ["t"])[0].meta == {"n": [1]}

    def test_what_is_not_even_text_is_nowhere(self, book: Scribe) -> None:
        book.observe("said", "e", source="mail")
        book.tell("tea", "t")
        book.store.use_model("m", 2)
        store, half = book.store, Scope(ACCOUNT, user_id=HALF)
        assert (store.head(HALF).seq, store.position(HALF, NEVER), store.cursor(ACCOUNT, HALF)) == (0, 0, 0)
        assert not [*store.scan(HALF), *store.thread(ACCOUNT, HALF), *store.faults(HALF), *store.rows(HALF, "facts")]
        assert (store.fact(ACCOUNT, HALF), store.fact(HALF, "t")) == (None, None)
        assert not [*store.lives(half), *store.links(ACCOUNT, [HALF]), *store.derived(ACCOUNT, [HALF])]
        assert not [*store.witnesses(ACCOUNT, source=HALF), *store.witnesses(ACCOUNT, ids=[HALF])]
        assert store.known(ALICE, [HALF], [], HALF).ticket is None
        assert not store.known(half, [md5("tea")], [], None).facts
        assert book.texts(half) == []
        assert book.search("tea", half) == {}
        assert store.index.search(Probe(book.find(), (HALF,))).words in ((), [])
        assert list(store.pending(10, HALF).values()) == ["tea"]
        assert store.stats(HALF)["entries"] == 0

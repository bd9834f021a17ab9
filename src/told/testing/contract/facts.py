"""Laws of reading facts: time, scopes, filters and each view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from told.errors import Conflict
from told.model.entry import Asserted, Claim, Linked
from told.model.fact import NEVER
from told.model.query import IndexQuery
from told.model.scope import Scope
from told.ports import VIEWS, Guard, KindNotGrown, ThreadUntouched, UnchangedSlot
from told.testing.contract.harness import ACCOUNT, ALICE, BOB, AccountHarness, ContractBase
from told.testing.fakes import ManualClock
from told.text.dates import Interval
from told.text.tokens import md5_hex

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
    """A slot holds its latest fact until it is retracted, replaced or expired."""

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


UNENCODABLE_NAME = "half \ud800"
SCOPES_BY_NAME = {
    "u": Scope(ACCOUNT, user_id="u"),
    "ua": Scope(ACCOUNT, user_id="u", agent_id="a"),
    "uar": Scope(ACCOUNT, user_id="u", agent_id="a", run_id="r"),
    "a": Scope(ACCOUNT, agent_id="a"),
    "ar": Scope(ACCOUNT, agent_id="a", run_id="r"),
    "r": Scope(ACCOUNT, run_id="r"),
    "v": Scope(ACCOUNT, user_id="v"),
    "va": Scope(ACCOUNT, user_id="v", agent_id="a"),
}


def build_interval(first: int | None, last: int | None) -> Interval:
    """Build a valid interval in whole units."""
    return Interval(first, last, "instant")


class ReadContract(ContractBase):
    """A query sees what its scope had at its point in time, and nothing else."""

    # Transaction time

    def test_a_read_sees_the_latest_version_of_each_thread(self, harness: AccountHarness) -> None:
        harness.assert_claim("lives in Rome", "home")
        harness.assert_claim("likes tea", "drink")
        harness.assert_claim("lives in Oslo", "home")
        assert harness.list_texts() == ["likes tea", "lives in Oslo"]

    def test_a_past_read_sees_the_facts_current_at_that_time(self, harness: AccountHarness) -> None:
        harness.assert_claim("lives in Rome", "home")
        harness.assert_claim("lives in Oslo", "home")
        harness.retract_thread("home")
        assert [harness.list_texts(seq=seq) for seq in range(4)] == [
            [],
            ["lives in Rome"],
            ["lives in Oslo"],
            [],
        ]

    def test_a_version_records_when_it_was_replaced_and_retracted(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("one", "t")
        harness.assert_claim("two", "t")
        harness.assert_claim("other", "u")
        harness.retract_thread("t")
        versions = {
            fact.text: (fact.seq, fact.until, fact.gone)
            for fact in harness.store.find_versions(ALICE.account, scope=ALICE)
        }
        assert versions == {"one": (1, 2, 4), "two": (2, 4, 4), "other": (3, NEVER, NEVER)}

    def test_a_thread_retracted_twice_keeps_both_retractions(self, harness: AccountHarness) -> None:
        harness.assert_claim("one", "t")
        harness.retract_thread("t")
        harness.assert_claim("two", "t")
        harness.retract_thread("t")
        versions = [
            (fact.seq, fact.until, fact.gone)
            for fact in harness.store.find_versions(ALICE.account, scope=ALICE)
        ]
        assert versions == [(1, 2, 2), (3, 4, 4)]

    def test_all_versions_of_given_threads_are_listed(self, harness: AccountHarness) -> None:
        harness.assert_claim("one", "t")
        harness.assert_claim("other", "u")
        harness.assert_claim("two", "t")
        harness.assert_claim("third", "v")
        harness.retract_thread("t")
        versions = [
            (fact.text, fact.seq, fact.gone)
            for fact in harness.store.find_versions(ACCOUNT, threads=["v", "t", "nobody"])
        ]
        assert versions == [("one", 1, 5), ("two", 3, 5), ("third", 4, NEVER)]
        assert (
            list(harness.store.find_versions(ACCOUNT, threads=[]))
            == list(harness.store.find_versions("umbrella", threads=["t"]))
            == []
        )

    def test_versions_in_one_batch_replace_each_other(self, harness: AccountHarness) -> None:
        harness.commit(Asserted("t", Claim("one")), Asserted("t", Claim("two")))
        assert harness.list_texts() == ["two"]
        assert harness.list_texts(seq=1) == ["one"]

    # Valid time

    def test_valid_at_selects_the_version_valid_then(self, harness: AccountHarness) -> None:
        harness.assert_claim("lives in Rome", "home", valid=build_interval(100, 200))
        harness.assert_claim("lives in Oslo", "home", valid=build_interval(200, None))
        assert harness.list_texts() == ["lives in Oslo"]
        assert harness.list_texts(valid_at=99) == []
        assert harness.list_texts(valid_at=100) == ["lives in Rome"]
        assert harness.list_texts(valid_at=199) == ["lives in Rome"]
        assert harness.list_texts(valid_at=200) == ["lives in Oslo"]

    def test_the_later_of_two_valid_versions_wins(self, harness: AccountHarness) -> None:
        harness.assert_claim("born in 1979", "birth", valid=build_interval(100, None))
        harness.assert_claim("born in 1980", "birth", valid=build_interval(150, 300))
        assert harness.list_texts(valid_at=120) == ["born in 1979"]
        assert harness.list_texts(valid_at=150) == ["born in 1980"]
        assert harness.list_texts(valid_at=300) == ["born in 1979"]

    def test_both_time_axes_can_be_combined(self, harness: AccountHarness) -> None:
        harness.assert_claim("Rome", "home", valid=build_interval(100, None))
        harness.assert_claim("Oslo", "home", valid=build_interval(200, None))
        harness.assert_claim("Lima, it turned out", "home", valid=build_interval(150, None))
        texts = [
            [harness.list_texts(seq=seq, valid_at=at) for at in (120, 170, 220)]
            for seq in (1, 2, 3)
        ]
        assert texts == [
            [["Rome"], ["Rome"], ["Rome"]],
            [["Rome"], ["Rome"], ["Oslo"]],
            [["Rome"], ["Lima, it turned out"], ["Lima, it turned out"]],
        ]

    def test_retracted_facts_are_visible_only_before_the_retraction(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("Rome", "home", valid=build_interval(100, 200))
        harness.assert_claim("Oslo", "home", valid=build_interval(200, None))
        harness.retract_thread("home")
        harness.assert_claim("Lima", "home", valid=build_interval(300, None))
        assert harness.list_texts(valid_at=150) == []
        assert harness.list_texts(valid_at=350) == ["Lima"]
        assert harness.list_texts(seq=2, valid_at=150) == ["Rome"]
        assert harness.list_texts(seq=4, valid_at=250) == []

    def test_a_claim_without_a_start_is_valid_from_when_it_was_said(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        harness.assert_claim("plain", "a")
        harness.assert_claim("reported", "b", said_at=clock.now - 500)
        assert harness.list_texts(valid_at=clock.now) == ["plain", "reported"]
        assert harness.list_texts(valid_at=clock.now - 1) == ["reported"]
        assert harness.list_texts(valid_at=clock.now - 501) == []

    def test_expired_facts_are_hidden_unless_requested(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        until = clock.now + 1000
        harness.assert_claim("for a while", expires=until)
        assert harness.list_texts(at=until - 1) == ["for a while"]
        assert harness.list_texts(at=until) == []
        assert harness.list_texts(at=until, show_expired=True) == ["for a while"]
        assert harness.list_texts(at=until, valid_at=until) == []

    # Scopes

    @pytest.mark.parametrize(
        ("asked", "seen"),
        {
            "u": "u ua uar",
            "ua": "ua uar",
            "uar": "uar",
            "a": "a ar ua uar va",
            "ar": "ar uar",
            "r": "ar r uar",
            "v": "v va",
            "va": "va",
        }.items(),
    )
    def test_a_scope_sees_itself_and_narrower_scopes(
        self, harness: AccountHarness, asked: str, seen: str
    ) -> None:
        for name, scope in SCOPES_BY_NAME.items():
            harness.assert_claim(name, scope=scope)
        assert sorted(harness.list_texts(SCOPES_BY_NAME[asked])) == seen.split()
        assert (
            sorted(
                fact.text
                for fact in harness.store.find_versions(
                    SCOPES_BY_NAME[asked].account, scope=SCOPES_BY_NAME[asked]
                )
            )
            == seen.split()
        )

    @pytest.mark.parametrize(
        "name", ["ALICE", "alice ", "alic", "alice2", "%", "*", "a_ice", "' OR 1=1 --"]
    )
    def test_ids_match_exactly(self, harness: AccountHarness, name: str) -> None:
        harness.assert_claim("mine")
        assert harness.list_texts(Scope(ACCOUNT, user_id=name)) == []
        assert harness.list_texts(Scope(name, user_id="alice")) == []
        assert harness.list_texts(Scope(ACCOUNT, agent_id="alice")) == []

    def test_identical_texts_of_two_users_are_separate_facts(self, harness: AccountHarness) -> None:
        harness.assert_claim("likes tea", "t1", ALICE)
        harness.assert_claim("likes tea", "t2", BOB)
        harness.retract_thread("t1")
        assert harness.list_texts(ALICE) == []
        assert harness.list_texts(BOB) == ["likes tea"]

    def test_threads_with_the_same_id_are_separate_per_account(
        self, harness: AccountHarness
    ) -> None:
        other, other_scope = (
            self.use_account(harness, "umbrella"),
            Scope("umbrella", user_id="alice"),
        )
        other.assert_claim("theirs", "t1", other_scope)
        harness.assert_claim("ours", "t1")
        harness.assert_claim("ours anew", "t1")
        harness.retract_thread("t1")
        assert [
            (fact.until, fact.gone)
            for fact in harness.store.find_versions(other_scope.account, scope=other_scope)
        ] == [(NEVER, NEVER)]
        assert [
            (fact.until, fact.gone)
            for fact in harness.store.find_versions(ALICE.account, scope=ALICE)
        ] == [
            (2, 3),
            (3, 3),
        ]
        fact_there = harness.store.get_fact("umbrella", "t1")
        assert fact_there is not None
        assert fact_there.text == "theirs"
        assert list(other.search_texts("theirs", other_scope)) == ["theirs"]

    # Order, pages and filters

    def test_facts_come_oldest_first_in_pages(self, harness: AccountHarness) -> None:
        for number in range(5):
            harness.assert_claim(f"fact {number}", f"t{number}")
        harness.assert_claim("fact 0 again", "t0")
        assert harness.list_texts(limit=2) == ["fact 1", "fact 2"]
        assert harness.list_texts(limit=2, offset=2) == ["fact 3", "fact 4"]
        assert harness.list_texts(offset=4) == ["fact 0 again"]
        assert harness.list_texts(limit=0) == []
        assert harness.list_texts(offset=9) == []
        first = harness.store.find_facts(harness.build_query(limit=2))[-1].seq
        assert harness.list_texts(limit=2, after=first) == ["fact 3", "fact 4"]
        assert harness.list_texts(after=first, offset=1, where={"never": {"ne": "said"}}) == [
            "fact 4",
            "fact 0 again",
        ]

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
    def test_a_filter_keeps_only_matching_facts(
        self, harness: AccountHarness, where: Mapping[str, Any], seen: str
    ) -> None:
        harness.assert_claim("plain", "plain")
        harness.assert_claim(
            "work", "work", meta={"tag": "work", "rank": 2, "tags": ["a", "b"], "role": "boss"}
        )
        harness.assert_claim(
            "play",
            "play",
            meta={"tag": "play", "rank": 5, "done": True},
            kind="profile",
            role="assistant",
        )
        odd = {"tag": None, "rank": "2", "done": 1, "tags": "abc"[:1], "a.b": "dotted"}
        harness.assert_claim("odd", "odd", Scope(ACCOUNT, user_id="alice", agent_id="a"), meta=odd)
        assert harness.list_texts(where=where) == seen.split()

    def test_paging_is_applied_after_the_filter(self, harness: AccountHarness) -> None:
        for number in range(8):
            harness.assert_claim(f"fact {number}", meta={"even": number % 2 == 0})
        assert harness.list_texts(where={"even": True}, limit=2, offset=1) == ["fact 2", "fact 4"]

    def test_a_filter_never_widens_the_scope(self, harness: AccountHarness) -> None:
        harness.assert_claim("hers", scope=ALICE)
        harness.assert_claim("his", scope=BOB)
        assert harness.list_texts(
            ALICE, where={"OR": [{"user_id": "bob"}, {"user_id": "alice"}]}
        ) == ["hers"]

    # Single lookups

    def test_a_thread_has_one_latest_version_at_each_position(
        self, harness: AccountHarness
    ) -> None:
        harness.assert_claim("one", "t")
        harness.assert_claim("two", "t")
        harness.retract_thread("t")
        versions = [
            harness.store.get_fact(ACCOUNT, "t", harness.build_query(seq=seq).as_of)
            for seq in (0, 1, 2, 3)
        ]
        assert [fact and fact.text for fact in versions] == [None, "one", "two", None]
        assert harness.store.get_fact(ACCOUNT, "t") is None
        assert harness.store.get_fact(ACCOUNT, "nobody") is None
        assert harness.store.get_fact("umbrella", "t", harness.build_query(seq=1).as_of) is None

    def test_a_thread_has_one_version_at_each_point_of_both_axes(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        harness.assert_claim("Rome", "home", valid=build_interval(100, 200), expires=clock.now)
        harness.assert_claim("Oslo", "home", valid=build_interval(150, None))
        points = [(1, 99), (1, 170), (2, 120), (2, 170), (2, 300)]
        versions = [
            harness.store.get_fact(ACCOUNT, "home", harness.build_query(seq=s, valid_at=at).as_of)
            for s, at in points
        ]
        assert [fact and fact.text for fact in versions] == [None, "Rome", "Rome", "Oslo", "Oslo"]

    def test_versions_are_found_by_their_entries(self, harness: AccountHarness) -> None:
        harness.assert_claim("one", "t")
        harness.add_evidence("said", "e")
        harness.assert_claim("two", "t")
        versions = harness.store.find_versions(ACCOUNT, seqs=[3, 2, 1, 99])
        assert [(fact.seq, fact.text) for fact in versions] == [(1, "one"), (3, "two")]
        assert list(harness.store.find_versions("umbrella", seqs=[1])) == []

    def test_a_fact_keeps_every_claim_field(
        self, harness: AccountHarness, clock: ManualClock
    ) -> None:
        claim = Claim(
            "Ann moved",
            "event",
            "Ann",
            "moved_to",
            "Oslo",
            "negated",
            "inferred",
            0.5,
            build_interval(10, 20),
            30,
            "e1",
            (0, 3),
            "user",
            "Ann",
            5,
            "chat",
            "t0",
            {"deep": {"list": [1, 2.5, None, True, "\u00e9"]}},
        )
        harness.commit(Asserted("t", claim, since=7))
        [fact] = harness.store.find_facts(harness.build_query(show_expired=True))
        shared = [name for name in fact.__dataclass_fields__ if name in claim.__dataclass_fields__]
        assert {name: getattr(fact, name) for name in shared} == {
            name: getattr(claim, name) for name in shared
        }
        assert fact.valid_interval() == claim.valid
        assert (fact.created_at, fact.updated_at) == (7, clock.now)
        assert (fact.id, fact.seq, fact.tx, fact.scope) == ("t", 1, 1, ALICE)

    def test_links_are_found_from_both_ends_at_a_position(self, harness: AccountHarness) -> None:
        harness.assert_claim("claimed", "t1")
        harness.commit(Linked("t1", "relates_to", "t3"))
        harness.commit(Linked("t2", "supersedes", "t1", 0.5, {"why": "newer"}))
        links = harness.store.find_links(ACCOUNT, ["t1"])
        assert [(link.src, link.rel, link.dst, link.weight) for link in links] == [
            ("t1", "relates_to", "t3", 1.0),
            ("t2", "supersedes", "t1", 0.5),
        ]
        assert [link.rel for link in harness.store.find_links(ACCOUNT, ["t1"], 2)] == ["relates_to"]
        assert [link.rel for link in harness.store.find_links(ACCOUNT, ["t3", "t2"])] == [
            "relates_to",
            "supersedes",
        ]
        assert list(harness.store.find_links(ACCOUNT, [])) == []
        assert list(harness.store.find_links("umbrella", ["t1"])) == []

    def test_threads_are_found_by_their_evidence(self, harness: AccountHarness) -> None:
        harness.add_evidence("said", "e1")
        harness.assert_claim("one claim", "t1", evidence="e1")
        harness.assert_claim("another", "t2", evidence="e1")
        harness.assert_claim("changed since", "t1")
        harness.assert_claim("from elsewhere", "t3", evidence="e2")
        assert list(harness.threads_from_evidence(ACCOUNT, ["e1"])) == ["t1", "t2"]
        assert list(harness.threads_from_evidence(ACCOUNT, ["e1", "e2"])) == [
            "t1",
            "t2",
            "t3",
        ]
        assert (
            list(harness.threads_from_evidence(ACCOUNT, []))
            == list(harness.threads_from_evidence("umbrella", ["e1"]))
            == []
        )

    def test_evidence_and_threads_with_the_same_id_are_distinct(
        self, harness: AccountHarness
    ) -> None:
        harness.add_evidence("said", "same")
        harness.assert_claim("told", "same", evidence="same")
        harness.assert_claim("told again", "same", evidence="other")
        assert [entry.seq for entry in harness.store.scan_entries(ACCOUNT, thread="same")] == [2, 3]
        assert [row.seq for row in harness.store.evidence_rows(ACCOUNT, ids=["same"])] == [1]
        assert (
            list(harness.threads_from_evidence(ACCOUNT, ["same"]))
            == list(harness.threads_from_evidence(ACCOUNT, ["other"]))
            == ["same"]
        )
        harness.add_evidence("more", "other")
        assert [entry.seq for entry in harness.store.scan_entries(ACCOUNT, thread="other")] == []

    def test_facts_from_evidence_include_all_versions(self, harness: AccountHarness) -> None:
        first_version = harness.assert_claim("lives in Rome", "home", evidence="e1")
        harness.assert_claim("likes tea", "drink", evidence="e1")
        harness.assert_claim("from elsewhere", "other", evidence="e2")
        harness.assert_claim("lives in Oslo", "home", evidence="e3")
        harness.retract_thread("drink")
        versions = harness.store.find_versions(ACCOUNT, evidence=["e1"])
        assert [(fact.text, fact.until) for fact in versions] == [
            ("lives in Rome", 4),
            ("likes tea", 5),
            ("lives in Oslo", NEVER),
        ]
        assert versions[0].seq == first_version.seq
        assert [
            fact.id for fact in harness.store.find_versions(ACCOUNT, evidence=["e3", "e2"])
        ] == [
            "home",
            "other",
            "home",
        ]
        assert (
            list(harness.store.find_versions(ACCOUNT, evidence=[]))
            == list(harness.store.find_versions("umbrella", evidence=["e1"]))
            == []
        )

    def test_the_last_turn_is_not_a_claim_or_node(self, harness: AccountHarness) -> None:
        turn = harness.assert_claim("I live in Rome", "turn", kind="turn")
        harness.assert_claim("User lives in Rome", "home", predicate="lives_in")
        harness.assert_claim("Rome (place)", "rome", kind="node")
        harness.assert_claim("User is a spy", "doubt", kind="quarantine")
        assert (
            harness.store.lookup_existing(ALICE, [], [], None, include_last_turn=True).last_turn
            == turn
        )

    def test_quarantined_facts_are_stored_but_not_searchable(self, harness: AccountHarness) -> None:
        harness.assert_claim("xyzzy", "doubt", kind="quarantine")
        assert harness.list_texts() == ["xyzzy"]
        assert harness.search_texts("xyzzy") == {}
        assert not harness.store.check_integrity()
        assert harness.store.get_stats(ACCOUNT)["memories"] == 0

    def test_evidence_is_found_by_scope_source_and_id(self, harness: AccountHarness) -> None:
        below = Scope(ACCOUNT, user_id="alice", run_id="r")
        harness.add_evidence("one", "e1", source="a.txt")
        harness.add_evidence("two", "e2", below, source="b.txt")
        harness.add_evidence("three", "e3", BOB, source="a.txt")
        store = harness.store
        assert [row.id for row in store.evidence_rows(ACCOUNT, scope=ALICE)] == ["e1", "e2"]
        assert [row.id for row in store.evidence_rows(ACCOUNT, source="a.txt")] == ["e1", "e3"]
        assert [row.id for row in store.evidence_rows(ACCOUNT, ids=["e3", "e2", "e9"])] == [
            "e2",
            "e3",
        ]
        assert [row.id for row in store.evidence_rows(ACCOUNT, scope=ALICE, source="a.txt")] == [
            "e1"
        ]
        assert list(store.evidence_rows("umbrella", ids=["e1"])) == []

    def test_listing_evidence_without_criteria_returns_nothing(
        self, harness: AccountHarness
    ) -> None:
        harness.add_evidence("one", "e1")
        assert list(harness.store.evidence_rows(ACCOUNT)) == []
        assert list(harness.store.evidence_rows(ACCOUNT, ids=[])) == []

    # Returned values

    def test_returned_metadata_is_a_copy(self, harness: AccountHarness) -> None:
        link = Linked("t", "supports", "t", meta={"n": [1]})
        written = harness.commit(Asserted("t", Claim("tea", meta={"deep": [1]})), link)
        store: Any = harness.store
        facts = [
            *store.lookup_existing(ALICE, [md5_hex("tea")], [], None).facts.values(),
            *store.find_facts(harness.build_query()),
            *store.find_versions(ALICE.account, scope=ALICE),
            *store.find_versions(ACCOUNT, seqs=[1]),
            store.get_fact(ACCOUNT, "t"),
        ]
        entries: list[Any] = [
            written[0],
            harness.list_entries()[0],
            store.scan_entries(ACCOUNT, thread="t")[0],
        ]
        for meta in [*(fact.meta for fact in facts), *(entry.verb.claim.meta for entry in entries)]:
            meta["deep"].append(2)
        store.find_links(ACCOUNT, ["t"])[0].meta["n"].append(2)
        assert store.get_fact(ACCOUNT, "t").meta == {"deep": [1]}
        assert store.scan_entries(ACCOUNT)[0].verb.claim.meta == {"deep": [1]}
        assert store.find_links(ACCOUNT, ["t"])[0].meta == {"n": [1]}

    def test_reading_unencodable_names_finds_nothing(self, harness: AccountHarness) -> None:
        harness.add_evidence("said", "e", source="mail")
        harness.assert_claim("tea", "t")
        harness.store.bind_model("m", 2)
        store, bad_scope = harness.store, Scope(ACCOUNT, user_id=UNENCODABLE_NAME)
        assert (
            store.get_head(UNENCODABLE_NAME).seq,
            store.get_head(UNENCODABLE_NAME, NEVER).seq,
            store.get_cursor(ACCOUNT, UNENCODABLE_NAME),
        ) == (0, 0, 0)
        assert not [
            *store.scan_entries(UNENCODABLE_NAME),
            *store.scan_entries(ACCOUNT, thread=UNENCODABLE_NAME),
            *store.list_faults(UNENCODABLE_NAME),
            *store.rows_between(UNENCODABLE_NAME, 0, NEVER),
        ]
        assert (
            store.get_fact(ACCOUNT, UNENCODABLE_NAME),
            store.get_fact(UNENCODABLE_NAME, "t"),
        ) == (None, None)
        assert not [
            *store.find_versions(bad_scope.account, scope=bad_scope),
            *store.find_links(ACCOUNT, [UNENCODABLE_NAME]),
            *store.find_versions(ACCOUNT, evidence=[UNENCODABLE_NAME]),
        ]
        assert not [
            *store.evidence_rows(ACCOUNT, source=UNENCODABLE_NAME),
            *store.evidence_rows(ACCOUNT, ids=[UNENCODABLE_NAME]),
        ]
        assert (
            store.lookup_existing(ALICE, [UNENCODABLE_NAME], [], UNENCODABLE_NAME).idempotency
            is None
        )
        assert not store.lookup_existing(bad_scope, [md5_hex("tea")], [], None).facts
        assert harness.list_texts(bad_scope) == []
        assert harness.search_texts("tea", bad_scope) == {}
        assert store.index.search(
            IndexQuery(harness.build_query(), (UNENCODABLE_NAME,))
        ).by_terms in ((), [])
        assert list(store.pending_texts(10, UNENCODABLE_NAME).values()) == ["tea"]
        assert store.get_stats(UNENCODABLE_NAME)["entries"] == 0

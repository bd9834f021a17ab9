"""Laws of search: scores follow the definition within 1e-6 and depend on visible facts only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from told.errors import ModelMismatch
from told.ids import hash_text
from told.model.entry import Asserted, Claim
from told.model.query import IndexQuery
from told.model.scope import Scope
from told.model.scoring import (
    CorpusStatistics,
    bm25,
    count_term_frequencies,
    encode_query,
    idf,
    quantise,
    query_cosine,
)
from told.testing.contract.harness import (
    ACCOUNT,
    ALICE,
    BOB,
    SCORE_TOLERANCE,
    AccountHarness,
    ContractBase,
    RetrieverScores,
)
from told.testing.fakes import HashingEmbedder
from told.text.dates import Interval
from told.text.tokens import extract_terms

SEARCH_TEXTS = (
    "Alice drinks green tea in the morning",
    "Alice drinks coffee after lunch and tea at night",
    "The green bicycle belongs to Alice",
    "tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea",
    "\u6771\u4eac\u3067\u304a\u8336\u3092\u98f2\u3080",
    "...",
)
SEARCH_EMBEDDER = HashingEmbedder(16)


def approximate(scores: Any) -> Any:
    """Return scores that compare equal to any others within the tolerance of the port."""
    return pytest.approx(scores, abs=SCORE_TOLERANCE, rel=0)


def compute_bm25_scores(texts: Sequence[str], query: str) -> dict[str, Any]:
    """Return the BM25 scores of texts that are all a query can see."""
    token_lists = [extract_terms(text) for text in texts]
    corpus = CorpusStatistics(len(texts), sum(map(len, token_lists)))
    scores: dict[str, float] = {}
    for term in dict.fromkeys(extract_terms(query)):
        weight = idf(corpus, sum(term in tokens for tokens in token_lists))
        for text, tokens in zip(texts, token_lists, strict=True):
            if term in tokens:
                score = bm25(
                    weight, count_term_frequencies(tokens)[term], len(tokens), corpus.average_length
                )
                scores[text] = scores.get(text, 0.0) + score
    return {text: approximate(score) for text, score in scores.items()}


def get_bm25_scores(hits: dict[str, RetrieverScores]) -> dict[str, float]:
    """Return the BM25 scores of a search."""
    return {text: match.bm25 for text, match in hits.items() if match.bm25 is not None}


def get_cosine_scores(hits: dict[str, RetrieverScores]) -> dict[str, float]:
    """Return the cosines of a search."""
    return {text: match.cosine for text, match in hits.items() if match.cosine is not None}


def embed_text(text: str) -> Sequence[float]:
    """Embed a text."""
    return SEARCH_EMBEDDER.embed([text])[0]


class IndexContract(ContractBase):
    """Other scopes, later writes and filters do not change a score."""

    @pytest.mark.parametrize(
        "query", ["tea", "green tea", "Alice drinking tea tea tea", "\u304a\u8336", "zebra", ""]
    )
    def test_the_lexical_score_is_bm25(self, harness: AccountHarness, query: str) -> None:
        for text in SEARCH_TEXTS:
            harness.assert_claim(text)
        assert get_bm25_scores(harness.search_texts(query)) == compute_bm25_scores(
            SEARCH_TEXTS, query
        )

    def test_a_repeated_query_term_counts_once(self, harness: AccountHarness) -> None:
        for text in SEARCH_TEXTS:
            harness.assert_claim(text)
        once, twice = (
            harness.store.index.search(IndexQuery(harness.build_query(), query_terms))
            for query_terms in (("tea", "green"), ("tea", "green", "tea"))
        )
        assert once == twice

    def test_other_scopes_and_accounts_do_not_affect_scores(self, harness: AccountHarness) -> None:
        for text in SEARCH_TEXTS:
            harness.assert_claim(text)
        before = harness.search_texts("green tea")
        for number in range(20):
            harness.assert_claim(f"Bob drinks green tea, cup {number}", scope=BOB)
            harness.assert_claim(f"green {number}", scope=Scope(ACCOUNT, agent_id="alice"))
        other_scope = Scope("umbrella", user_id="alice")
        self.use_account(harness, "umbrella").assert_claim("green tea", scope=other_scope)
        assert harness.search_texts("green tea") == before
        assert harness.search_texts("cup") == {}

    def test_a_wider_scope_has_its_own_statistics(self, harness: AccountHarness) -> None:
        below = Scope(ACCOUNT, user_id="alice", run_id="r")
        for number, text in enumerate(SEARCH_TEXTS):
            harness.assert_claim(text, scope=below if number % 2 else ALICE)
        assert get_bm25_scores(harness.search_texts("green tea")) == compute_bm25_scores(
            SEARCH_TEXTS, "green tea"
        )
        assert get_bm25_scores(harness.search_texts("green tea", below)) == compute_bm25_scores(
            SEARCH_TEXTS[1::2], "green tea"
        )

    def test_later_writes_do_not_affect_past_scores(self, harness: AccountHarness) -> None:
        for number, text in enumerate(SEARCH_TEXTS):
            harness.assert_claim(text, f"t{number}")
        past_seq, before = harness.head_seq, harness.search_texts("green tea")
        harness.assert_claim("Alice drinks green juice", "t0")
        harness.retract_thread("t3")
        harness.assert_claim("green tea again")
        assert harness.search_texts("green tea", seq=past_seq) == before
        latest = [
            "Alice drinks green juice",
            *SEARCH_TEXTS[1:3],
            *SEARCH_TEXTS[4:],
            "green tea again",
        ]
        assert get_bm25_scores(harness.search_texts("green tea")) == compute_bm25_scores(
            latest, "green tea"
        )

    def test_expired_facts_do_not_affect_scores(self, harness: AccountHarness) -> None:
        for text in SEARCH_TEXTS:
            harness.assert_claim(text)
        end = harness.store.get_head(ACCOUNT).at + 1000
        harness.assert_claim("green tea for a while", expires=end)
        assert get_bm25_scores(harness.search_texts("green tea", at=end)) == compute_bm25_scores(
            SEARCH_TEXTS, "green tea"
        )
        all_texts = [*SEARCH_TEXTS, "green tea for a while"]
        assert get_bm25_scores(
            harness.search_texts("green tea", at=end, show_expired=True)
        ) == compute_bm25_scores(all_texts, "green tea")

    def test_valid_at_limits_search_to_facts_valid_then(self, harness: AccountHarness) -> None:
        harness.assert_claim("lives in Rome with tea", "home", valid=Interval(100, 200, "instant"))
        harness.assert_claim("lives in Oslo with tea", "home", valid=Interval(200, None, "instant"))
        assert get_bm25_scores(harness.search_texts("tea", valid_at=150)) == compute_bm25_scores(
            ["lives in Rome with tea"], "tea"
        )
        assert get_bm25_scores(harness.search_texts("tea", valid_at=250)) == compute_bm25_scores(
            ["lives in Oslo with tea"], "tea"
        )

    def test_a_filter_does_not_affect_scores(self, harness: AccountHarness) -> None:
        for number, text in enumerate(SEARCH_TEXTS):
            harness.assert_claim(text, meta={"even": number % 2 == 0})
        all_scores = compute_bm25_scores(SEARCH_TEXTS, "green tea")
        hits = get_bm25_scores(harness.search_texts("green tea", where={"even": True}))
        assert hits == {
            text: score for text, score in all_scores.items() if text in SEARCH_TEXTS[::2]
        }

    def test_search_covers_the_speaker_name(self, harness: AccountHarness) -> None:
        harness.assert_claim("likes tea", actor="Zoe")
        assert get_bm25_scores(harness.search_texts("zoe")) == {
            "likes tea": compute_bm25_scores(["Zoe: likes tea"], "zoe")["Zoe: likes tea"]
        }

    def test_lists_stop_at_depth_whatever_the_filter(self, harness: AccountHarness) -> None:
        harness.store.bind_model(SEARCH_EMBEDDER.model, SEARCH_EMBEDDER.dim)
        for number in range(6):
            harness.assert_claim(f"tea {number}", meta={"number": number})
            harness.store.put_vectors(
                {hash_text(f"tea {number}"): embed_text("tea" if number < 4 else "coffee")}
            )
        hits = harness.search_texts("tea", vector=embed_text("tea"), depth=2)
        assert len(get_bm25_scores(hits)) == 2
        assert len(get_cosine_scores(hits)) == 2
        assert get_cosine_scores(hits).keys() <= {"tea 0", "tea 1", "tea 2", "tea 3"}
        filtered_hits = harness.search_texts(
            "tea", vector=embed_text("tea"), depth=2, where={"number": {"lt": 2}}
        )
        assert (
            sorted(get_bm25_scores(filtered_hits))
            == sorted(get_cosine_scores(filtered_hits))
            == ["tea 0", "tea 1"]
        )

    def test_each_retriever_lists_a_fact_once_best_first(self, harness: AccountHarness) -> None:
        harness.store.bind_model(SEARCH_EMBEDDER.model, SEARCH_EMBEDDER.dim)
        for text in SEARCH_TEXTS[:2]:
            harness.assert_claim(text)
        harness.store.put_vectors({hash_text(SEARCH_TEXTS[0]): embed_text(SEARCH_TEXTS[0])})
        query_vector = embed_text(SEARCH_TEXTS[1])
        hits = harness.store.index.search(IndexQuery(harness.build_query(), ("tea",), query_vector))
        [(seq, score)] = hits.by_vector
        assert seq == 1
        assert score == approximate(
            query_cosine(encode_query(query_vector), quantise(embed_text(SEARCH_TEXTS[0])))
        )
        assert sorted(seq for seq, _ in hits.by_terms) == [1, 2]
        assert [score for _, score in hits.by_terms] == sorted(
            (score for _, score in hits.by_terms), reverse=True
        )

    def test_the_vector_score_is_the_cosine_of_quantised_vectors(
        self, harness: AccountHarness
    ) -> None:
        harness.store.bind_model(SEARCH_EMBEDDER.model, SEARCH_EMBEDDER.dim)
        for text in SEARCH_TEXTS:
            harness.assert_claim(text)
        harness.store.put_vectors({hash_text(text): embed_text(text) for text in SEARCH_TEXTS})
        query_vector = embed_text("green tea at night")
        expected_scores = {
            text: query_cosine(encode_query(query_vector), quantise(embed_text(text)))
            for text in SEARCH_TEXTS
        }
        assert get_cosine_scores(harness.search_texts(vector=query_vector)) == approximate(
            expected_scores
        )
        assert get_bm25_scores(harness.search_texts(vector=query_vector)) == {}

    def test_vectors_of_other_scopes_are_not_searched(self, harness: AccountHarness) -> None:
        harness.store.bind_model(SEARCH_EMBEDDER.model, SEARCH_EMBEDDER.dim)
        harness.assert_claim("shared words", scope=ALICE)
        harness.assert_claim("shared words", scope=BOB)
        harness.assert_claim("words of his own", scope=BOB)
        harness.store.put_vectors(
            {hash_text(text): embed_text(text) for text in ("shared words", "words of his own")}
        )
        assert list(
            get_cosine_scores(harness.search_texts(vector=embed_text("words of his own")))
        ) == ["shared words"]
        assert (
            get_cosine_scores(
                harness.search_texts(
                    vector=embed_text("x"), scope=Scope("umbrella", user_id="alice")
                )
            )
            == {}
        )

    def test_vector_search_respects_time_and_filters(self, harness: AccountHarness) -> None:
        harness.store.bind_model(SEARCH_EMBEDDER.model, SEARCH_EMBEDDER.dim)
        harness.assert_claim("old tea", "t1", meta={"n": 1})
        harness.assert_claim("new tea", "t1", meta={"n": 2})
        harness.assert_claim("gone tea", "t2")
        harness.retract_thread("t2")
        harness.store.put_vectors(
            {hash_text(text): embed_text(text) for text in ("old tea", "new tea", "gone tea")}
        )
        query_vector = embed_text("tea")
        assert list(get_cosine_scores(harness.search_texts(vector=query_vector))) == ["new tea"]
        assert list(get_cosine_scores(harness.search_texts(vector=query_vector, seq=1))) == [
            "old tea"
        ]
        assert sorted(get_cosine_scores(harness.search_texts(vector=query_vector, seq=3))) == [
            "gone tea",
            "new tea",
        ]
        assert get_cosine_scores(harness.search_texts(vector=query_vector, where={"n": 1})) == {}

    def test_an_empty_search_finds_nothing(self, harness: AccountHarness) -> None:
        assert harness.search_texts("tea") == {}
        harness.assert_claim("tea")
        assert harness.search_texts() == {}
        assert harness.search_texts(vector=[1.0, 0.0]) == {}

    def test_a_vector_with_the_wrong_dimension_is_refused(self, harness: AccountHarness) -> None:
        harness.store.bind_model(SEARCH_EMBEDDER.model, SEARCH_EMBEDDER.dim)
        harness.assert_claim("tea")
        harness.store.put_vectors({hash_text("tea"): embed_text("tea")})
        with pytest.raises(ModelMismatch):
            harness.search_texts(vector=[1.0, 0.0])


TEA_HASH, MATE_HASH = hash_text("tea"), hash_text("mate")
CAROL = Scope(BOB.account, user_id="carol")


class VectorsContract(ContractBase):
    """A store is bound to one model until it is switched."""

    def test_a_new_store_is_bound_to_no_model(self, harness: AccountHarness) -> None:
        assert harness.store.current_model() is None
        harness.assert_claim("tea")
        assert dict(harness.store.pending_texts()) == {TEA_HASH: "tea"}

    def test_the_first_model_is_kept(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.store.bind_model("one", 2)
        assert harness.store.current_model() == ("one", 2)

    @pytest.mark.parametrize(("name", "dim"), [("two", 2), ("one", 3)])
    def test_another_model_is_refused_with_a_hint(
        self, harness: AccountHarness, name: str, dim: int
    ) -> None:
        harness.store.bind_model("one", 2)
        with pytest.raises(ModelMismatch, match="one") as refusal:
            harness.store.bind_model(name, dim)
        assert "reindex" in refusal.value.hint
        assert harness.store.current_model() == ("one", 2)

    def test_vectors_committed_with_their_text_are_searchable(
        self, harness: AccountHarness
    ) -> None:
        harness.store.bind_model("one", 2)
        harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0]})
        assert harness.embedded_hashes([TEA_HASH, MATE_HASH]) == {TEA_HASH}
        assert harness.store.lookup_existing(BOB, [], [], None, [TEA_HASH, MATE_HASH]).vectors == {
            TEA_HASH
        }
        assert dict(harness.store.pending_texts()) == {}
        assert harness.search_texts(vector=[1.0, 0.0])["tea"].cosine == approximate(1.0)

    def test_vectors_added_later_become_searchable(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.assert_claim("tea")
        assert harness.search_texts(vector=[1.0, 0.0]) == {}
        harness.store.put_vectors({TEA_HASH: [0.0, 2.0]})
        assert harness.search_texts(vector=[0.0, 1.0])["tea"].cosine == approximate(1.0)
        assert dict(harness.store.pending_texts()) == {}

    def test_a_new_vector_applies_to_earlier_identical_texts(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.assert_claim("tea")
        harness.assert_claim("tea", scope=CAROL)
        assert (
            harness.search_texts(vector=[0.0, 1.0])
            == harness.search_texts(scope=CAROL, vector=[0.0, 1.0])
            == {}
        )
        harness.commit(Asserted("t1", Claim("tea")), scope=BOB, vectors={TEA_HASH: [0.0, 2.0]})
        assert harness.search_texts(vector=[0.0, 1.0])["tea"].cosine == approximate(1.0)
        assert harness.search_texts(scope=CAROL, vector=[0.0, 1.0])["tea"].cosine == approximate(
            1.0
        )

    def test_identical_texts_share_one_vector(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0]})
        harness.assert_claim("tea", scope=BOB)
        other_scope = Scope("umbrella", user_id="carol")
        other = self.use_account(harness, "umbrella")
        other.assert_claim("tea", scope=other_scope)
        assert dict(harness.store.pending_texts()) == {}
        assert harness.search_texts(scope=BOB, vector=[1.0, 0.0])["tea"].cosine == approximate(1.0)
        assert other.search_texts(scope=other_scope, vector=[1.0, 0.0])[
            "tea"
        ].cosine == approximate(1.0)

    def test_replaced_versions_are_pending_too(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.assert_claim("tea", "t1")
        harness.assert_claim("mate", "t1")
        assert dict(harness.store.pending_texts()) == {TEA_HASH: "tea", MATE_HASH: "mate"}
        harness.store.put_vectors({TEA_HASH: [1.0, 0.0]})
        assert harness.search_texts(vector=[1.0, 0.0]) == {}
        assert list(harness.search_texts(vector=[1.0, 0.0], seq=1)) == ["tea"]

    def test_pending_texts_come_in_batches(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        for number in range(5):
            harness.assert_claim(f"tea {number}")
        rounds = 0
        while pending := harness.store.pending_texts(2):
            assert len(pending) <= 2
            assert all(hash_text(text) == key for key, text in pending.items())
            harness.store.put_vectors({key: [1.0, 0.0] for key in pending})
            rounds += 1
        assert rounds == 3

    def test_a_vector_of_the_wrong_size_is_refused_and_nothing_written(
        self, harness: AccountHarness
    ) -> None:
        harness.store.bind_model("one", 2)
        with pytest.raises(ModelMismatch):
            harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0, 0.0]})
        assert harness.head_seq == 0
        with pytest.raises(ModelMismatch):
            harness.store.put_vectors({TEA_HASH: [1.0]})
        assert not harness.embedded_hashes([TEA_HASH])

    def test_a_second_model_is_filled_before_switching(self, harness: AccountHarness) -> None:
        store = harness.store
        store.bind_model("one", 2)
        harness.commit(Asserted("t1", Claim("tea")), vectors={TEA_HASH: [1.0, 0.0]})
        assert dict(store.pending_texts(model="two")) == {TEA_HASH: "tea"}
        store.put_vectors({TEA_HASH: [0.0, 0.0, 1.0]}, "two")
        assert dict(store.pending_texts(model="two")) == {}
        assert harness.search_texts(vector=[1.0, 0.0])["tea"].cosine == approximate(1.0)
        store.bind_model("two", 3, switch=True)
        assert (
            store.current_model() == store.lookup_existing(ALICE, [], [], None).model == ("two", 3)
        )
        assert harness.search_texts(vector=[0.0, 0.0, 1.0])["tea"].cosine == approximate(1.0)
        assert dict(store.pending_texts(model="one")) == {TEA_HASH: "tea"}
        with pytest.raises(ModelMismatch):
            store.bind_model("one", 2)

    def test_vectors_of_another_model_are_ignored(self, harness: AccountHarness) -> None:
        harness.store.bind_model("m", 2)
        harness.commit(
            Asserted("t1", Claim("tea")), vectors={hash_text("tea"): [1.0, 0.0]}, model="other"
        )
        assert harness.embedded_hashes([hash_text("tea")]) == frozenset()
        assert list(harness.store.pending_texts()) == [hash_text("tea")]
        with pytest.raises(ModelMismatch):
            harness.store.index.search(
                IndexQuery(harness.build_query(), vector=[1.0, 0.0], model="other")
            )

    def test_an_empty_store_switches_freely(self, harness: AccountHarness) -> None:
        harness.store.bind_model("one", 2)
        harness.store.bind_model("two", 3, switch=True)
        assert harness.store.current_model() == ("two", 3)

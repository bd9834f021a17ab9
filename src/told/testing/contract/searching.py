"""Laws of searching: scores are those of the definition, and belong to what the read can see alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from told.core.errors import ModelMismatch
from told.core.ids import text_hash
from told.core.query import Probe
from told.core.scope import Scope
from told.core.score import Corpus, bm25, fine, frequencies, idf, quantise, toward
from told.core.text import terms
from told.core.when import Interval
from told.testing.contract.scribe import ACCOUNT, ALICE, BOB, Laws, Match, Scribe
from told.testing.fakes import HashingEmbedder

TEXTS = (
    "Alice drinks green tea in the morning",
    "Alice drinks coffee after lunch and tea at night",
    "The green bicycle belongs to Alice",
    "tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea tea",
    "\u6771\u4eac\u3067\u304a\u8336\u3092\u98f2\u3080",
    "...",
)
EMBEDDER = HashingEmbedder(16)


def expected(texts: Sequence[str], query: str) -> dict[str, float]:
    """The BM25 scores of texts that are all a read can see."""
    words = [terms(text) for text in texts]
    corpus = Corpus(len(texts), sum(map(len, words)))
    scores: dict[str, float] = {}
    for term in dict.fromkeys(terms(query)):
        weight = idf(corpus, sum(term in found for found in words))
        for text, found in zip(texts, words, strict=True):
            if term in found:
                score = bm25(weight, frequencies(found)[term], len(found), corpus.average)
                scores[text] = scores.get(text, 0.0) + score
    return scores


def lexical(found: dict[str, Match]) -> dict[str, float]:
    """The BM25 list of a search."""
    return {text: match.bm25 for text, match in found.items() if match.bm25 is not None}


def near(found: dict[str, Match]) -> dict[str, float]:
    """The cosine list of a search."""
    return {text: match.cosine for text, match in found.items() if match.cosine is not None}


def embedded(text: str) -> Sequence[float]:
    """The vector of a text."""
    return EMBEDDER.embed([text])[0]


class SearchLaws(Laws):
    """Nobody else's data, no later write and no filter moves a score."""

    @pytest.mark.parametrize("query", ["tea", "green tea", "Alice drinking tea tea tea", "\u304a\u8336", "zebra", ""])
    def test_the_lexical_score_is_bm25_bit_for_bit(self, book: Scribe, query: str) -> None:
        for text in TEXTS:
            book.tell(text)
        assert lexical(book.search(query)) == expected(TEXTS, query)

    def test_a_term_asked_twice_counts_once(self, book: Scribe) -> None:
        for text in TEXTS:
            book.tell(text)
        once, twice = (
            book.store.index.search(Probe(book.find(), asked)) for asked in (("tea", "green"), ("tea", "green", "tea"))
        )
        assert once == twice

    def test_other_scopes_and_accounts_move_no_score(self, book: Scribe) -> None:
        for text in TEXTS:
            book.tell(text)
        before = book.search("green tea")
        for number in range(20):
            book.tell(f"Bob drinks green tea, cup {number}", scope=BOB)
            book.tell(f"green {number}", scope=Scope(ACCOUNT, agent_id="alice"))
        theirs = Scope("umbrella", user_id="alice")
        self.elsewhere(book, "umbrella").tell("green tea", scope=theirs)
        assert book.search("green tea") == before
        assert book.search("cup") == {}

    def test_a_wider_scope_has_statistics_of_its_own(self, book: Scribe) -> None:
        below = Scope(ACCOUNT, user_id="alice", run_id="r")
        for number, text in enumerate(TEXTS):
            book.tell(text, scope=below if number % 2 else ALICE)
        assert lexical(book.search("green tea")) == expected(TEXTS, "green tea")
        assert lexical(book.search("green tea", below)) == expected(TEXTS[1::2], "green tea")

    def test_later_writes_move_no_score_of_a_read_in_the_past(self, book: Scribe) -> None:
        for number, text in enumerate(TEXTS):
            book.tell(text, f"t{number}")
        then, before = book.seq, book.search("green tea")
        book.tell("Alice drinks green juice", "t0")
        book.retract("t3")
        book.tell("green tea again")
        assert book.search("green tea", seq=then) == before
        latest = ["Alice drinks green juice", *TEXTS[1:3], *TEXTS[4:], "green tea again"]
        assert lexical(book.search("green tea")) == expected(latest, "green tea")

    def test_what_has_expired_counts_for_nothing(self, book: Scribe) -> None:
        for text in TEXTS:
            book.tell(text)
        end = book.store.head(ACCOUNT).at + 1000
        book.tell("green tea for a while", expires=end)
        assert lexical(book.search("green tea", at=end)) == expected(TEXTS, "green tea")
        every = [*TEXTS, "green tea for a while"]
        assert lexical(book.search("green tea", at=end, show_expired=True)) == expected(every, "green tea")

    def test_a_question_about_the_past_is_searched_among_what_held_then(self, book: Scribe) -> None:
        book.tell("lives in Rome with tea", "home", valid=Interval(100, 200, "instant"))
        book.tell("lives in Oslo with tea", "home", valid=Interval(200, None, "instant"))
        assert lexical(book.search("tea", valid_at=150)) == expected(["lives in Rome with tea"], "tea")
        assert lexical(book.search("tea", valid_at=250)) == expected(["lives in Oslo with tea"], "tea")

    def test_a_filter_moves_no_score(self, book: Scribe) -> None:
        for number, text in enumerate(TEXTS):
            book.tell(text, meta={"even": number % 2 == 0})
        every = expected(TEXTS, "green tea")
        found = lexical(book.search("green tea", where={"even": True}))
        assert found == {text: score for text, score in every.items() if text in TEXTS[::2]}

    def test_the_speakers_name_is_searched_too(self, book: Scribe) -> None:
        book.tell("likes tea", actor="Zoe")
        assert lexical(book.search("zoe")) == {"likes tea": expected(["Zoe: likes tea"], "zoe")["Zoe: likes tea"]}

    def test_each_list_is_cut_at_its_depth_and_equals_go_to_the_newer(self, book: Scribe) -> None:
        book.store.use_model(EMBEDDER.model, EMBEDDER.dim)
        for number in range(6):
            book.tell(f"tea {number}", meta={"number": number})
            book.store.put_vectors({text_hash(f"tea {number}"): embedded("tea" if number < 4 else "coffee")})
        found = book.search("tea", vector=embedded("tea"), depth=2)
        assert sorted(lexical(found)) == ["tea 4", "tea 5"]
        assert sorted(near(found)) == ["tea 2", "tea 3"]
        few = book.search("tea", vector=embedded("tea"), depth=2, where={"number": {"lt": 2}})
        assert sorted(lexical(few)) == sorted(near(few)) == ["tea 0", "tea 1"]

    def test_each_retriever_lists_a_fact_once_best_first(self, book: Scribe) -> None:
        book.store.use_model(EMBEDDER.model, EMBEDDER.dim)
        for text in TEXTS[:2]:
            book.tell(text)
        book.store.put_vectors({text_hash(TEXTS[0]): embedded(TEXTS[0])})
        asked = embedded(TEXTS[1])
        found = book.store.index.search(Probe(book.find(), ("tea",), asked))
        assert list(found.near) == [(1, toward(fine(asked), quantise(embedded(TEXTS[0]))))]
        assert sorted(seq for seq, _ in found.words) == [1, 2]
        assert [score for _, score in found.words] == sorted((score for _, score in found.words), reverse=True)

    def test_the_near_score_is_the_cosine_of_quantised_vectors_bit_for_bit(self, book: Scribe) -> None:
        book.store.use_model(EMBEDDER.model, EMBEDDER.dim)
        for text in TEXTS:
            book.tell(text)
        book.store.put_vectors({text_hash(text): embedded(text) for text in TEXTS})
        asked = embedded("green tea at night")
        wanted = {text: toward(fine(asked), quantise(embedded(text))) for text in TEXTS}
        assert near(book.search(vector=asked)) == wanted
        assert lexical(book.search(vector=asked)) == {}

    def test_vectors_of_other_scopes_are_not_searched(self, book: Scribe) -> None:
        book.store.use_model(EMBEDDER.model, EMBEDDER.dim)
        book.tell("shared words", scope=ALICE)
        book.tell("shared words", scope=BOB)
        book.tell("words of his own", scope=BOB)
        book.store.put_vectors({text_hash(text): embedded(text) for text in ("shared words", "words of his own")})
        assert list(near(book.search(vector=embedded("words of his own")))) == ["shared words"]
        assert near(book.search(vector=embedded("x"), scope=Scope("umbrella", user_id="alice"))) == {}

    def test_near_facts_obey_time_and_filters_like_all_others(self, book: Scribe) -> None:
        book.store.use_model(EMBEDDER.model, EMBEDDER.dim)
        book.tell("old tea", "t1", meta={"n": 1})
        book.tell("new tea", "t1", meta={"n": 2})
        book.tell("gone tea", "t2")
        book.retract("t2")
        book.store.put_vectors({text_hash(text): embedded(text) for text in ("old tea", "new tea", "gone tea")})
        asked = embedded("tea")
        assert list(near(book.search(vector=asked))) == ["new tea"]
        assert list(near(book.search(vector=asked, seq=1))) == ["old tea"]
        assert sorted(near(book.search(vector=asked, seq=3))) == ["gone tea", "new tea"]
        assert near(book.search(vector=asked, where={"n": 1})) == {}

    def test_a_search_for_nothing_finds_nothing(self, book: Scribe) -> None:
        assert book.search("tea") == {}
        book.tell("tea")
        assert book.search() == {}
        assert book.search(vector=[1.0, 0.0]) == {}

    def test_a_vector_that_does_not_fit_the_model_is_refused(self, book: Scribe) -> None:
        book.store.use_model(EMBEDDER.model, EMBEDDER.dim)
        book.tell("tea")
        book.store.put_vectors({text_hash("tea"): embedded("tea")})
        with pytest.raises(ModelMismatch):
            book.search(vector=[1.0, 0.0])

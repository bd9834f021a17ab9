"""Text processing: index terms, input validation and JSON from model replies."""

from __future__ import annotations

import hashlib
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import each_row
from told.errors import InvalidInput, TooLarge
from told.text import tokens as core_text
from told.text.tokens import (
    IRREGULAR_STEMS,
    STOP_WORDS,
    extract_query_terms,
    extract_terms,
    make_snippet,
    md5_hex,
    normalise_text,
    parse_lenient_json,
    parse_reply,
    split_sentences,
    stem_word,
    validate_text,
)

any_text = st.text(st.characters(exclude_categories=()))  # lone surrogates included


def matches_terms(query: str, memory: str) -> bool:
    """Return whether every term of the query is a term of the memory."""
    asked = extract_query_terms(query)
    return bool(asked) and set(asked) <= set(extract_terms(memory))


# index terms


@given(any_text)
def test_terms_never_raise_and_are_never_empty_strings(text: str) -> None:
    assert all(extract_terms(text))
    assert all(extract_query_terms(text))


@given(any_text)
def test_a_text_is_found_by_itself(text: str) -> None:
    assert set(extract_query_terms(text)) <= set(extract_terms(text))


@given(st.text(st.characters(categories=["L"])))
def test_terms_do_not_depend_on_unicode_normalisation(text: str) -> None:
    assert extract_terms(unicodedata.normalize("NFD", text)) == extract_terms(
        unicodedata.normalize("NFC", text)
    )


@each_row(
    "words",
    [
        "run runs running ran",
        "allergy allergies",
        "use uses used using",
        "hope hopes hoped hoping",
        "hop hops hopped hopping",
        "cache caches cached caching",
        "box boxes boxed boxing",
        "house houses housing",
        "church churches",
        "glass glasses",
        "study studies studied studying",
        "marry marries married marrying",
        "die dies died",
        "see sees seeing",
        "agree agrees agreed agreeing",
        "add adds added adding",
        "create creates created creating",
        "travel travels traveled travelled travelling",
        "install installs installed installing",
        "live lives lived living",
        "write writes wrote written writing",
        "buy bought buying",
        "child children",
        "quick quickly",
        "family families",
    ],
)
def test_inflections_share_one_stem(words: str) -> None:
    assert len({stem_word(word) for word in words.split()}) == 1


@each_row(
    ("one", "other"),
    [
        ("hope", "hop"),
        ("news", "new"),
        ("car", "care"),
        ("plan", "plane"),
        ("sing", "sin"),
        ("bed", "b"),
        ("thing", "th"),
    ],
)
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem_word(one) != stem_word(other)


@given(st.from_regex("[a-z]{1,20}", fullmatch=True))
def test_a_stem_is_never_empty_and_never_longer_than_its_word(word: str) -> None:
    assert stem_word(word)
    assert word in IRREGULAR_STEMS or len(stem_word(word)) <= len(word)


def test_stop_words_are_removed_and_the_order_is_kept() -> None:
    assert extract_terms("The cat and the dog are in Rome in 2026") == [
        "cat",
        "dog",
        "rome",
        "2026",
    ]


def test_a_text_of_stop_words_keeps_them() -> None:
    assert extract_terms("The Who") == ["the", "who"]
    assert matches_terms("the who", "The Who")


def test_repeated_terms_are_kept() -> None:
    assert extract_terms("tea, tea and more Tea") == ["tea", "tea", "tea"]


@each_row(
    ("query", "memory"),
    [
        ("alice", "Alice's sister"),
        ("alice", "Alice’s sister"),
        ("Alice's", "alice moved"),
        ("obrien", "Call O'Brien"),
        ("brien", "Call O'Brien"),
        ("homme", "l'homme"),
        ("running", "she runs daily"),
        ("allergy", "peanut ALLERGIES"),
        ("3.5", "version 3.5 came out"),
        ("2026", "on 2026-03-01"),
        ("2026-03-01", "on 2026-03-01"),
        ("1200", "paid $1,200 for it"),
        ("foo_bar", "call foo_bar()"),
        ("bar", "call foo_bar()"),
        ("fooBar", "call foo_bar()"),
        ("foo-bar", "call fooBar()"),
        ("server", "class HTTPServer"),
        ("http", "class HTTPServer"),
        ("email", "send an e-mail"),
        ("case", "kebab-case"),
        ("init", "the __init__ method"),
        ("foo.bar@example.com", "write to foo.bar@example.com."),
        ("example", "write to foo.bar@example.com."),
        ("example.com", "see https://example.com/docs/start?x=1"),
        ("docs", "see https://example.com/docs/start?x=1"),
        ("gpt4", "we use GPT-4"),
        ("C++", "knows C++ well"),
        ("C#", "knows C# well"),
        ("cafe", "Café Central"),
        ("CAFÉ", "cafe\u0301"),
        ("strasse", "Hauptstraße Straße"),
        ("istanbul", "İstanbul"),
        ("da nang", "Đà Nẵng"),
        ("МОСКВА", "москва"),
        ("καφεσ", "ΚΑΦΈΣ καφές"),
        ("full", "ｆｕｌｌ width"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("كتاب", "هذا كِتَاب"),
        ("北京", "昨天我去了北京"),
        ("去了北", "昨天我去了北京"),
        ("京", "昨天我去了北京"),
        ("手机", "我的iPhone手机"),
        ("iphone", "我的iPhone手机"),
        ("東京", "東京タワーに行った"),
        ("タワー", "東京タワーに行った"),
        ("ﾀﾜｰ", "東京タワーに行った"),
        ("서울", "저는 서울에서 살아요"),
        ("서울", unicodedata.normalize("NFD", "저는 서울에서 살아요")),
        ("ข้าว", "ฉันชอบกินข้าวผัด"),
        ("ພາສາ", "ພາສາລາວ"),
        ("ភាសា", "ភាសាខ្មែរ"),
    ],
)
def test_a_memory_is_found_by_related_queries(query: str, memory: str) -> None:
    assert matches_terms(query, memory)


@pytest.mark.parametrize(
    ("query", "memory"),
    [
        ("京北", "昨天我去了北京"),
        ("C++", "vitamin C"),
        ("3.5", "3 and 5"),
        ("bar", "foobar"),
        ("lice", "Alice"),
    ],
)
def test_a_memory_is_not_found_by_unrelated_queries(query: str, memory: str) -> None:
    assert not matches_terms(query, memory)


@given(st.text("北京天气很好我去了昨", min_size=3), st.data())
def test_an_unspaced_text_is_found_by_every_part_of_it(memory: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(memory) - 1))
    end = data.draw(st.integers(start + 1, len(memory)))
    assert matches_terms(memory[start:end], memory)


def test_contractions_give_no_terms() -> None:
    assert extract_terms("I don't eat it, I won't, they've said") == ["eat", "said"]


@given(st.from_regex(r"[a-zA-Z0-9_.@'-]{1,400}", fullmatch=True))
def test_term_length_is_bounded(text: str) -> None:
    assert all(len(term) <= 64 * 8 + 8 for term in extract_terms(text * 10))


def test_stop_words_are_plain_lower_case_words() -> None:
    assert all(word.isascii() and word.isalpha() and word.islower() for word in STOP_WORDS)


# comparable forms


@given(st.text())
def test_md5_is_computed_from_the_utf8_bytes(text: str) -> None:
    assert md5_hex(text) == hashlib.md5(text.encode()).hexdigest()


@given(any_text)
def test_md5_and_normalise_never_raise(text: str) -> None:
    assert len(md5_hex(text)) == 32
    assert normalise_text(normalise_text(text)) == normalise_text(text)


@given(st.text("aB \t\n\x1c\x7f.", max_size=12))
def test_normalisation_ignores_the_kind_of_white_space(text: str) -> None:
    assert normalise_text(text) == " ".join(text.lower().split())


def test_normalisation_ignores_case_spacing_and_unicode_form() -> None:
    assert normalise_text("  Café\n au  LAIT ") == normalise_text("cafe\u0301 au lait")
    assert normalise_text("tea") != normalise_text("tee")


# sentences and snippets


@each_row(
    ("text", "expected"),
    [
        ("", []),
        ("   \n ", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Smith met Mr. Jones at 5 p.m. today. They ate.",
            ["Dr. Smith met Mr. Jones at 5 p.m. today.", "They ate."],
        ),
        (
            "It costs 3.50 in the U.S. market. Cheap!",
            ["It costs 3.50 in the U.S. market.", "Cheap!"],
        ),
        ("Fruit, e.g. apples. Fine.", ["Fruit, e.g. apples.", "Fine."]),
        ("I agree, etc.", ["I agree, etc."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("Wait... what?! Yes.", ["Wait...", "what?!", "Yes."]),
        ("我住在北京。你呢？很好！再见", ["我住在北京。", "你呢？", "很好！", "再见"]),
        ("I like tea\nI live in Rome", ["I like tea", "I live in Rome"]),
        ("a long line\nthat goes on", ["a long line\nthat goes on"]),
        ("Title\n\nbody text", ["Title", "body text"]),
        ("- one\n- two\n- three", ["- one", "- two", "- three"]),
        ("see example.com for more", ["see example.com for more"]),
    ],
)
def test_sentences_are_split(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


@given(any_text)
def test_sentences_are_slices_that_omit_only_white_space(text: str) -> None:
    position = 0
    for sentence in split_sentences(text):
        start = text.index(sentence, position)
        assert not text[position:start].strip()
        position = start + len(sentence)
    assert not text[position:].strip()


@given(any_text, st.integers(0, 50))
def test_a_snippet_never_exceeds_its_width(text: str, width: int) -> None:
    assert len(make_snippet(text, width)) <= width
    assert "\n" not in make_snippet(text, width)


def test_a_snippet_is_cut_between_words_and_marked() -> None:
    assert make_snippet("the quick brown fox", 100) == "the quick brown fox"
    assert make_snippet("the quick brown fox", 12) == "the quick…"
    assert make_snippet("a\n\n b", 10) == "a b"


def test_a_snippet_does_not_split_an_emoji_sequence() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for width in range(1, 12):
        kept = make_snippet(f"ab{family}cdefghij", width).removesuffix("…")
        assert family in kept or not set(kept) & set(family)


# input validation


@given(any_text)
def test_clean_returns_the_text_unchanged_or_rejects_it(text: str) -> None:
    is_storable = "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)
    if is_storable:
        assert validate_text(text, limit=10_000) == text
    else:
        with pytest.raises(InvalidInput):
            validate_text(text, limit=10_000)


@each_row(
    "text",
    [
        "שלום \u202eabc\u202c",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "cafe\u0301 café",
        "\ufeffx",
        "\uffff",
        "",
    ],
)
def test_unusual_but_valid_text_is_unchanged(text: str) -> None:
    assert validate_text(text, limit=100) is text


def test_a_nul_is_rejected_with_its_position_and_a_fix() -> None:
    with pytest.raises(InvalidInput, match="offset 3") as refusal:
        validate_text("abc\0def", limit=100)
    assert refusal.value.detail == {"offset": 3}
    assert "replace" in refusal.value.hint


def test_a_lone_surrogate_is_rejected_with_its_position_and_a_working_fix() -> None:
    text = "né \ud83d!"
    with pytest.raises(InvalidInput, match=r"U\+D83D.* at offset 3") as refusal:
        validate_text(text, limit=100)
    assert "surrogatepass" in refusal.value.hint
    assert validate_text(
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), limit=100
    ).startswith("né ")


def test_a_text_over_the_character_limit_is_rejected() -> None:
    assert validate_text("é" * 10, limit=10)
    with pytest.raises(TooLarge) as refusal:
        validate_text("é" * 11, limit=10)
    assert refusal.value.detail == {"length": 11, "limit": 10}


@pytest.mark.parametrize("value", [None, 5, b"bytes", ["list"]])
def test_a_value_that_is_not_text_is_rejected(value: object) -> None:
    with pytest.raises(InvalidInput, match=type(value).__name__):
        validate_text(value, limit=100)  # type: ignore[arg-type]


# JSON from a model


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FACTS = {"facts": [{"text": "a, ] }"}, {"text": 'quote " here'}]}


@given(json_values)
def test_valid_json_is_parsed(value: object) -> None:
    assert parse_lenient_json(json.dumps(value)) == value


@each_row(
    "reply",
    [
        "{}",
        "Sure! Here it is:\n{}\nHope that helps [really].",
        "```json\n{}\n```",
        "```\n{}\n```\nAnything else?",
        "```json\n{}",
        '<think>maybe {"facts": []}?\nor [1]</think>\n{}',
        "no opening tag </think> {}",
        "<THINKING>hm</THINKING>```json\n{}\n```",
        "Note [1]: {}",
        "\ufeff{}",
    ],
)
def test_json_is_found_in_any_surrounding_text(reply: str) -> None:
    assert parse_lenient_json(reply.replace("{}", json.dumps(FACTS))) == FACTS


@given(json_values.filter(lambda value: isinstance(value, dict) and value))
def test_an_object_is_found_in_prose(value: object) -> None:
    assert parse_lenient_json(f"Here you are:\n{json.dumps(value)}\nDone.") == value


@each_row(
    ("reply", "expected"),
    [
        ('{"a": [1, 2, ], }', {"a": [1, 2]}),
        ('{"a": ",]", "b": 1,}', {"a": ",]", "b": 1}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ('{"a": NaN}', {"a": None}),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ("true", True),
        ('"text"', "text"),
    ],
)
def test_common_json_errors_are_repaired(reply: str, expected: object) -> None:
    assert parse_reply(reply).value == expected
    assert not parse_reply(reply).truncated


@each_row(
    ("reply", "expected"),
    [
        ('[{"a": 1}, {"a": 2}, {"a": ', [{"a": 1}, {"a": 2}]),
        ('[{"a": 1, "b": 2}, {"a": 3, "b', [{"a": 1, "b": 2}]),
        ('{"facts": [{"a": 1}, {"a": "]}, {', {"facts": [{"a": 1}]}),
        ('```json\n{"facts": ["one", "two", "thr', {"facts": ["one", "two"]}),
        ('{"facts": [1, 2], "note": "cut', {"facts": [1, 2]}),
        ('{"name": "Al", "age', {"name": "Al"}),
        (
            '{"facts": [{"a": [1, 2], "b": {"c": 3}}, {"a": [1',
            {"facts": [{"a": [1, 2], "b": {"c": 3}}]},
        ),
    ],
)
def test_complete_parts_of_a_truncated_reply_are_kept_and_the_truncation_reported(
    reply: str, expected: object
) -> None:
    assert parse_reply(reply).value == expected
    assert parse_reply(reply).truncated


@given(
    st.lists(st.fixed_dictionaries({"text": st.text(), "n": st.integers()}), min_size=1), st.data()
)
def test_a_truncated_array_gives_only_complete_objects(
    facts: list[object], data: st.DataObject
) -> None:
    whole = json.dumps(facts)
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        saved = parse_lenient_json(torn)
    except InvalidInput:
        saved = []
    assert saved == facts[: len(saved)]  # type: ignore[arg-type]


@each_row(
    "reply",
    ["", "   ", "I cannot help with that.", "<think>{}", "{", "[[[", '{"facts": [{"a', "]", "{a}"],
)
def test_a_reply_without_json_is_rejected(reply: str) -> None:
    with pytest.raises(InvalidInput, match="no JSON"):
        parse_lenient_json(reply)


@each_row(
    "reply",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        '["' * 50_000,
        "{[" * 50_000,
        "<think>" * 20_000,
        "[1," * 50_000,
    ],
    ids=range(6),
)
def test_a_hostile_reply_is_rejected_without_a_crash(reply: str) -> None:
    with pytest.raises(InvalidInput):
        parse_lenient_json(reply)


@given(any_text)
def test_any_reply_is_parsed_or_rejected(reply: str) -> None:
    try:
        value = parse_lenient_json(reply)
    except InvalidInput:
        return
    assert json.loads(json.dumps(value)) == value


def test_the_term_cache_is_bounded_and_skips_numbers_and_long_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = core_text._TermCache()
    monkeypatch.setattr(core_text, "_TERM_CACHE", words)
    monkeypatch.setattr(core_text, "WORD_CACHE_SIZE", 3)
    said = f"Running, 20240317 {'x' * 100} fooBar Zürich runs 5 (running)"
    first = extract_terms(said)
    assert first == extract_terms(said)
    assert first[:2] == ["run", "20240317"]
    assert 0 < len(words) <= 3
    assert not any(word.isdigit() or len(word) > core_text.MAX_CACHED_WORD_LENGTH for word in words)

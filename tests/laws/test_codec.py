"""Properties of the codec: every verb round-trips, in this version and in earlier ones."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import stage, tried
from tables import each_row
from told.errors import StoreCorrupt, StoreVersion
from told.ids import canonical_json, sha256
from told.model import entry as ledger
from told.model.entry import (
    GENESIS,
    Asserted,
    Claim,
    Draft,
    Erased,
    Evidence,
    Linked,
    Observed,
    Retracted,
    Ruled,
    compute_chain_hash,
    decode_envelope,
    encode_envelope,
    seal_entry,
    upcast_envelope,
    verb_sort,
)
from told.model.scope import Scope
from told.text.dates import ALWAYS, PRECISIONS, Interval

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
maybe = st.none() | texts
instants = st.integers(-(10**16), 10**16)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
metas = st.dictionaries(texts, json_values, max_size=3)
intervals = st.just(ALWAYS) | st.builds(
    lambda start, length, precision, open_start, open_end: Interval(
        None if open_start else start, None if open_end else start + length, precision
    ),
    instants,
    st.integers(1, 10**14),
    st.sampled_from(PRECISIONS),
    st.booleans(),
    st.booleans(),
)
evidence = st.builds(Evidence, texts, texts, maybe, st.none() | instants, texts, maybe, metas)
claims = st.builds(
    Claim,
    texts,
    texts,
    maybe,
    maybe,
    maybe,
    texts,
    texts,
    numbers,
    intervals,
    st.none() | instants,
    maybe,
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    maybe,
    maybe,
    st.none() | instants,
    maybe,
    maybe,
    metas,
)
VERBS = {
    "observed": st.builds(Observed, texts, evidence),
    "asserted": st.builds(Asserted, texts, claims, st.none() | instants),
    "retracted": st.builds(Retracted, texts, texts),
    "linked": st.builds(Linked, texts, texts, texts, numbers, metas),
    "ruled": st.builds(Ruled, texts, texts, metas),
    "erased": st.builds(Erased, st.lists(st.integers(1, 2**40)).map(tuple), texts, metas),
}
scopes = st.none() | st.builds(Scope, st.just("acme"), maybe, maybe, maybe)


def drafts(sort):
    return st.builds(Draft, VERBS[sort], scopes, texts, texts)


def test_every_verb_has_a_strategy():
    assert VERBS.keys() == ledger.VERBS.keys()


@pytest.mark.parametrize("sort", VERBS)
@given(data=st.data())
@tried(60)
def test_every_verb_round_trips_through_the_envelope(sort, data):
    draft = data.draw(drafts(sort))
    assert verb_sort(draft.verb) == sort
    envelope = encode_envelope(draft)
    read = decode_envelope(sort, "acme", envelope)
    assert read == draft
    assert encode_envelope(read) == envelope, "the form is canonical"
    assert json.loads(envelope)["v"] == ledger.VERSION
    assert canonical_json(json.loads(envelope)) == envelope, "and it is that of the whole"


def test_author_named_like_an_envelope_field_stays_an_author():
    draft = Draft(
        Observed("1", Evidence('"body":0')), Scope("acme", '"body":0'), '"body":0', '{"body":0}'
    )
    assert decode_envelope("observed", "acme", encode_envelope(draft)) == draft


@given(
    said=evidence,
    names=st.lists(st.integers(0, 9).map(lambda number: f"sha256:{number:064}"), max_size=3),
)
@tried(60)
def test_evidence_digest_is_taken_from_the_canonical_speaker_text_and_time(said, names):
    said = replace(said, meta={**said.meta, "blobs": names})
    parts = [said.sort, said.role, said.name, said.said_at, said.source, said.content]
    assert said.digest() == sha256(canonical_json([*parts, sorted(set(names))] if names else parts))


@pytest.mark.parametrize("odd", [1, True, 1.0])
def test_equal_values_with_different_spelling_have_different_digests(odd):
    for said in (Evidence("tea", source=1), Evidence("tea", source=odd)):
        parts = [said.sort, said.role, said.name, said.said_at, said.source, said.content]
        assert said.digest() == sha256(canonical_json(parts))


def test_cached_digest_is_not_reused_for_different_evidence():
    tea = Evidence("I like tea", meta={"blobs": ["sha256:" + "0" * 64]})
    assert tea.digest() == tea.digest() == replace(tea).digest() != replace(tea, meta={}).digest()
    assert (
        replace(tea, content="I like coffee", meta={}).digest()
        == Evidence("I like coffee").digest()
    )
    assert tea == replace(tea), "what was worked out is no part of what was said"


@given(
    drafted=st.lists(st.sampled_from(sorted(VERBS)).flatmap(drafts), min_size=1, max_size=4),
    salt=st.binary(),
)
@tried(20)
def test_sealed_entry_holds_the_hash_of_the_previous_one(drafted, salt):
    prev = GENESIS
    for seq, draft in enumerate(drafted, 1):
        sealed = seal_entry(draft, prev=prev, seq=seq, tx=1, at=7, salt=salt)
        assert sealed.digest == sha256(salt, encode_envelope(draft))
        header = {"seq": seq, "tx": 1, "at": 7, "sort": sealed.sort, "thread": sealed.thread}
        assert sealed.hash == compute_chain_hash(prev, **header, digest=sealed.digest)
        assert sealed.verb == draft.verb
        prev = sealed.hash


# Versions


def to_version_1(sort, data):
    """Upcast from an invented version 0, which named a claim's text `words` and had no policy."""
    body = dict(data["body"])
    if sort == "asserted":
        body["text"] = body.pop("words")
    return {**data, "body": body, "policy": "private"}


def version_0(thread, words):
    body = {"thread": thread, "words": words}
    return json.dumps({"v": 0, "scope": {"user_id": "u"}, "author": "old", "body": body}).encode()


def test_entry_of_an_earlier_version_is_upcast(monkeypatch):
    monkeypatch.setitem(ledger.UPCASTS, 0, to_version_1)
    read = decode_envelope("asserted", "acme", version_0("t", "green tea"))
    assert read == Draft(Asserted("t", Claim("green tea")), Scope("acme", "u"), "old", "private")


def test_upcasts_are_chained_up_to_the_current_version(monkeypatch):
    monkeypatch.setattr(ledger, "VERSION", 3)
    steps = []
    for version in range(3):
        monkeypatch.setitem(
            ledger.UPCASTS,
            version,
            lambda sort, data, v=version: steps.append(v) or {**data, "seen": v},
        )
    assert upcast_envelope("asserted", {"v": 0}) == {"v": 3, "seen": 2}
    assert steps == [0, 1, 2]
    assert upcast_envelope("asserted", {"v": 2}) == {"v": 3, "seen": 2}


def test_entry_of_an_unknown_version_is_rejected_with_a_hint():
    with pytest.raises(StoreVersion, match="version 0"):
        decode_envelope("asserted", "acme", version_0("t", "green tea"))
    with pytest.raises(StoreVersion, match="Upgrade told"):
        upcast_envelope("asserted", {"v": ledger.VERSION + 1})


@each_row(
    "envelope",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"v":1}',
        b'{"v":"1"}',
        b'{"v":null}',
        b"\xff\xfe",
        b'{"v":1,"scope":7}',
        b'{"v":1,"scope":null,"author":"a","policy":"p","body":7}',
        b'{"v":1,"scope":null,"author":"a","policy":"p","body":{"thread":"t","text":"x","bogus":1}}',
        b'{"v":1,"scope":{"user_id":"u"},"author":"a","policy":"p","body":{"thread":"t","text":"x","valid":{"start":"?"}}}',
        b'{"v":1,"scope":{"user_id":"u"},"author":"a","policy":"p","body":{"thread":"t","text":"x","valid":7}}',
        b'{"v":1,"scope":["u"],"author":"a","policy":"p","body":{"thread":"t","text":"x"}}',
    ],
)
def test_malformed_envelope_is_reported_as_corrupt(envelope):
    with pytest.raises((StoreCorrupt, StoreVersion)):
        decode_envelope("asserted", "acme", envelope)


def test_older_ledger_can_be_imported_read_and_verified(monkeypatch, tmp_path):
    monkeypatch.setitem(ledger.UPCASTS, 0, to_version_1)
    envelope, salt = version_0("t", "green tea"), b"sixteen bytes .."
    digest = sha256(salt, envelope)
    row = {
        "seq": 1,
        "tx": 1,
        "at": 7,
        "sort": "asserted",
        "thread": "t",
        "digest": digest.hex(),
        "salt": salt.hex(),
        "hash": compute_chain_hash(
            GENESIS, seq=1, tx=1, at=7, sort="asserted", thread="t", digest=digest
        ).hex(),
        "envelope": envelope.decode(),
    }
    header = {"account": "default", "format": "told-ledger/1"}
    for kind in ("ram", "sqlite"):
        with stage(kind) as here:
            here.memory.import_(f"{json.dumps(header)}\n{json.dumps(row)}\n".encode())
            assert here.memory.get("t")["memory"] == "green tea"
            assert here.memory.verify()["ok"]
            assert [hit["id"] for hit in here.memory.search("tea", user_id="u")["results"]] == ["t"]
            assert json.loads(here.exported().splitlines()[1]) == row, (
                "what was hashed is never rewritten"
            )

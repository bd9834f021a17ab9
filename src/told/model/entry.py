"""Ledger entries: six verbs, sealed into the hash chain of an account.

Erasable content (scope, author, body) forms one envelope; the chain holds only its salted digest,
so an entry whose content was erased still verifies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Final, TypeAlias, assert_never

from told.errors import StoreCorrupt, StoreVersion
from told.ids import (
    HASH_ALGORITHM,
    canonical_json_text,
    encode_utf8,
    hash_content,
    quote_json,
    sha256,
)
from told.model.scope import Scope
from told.runtime import lazy_regex
from told.text.dates import ALWAYS, Interval

BLOBS_KEY: Final = "blobs"
"""The metadata key of evidence that lists its blob hashes."""

_BLOB_HASH_PATTERN: Final = lazy_regex(rf"{HASH_ALGORITHM}:[0-9a-f]{{64}}")


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob and its media type; listings leave `data` empty."""

    hash: str
    media_type: str
    size: int
    data: bytes = field(default=b"", repr=False)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Blob:
        """Create a blob from bytes."""
        return cls(hash_content(data), media_type, len(data), bytes(data))


def is_blob_hash(value: Any) -> bool:
    """Return True if a value is a blob hash."""
    return isinstance(value, str) and _BLOB_HASH_PATTERN.fullmatch(value) is not None


def list_blob_hashes(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the distinct blob hashes in evidence metadata, sorted."""
    values = meta.get(BLOBS_KEY)
    return (
        tuple(sorted({value for value in values if is_blob_hash(value)}))
        if isinstance(values, list | tuple)
        else ()
    )


VERSION = 1
GENESIS = sha256(b"told ledger 1")
NO_META: Mapping[str, Any] = {}


class _DigestSlot:
    """A slot for a computed digest; it is derived from the fields and not one of them."""

    __slots__ = ("_digest",)
    _digest: bytes


@dataclass(frozen=True, slots=True)
class Evidence(_DigestSlot):
    """A verbatim input: a turn or an observation."""

    content: str
    role: str = "user"
    name: str | None = None
    said_at: int | None = None
    sort: str = "turn"
    source: str | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)

    def digest(self) -> bytes:
        """Return the identity of this evidence within its scope, computed once."""
        if not hasattr(self, "_digest"):
            prefix = (
                f"{_origin_prefix(self.sort, self.role, self.name, self.said_at, self.source)},"
                f"{quote_json(self.content)}"
            )
            blobs = list_blob_hashes(self.meta) if self.meta else ()
            object.__setattr__(
                self,
                "_digest",
                sha256(
                    encode_utf8(
                        f"{prefix},{canonical_json_text(blobs)}]" if blobs else f"{prefix}]"
                    )
                ),
            )
        return self._digest


@lru_cache(maxsize=256, typed=True)  # 1 and True are equal but encode differently
def _origin_prefix(*parts: str | int | None) -> str:
    """Return the digest prefix that many turns of a conversation share."""
    return canonical_json_text(parts)[:-1]


@dataclass(frozen=True, slots=True)
class Claim:
    """A proposition with its source and its valid time.

    `after` is the thread of the turn it replies to; the two are interpreted together.
    """

    text: str
    kind: str = "memory"
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    polarity: str = "asserted"
    modality: str = "stated"
    confidence: float = 1.0
    valid: Interval = ALWAYS
    expires: int | None = None
    evidence: str | None = None
    span: tuple[int, int] | None = None
    role: str | None = None
    actor: str | None = None
    said_at: int | None = None
    source: str | None = None
    after: str | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class Observed:
    """Record evidence."""

    id: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Asserted:
    """Assert a claim on a thread; `since` is set if the thread began before this entry."""

    thread: str
    claim: Claim
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Retracted:
    """Retract a thread."""

    thread: str
    why: str = "deleted"


@dataclass(frozen=True, slots=True)
class Linked:
    """Link two threads or references."""

    src: str
    rel: str
    dst: str
    weight: float = 1.0
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class Ruled:
    """Set a rule: a kind, policy, grant, key or role."""

    sort: str
    name: str
    rule: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Erased:
    """Record that the content of these entries was destroyed on request."""

    seqs: tuple[int, ...]
    why: str = "requested"
    was: Mapping[str, Any] = field(default_factory=lambda: NO_META)


Verb: TypeAlias = Observed | Asserted | Retracted | Linked | Ruled | Erased
VERBS: Mapping[str, type[Any]] = {
    "observed": Observed,
    "asserted": Asserted,
    "retracted": Retracted,
    "linked": Linked,
    "ruled": Ruled,
    "erased": Erased,
}
_SORTS = {verb: sort for sort, verb in VERBS.items()}


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that is not in the ledger yet."""

    verb: Verb
    scope: Scope | None
    author: str = "user"
    policy: str = "private"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an account's ledger; `draft` is None once its content was erased."""

    seq: int
    tx: int
    at: int
    sort: str
    thread: str | None
    digest: bytes
    hash: bytes
    salt: bytes | None
    envelope: bytes | None
    draft: Draft | None

    @property
    def verb(self) -> Verb | None:
        """Return the verb, or None if the content was erased."""
        return None if self.draft is None else self.draft.verb


def verb_sort(verb: Verb) -> str:
    """Return the stored name of a verb."""
    return _SORTS[type(verb)]


def verb_thread(verb: Verb) -> str | None:
    """Return the thread whose history a verb belongs to."""
    match verb:
        case Observed():
            return None
        case Asserted(thread=thread) | Retracted(thread=thread):
            return thread
        case Linked(dst=dst):
            return dst
        case Ruled() | Erased():
            return None
        case _:
            assert_never(verb)


def seal_entry(draft: Draft, *, prev: bytes, seq: int, tx: int, at: int, salt: bytes) -> Entry:
    """Seal a draft into the chain."""
    envelope = encode_envelope(draft)
    sort, thread = verb_sort(draft.verb), verb_thread(draft.verb)
    digest = sha256(salt, envelope)
    entry_hash = compute_chain_hash(
        prev, seq=seq, tx=tx, at=at, sort=sort, thread=thread, digest=digest
    )
    return Entry(seq, tx, at, sort, thread, digest, entry_hash, salt, envelope, draft)


def compute_chain_hash(
    prev: bytes, *, seq: int, tx: int, at: int, sort: str, thread: str | None, digest: bytes
) -> bytes:
    """Hash an entry's unerasable header together with its predecessor's hash."""
    return sha256(
        prev,
        f"{seq}\n{tx}\n{at}\n{sort}\n{thread or ''}\n".encode("utf-8", "surrogatepass"),
        digest,
    )


def is_next_in_chain(prev: bytes, entry: Entry) -> bool:
    """Return True if an entry's hash matches its header and its predecessor."""
    entry_hash = compute_chain_hash(
        prev,
        seq=entry.seq,
        tx=entry.tx,
        at=entry.at,
        sort=entry.sort,
        thread=entry.thread,
        digest=entry.digest,
    )
    return entry_hash == entry.hash


# Envelope


def encode_envelope(draft: Draft) -> bytes:
    """Encode the erasable part of an entry as canonical JSON."""
    scope = draft.scope
    ids = () if scope is None else (scope.user_id, scope.agent_id, scope.run_id)
    prefix, suffix = _envelope_frame(draft.author, draft.policy, *ids)
    return encode_utf8(f"{prefix}{{{','.join(_encode_members(draft.verb))}}}{suffix}")


@lru_cache(maxsize=256)
def _envelope_frame(author: str, policy: str, *ids: str | None) -> tuple[str, str]:
    """Return the text before and after the body; cached, as batches share it."""
    scope = Scope("", *ids).as_json() if ids else None
    envelope = canonical_json_text(
        {"v": VERSION, "scope": scope, "author": author, "policy": policy, "body": 0}
    )
    prefix, key, suffix = envelope.partition(
        '"body":0'
    )  # unambiguous: quotes inside texts are escaped
    return prefix + key[:-1], suffix


def decode_envelope(sort: str, account: str, envelope: bytes) -> Draft:
    """Decode an envelope of this or any earlier version."""
    try:
        data = upcast_envelope(sort, json.loads(envelope))
        scope = (
            None
            if data["scope"] is None
            else Scope.from_json(account, _check_shape(data["scope"], {}))
        )
        verb = _decode_verb(sort, _check_shape(data["body"], BODY_SHAPES[sort]))
        return Draft(verb, scope, str(data["author"]), str(data["policy"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreCorrupt(f"The entry ({sort}) cannot be read: {error}.") from error


_MAYBE_TEXT = (str, type(None))
_MAYBE_INT = (int, type(None))
BODY_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "observed": {
        "id": str,
        "content": str,
        "role": str,
        "name": _MAYBE_TEXT,
        "said_at": _MAYBE_INT,
        "meta": dict,
    },
    "asserted": {
        "thread": str,
        "text": str,
        "kind": str,
        "meta": dict,
        "since": _MAYBE_INT,
        "expires": _MAYBE_INT,
        "said_at": _MAYBE_INT,
        "confidence": (int, float),
        "evidence": _MAYBE_TEXT,
        "actor": _MAYBE_TEXT,
        "after": _MAYBE_TEXT,
    },
    "retracted": {"thread": str, "why": str},
    "linked": {"src": str, "rel": str, "dst": str, "weight": (int, float), "meta": dict},
    "ruled": {"sort": str, "name": str, "rule": dict},
    "erased": {"seqs": list, "why": str, "was": dict},
}


def _check_shape(body: Any, shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object after checking the types of its known fields."""
    if not isinstance(body, dict):
        raise TypeError(f"an object was expected, not {type(body).__name__}")
    for name, kind in shape.items():
        if name in body and (not isinstance(body[name], kind) or isinstance(body[name], bool)):
            raise TypeError(f"{name} is {type(body[name]).__name__}")
    return body


Upcast: TypeAlias = Callable[[str, dict[str, Any]], dict[str, Any]]
UPCASTS: dict[int, Upcast] = {}


def upcast_envelope(sort: str, data: dict[str, Any]) -> dict[str, Any]:
    """Convert an envelope of an earlier version to this one, version by version."""
    if not isinstance(data, dict) or type(data["v"]) is not int:
        raise TypeError("an envelope with a version was expected")
    while data["v"] < VERSION:
        step = UPCASTS.get(data["v"])
        if step is None:
            raise StoreVersion(f"Entries of version {data['v']} are not supported.")
        data = {**step(sort, data), "v": data["v"] + 1}
    if data["v"] > VERSION:
        raise StoreVersion(
            f"The entry has version {data['v']}; this told reads up to {VERSION}.",
            hint="Upgrade told.",
        )
    return data


def _encode_members(verb: Verb) -> list[str]:
    """Encode the members of a body, sorted by name."""
    match verb:
        case Observed(id=id, evidence=evidence):
            members = [_encode_member("id", id), *_encode_sparse(evidence, _EVIDENCE_DEFAULTS)]
        case Asserted(thread=thread, claim=claim, since=since):
            members = [_encode_member("thread", thread), *_encode_sparse(claim, _CLAIM_DEFAULTS)]
            if claim.valid is not ALWAYS:
                members.append(_encode_member("valid", claim.valid.as_json()))
            if since is not None:
                members.append(_encode_member("since", since))
        case Erased(seqs=seqs, why=why, was=was):
            members = [
                _encode_member("seqs", seqs),
                _encode_member("why", why),
                _encode_member("was", dict(was)),
            ]
        case Retracted() | Linked() | Ruled():
            members = [
                _encode_member(name, getattr(verb, name)) for name in verb.__dataclass_fields__
            ]
        case _:
            assert_never(verb)
    return sorted(members)  # the quote after a name sorts before every letter


def _encode_member(name: str, value: Any) -> str:
    return f'"{name}":{quote_json(value) if type(value) is str else canonical_json_text(value)}'


def _decode_verb(sort: str, body: dict[str, Any]) -> Verb:
    match sort:
        case "observed":
            return Observed(body.pop("id"), Evidence(**body))
        case "asserted":
            thread, since = body.pop("thread"), body.pop("since", None)
            if "valid" in body:
                body["valid"] = Interval.from_json(body["valid"])
            if "span" in body:
                body["span"] = tuple(body["span"])
            return Asserted(thread, Claim(**body), since)
        case "erased":
            return Erased(tuple(body["seqs"]), body["why"], body["was"])
        case _:
            verb: Verb = VERBS[sort](**body)
            return verb


def _encode_sparse(value: Any, defaults: Mapping[str, Any]) -> list[str]:
    """Encode the fields that differ from their defaults."""
    members: list[str] = []
    for name, default in defaults.items():
        held = getattr(value, name)
        if held is not default and held != default:
            members.append(_encode_member(name, held))
    return members


def _sparse_defaults(cls: type[Any]) -> Mapping[str, Any]:
    """Return the encoded fields of a class with their defaults; the text has none."""
    defaults = cls(object())
    return {item.name: getattr(defaults, item.name) for item in fields(cls) if item.name != "valid"}


_EVIDENCE_DEFAULTS: Final = _sparse_defaults(Evidence)
_CLAIM_DEFAULTS: Final = _sparse_defaults(Claim)

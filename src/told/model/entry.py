"""The ledger's only line: an entry, one of six verbs, sealed into its account's hash chain.

What can be destroyed on request (scope, author, body) is one envelope; the chain holds only its salted digest, so an
entry whose content was erased still verifies and says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
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
from told.runtime import fast_frozen_init, lazy_regex
from told.text.dates import ALWAYS, Interval

BLOBS_KEY: Final = "blobs"
"""The metadata of evidence that lists the hashes of its blobs."""

_BLOB_HASH_PATTERN: Final = lazy_regex(rf"{HASH_ALGORITHM}:[0-9a-f]{{64}}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes and what they are; a listing leaves the bytes themselves out."""

    hash: str
    media_type: str
    size: int
    data: bytes = field(default=b"", repr=False)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Blob:
        """The blob of some bytes."""
        return cls(hash_content(data), media_type, len(data), bytes(data))


def is_blob_hash(value: Any) -> bool:
    """Whether a value is the hash of a blob."""
    return isinstance(value, str) and _BLOB_HASH_PATTERN.fullmatch(value) is not None


def list_blob_hashes(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The hashes that the metadata of a piece of evidence names, each once, in order."""
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
    """Room for a digest once it was asked for; it is no field, for it follows from them."""

    __slots__ = ("_digest",)
    _digest: bytes


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Evidence(_DigestSlot):
    """What was said or seen, verbatim."""

    content: str
    role: str = "user"
    name: str | None = None
    said_at: int | None = None
    sort: str = "turn"
    source: str | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)

    def digest(self) -> bytes:
        """The identity of this evidence inside its scope, worked out once."""
        if not hasattr(self, "_digest"):
            prefix = f"{_origin_prefix(self.sort, self.role, self.name, self.said_at, self.source)},{quote_json(self.content)}"
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


@lru_cache(maxsize=256, typed=True)  # 1 and True are equal, but not written alike
def _origin_prefix(*parts: str | int | None) -> str:
    """How the digest of evidence begins: with whatever many turns of a conversation have in common."""
    return canonical_json_text(parts)[:-1]


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Claim:
    """One proposition, with where it came from and when it holds in the world.

    `after` is the thread of the turn it answers, where people talk to each other: the two are understood together.
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


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Observed:
    """This was said or seen."""

    id: str
    evidence: Evidence


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Asserted:
    """We hold this claim on this thread; `since` is when the thread began, if it began before this entry."""

    thread: str
    claim: Claim
    since: int | None = None


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Retracted:
    """We no longer hold what the thread says."""

    thread: str
    why: str = "deleted"


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Linked:
    """One thing bears on another."""

    src: str
    rel: str
    dst: str
    weight: float = 1.0
    meta: Mapping[str, Any] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class Ruled:
    """What may be stored, and who may do what."""

    sort: str
    name: str
    rule: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Erased:
    """The content of these entries was destroyed on request."""

    seqs: tuple[int, ...]
    why: str = "requested"
    was: Mapping[str, Any] = field(default_factory=lambda: NO_META)


Verb: TypeAlias = Observed | Asserted | Retracted | Linked | Ruled | Erased
VERBS: Mapping[str, type[Any]] = {
    "observed": Observed, "asserted": Asserted, "retracted": Retracted,
    "linked": Linked, "ruled": Ruled, "erased": Erased,
}  # fmt: skip
_SORTS = {verb: sort for sort, verb in VERBS.items()}


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that has no place in the ledger yet."""

    verb: Verb
    scope: Scope | None
    author: str = "user"
    policy: str = "private"


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an account's ledger; `draft` is None once its content was erased."""

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
        """What the entry says, if it still says anything."""
        return None if self.draft is None else self.draft.verb


def verb_sort(verb: Verb) -> str:
    """The stored name of a verb."""
    return _SORTS[type(verb)]


def verb_thread(verb: Verb) -> str | None:
    """The thread whose history the verb belongs to."""
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
    """Give a draft its place in the chain."""
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
    """The hash of an entry over its predecessor's and everything that can never be erased."""
    return sha256(
        prev,
        f"{seq}\n{tx}\n{at}\n{sort}\n{thread or ''}\n".encode("utf-8", "surrogatepass"),
        digest,
    )


def is_next_in_chain(prev: bytes, entry: Entry) -> bool:
    """Whether an entry's hash is what its place after another and its own header make it."""
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


# The envelope ---------------------------------------------------------------------------------------------------------


def encode_envelope(draft: Draft) -> bytes:
    """The erasable part of an entry as canonical JSON."""
    scope = draft.scope
    ids = () if scope is None else (scope.user_id, scope.agent_id, scope.run_id)
    prefix, suffix = _envelope_frame(draft.author, draft.policy, *ids)
    return encode_utf8(f"{prefix}{{{','.join(_encode_members(draft.verb))}}}{suffix}")


@lru_cache(maxsize=256)
def _envelope_frame(author: str, policy: str, *ids: str | None) -> tuple[str, str]:
    """What stands before a body and behind it, its keys in order: the same for all that is written together."""
    scope = Scope("", *ids).as_json() if ids else None
    envelope = canonical_json_text(
        {"v": VERSION, "scope": scope, "author": author, "policy": policy, "body": 0}
    )
    prefix, key, suffix = envelope.partition(
        '"body":0'
    )  # no text holds this: a quotation mark in one is escaped
    return prefix + key[:-1], suffix


def decode_envelope(sort: str, account: str, envelope: bytes) -> Draft:
    """Read an envelope of this or any earlier version."""
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
    "observed": {"id": str, "content": str, "role": str, "name": _MAYBE_TEXT, "said_at": _MAYBE_INT, "meta": dict},
    "asserted": {"thread": str, "text": str, "kind": str, "meta": dict, "since": _MAYBE_INT, "expires": _MAYBE_INT,
                 "said_at": _MAYBE_INT, "confidence": (int, float), "evidence": _MAYBE_TEXT, "actor": _MAYBE_TEXT,
                 "after": _MAYBE_TEXT},
    "retracted": {"thread": str, "why": str},
    "linked": {"src": str, "rel": str, "dst": str, "weight": (int, float), "meta": dict},
    "ruled": {"sort": str, "name": str, "rule": dict},
    "erased": {"seqs": list, "why": str, "was": dict},
}  # fmt: skip


def _check_shape(body: Any, shape: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object whose known fields have the types they were written with."""
    if not isinstance(body, dict):
        raise TypeError(f"an object was expected, not {type(body).__name__}")
    for name, kind in shape.items():
        if name in body and (not isinstance(body[name], kind) or isinstance(body[name], bool)):
            raise TypeError(f"{name} is {type(body[name]).__name__}")
    return body


Upcast: TypeAlias = Callable[[str, dict[str, Any]], dict[str, Any]]
UPCASTS: dict[int, Upcast] = {}


def upcast_envelope(sort: str, data: dict[str, Any]) -> dict[str, Any]:
    """Bring an envelope of an earlier version up to this one, a version at a time."""
    if not isinstance(data, dict) or type(data["v"]) is not int:
        raise TypeError("an envelope with a version was expected")
    while data["v"] < VERSION:
        step = UPCASTS.get(data["v"])
        if step is None:
            raise StoreVersion(f"No reader for entries of version {data['v']}.")
        data = {**step(sort, data), "v": data["v"] + 1}
    if data["v"] > VERSION:
        raise StoreVersion(
            f"The entry has version {data['v']}; this told reads up to {VERSION}.",
            hint="Upgrade told.",
        )
    return data


def _encode_members(verb: Verb) -> list[str]:
    """The members of a body, each as it is written, in the order of their names."""
    match verb:
        case Observed(id=id, evidence=evidence):
            members = _sparse_encoder(Evidence)([_encode_member("id", id)], evidence)
        case Asserted(thread=thread, claim=claim, since=since):
            members = _sparse_encoder(Claim)([_encode_member("thread", thread)], claim)
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
    return sorted(members)  # a quotation mark, which ends a name, comes before every letter


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


@cache
def _sparse_encoder(cls: type[Any]) -> Callable[[list[str], Any], list[str]]:
    """What adds a value's own text and the fields that differ from their defaults: a plain turn is a short line.

    It is written out, as an `__init__` is: to go through the fields in a loop takes twice as long.
    """
    defaults, field_names = (
        cls(object()),
        [field.name for field in fields(cls) if field.name != "valid"],
    )
    tests = (
        f"if (held := value.{name}) is not _{name} and held != _{name}" for name in field_names
    )
    lines = (
        f"{test}: members.append(_member({name!r}, held))"
        for test, name in zip(tests, field_names, strict=True)
    )
    names: dict[str, Any] = {
        "_member": _encode_member,
        **{f"_{name}": getattr(defaults, name) for name in field_names},
    }
    exec("\n  ".join(("def sparse(members, value):", *lines, "return members")), names)
    encoder: Callable[[list[str], Any], list[str]] = names["sparse"]
    return encoder

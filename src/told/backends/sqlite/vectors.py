"""Vectors in the file: a cache by text hash is the truth, blocks of 256 are a faster copy that may be thrown away.

A block carries what it was made from (partition epoch, builder version) and a hash over that, its place and its bytes.
One that does not fit is never used: the cache answers in its place, and the next repair makes the block anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, repeat
from math import sqrt
from typing import Any, Final

import apsw

from told.backends.sqlite.connect import run, run_many, run_rows
from told.backends.sqlite.rows import PART_BITS, PART_MASK, hex_list, part_span
from told.core import score
from told.core.errors import ModelMismatch, StoreCorrupt
from told.core.ids import sha256
from told.core.score import FINE, WIDE, ZERO, fine, quantise
from told.core.value import quick

BLOCK: Final = 256
BUILDER: Final = 2
AT_ONCE: Final = 64
"""How many vectors are packed together: more no longer fit where a processor is quick to find them."""


def pack(rows: Iterable[Sequence[float]]) -> list[bytes]:
    """Vectors as stored; faster where NumPy is installed, and the same bytes where it is not."""
    try:
        import numpy as np
    except ImportError:
        return [quantise(row) for row in rows]
    left, codes = iter(rows), list[bytes]()
    while some := list(islice(left, AT_ONCE)):
        values = np.array(some, dtype=np.float64)
        peaks = np.maximum.reduce(np.abs(values), axis=1, initial=0.0)
        peaks[peaks == 0.0] = 127.0
        values *= (127.0 / peaks)[:, np.newaxis]
        whole, dim = np.rint(values, out=values).astype(np.int8).tobytes(), values.shape[1]
        codes += (whole[row * dim : (row + 1) * dim] for row in range(len(some)))
    return codes


def code_of(vector: Sequence[float]) -> bytes:
    """One vector as stored."""
    [code] = pack([vector])
    return code


def aim(vector: Sequence[float]) -> bytes:
    """A query as it is compared; faster where NumPy is installed, and the same bytes where it is not."""
    try:
        import numpy as np
    except ImportError:
        return fine(vector)
    values = np.array(vector, dtype=np.float64)
    peak = np.maximum.reduce(np.abs(values), initial=0.0)
    if not peak:
        return b""
    values /= peak
    values *= WIDE
    np.rint(values, out=values)
    values *= FINE / sqrt(values @ values)
    np.rint(values, out=values)
    values += ZERO
    return values.astype(np.int16).tobytes()


@lru_cache(maxsize=16)
def asked(query: bytes) -> tuple[Any, float]:
    """The values of a query as NumPy likes them, and their length."""
    import numpy as np

    values = np.frombuffer(query, np.int16) - np.float32(ZERO)
    return values, sqrt(values @ values)


def toward(query: bytes, code: bytes) -> float:
    """The cosine of a query with a code; faster where NumPy is installed, and the same bits where it is not."""
    try:
        import numpy as np
    except ImportError:
        return score.toward(query, code)
    values, length = asked(query)
    norms = length * score.norm(code)
    return float(values @ np.frombuffer(code, np.int8).astype(np.float64)) / norms if norms else 0.0


@quick
@dataclass(frozen=True, slots=True)
class Model:
    """An embedder as the file knows it."""

    id: int
    name: str
    dim: int

    def check(self, name: str | None, dim: int) -> None:
        """Refuse vectors of another model."""
        if (name or self.name, dim) != (self.name, self.dim):
            raise ModelMismatch(
                f"The store is indexed with {self.name} ({self.dim} dimensions), not {name or 'a model'} ({dim}).",
                hint="Open it again with that embedder.",
            )

    def check_all(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        """Refuse vectors of another length than the model's."""
        for width in set(map(len, vectors.values())):
            self.check(None, width)

    def fits(self, code: Any) -> bool:
        """Whether this can be the code of one of the model's vectors."""
        return isinstance(code, bytes) and len(code) == self.dim

    def remember(self, db: apsw.Connection, vectors: Mapping[bytes, Sequence[float]]) -> list[bytes]:
        """Cache the vectors of texts by their hashes; return those that a passage has been waiting for."""
        if not vectors:
            return []
        rows = zip(repeat(self.id), vectors, pack(vectors.values()))
        return [digest for digest, awaited in run_rows(db, "add_embedding", rows, len(vectors)) if awaited]


def current(db: apsw.Connection) -> Model | None:
    """The model searches use."""
    row = run(db, "model").fetchone()
    return None if row is None else Model(*row)


def named(db: apsw.Connection, name: str) -> Model | None:
    """A model by name."""
    row = run(db, "model_named", name).fetchone()
    return None if row is None else Model(*row)


def cached(db: apsw.Connection, hashes: Sequence[bytes]) -> frozenset[bytes]:
    """Which texts have a vector under the current model."""
    return frozenset(digest for (digest,) in run(db, "embedded", hex_list(hashes)))


def fold_blocks(db: apsw.Connection, model: Model, part: int, first: int, rows: int) -> int:
    """Make the blocks that are full and complete between two ordinals; return how many."""
    made = 0
    for number in range(first // BLOCK, rows // BLOCK):
        start = number * BLOCK
        lo, _ = part_span(part, start)
        codes = run(db, "part_codes", model.id, lo, lo + BLOCK).fetchall()
        if len(codes) == BLOCK and all(model.fits(code) for _, code in codes):
            body = b"".join(code for _, code in codes)
            epoch = run(db, "part_state", part).fetchone()[3]
            digest = manifest(model, part, number, epoch, body)
            run(db, "add_block", model.id, part, number, epoch, BUILDER, digest, body)
            made += 1
    return made


def manifest(model: Model, part: int, number: int, epoch: int, codes: bytes) -> bytes:
    """The hash of a block, over its place and what it was made from as well as its bytes: none stands for another."""
    return sha256(f"{model.id}\n{part}\n{number}\n{epoch}\n{BUILDER}\n".encode(), codes)


def sound(model: Model, part: int, epoch: int, row: tuple[int, int, int, bytes, bytes]) -> bool:
    """Whether a block is what its manifest says and belongs to this place in this epoch of its partition."""
    number, made_in, builder, digest, codes = row
    fits = made_in == epoch and builder == BUILDER and isinstance(codes, bytes) and len(codes) == BLOCK * model.dim
    return fits and manifest(model, part, number, epoch, codes) == digest


def load(db: apsw.Connection, model: Model, part: int, epoch: int, first: int, rows: int) -> dict[int, bytes]:
    """Runs of codes by the ordinal they begin at: whole sound blocks, and what there is of single rows elsewhere.

    A single row that is no vector of the model is an error, for there is nothing else to answer in its place.
    """
    found: dict[int, bytes] = {}
    start, full = -(-first // BLOCK), rows // BLOCK
    for row in run(db, "blocks", model.id, part, start).fetchall() if start < full else ():
        if sound(model, part, epoch, row) and row[0] < full:
            found[row[0] * BLOCK] = row[4]
    ordinal = first
    while ordinal < rows:
        if ordinal in found:
            ordinal += BLOCK
            continue
        stop = min(rows, next((begin for begin in sorted(found) if begin > ordinal), rows))
        lo, _ = part_span(part)
        found.update(_codes(db, model, lo + ordinal, lo + stop))
        ordinal = stop
    return found


def _codes(db: apsw.Connection, model: Model, lo: int, hi: int) -> dict[int, bytes]:
    """Runs of the codes of single passages, none longer than a block, each known to be a vector of the model."""
    codes = dict(run(db, "part_codes", model.id, lo, hi).fetchall())
    if not all(map(model.fits, codes.values())):
        raise StoreCorrupt("A vector of the index is damaged.", hint="Run `told rebuild`, then `told reindex`.")
    begins = [ordinal for ordinal in codes if ordinal - 1 not in codes or ordinal % BLOCK == 0]
    ends = [ordinal + 1 for ordinal in codes if ordinal + 1 not in codes or (ordinal + 1) % BLOCK == 0]
    runs = zip(begins, ends, strict=True)
    return {begin: b"".join(map(codes.__getitem__, range(begin, end))) for begin, end in runs}


def put(db: apsw.Connection, model: Model, vectors: Mapping[bytes, Sequence[float]], *, live: bool) -> None:
    """Cache vectors that came late and let the partitions that waited for them see them.

    One whose text was erased while it was being embedded comes too late.
    """
    model.check_all(vectors)
    passages = waiting(db, list(vectors))
    known = cached(db, list(vectors)).union(digest for _, digest in passages)
    # Erased meanwhile, or robbed of its vector by damage: every passage is looked at.
    if lost := [digest for digest in vectors if digest not in known]:
        passages += run(db, "passages_with_hash", hex_list(lost)).fetchall()
        known = known.union(digest for _, digest in passages)
    model.remember(db, {digest: vector for digest, vector in vectors.items() if digest in known})
    if live:
        arrive(db, model, passages)


def waiting(db: apsw.Connection, hashes: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """The passages that wait for these vectors, each with the one it waits for."""
    return run(db, "waiting", hex_list(hashes)).fetchall()


def arrive(db: apsw.Connection, model: Model, passages: Sequence[tuple[int, bytes]]) -> None:
    """Let passages whose vectors came be found by them."""
    run_many(db, "ready_passage", [(id_,) for id_, _ in passages])
    parts: dict[int, list[int]] = {}
    for id_, _ in passages:
        parts.setdefault(id_ >> PART_BITS, []).append(id_ & PART_MASK)
    for part, ordinals in parts.items():
        run(db, "bump_part", part)
        rows = run(db, "part_state", part).fetchone()[0]
        for number in {ordinal // BLOCK for ordinal in ordinals}:
            fold_blocks(db, model, part, number * BLOCK, min(rows, (number + 1) * BLOCK))


def drop_misfits(db: apsw.Connection) -> int:
    """Drop vectors that are not of their model's size, whose passages wait for new ones; return how many there were."""
    run(db, "drop_misfit_vectors")
    dropped = db.changes()
    if dropped:
        run(db, "wait_again")
    return dropped


def drop_orphans(db: apsw.Connection, hashes: Iterable[Any]) -> int:
    """Drop the vectors, of every model, of texts that no passage has any more; return how many there were."""
    texts = {digest for digest in hashes if isinstance(digest, bytes)}  # a damaged passage may hold anything
    held = {digest for _, digest in run(db, "passages_with_hash", hex_list([*texts]))}
    run(db, "drop_vectors", hex_list([*texts - held]))
    return db.changes()

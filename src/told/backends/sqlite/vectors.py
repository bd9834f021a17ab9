"""Stored vectors: a cache by text hash is authoritative, blocks of 256 are a disposable copy.

A block carries what it was built from (partition epoch, builder version) and a hash over that, its
position and its bytes. An invalid block is never used: the cache answers, and the next repair
rebuilds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, repeat
from math import sqrt
from typing import Any, Final

import apsw

from told.backends.sqlite.connection import run_batched, run_many, run_query
from told.backends.sqlite.rows import PART_BITS, PART_MASK, get_passage_id_range, to_hex_list
from told.errors import ModelMismatch, StoreCorrupt
from told.ids import sha256
from told.model import scoring
from told.model.scoring import BYTE_BIAS, INT16_MAX, QUERY_CODE_LENGTH, encode_query, quantise

BLOCK_SIZE: Final = 256
BUILDER_VERSION: Final = 2
PACK_BATCH: Final = 64
"""Vectors packed at once; more would not fit the CPU cache."""


def pack_vectors(rows: Iterable[Sequence[float]]) -> list[bytes]:
    """Pack vectors as stored; the bytes are the same with and without NumPy."""
    try:
        import numpy as np
    except ImportError:
        return [quantise(row) for row in rows]
    remaining, codes = iter(rows), list[bytes]()
    while batch := list(islice(remaining, PACK_BATCH)):
        values = np.array(batch, dtype=np.float64)
        peaks = np.maximum.reduce(np.abs(values), axis=1, initial=0.0)
        peaks[peaks == 0.0] = 127.0
        values *= (127.0 / peaks)[:, np.newaxis]
        packed, dim = np.rint(values, out=values).astype(np.int8).tobytes(), values.shape[1]
        codes += (packed[row * dim : (row + 1) * dim] for row in range(len(batch)))
    return codes


def pack_vector(vector: Sequence[float]) -> bytes:
    """Pack one vector."""
    [code] = pack_vectors([vector])
    return code


def pack_query(vector: Sequence[float]) -> bytes:
    """Pack a query vector; the bytes are the same with and without NumPy."""
    try:
        import numpy as np
    except ImportError:
        return encode_query(vector)
    values = np.array(vector, dtype=np.float64)
    peak = np.maximum.reduce(np.abs(values), initial=0.0)
    if not peak:
        return b""
    values /= peak
    values *= INT16_MAX
    np.rint(values, out=values)
    values *= QUERY_CODE_LENGTH / sqrt(values @ values)
    np.rint(values, out=values)
    values += BYTE_BIAS
    return values.astype(np.int16).tobytes()


@lru_cache(maxsize=16)
def unpack_query(query: bytes) -> tuple[Any, float]:
    """Return the values of a packed query as a NumPy array, and their norm."""
    import numpy as np

    values = np.frombuffer(query, np.int16) - np.float32(BYTE_BIAS)
    return values, sqrt(values @ values)


def compute_query_cosine(query: bytes, code: bytes) -> float:
    """Return the cosine of a packed query and a code, equal with and without NumPy."""
    try:
        import numpy as np
    except ImportError:
        return scoring.query_cosine(query, code)
    values, length = unpack_query(query)
    norms = length * scoring.norm(code)
    return float(values @ np.frombuffer(code, np.int8).astype(np.float64)) / norms if norms else 0.0


@dataclass(frozen=True, slots=True)
class StoredModel:
    """An embedding model as stored in the file."""

    id: int
    name: str
    dim: int

    def require_match(self, name: str | None, dim: int) -> None:
        """Raise `ModelMismatch` for another model."""
        if (name or self.name, dim) != (self.name, self.dim):
            raise ModelMismatch(
                f"The store is indexed with {self.name} ({self.dim} dimensions), not "
                f"{name or 'a model'} ({dim}).",
                hint="Open it again with that embedder.",
            )

    def require_dimensions(self, vectors: Mapping[bytes, Sequence[float]]) -> None:
        """Raise if a vector has another dimension."""
        for width in set(map(len, vectors.values())):
            self.require_match(None, width)

    def is_valid_code(self, code: Any) -> bool:
        """Return whether bytes can be a code of this model."""
        return isinstance(code, bytes) and len(code) == self.dim

    def store_vectors(
        self, db: apsw.Connection, vectors: Mapping[bytes, Sequence[float]]
    ) -> list[bytes]:
        """Cache vectors by text hash; return the hashes that passages wait for."""
        if not vectors:
            return []
        rows = zip(repeat(self.id), vectors, pack_vectors(vectors.values()))
        return [
            digest
            for digest, awaited in run_batched(db, "add_embedding", rows, len(vectors))
            if awaited
        ]


def load_current_model(db: apsw.Connection) -> StoredModel | None:
    """Load the model that searches use."""
    row = run_query(db, "model").fetchone()
    return None if row is None else StoredModel(*row)


def load_model(db: apsw.Connection, name: str) -> StoredModel | None:
    """Load a model by name."""
    row = run_query(db, "model_named", name).fetchone()
    return None if row is None else StoredModel(*row)


def find_cached_hashes(db: apsw.Connection, hashes: Sequence[bytes]) -> frozenset[bytes]:
    """Return which texts have a vector under the current model."""
    return frozenset(digest for (digest,) in run_query(db, "embedded", to_hex_list(hashes)))


def build_blocks(db: apsw.Connection, model: StoredModel, part: int, first: int, rows: int) -> int:
    """Build the full blocks in a range of ordinals; return how many."""
    built = 0
    for number in range(first // BLOCK_SIZE, rows // BLOCK_SIZE):
        start = number * BLOCK_SIZE
        lo, _ = get_passage_id_range(part, start)
        codes = run_query(db, "part_codes", model.id, lo, lo + BLOCK_SIZE).fetchall()
        if len(codes) == BLOCK_SIZE and all(model.is_valid_code(code) for _, code in codes):
            body = b"".join(code for _, code in codes)
            epoch = run_query(db, "part_state", part).fetchone()[3]
            digest = hash_block(model, part, number, epoch, body)
            run_query(db, "add_block", model.id, part, number, epoch, BUILDER_VERSION, digest, body)
            built += 1
    return built


def hash_block(model: StoredModel, part: int, number: int, epoch: int, codes: bytes) -> bytes:
    """Hash a block with its position and origin, so that no block can stand in for another."""
    return sha256(f"{model.id}\n{part}\n{number}\n{epoch}\n{BUILDER_VERSION}\n".encode(), codes)


def is_valid_block(
    model: StoredModel, part: int, epoch: int, row: tuple[int, int, int, bytes, bytes]
) -> bool:
    """Return whether a block matches its hash, position and partition epoch."""
    number, made_in, builder, digest, codes = row
    is_current = (
        made_in == epoch
        and builder == BUILDER_VERSION
        and isinstance(codes, bytes)
        and len(codes) == BLOCK_SIZE * model.dim
    )
    return is_current and hash_block(model, part, number, epoch, codes) == digest


def load_codes(
    db: apsw.Connection, model: StoredModel, part: int, epoch: int, first: int, rows: int
) -> dict[int, bytes]:
    """Load codes in runs by first ordinal: valid blocks, and single rows elsewhere.

    An invalid single row raises, since nothing can replace it.
    """
    runs: dict[int, bytes] = {}
    start, full = -(-first // BLOCK_SIZE), rows // BLOCK_SIZE
    for row in run_query(db, "blocks", model.id, part, start).fetchall() if start < full else ():
        if is_valid_block(model, part, epoch, row) and row[0] < full:
            runs[row[0] * BLOCK_SIZE] = row[4]
    ordinal = first
    while ordinal < rows:
        if ordinal in runs:
            ordinal += BLOCK_SIZE
            continue
        stop = min(rows, next((begin for begin in sorted(runs) if begin > ordinal), rows))
        lo, _ = get_passage_id_range(part)
        runs.update(_load_code_runs(db, model, lo + ordinal, lo + stop))
        ordinal = stop
    return runs


def _load_code_runs(db: apsw.Connection, model: StoredModel, lo: int, hi: int) -> dict[int, bytes]:
    """Load runs of single passages' codes, at most a block long, and check each."""
    codes = dict(run_query(db, "part_codes", model.id, lo, hi).fetchall())
    if not all(map(model.is_valid_code, codes.values())):
        raise StoreCorrupt(
            "A vector of the index is damaged.", hint="Run `told rebuild`, then `told reindex`."
        )
    begins = [ordinal for ordinal in codes if ordinal - 1 not in codes or ordinal % BLOCK_SIZE == 0]
    ends = [
        ordinal + 1
        for ordinal in codes
        if ordinal + 1 not in codes or (ordinal + 1) % BLOCK_SIZE == 0
    ]
    runs = zip(begins, ends, strict=True)
    return {begin: b"".join(map(codes.__getitem__, range(begin, end))) for begin, end in runs}


def store_late_vectors(
    db: apsw.Connection,
    model: StoredModel,
    vectors: Mapping[bytes, Sequence[float]],
    *,
    is_searched: bool,
) -> None:
    """Cache vectors that arrive after their commit and index the waiting passages.

    A vector whose text was erased meanwhile is dropped.
    """
    model.require_dimensions(vectors)
    passages = find_waiting_passages(db, list(vectors))
    known_hashes = find_cached_hashes(db, list(vectors)).union(digest for _, digest in passages)
    # Erased meanwhile or damaged: check every passage.
    if lost := [digest for digest in vectors if digest not in known_hashes]:
        passages += run_query(db, "passages_with_hash", to_hex_list(lost)).fetchall()
        known_hashes = known_hashes.union(digest for _, digest in passages)
    model.store_vectors(
        db, {digest: vector for digest, vector in vectors.items() if digest in known_hashes}
    )
    if is_searched:
        mark_vectors_ready(db, model, passages)


def find_waiting_passages(db: apsw.Connection, hashes: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """Return the passages that wait for these vectors."""
    return run_query(db, "waiting", to_hex_list(hashes)).fetchall()


def mark_vectors_ready(
    db: apsw.Connection, model: StoredModel, passages: Sequence[tuple[int, bytes]]
) -> None:
    """Make passages searchable by their new vectors."""
    run_many(db, "ready_passage", [(id_,) for id_, _ in passages])
    parts: dict[int, list[int]] = {}
    for id_, _ in passages:
        parts.setdefault(id_ >> PART_BITS, []).append(id_ & PART_MASK)
    for part, ordinals in parts.items():
        run_query(db, "bump_part", part)
        rows = run_query(db, "part_state", part).fetchone()[0]
        for number in {ordinal // BLOCK_SIZE for ordinal in ordinals}:
            build_blocks(db, model, part, number * BLOCK_SIZE, min(rows, (number + 1) * BLOCK_SIZE))


def drop_invalid_vectors(db: apsw.Connection) -> int:
    """Drop vectors of a wrong size so that they are embedded again; return how many."""
    run_query(db, "drop_misfit_vectors")
    dropped = db.changes()
    if dropped:
        run_query(db, "wait_again")
    return dropped


def drop_orphan_vectors(db: apsw.Connection, hashes: Iterable[Any]) -> int:
    """Drop vectors, of every model, whose text no passage has; return how many."""
    texts = {
        digest for digest in hashes if isinstance(digest, bytes)
    }  # a damaged passage may hold anything
    used = {digest for _, digest in run_query(db, "passages_with_hash", to_hex_list([*texts]))}
    run_query(db, "drop_vectors", to_hex_list([*texts - used]))
    return db.changes()

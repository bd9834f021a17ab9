"""An embedder that runs a local ONNX model, single-threaded by default, with its tokenizer."""

from __future__ import annotations

import os
import threading
import unicodedata
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from told.errors import ConfigError, EmbeddingError, InvalidInput
from told.providers.local.registry import ONNX_FILENAME, LocalModel
from told.runtime import reset_on_fork

if TYPE_CHECKING:
    from told.ports import Purpose


VOCABULARY_PATH = Path(__file__).with_name("bert-uncased.txt")
"""BERT's uncased vocabulary (Google, Apache-2.0): one piece per line, id = line number."""

MAX_WORD_CHARS = 100
"""Longer words are unknown, as in training."""

CONTINUATION_PREFIX = "##"
"""Prefix of a piece that continues a word."""

IDEOGRAPH_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Unicode blocks whose characters are single words."""

ASCII_SYMBOLS = frozenset("$+<=>^`|~")
"""ASCII symbols that BERT treats as punctuation."""

DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Mn"})
"""Unicode categories that are removed: controls, formats, private use, combining marks."""


def normalise_char(char: str) -> str:
    """Map one decomposed character: drop it, or make it a space, a word or lower case."""
    category = unicodedata.category(char)
    if char in "\t\n\r" or category.startswith("Z"):
        return " "
    if category in DROPPED_CATEGORIES or char == "\N{REPLACEMENT CHARACTER}":
        return ""
    if category.startswith("P") or char in ASCII_SYMBOLS or is_ideograph(ord(char)):
        return f" {char} "
    return char.lower()


def is_ideograph(code: int) -> bool:
    """Return whether a code point is a CJK ideograph; kana and hangul are not."""
    return any(first <= code <= last for first, last in IDEOGRAPH_RANGES)


class _CharTable(dict[int, str]):
    """A lazily filled table for `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = text = normalise_char(chr(code))
        return text


_CHAR_TABLE = _CharTable()


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation, lower-cased and without accents."""
    return unicodedata.normalize("NFD", text).translate(_CHAR_TABLE).split()


class WordPiece:
    """A thread-safe WordPiece tokenizer over one vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = {piece: index for index, piece in enumerate(vocabulary)}
        self._start, self._end, self._unknown = (
            self._ids[token] for token in ("[CLS]", "[SEP]", "[UNK]")
        )

    def encode(self, text: str, limit: int) -> list[int]:
        """Return at most `limit` token ids, including the start and end marks."""
        ids = (piece for word in split_words(text) for piece in self._encode_word(word))
        return [self._start, *islice(ids, limit - 2), self._end]

    def _encode_word(self, word: str) -> list[int]:
        """Encode greedily by longest piece; an unknown part makes the word unknown."""
        if len(word) > MAX_WORD_CHARS:
            return [self._unknown]
        ids: list[int] = []
        remaining, prefix = word, ""
        while remaining:
            sizes = range(len(remaining), 0, -1)
            size = next((size for size in sizes if prefix + remaining[:size] in self._ids), 0)
            if not size:
                return [self._unknown]
            ids.append(self._ids[prefix + remaining[:size]])
            remaining, prefix = remaining[size:], CONTINUATION_PREFIX
        return ids


@cache
def get_bundled_tokenizer() -> WordPiece:
    """Return the tokenizer over the bundled vocabulary."""
    return WordPiece(VOCABULARY_PATH.read_text(encoding="utf-8").rstrip("\n").split("\n"))


Floats: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]

TOKENS_PER_RUN = 512
"""Maximum tokens per run, or one text."""

LOAD_FAILURES = (
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)
"""The exceptions onnxruntime raises for an invalid file."""


@dataclass(frozen=True, slots=True)
class _OnnxNetwork:
    """A loaded ONNX session and its inputs."""

    session: Any
    inputs: frozenset[str]
    output: str
    batch: int

    def compute_hidden(self, ids: Ints, mask: Ints) -> Floats:
        """Return the last hidden state: texts x tokens x dimensions."""
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        accepted = {name: values for name, values in feeds.items() if name in self.inputs}
        states: Floats = self.session.run([self.output], accepted)[0]
        return states


class OnnxEmbedder:
    """A thread-safe local embedder that loads its model at first use."""

    local: bool = True

    def __init__(
        self, model: LocalModel, folder: Path, *, threads: int = 1, batch: int = 8
    ) -> None:
        if threads < 1 or batch < 1:
            raise ConfigError(f"threads and batch must be at least 1, not {threads} and {batch}.")
        self.model = f"local:{model.name}"
        self.dim = model.dim
        self.usual, self.spread = model.usual, model.spread
        self.topics = model.topics
        self._spec = model
        self._folder = folder
        self._threads = threads
        self._batch = batch
        self._network: _OnnxNetwork | None = None
        self._load_lock = reset_on_fork(threading.Lock())

    def embed(self, texts: Sequence[str], purpose: Purpose = "passage") -> list[Sequence[float]]:
        """Return one float32 unit vector per text, in order."""
        if isinstance(texts, str):
            raise InvalidInput(
                "embed() takes a list of texts, not one text.", hint="Write embed([text])."
            )
        if not texts:
            return []
        prefix = self._get_prefix(purpose)
        network = self._get_network()
        tokenizer = get_bundled_tokenizer()
        tokens = [tokenizer.encode(prefix + text, self._spec.max_tokens) for text in texts]
        vectors = np.empty((len(tokens), self.dim), dtype=np.float32)
        for indices in group_by_length([len(ids) for ids in tokens], network.batch):
            ids, mask = pad_rows([tokens[index] for index in indices])
            vectors[indices] = normalise_rows(
                pool_tokens(network.compute_hidden(ids, mask), mask, self._spec.pooling)
            )
        return [array("f", row.tobytes()) for row in vectors]

    def _get_prefix(self, purpose: Purpose) -> str:
        """Return the prefix the model was trained with for this purpose."""
        prefixes: Mapping[str, str] = {
            "query": self._spec.query_prefix,
            "passage": self._spec.passage_prefix,
        }
        if purpose not in prefixes:
            raise InvalidInput(
                f"A text is embedded as a query or as a passage, not as {purpose!r}."
            )
        return prefixes[purpose]

    def _get_network(self) -> _OnnxNetwork:
        """Load the network once."""
        with self._load_lock:
            if self._network is None:
                self._network = load_network(
                    self._folder / ONNX_FILENAME, threads=self._threads, batch=self._batch
                )
            return self._network


def import_runtime() -> Any:
    """Import onnxruntime with telemetry off; its thread would block forked children at exit."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    runtime = import_module("onnxruntime")
    runtime.disable_telemetry_events()
    return runtime


def load_network(graph: Path, *, threads: int, batch: int) -> _OnnxNetwork:
    """Open a network with its own threads and without the memory arena."""
    runtime = import_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    failures = tuple(
        getattr(runtime.capi.onnxruntime_pybind11_state, name) for name in LOAD_FAILURES
    )
    try:
        session = runtime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except failures as error:
        hint = f"Run `told models verify {graph.parent.name}`."
        raise EmbeddingError(
            f"The model in {graph.parent} cannot be loaded: {error}", hint=hint
        ) from error
    output = session.get_outputs()[0]
    # Some exports fix the batch dimension at 1.
    size = output.shape[0] if isinstance(output.shape[0], int) else batch
    return _OnnxNetwork(
        session, frozenset(node.name for node in session.get_inputs()), output.name, size
    )


def group_by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Group text positions by length, at most `size` per batch, fewer if long."""
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) == size or lengths[index] * (len(group) + 1) > TOKENS_PER_RUN):
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def pad_rows(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Pad token ids to a rectangle and return the attention mask."""
    width = max(map(len, rows))
    ids, mask = np.zeros((2, len(rows), width), dtype=np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask


def pool_tokens(hidden: Floats, mask: Ints, pooling: str) -> Floats:
    """Pool token vectors by first token or masked mean."""
    if pooling == "cls":
        return hidden[:, 0]
    weights = mask[:, :, np.newaxis].astype(np.float32)
    mean: Floats = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def normalise_rows(vectors: Floats) -> Floats:
    """Normalise rows to unit length."""
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled

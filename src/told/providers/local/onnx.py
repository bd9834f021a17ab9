"""An embedder that runs a local ONNX model: no network, no key, one thread unless told otherwise."""

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
"""The vocabulary of BERT uncased (Google, Apache-2.0): one piece a line, its id is its line."""

MAX_WORD_CHARS = 100
"""A word with more characters is unknown, as it was in training."""

CONTINUATION_PREFIX = "##"
"""Marks a piece that does not start a word."""

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
"""The blocks whose characters are words of their own."""

ASCII_SYMBOLS = frozenset("$+<=>^`|~")
"""Punctuation to BERT though symbols to Unicode; their like beyond ASCII are parts of words."""

DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Mn"})
"""Categories that leave no trace: controls, formats, private use, lone surrogates, accents split from their letters."""


def normalise_char(char: str) -> str:
    """What one character of decomposed text becomes: nothing, a space, itself as a word, or a letter in lower case."""
    category = unicodedata.category(char)
    if char in "\t\n\r" or category.startswith("Z"):
        return " "
    if category in DROPPED_CATEGORIES or char == "\N{REPLACEMENT CHARACTER}":
        return ""
    if category.startswith("P") or char in ASCII_SYMBOLS or is_ideograph(ord(char)):
        return f" {char} "
    return char.lower()


def is_ideograph(code: int) -> bool:
    """Whether a code point is a Chinese character; kana and hangul are not."""
    return any(first <= code <= last for first, last in IDEOGRAPH_RANGES)


class _CharTable(dict[int, str]):
    """`rendered` as a table for `str.translate`, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = text = normalise_char(chr(code))
        return text


_CHAR_TABLE = _CharTable()


def split_words(text: str) -> list[str]:
    """The words and punctuation marks of a text, in lower case and without accents."""
    return unicodedata.normalize("NFD", text).translate(_CHAR_TABLE).split()


class WordPiece:
    """A tokenizer over one vocabulary; it holds no other state and may be shared between threads."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = {piece: index for index, piece in enumerate(vocabulary)}
        self._start, self._end, self._unknown = (
            self._ids[token] for token in ("[CLS]", "[SEP]", "[UNK]")
        )

    def encode(self, text: str, limit: int) -> list[int]:
        """The ids of a text between its start and end marks, at most `limit` with both marks."""
        ids = (piece for word in split_words(text) for piece in self._encode_word(word))
        return [self._start, *islice(ids, limit - 2), self._end]

    def _encode_word(self, word: str) -> list[int]:
        """The longest known piece, then the longest of what remains, and so on; unknown as a whole if a part is."""
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
    """The tokenizer over the vocabulary that comes with told, read once."""
    return WordPiece(VOCABULARY_PATH.read_text(encoding="utf-8").rstrip("\n").split("\n"))


Floats: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]

TOKENS_PER_RUN = 512
"""Long texts go in smaller batches: a run of the network sees at most this many tokens, or a single text."""

LOAD_FAILURES = (
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)
"""The exceptions by which onnxruntime refuses a file; they have no common base of their own."""


@dataclass(frozen=True, slots=True)
class _OnnxNetwork:
    """A loaded network: how to run it and what it takes."""

    session: Any
    inputs: frozenset[str]
    output: str
    batch: int

    def compute_hidden(self, ids: Ints, mask: Ints) -> Floats:
        """The last hidden state of every token: texts x tokens x dimensions."""
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        accepted = {name: values for name, values in feeds.items() if name in self.inputs}
        states: Floats = self.session.run([self.output], accepted)[0]
        return states


class OnnxEmbedder:
    """Turns texts into unit vectors with a local model, loaded at the first text and then shared by every thread."""

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
        """One unit vector of single-precision floats for each text, in order."""
        if isinstance(texts, str):
            raise InvalidInput(
                "embed() takes a list of texts, not one text.", hint="Write embed([text])."
            )
        if not texts:
            return []
        prefix, network, tokenizer = (
            self._get_prefix(purpose),
            self._get_network(),
            get_bundled_tokenizer(),
        )
        tokens = [tokenizer.encode(prefix + text, self._spec.max_tokens) for text in texts]
        vectors = np.empty((len(tokens), self.dim), dtype=np.float32)
        for indices in group_by_length([len(ids) for ids in tokens], network.batch):
            ids, mask = pad_rows([tokens[index] for index in indices])
            vectors[indices] = normalise_rows(
                pool_tokens(network.compute_hidden(ids, mask), mask, self._spec.pooling)
            )
        return [array("f", row.tobytes()) for row in vectors]

    def _get_prefix(self, purpose: Purpose) -> str:
        """What the model was trained to see in front of such a text."""
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
        """The network, read from disk by the first caller while the others wait."""
        with self._load_lock:
            if self._network is None:
                self._network = load_network(
                    self._folder / ONNX_FILENAME, threads=self._threads, batch=self._batch
                )
            return self._network


def import_runtime() -> Any:
    """The runtime without its reports to Microsoft, whose thread a child process would wait for when it ends."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    runtime = import_module("onnxruntime")
    runtime.disable_telemetry_events()
    return runtime


def load_network(graph: Path, *, threads: int, batch: int) -> _OnnxNetwork:
    """Open a network with its own threads and without the arena that never gives memory back."""
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
    # An export that fixes its first dimension takes texts one by one, whatever its inputs say.
    size = output.shape[0] if isinstance(output.shape[0], int) else batch
    return _OnnxNetwork(
        session, frozenset(node.name for node in session.get_inputs()), output.name, size
    )


def group_by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """The places of the texts in groups of like length: at most `size` together, fewer when they are long."""
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) == size or lengths[index] * (len(group) + 1) > TOKENS_PER_RUN):
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def pad_rows(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """The ids as one rectangle, and the mask that tells tokens from padding."""
    width = max(map(len, rows))
    ids, mask = np.zeros((2, len(rows), width), dtype=np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask


def pool_tokens(hidden: Floats, mask: Ints, pooling: str) -> Floats:
    """One vector for each text: its first token, or the mean of its tokens without the padding."""
    if pooling == "cls":
        return hidden[:, 0]
    weights = mask[:, :, np.newaxis].astype(np.float32)
    mean: Floats = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def normalise_rows(vectors: Floats) -> Floats:
    """The same directions at length one."""
    scaled: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled

"""Generated memories, identical on every run: texts with Zipf words, vectors in clusters.

A corpus is a folder of plain files, so that a process in another environment reads the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]

DIM = 384
USERS = 1000
FIXED_USERS = 5
FIXED_ROWS = 100
CLUSTERS = 200
SPREAD = 0.8
"""Spread within a cluster: two members have a cosine of about 0.6."""

ENGLISH = """the a to of and in is it on for with that was my we at she he they you this have new from said not but went
likes work home about had last week her his our every after day moved house friend coffee morning dinner trip project
team email phone plan book train garden music dog cat school doctor office summer winter birthday weekend kitchen
project market window paper water money story family brother sister mother father child street city river mountain
bicycle guitar piano football tennis swimming running reading cooking painting dancing writing travel hotel flight
ticket passport museum theatre concert film camera picture letter language spanish french german italian japanese
monday tuesday wednesday thursday friday saturday sunday january april june august october december yellow green
black white small large early late quiet loud cheap expensive favourite allergic vegetarian married engineer teacher
nurse lawyer student manager designer berlin paris london madrid tokyo boston lisbon vienna dublin oslo""".split()  # noqa: E501


@dataclass(frozen=True, slots=True)
class Memories:
    """Texts, their users and their unit vectors."""

    texts: list[str]
    users: list[str]
    vectors: Floats

    def __len__(self) -> int:
        return len(self.texts)

    def lists(self, most: int = 1000) -> Iterator[tuple[str, list[str]]]:
        """Return each user's texts in lists of bounded length; a user's memories are contiguous."""
        for user, rows in groupby(zip(self.users, self.texts, strict=True), key=lambda row: row[0]):
            texts = [text for _, text in rows]
            for start in range(0, len(texts), most):
                yield user, texts[start : start + most]

    def save(self, folder: Path, name: str) -> None:
        """Write the memories to files."""
        (folder / f"{name}.json").write_text(json.dumps([self.texts, self.users]), "utf-8")
        np.save(folder / f"{name}.npy", self.vectors)

    @classmethod
    def load(cls, folder: Path, name: str) -> Memories:
        """Load the memories; vectors are memory-mapped."""
        texts, users = json.loads((folder / f"{name}.json").read_text("utf-8"))
        return cls(texts, users, np.load(folder / f"{name}.npy", mmap_mode="r"))


@dataclass(frozen=True, slots=True)
class Maker:
    """A generator of texts and vectors."""

    rng: np.random.Generator
    words: npt.NDArray[np.str_]
    chances: npt.NDArray[np.float64]
    centres: Floats

    @classmethod
    def seeded(cls, seed: int) -> Maker:
        """Create a generator with a fixed seed."""
        rng = np.random.default_rng(seed)
        words = np.array([*dict.fromkeys(ENGLISH), *_made_up_words(rng, 20_000)])
        chances = 1.0 / np.arange(3, len(words) + 3) ** 1.07
        return cls(rng, words, chances / chances.sum(), _unit(rng.standard_normal((CLUSTERS, DIM))))

    def memories(self, users: Sequence[str]) -> Memories:
        """Generate one memory for each user, with no text twice."""
        first = int(self.rng.integers(10**9))
        texts = [f"{text} {number}" for number, text in enumerate(self.texts(len(users)), first)]
        return Memories(texts, list(users), self.vectors(len(users)))

    def texts(self, count: int) -> list[str]:
        """Generate texts of 8 to 34 words."""
        lengths = self.rng.integers(8, 35, count)
        words = self.rng.choice(self.words, int(lengths.sum()), p=self.chances)
        ends = np.cumsum(lengths)
        return [
            " ".join(words[end - length : end]) for end, length in zip(ends, lengths, strict=True)
        ]

    def vectors(self, count: int) -> Floats:
        """Generate unit vectors around the centres."""
        members = self.centres[self.rng.integers(0, CLUSTERS, count)]
        noise = self.rng.standard_normal((count, DIM), np.float32) * np.float32(
            SPREAD / np.sqrt(DIM)
        )
        return _unit(members + noise)

    def queries(self, memories: Memories, rows: Sequence[int]) -> Memories:
        """Generate questions: four words of a memory and two others, and a vector near it."""
        texts: list[str] = []
        for row in rows:
            known = self.rng.choice(memories.texts[row].split()[:-1], 4)
            others = self.rng.choice(self.words, 2, p=self.chances)
            texts.append(" ".join([*known, *others]))
        noise = self.rng.standard_normal((len(rows), DIM), np.float32) * np.float32(
            0.5 / np.sqrt(DIM)
        )
        return Memories(
            texts,
            [memories.users[row] for row in rows],
            _unit(memories.vectors[list(rows)] + noise),
        )


def _made_up_words(rng: np.random.Generator, count: int) -> list[str]:
    syllables = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]
    picks = rng.integers(0, len(syllables), (count * 2, 4))
    lengths = rng.integers(2, 5, count * 2)
    words = ("".join(syllables[i] for i in row[:n]) for row, n in zip(picks, lengths, strict=True))
    return list(dict.fromkeys(words))[:count]


def _unit(rows: npt.NDArray[np.floating]) -> Floats:
    unit: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def spread_over_users(total: int, users: int = USERS) -> list[str]:
    """Assign memories to users: a hundred to each of the first five, the rest to the others."""
    fixed = [f"user{number}" for number in range(FIXED_USERS) for _ in range(FIXED_ROWS)]
    others, rest = users - FIXED_USERS, total - len(fixed)
    shares = [rest // others + (number < rest % others) for number in range(others)]
    return fixed + [
        f"user{FIXED_USERS + number}" for number, share in enumerate(shares) for _ in range(share)
    ]


def make(folder: Path, owners: Sequence[str], *, extra: int, questions: int, seed: int = 7) -> None:
    """Create a corpus: `stored` memories, `extra` ones to add later, and `queries` about five
    users.
    """
    folder.mkdir(parents=True, exist_ok=True)
    maker = Maker.seeded(seed)
    stored = maker.memories(owners)
    stored.save(folder, "stored")
    crowd = sorted(set(owners))
    fixed = {f"user{number}" for number in range(FIXED_USERS)} if len(crowd) > 1 else set()
    open_to_more = [user for user in crowd if user not in fixed]
    picks = maker.rng.integers(0, len(open_to_more), extra)
    maker.memories([open_to_more[int(pick)] for pick in picks]).save(folder, "extra")
    asked = FIXED_USERS * FIXED_ROWS if fixed else len(owners)
    maker.queries(stored, [int(row) for row in maker.rng.integers(0, asked, questions)]).save(
        folder, "queries"
    )

"""The peer: mem0 with `infer=False` and the same vectors, in a separate environment.

Run as a program, it reads texts, queries and vectors from a folder, and writes for each query the
positions of the texts found, best first, with the best score. It then imports nothing of told.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from told.tools.evaluate.data import EvalConversation, EvalQuestion, EvalTurn
    from told.tools.evaluate.run import CachingEmbedder, EvalAnswer

HERE = Path(__file__).resolve().parent
DEPTH = 300


class Mem0:
    """Results of mem0, computed for all conversations in one separate process."""

    name = "mem0"

    def __init__(
        self, folder: Path, conversations: Sequence[EvalConversation], embedder: CachingEmbedder
    ) -> None:
        from bench.latency import environment, peer_python

        folder.mkdir(parents=True, exist_ok=True)
        self.found: dict[str, list[tuple[list[int], float]]] = {}
        self.turns: Sequence[EvalTurn] = ()
        self.questions: dict[str, int] = {}
        for conversation in conversations:
            _save(folder, conversation, embedder)
            command = [peer_python(), str(HERE / "peer.py"), str(folder)]
            subprocess.run(command, check=True, env=environment("mem0"), stderr=subprocess.DEVNULL)
            self.found[conversation.id] = json.loads((folder / "found.json").read_text("utf-8"))

    def ingest(self, conversation: EvalConversation) -> None:
        """Do nothing: the conversation is already loaded."""
        from bench._recall.baselines import line_costs

        self.turns = conversation.turns
        self.costs = line_costs(self.turns)
        self.questions = {
            question.id: number for number, question in enumerate(conversation.questions)
        }
        self.current = self.found[conversation.id]

    def search(self, question: EvalQuestion) -> EvalAnswer:
        from told.tools.evaluate import run

        places, best = self.current[self.questions[question.id]]
        return run.EvalAnswer(
            tuple((self.turns[place].id,) for place in places[: run.SEARCH_DEPTH]), best
        )

    def context(self, question: EvalQuestion, budget: int) -> str:
        from bench._recall.baselines import packed

        return packed(self.turns, self.costs, self.current[self.questions[question.id]][0], budget)


def _save(folder: Path, conversation: EvalConversation, embedder: CachingEmbedder) -> None:
    """Write the texts and queries of a conversation with their vectors to plain files."""
    import numpy as np

    from bench._recall.baselines import wording
    from bench._recall.vectors import matrix

    texts = [wording(turn) for turn in conversation.turns]
    queries = [question.text for question in conversation.questions]
    np.save(
        folder / "vectors.npy",
        np.concatenate([matrix(embedder, texts), matrix(embedder, queries, "query")]),
    )
    (folder / "texts.json").write_text(json.dumps([texts, queries]), "utf-8")


# ------------------------------------------------------------------------------------------- in
# the peer's environment


def _serve(folder: Path) -> None:
    import shutil

    import numpy as np

    sys.path.insert(0, str(HERE.parents[1]))
    from bench._corpus import Memories
    from bench._mem0 import Mem0 as Peer

    texts, queries = json.loads((folder / "texts.json").read_text("utf-8"))
    shutil.rmtree(folder / "store", ignore_errors=True)
    (folder / "store").mkdir()
    every = [*texts, *queries]
    peer = Peer(
        folder / "store", Memories(every, ["one"] * len(every), np.load(folder / "vectors.npy"))
    )
    places = {text: place for place, text in reversed(list(enumerate(texts)))}
    for start in range(0, len(texts), 100):
        peer.bulk(texts[start : start + 100], "one")
    found = [_ranked(peer.memory, query, places) for query in queries]
    (folder / "found.json").write_text(json.dumps(found), "utf-8")
    peer.close()


def _ranked(memory: Any, query: str, places: dict[str, int]) -> tuple[list[int], float]:
    hits = memory.search(query, filters={"user_id": "one"}, top_k=DEPTH, threshold=0.0)["results"]
    return [places[hit["memory"]] for hit in hits], float(hits[0]["score"]) if hits else 0.0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _serve(Path(sys.argv[1]))

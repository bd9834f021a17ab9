"""When two values are one: by their wording, by a function of somebody's own, or by the vectors of an embedder."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any, Final

from told.core.alike import resemblance
from told.core.concepts import Likeness, Matcher
from told.core.errors import InvalidInput
from told.core.fork import freed
from told.core.text import shown
from told.flow import call, run
from told.open import open_embedder, open_store
from told.ports import SPREAD, Embedder, Purpose, Vector, sound
from told.settings import load

KEPT: Final = 4096
"""Of how many texts the vectors are kept."""
APART: Final = 6.0
"""How many times the usual spread a text must be nearer to a question than texts usually are."""
HINT: Final = 'A function (a, b) -> float, or an embedder: "local", a name, an object with embed().'


class Vectors:
    """The vectors of texts by an embedder, which is asked once for each of those used last."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._lock = freed(threading.Lock())

    def cosine(self, one: str, other: str) -> float:
        """How near two texts are, from 0 to 1."""
        known = self._of([one, other])
        return _cosine(known[one], known[other])

    def answers(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each of some texts answers a question, from 0 to 1; no more than texts usually do is not at all."""
        [asked] = self._asked([question], "query")
        known = self._of(texts)
        usual = getattr(self.embedder, "usual", 0.0) + APART * getattr(self.embedder, "spread", SPREAD)
        return [max(0.0, _cosine(asked, known[text]) - usual) / max(1.0 - usual, SPREAD) for text in texts]

    def _asked(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        return sound(self.embedder, run(call(self.embedder.embed, texts, purpose)), len(texts))

    def _of(self, texts: Sequence[str]) -> Mapping[str, Vector]:
        kept = self._kept
        with self._lock:
            fresh = [text for text in dict.fromkeys(texts) if text not in kept]
            if fresh:
                kept.update(zip(fresh, self._asked(fresh, "passage"), strict=True))
            known = {text: kept[text] for text in texts}
            for text in known:
                kept.move_to_end(text)
            while len(kept) > KEPT:
                kept.popitem(last=False)
        return known


def _cosine(one: Vector, other: Vector) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    size = sqrt(sum(a * a for a in one) * sum(b * b for b in other))
    return min(1.0, max(0.0, float(product) / size)) if size else 0.0


def vectors_of(choice: Any) -> Vectors | None:
    """The vectors that a choice of likeness goes by, if it names or is an embedder."""
    if isinstance(choice, Embedder | str | Mapping):
        embedder = open_embedder(choice, open_store(load(store="ram://").settings))
        return None if embedder is None else Vectors(embedder)
    return None


def matcher_of(threshold: Any, choice: Any, vectors: Vectors | None) -> Matcher:
    """When two values are one, checked."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0.0 <= threshold <= 1.0:
        raise InvalidInput(f"similarity_threshold must be a number from 0 to 1, not {shown(threshold)}.")
    if vectors is not None:
        return Matcher(vectors.cosine, float(threshold))
    if choice is not None and not callable(choice):
        raise InvalidInput(f"similarity_fn cannot be {shown(choice)}.", hint=HINT)
    return Matcher(resemblance if choice is None else _checked(choice), float(threshold))


def _checked(function: Callable[[str, str], float]) -> Likeness:
    def likeness(one: str, other: str) -> float:
        score = function(one, other)
        try:
            return float(score)
        except (TypeError, ValueError):
            raise InvalidInput(f"similarity_fn answered {shown(score)}.", hint="It gives a number.") from None

    return likeness

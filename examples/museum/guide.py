"""A museum guide that remembers each thing for as long as it matters.

An allergy stays, a taste lasts, an hour fades slowly and a coffee is gone after a few turns: the
ontology says so, not the program. Without a model, rules extract what a visitor says and the guide
answers from a fact sheet; with one (`EXTRACTOR_MODEL`, `CHAT_MODEL`) the model does both.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from told import ConfigError, LLMError, Memory, ToldError
from told.ontology import Fact, MemoryStore, extract_facts
from told.plugins import open_llm
from told.ports import LLM
from told.settings import load_settings
from told.text.tokens import extract_terms
from told.tools.chat import ask_model

HERE = Path(__file__).parent
COMMANDS = {
    "/memory": "what is remembered, how strong it is, and the sentence it comes from",
    "/about": "the same in words: since when, and for how many turns yet",
    "/forget <words>": "give up what has these words; /forget alone gives up everything",
    "/quit": "leave",
}


@dataclass
class Guide:
    """One visit: what is known of the visitor, the models, and the recent messages."""

    memory: MemoryStore
    model: LLM | None = None
    extractor: Any = "local"
    history: deque[str] = field(default_factory=lambda: deque(maxlen=6))
    house: dict[str, Any] = field(
        default_factory=lambda: json.loads((HERE / "house.json").read_text("utf-8"))
    )

    def turn(self, message: str) -> str:
        """Run one turn: extract, store, advance the clock, answer."""
        for fact in self.extracted(message):
            self.memory.upsert(**fact)
        self.memory.tick()
        answer = self.answer(message)
        self.history += [f"Visitor: {message}", f"Guide: {answer}"]
        return answer

    def extracted(self, message: str) -> list[dict[str, str]]:
        """Extract facts of the ontology; fall back to rules if the model fails."""
        before = self.history[-1].removeprefix("Guide: ") if self.history else None
        try:
            return extract_facts(message, before, self.memory.ontology, self.extractor)
        except LLMError as error:
            print(f"({error} The rules read it instead.)", file=sys.stderr)
            return extract_facts(message, before, self.memory.ontology, "local")

    # Answering

    def answer(self, message: str) -> str:
        """Answer with the model, or from the fact sheet without one."""
        if self.model is None:
            return self.from_the_sheet(message)
        known = f"What is known of the visitor:\n{self.memory.context_block()}"
        house = f"The house:\n{json.dumps(self.house['places'])}\n{json.dumps(self.house['tours'])}"
        system = "\n\n".join([(HERE / "prompt.md").read_text("utf-8"), house, known])
        try:
            return ask_model(self.model, system, "\n".join([*self.history, f"Visitor: {message}"]))
        except LLMError as error:
            print(f"({error} The house's sheet answers instead.)", file=sys.stderr)
            return self.from_the_sheet(message)

    def from_the_sheet(self, message: str) -> str:
        """Answer with directions; "one" and "it" refer to the last topic, even if it has faded."""
        ways = list(self.ways(message))
        if not ways and message.rstrip().endswith("?"):
            meant = self.memory.recall(message, 1) or self.interests()
            ways = [way for fact in meant for way in self.ways(fact.value)]
        fresh = {
            fact.concept
            for fact in self.memory.facts.values()
            if fact.first_turn == self.memory.turn - 1
        }
        offers = [tour["offer"] for tour in self.house["tours"] if tour["concept"] in fresh]
        return " ".join(dict.fromkeys([*offers, *ways])) or str(self.house["otherwise"])

    def interests(self) -> list[Fact]:
        """Return what the visitor likes."""
        return [fact for fact in self.memory.facts.values() if fact.concept == "ArtInterest.Medium"]

    def ways(self, text: str) -> Iterator[str]:
        """Yield directions to every place that a text mentions."""
        said = set(extract_terms(text))
        for place in self.house["places"]:
            if not said.isdisjoint(term for word in place["words"] for term in extract_terms(word)):
                yield place["where"]

    # Commands

    def line(self, line: str) -> str:
        """Answer a message or run a command."""
        name, _, rest = line.strip().partition(" ")
        match name:
            case "/memory":
                return self.memory.dump()
            case "/about":
                return (
                    "\n".join(map(in_words, self.memory.about())) or "I know nothing about you yet."
                )
            case "/forget":
                return self.forget(rest.strip())
            case _ if name.startswith("/"):
                return "\n".join(f"{command:<16} {about}" for command, about in COMMANDS.items())
        return self.turn(line.strip())

    def forget(self, words: str) -> str:
        """Forget the facts that contain some words, or everything."""
        known = list(self.memory.facts.values())
        gone = [
            fact for fact in known if words.casefold() in f"{fact.label} {fact.value}".casefold()
        ]
        for fact in gone:
            self.memory.forget(fact.concept, fact.value)
        return (
            "\n".join(f"Forgotten: {fact.label}: {fact.value}" for fact in gone)
            or "There is nothing of that."
        )


def in_words(row: dict[str, Any]) -> str:
    """Phrase a fact for the person it is about."""
    left = row["fades_in_turns"]
    lasts = "stays until you say otherwise" if left is None else f"fades in about {left:.0f} turns"
    return f'{row["label"]}: {row["value"]}. You said: "{row["evidence"]}". It {lasts}.'


def lines(replay: bool) -> Iterable[str]:
    """Yield the visitor's messages: typed, piped in, or the bundled conversation."""
    if replay:
        for line in (HERE / "conversation.txt").read_text("utf-8").splitlines():
            print(f"you> {line}")
            yield line
        return
    while True:
        try:
            line = input("you> " if sys.stdin.isatty() else "")
        except (EOFError, KeyboardInterrupt):
            return
        if line.strip() == "/quit":
            return
        yield line


def configured() -> dict[str, Any]:
    """Read the models and the history length from the environment."""
    chat, size = os.environ.get("CHAT_MODEL") or "none", os.environ.get("HISTORY_SIZE") or "3"
    if not size.isdecimal():
        raise ConfigError(f"HISTORY_SIZE is a number of turns, not {size!r}.")
    routed = f"openrouter:{chat}" if "/" in chat.partition(":")[0] else chat
    return {
        "model": open_llm(routed, load_settings().settings),
        "extractor": os.environ.get("EXTRACTOR_MODEL") or "local",
        "history": deque(maxlen=2 * int(size)),
    }


def main() -> None:
    """Guide one visitor."""
    parser = argparse.ArgumentParser(
        description="A museum guide that remembers what matters while it matters."
    )
    parser.add_argument("--replay", action="store_true", help="play the conversation of the README")
    parser.add_argument(
        "--store", help="keep the memory, such as sqlite:///museum.db; else it ends with the visit"
    )
    parser.add_argument("--user", default="visitor", help="who visits; only with --store")
    given = parser.parse_args()
    with Memory(given.store) if given.store else nullcontext() as kept:
        known = MemoryStore(
            HERE / "ontology.json", memory=kept, user_id=given.user if kept else None
        )
        guide = Guide(known, **configured())
        print(guide.house["welcome"])
        for line in lines(given.replay):
            if line.strip():
                print(guide.line(line))


if __name__ == "__main__":
    try:
        main()
    except ToldError as error:
        sys.exit(f"error: {error}")

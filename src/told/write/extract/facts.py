"""Facts as sentences: one question, an array of strings for an answer, and any prompt the caller likes better."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from told.flow import Flow
from told.ports import LLM, Usage
from told.write.extract.brief import asked, conversation, page, spoken
from told.write.extract.ground import Ground
from told.write.extract.items import MARKS, Reader, proposal, unread
from told.write.extract.parse import Answer, read_items, take
from told.write.extract.settle import Rules, extracted, settle, speaker_of
from told.write.shape import Extracted, Heard

MOST: Final = 500
KEYS: Final = ("facts", "memories")
SCHEMA: Final[dict[str, Any]] = {
    "type": "object", "required": ["facts"], "additionalProperties": False,
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
}  # fmt: skip
SHAPE: Final = 'Reply with JSON only: {"facts": ["one sentence", "another sentence"]}; {"facts": []} if there is none.'


@dataclass(frozen=True, slots=True)
class FactsExtractor:
    """Asks a model for the facts of a conversation, each a sentence in the third person."""

    llm: LLM
    reader: Reader = unread
    rules: Rules = field(default_factory=Rules)
    most: int = MOST

    @property
    def name(self) -> str:
        """`facts:` and the model."""
        return f"facts:{self.llm.model}"

    @property
    def local(self) -> bool:
        """No: a model is asked."""
        return False

    def extract(self, heard: Heard) -> Flow[Extracted]:
        """The facts; `heard.prompt` takes the place of told's own, and `heard.facts` are read without asking."""
        if heard.facts:
            return given(heard, self.reader)
        if not any(map(spoken, heard.turns)):
            return Extracted()
        user = f"{conversation(heard)}\n\n{SHAPE}"
        raw, usage = yield from asked(self.llm, heard.prompt or page("facts"), user, SCHEMA)
        answer = read_items(raw, KEYS, marks=MARKS, most=self.most, who=self.name)
        speaker = speaker_of(heard)
        proposals, answer = take(answer, raw, lambda item: proposal(item, speaker, self.reader))
        return extracted(settle(heard, Ground(heard.turns), proposals, self.rules), answer, usage)


def given(heard: Heard, reader: Reader) -> Extracted:
    """Facts that came with what was heard; whoever gave them answers for them, so none is quarantined."""
    speaker = speaker_of(heard)
    taken, answer = take(Answer(heard.facts), heard.facts, lambda item: proposal(item, speaker, reader))
    settled = settle(heard, Ground(heard.turns), taken, Rules(strict=False, replies=True))
    return extracted(settled, answer, Usage())

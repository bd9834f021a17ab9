"""The closed-world extractor for agents that run their own loop: a function, a catalogue and a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from told.core.entry import Evidence
from told.core.errors import ConfigError, InvalidInput
from told.core.kind import Ontology
from told.core.text import shown
from told.flow import run
from told.open.llm import HINT, open_llm
from told.ports import LLM
from told.settings import load
from told.write.extract import closed
from told.write.extract.brief import ASSISTANT, asked, fenced
from told.write.extract.closed import SCHEMA, Concept, catalogue, concepts_of, read_form
from told.write.extract.ground import Ground
from told.write.extract.parse import MALFORMED
from told.write.messages import Turn

Concepts: TypeAlias = "Ontology | Mapping[str, Any]"

EXTRACTOR_SYSTEM: str = closed.template()
"""The extractor's system prompt; `EXTRACTOR_SYSTEM.format(catalog=build_concept_catalog(ontology))` fills it."""


def build_concept_catalog(ontology: Concepts) -> str:
    """The concepts of an ontology, given as kinds or as its JSON, one to a line with label and examples."""
    return catalogue(_concepts(ontology))


def extract_facts(
    user_msg: str, bot_msg: str | None = None, ontology: Concepts | None = None, model: Any = None, *,
    dropped: list[dict[str, str]] | None = None,
) -> list[dict[str, str]]:  # fmt: skip
    """What a message says within an ontology: `[{"concept", "value", "polarity", "evidence"}]`.

    `bot_msg` is what the assistant said before, so that a "yes" can be understood. `model` is whatever `Memory(llm=…)`
    takes: a name such as `openai:gpt-4o-mini`, a function, a client, an object with `ask`; a name such as
    `openai/gpt-4o-mini` is a model of OpenRouter's. What has no concept, no value, no polarity or no evidence in the
    message is left out, as is an answer that cannot be read; a list given as `dropped` gets it, with the reasons.
    """
    if ontology is None:
        raise InvalidInput("extract_facts needs an ontology.", hint='Such as {"concepts": {"Person.Home": {…}}}.')
    if not isinstance(user_msg, str) or not isinstance(bot_msg, str | None):
        raise InvalidInput(f"A message is a text, not {shown(bot_msg if isinstance(user_msg, str) else user_msg)}.")
    llm = _opened(model)
    concepts = _concepts(ontology)
    if not user_msg.strip() or not concepts:
        return []
    turns = [*([_turn(bot_msg, ASSISTANT)] if bot_msg else ()), _turn(user_msg, "user")]
    talk = [f"{turn.evidence.role.upper()}: {turn.evidence.content}" for turn in turns]
    system = EXTRACTOR_SYSTEM.format(catalog=catalogue(concepts))
    raw, _ = run(asked(llm, system, fenced("conversation", talk), SCHEMA))
    filled, answer = read_form(raw, concepts, Ground(turns), llm.model)
    if dropped is not None:
        dropped += [{"reason": one.reason, "fact": one.what} for one in answer.dropped]
        dropped += [{"reason": MALFORMED, "fact": fault} for fault in answer.faults]
    return [
        {"concept": one.concept, "value": one.value, "polarity": one.polarity, "evidence": one.evidence}
        for one in filled
    ]


def _opened(model: Any) -> LLM:
    """The model somebody names or gives."""
    routed = isinstance(model, str) and "/" in model.partition(":")[0]
    llm = open_llm(f"openrouter:{model}" if routed else model, load().settings)
    if llm is None:
        raise ConfigError("extract_facts needs a language model.", hint=HINT)
    return llm


def _turn(text: str, role: str) -> Turn:
    return Turn(Evidence(text, role), {})


def _concepts(ontology: Concepts) -> Sequence[Concept]:
    if isinstance(ontology, Ontology):
        return concepts_of(ontology)
    given = ontology.get("concepts") if isinstance(ontology, Mapping) else None
    if not isinstance(given, Mapping):
        raise InvalidInput('An ontology is {"concepts": {name: rules}}.', hint="Load it with json.load().")
    return [_concept(str(name), rules) for name, rules in given.items()]


def _concept(name: str, rules: Any) -> Concept:
    if not isinstance(rules, Mapping):
        raise InvalidInput(f"The rules of {name} must be an object, not {shown(rules)}.")
    examples = rules.get("examples") or ()
    listed = [examples] if isinstance(examples, str) else examples
    return Concept(name, str(rules.get("label") or name), tuple(map(str, listed)))

"""The closed-world extractor for agents that run their own loop: a function, a catalogue and a prompt."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from told.core.entry import Evidence
from told.core.errors import ConfigError, InvalidInput
from told.core.ids import wall_clock
from told.core.kind import Field, Kind, Ontology, Write
from told.core.scope import Scope
from told.core.text import sentences, shown
from told.flow import run
from told.open.llm import HINT, open_llm
from told.ports import LLM
from told.settings import load
from told.write.extract import closed
from told.write.extract.brief import ASSISTANT, asked, fenced, page
from told.write.extract.closed import (
    SCHEMA,
    VALUE,
    ClosedExtractor,
    Concept,
    Filled,
    catalogue,
    concepts_of,
    read_form,
)
from told.write.extract.ground import Ground
from told.write.extract.parse import MALFORMED
from told.write.extract.settle import USER
from told.write.local import LocalExtractor
from told.write.messages import Turn
from told.write.shape import Found, Heard

LOCAL: Final = "local"
NO_MODEL: Final = 'No language model is configured: rules read what they can. Say model="local" if that is meant.'
Concepts: TypeAlias = "Ontology | Mapping[str, Any]"

EXTRACTOR_SYSTEM: str = closed.template()
"""The extractor's system prompt; `EXTRACTOR_SYSTEM.format(catalog=build_concept_catalog(ontology))` fills it."""


def build_concept_catalog(ontology: Concepts) -> str:
    """The concepts of an ontology, given as kinds or as its JSON, one to a line with label and examples."""
    return catalogue(_concepts(ontology))


def extract_facts(
    user_msg: str, bot_msg: str | None = None, ontology: Concepts | None = None, model: Any = None, *,
    replies: bool = False, dropped: list[dict[str, str]] | None = None,
) -> list[dict[str, str]]:  # fmt: skip
    """What a message says within an ontology: `[{"concept", "value", "polarity", "evidence"}]`.

    `bot_msg` is what the assistant said before, so that a "yes" can be understood; with `replies` its own words are
    read too, in a second pass: what it settles or confirms about the user. `model` is whatever `Memory(llm=…)` takes:
    a name such as `openai:gpt-4o-mini`, a function, a client, an object with `ask`; a name such as
    `openai/gpt-4o-mini` is a model of OpenRouter's. `local` alone is no model: rules and the examples of the ontology
    do what they can. So they do, with a warning, if no model is given and none is configured. What has no concept, no
    value, no polarity or no evidence in the messages is left out, as is an answer that cannot be read; a list given as
    `dropped` gets it, with the reasons.
    """
    if ontology is None:
        raise InvalidInput("extract_facts needs an ontology.", hint='Such as {"concepts": {"Person.Home": {…}}}.')
    if not isinstance(user_msg, str) or not isinstance(bot_msg, str | None):
        raise InvalidInput(f"A message is a text, not {shown(bot_msg if isinstance(user_msg, str) else user_msg)}.")
    llm = _opened(model)
    concepts = _concepts(ontology)
    turns = [*([_turn(bot_msg, ASSISTANT)] if bot_msg else ()), *([_turn(user_msg, USER)] if user_msg.strip() else ())]
    aside: list[dict[str, str]] = []
    if not concepts or not (user_msg.strip() or (replies and bot_msg)):
        found = []
    elif llm is None:
        found = _by_rules(turns, concepts, aside, replies=replies)
    else:
        passes = [False] * bool(user_msg.strip()) + [True] * bool(replies and bot_msg)
        found = [one for each in passes for one in _by_model(llm, turns, concepts, aside, replies=each)]
    if dropped is not None:
        dropped += aside
    rows = [{"concept": f.concept, "value": f.value, "polarity": f.polarity, "evidence": f.evidence} for f in found]
    return [row for place, row in enumerate(rows) if row not in rows[:place]]


def _by_model(
    llm: LLM, turns: Sequence[Turn], concepts: Sequence[Concept], aside: list[dict[str, str]], *, replies: bool
) -> list[Filled]:
    """The form as a model fills it in, from the user's words or from the assistant's."""
    talk = [f"{turn.evidence.role.upper()}: {turn.evidence.content}" for turn in turns]
    system = EXTRACTOR_SYSTEM.format(catalog=catalogue(concepts)) + (f"\n\n{page('replies')}" if replies else "")
    raw, _ = run(asked(llm, system, fenced("conversation", talk), SCHEMA))
    filled, answer = read_form(raw, concepts, Ground(turns), llm.model, replies=replies)
    aside += [{"reason": one.reason, "fact": one.what} for one in answer.dropped]
    aside += [{"reason": MALFORMED, "fact": fault} for fault in answer.faults]
    return filled


def _by_rules(
    turns: Sequence[Turn], concepts: Sequence[Concept], aside: list[dict[str, str]], *, replies: bool
) -> list[Filled]:
    """The form as rules fill it in; the sentence that says so is the evidence."""
    kinds = Ontology(tuple(_kind(one) for one in concepts))
    heard = Heard(tuple(turns), wall_clock(), Scope("reading", user_id="reading"), kinds)
    found = run(ClosedExtractor(fallback=LocalExtractor(), replies=replies).extract(heard))
    aside += [{"reason": one.reason, "fact": one.what} for one in found.dropped]
    return [_filled(one, turns[one.turn].evidence.content) for one in found.claims]


def _kind(concept: Concept) -> Kind:
    routed, fields = Write.AGGREGATE, (Field(VALUE, required=True),)
    return Kind(concept.name, concept.label, write=routed, key=VALUE, fields=fields, examples=concept.examples)


def _filled(found: Found, content: str) -> Filled:
    claim, (start, end) = found.claim, found.claim.span or (0, len(found.claim.text))
    said = content[start:end]
    evidence = next((sentence for sentence in sentences(content) if said in sentence), said or content)
    return Filled(claim.kind, str(claim.meta.get(VALUE, claim.object)), claim.polarity, evidence.strip())


def _opened(model: Any) -> LLM | None:
    """The model somebody names or gives; None where rules are to do."""
    if model == LOCAL:
        return None
    settings = load().settings
    chosen = settings.llm if model is None else model
    routed = isinstance(chosen, str) and "/" in chosen.partition(":")[0]
    llm = open_llm(f"openrouter:{chosen}" if routed else chosen, settings)
    if llm is None and model is not None:
        raise ConfigError("extract_facts needs a language model.", hint=f'{HINT} Or "local", which is none: rules.')
    if llm is None:
        warnings.warn(NO_MODEL, UserWarning, stacklevel=3)
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

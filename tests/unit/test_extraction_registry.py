"""Extractors by name, and what is said where a name or a model is missing."""

import pytest

from hearing import Plain, ToolScript, extract, heard
from tables import each_row
from told.errors import ConfigError
from told.extraction.closed_world import ClosedExtractor
from told.extraction.registry import EXTRACTOR_NAMES, VerbatimExtractor, build_extractor
from told.ingest.types import ExtractionResult, Extractor
from told.model.kind import Kind, Ontology, load_builtin_ontology
from told.settings import Settings
from told.testing import ScriptedLLM


class Local:
    name, local = "local", True

    def extract(self, inputs):
        return ExtractionResult()
        yield


LOCAL = Local()
AUTHORS = {
    "verbatim": "verbatim",
    "local": "local",
    "facts": "facts:scripted",
    "closed": "closed:scripted",
    "apertures": "apertures:scripted",
    "exhaustive": "exhaustive:scripted",
    "deep": "deep:scripted",
    "react": "react:scripted",
    "graph": "graph:scripted",
}


def chosen(name, llm=None, ontology=None, **settings) -> Extractor:
    return build_extractor(
        name, llm, Settings(**settings), ontology or load_builtin_ontology(), LOCAL
    )


@each_row("name", EXTRACTOR_NAMES)
def test_every_name_is_an_extractor(name):
    made = chosen(name, ToolScript([]))
    assert made.name == AUTHORS[name]
    assert made.local is (name in ("verbatim", "local"))


@pytest.mark.parametrize("name", ["facts", "apertures", "exhaustive", "deep", "react"])
def test_one_that_needs_a_model_says_so(name):
    with pytest.raises(ConfigError, match="needs a language model") as raised:
        chosen(name)
    assert "llm=" in raised.value.hint


def test_the_closed_world_and_the_graph_make_do_without_a_model():
    assert chosen("closed").name == "closed:local"
    assert chosen("graph").name == "graph:local"
    assert chosen("closed").local


def test_react_needs_a_model_that_can_use_tools():
    with pytest.raises(ConfigError, match="can use tools"):
        chosen("react", Plain())


@pytest.mark.parametrize(
    ("name", "hint"), [("fact", "'facts'"), ("zzz", "verbatim, local"), (7, "verbatim, local")]
)
def test_an_unknown_name_is_answered_with_the_known_ones(name, hint):
    with pytest.raises(ConfigError) as raised:
        chosen(name)
    assert hint in raised.value.hint


def test_an_ontology_with_nothing_to_extract_is_refused():
    with pytest.raises(ConfigError, match="extractable kinds"):
        chosen("closed", ScriptedLLM([]), Ontology((Kind("memory"), Kind("turn", system=True))))


def test_settings_are_handed_on():
    strict, lenient = (
        chosen("facts", ScriptedLLM([])),
        chosen("facts", ScriptedLLM([]), grounding="lenient"),
    )
    assert (strict.options.strict, lenient.options.strict) == (True, False)
    closed = chosen("closed", ScriptedLLM([]), extract_replies=True)
    assert isinstance(closed, ClosedExtractor)
    assert closed.replies
    assert chosen("deep", ScriptedLLM([]), extract_passes=7).passes == 7
    assert chosen("react", ToolScript([]), extract_rounds=2).rounds == 2


def test_verbatim_takes_nothing_from_a_turn():
    assert extract(VerbatimExtractor(), heard("I live in Porto")) == ExtractionResult()

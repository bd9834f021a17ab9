"""Extractors by name, and the errors for an unknown name or a missing model."""

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


def make_extractor(name, llm=None, ontology=None, **settings) -> Extractor:
    return build_extractor(
        name, llm, Settings(**settings), ontology or load_builtin_ontology(), LOCAL
    )


@each_row("name", EXTRACTOR_NAMES)
def test_every_name_is_an_extractor(name):
    made = make_extractor(name, ToolScript([]))
    assert made.name == AUTHORS[name]
    assert made.local is (name in ("verbatim", "local"))


@pytest.mark.parametrize("name", ["facts", "apertures", "exhaustive", "deep", "react"])
def test_an_extractor_without_its_required_model_is_rejected(name):
    with pytest.raises(ConfigError, match="needs a language model") as raised:
        make_extractor(name)
    assert "llm=" in raised.value.hint


def test_closed_world_and_graph_work_without_a_model():
    assert make_extractor("closed").name == "closed:local"
    assert make_extractor("graph").name == "graph:local"
    assert make_extractor("closed").local


def test_react_needs_a_model_that_can_use_tools():
    with pytest.raises(ConfigError, match="can use tools"):
        make_extractor("react", Plain())


@pytest.mark.parametrize(
    ("name", "hint"), [("fact", "'facts'"), ("zzz", "verbatim, local"), (7, "verbatim, local")]
)
def test_an_unknown_name_error_lists_the_known_ones(name, hint):
    with pytest.raises(ConfigError) as raised:
        make_extractor(name)
    assert hint in raised.value.hint


def test_an_ontology_with_nothing_to_extract_is_rejected():
    with pytest.raises(ConfigError, match="extractable kinds"):
        make_extractor(
            "closed", ScriptedLLM([]), Ontology((Kind("memory"), Kind("turn", system=True)))
        )


def test_settings_are_passed_to_the_extractor():
    strict, lenient = (
        make_extractor("facts", ScriptedLLM([])),
        make_extractor("facts", ScriptedLLM([]), grounding="lenient"),
    )
    assert (strict.options.strict, lenient.options.strict) == (True, False)
    closed = make_extractor("closed", ScriptedLLM([]), extract_replies=True)
    assert isinstance(closed, ClosedExtractor)
    assert closed.replies
    assert make_extractor("deep", ScriptedLLM([]), extract_passes=7).passes == 7
    assert make_extractor("react", ToolScript([]), extract_rounds=2).rounds == 2


def test_verbatim_extracts_nothing():
    assert extract(VerbatimExtractor(), heard("I live in Porto")) == ExtractionResult()

"""The garbage that models are made to answer is what it says it is."""

import json

import pytest

from chaos import FAILURES, ChaosLLM, answers, everything
from tables import each_row
from told.ports import LLM, ChatLine, ToolLLM, get_usage

SIXTY = 60


def test_there_are_many_ways_to_go_wrong_and_each_has_its_own_name():
    ids = [chaos.id for chaos in everything()]
    assert len(answers()) >= SIXTY
    assert len(ids) == len({*ids})
    assert all(chaos.about for chaos in everything())


def test_a_model_gone_wrong_is_a_model_with_tools():
    model = ChaosLLM(answers()[0])
    assert isinstance(model, LLM)
    assert isinstance(model, ToolLLM)


def test_it_says_the_same_whatever_it_is_asked():
    for chaos in answers():
        model = ChaosLLM(chaos)
        assert model.ask("system", "user", schema={}) == model.ask("", "") == chaos.answer
        assert get_usage(model.ask("a", "b")).calls == 1
        reply = model.tools("system", [ChatLine("user", "hello")], [])
        assert (reply.text, reply.calls) == (chaos.answer, chaos.calls)
        assert model.asked == 4


@each_row("chaos", FAILURES, ids=lambda chaos: chaos.id)
def test_it_fails_every_time_in_the_same_way(chaos):
    model = ChaosLLM(chaos)
    for ask in (lambda: model.ask("", ""), lambda: model.tools("", [], [])):
        with pytest.raises(type(chaos.fails())):
            ask()


def test_it_can_begin_soundly():
    model = ChaosLLM(FAILURES[0], after=1, sound='["User lives in Porto"]')
    assert model.ask("", "") == '["User lives in Porto"]'
    with pytest.raises(TimeoutError):
        model.ask("", "")


def test_what_can_be_salvaged_stands_in_the_answer():
    salvaged = [chaos for chaos in answers() if chaos.facts]
    assert len(salvaged) > 10
    for chaos in salvaged:
        assert all(
            fact in chaos.answer or json.dumps(fact)[1:-1] in chaos.answer for fact in chaos.facts
        )


def test_large_answers_are_large():
    sizes = {chaos.id: len(chaos.answer) for chaos in answers()}
    assert sizes["huge-prose"] > 2_000_000
    assert answers()[[*sizes].index("huge-items")].answer.count("User has the number") == 10_000

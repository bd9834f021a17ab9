"""The scripted garbage replies used to test model failures."""

import json

import pytest

from chaos import FAILURES, ChaosLLM, answers, everything
from tables import each_row
from told.ports import LLM, ChatLine, ToolLLM, get_usage

MIN_REPLIES = 60


def test_there_are_many_failure_modes_with_unique_ids():
    ids = [chaos.id for chaos in everything()]
    assert len(answers()) >= MIN_REPLIES
    assert len(ids) == len({*ids})
    assert all(chaos.about for chaos in everything())


def test_a_chaos_model_supports_tools():
    model = ChaosLLM(answers()[0])
    assert isinstance(model, LLM)
    assert isinstance(model, ToolLLM)


def test_the_reply_does_not_depend_on_the_prompt():
    for chaos in answers():
        model = ChaosLLM(chaos)
        assert model.ask("system", "user", schema={}) == model.ask("", "") == chaos.answer
        assert get_usage(model.ask("a", "b")).calls == 1
        reply = model.tools("system", [ChatLine("user", "hello")], [])
        assert (reply.text, reply.calls) == (chaos.answer, chaos.calls)
        assert model.asked == 4


@each_row("chaos", FAILURES, ids=lambda chaos: chaos.id)
def test_a_failing_model_raises_the_same_error_every_time(chaos):
    model = ChaosLLM(chaos)
    for ask in (lambda: model.ask("", ""), lambda: model.tools("", [], [])):
        with pytest.raises(type(chaos.fails())):
            ask()


def test_a_chaos_model_can_start_with_valid_replies():
    model = ChaosLLM(FAILURES[0], after=1, sound='["User lives in Porto"]')
    assert model.ask("", "") == '["User lives in Porto"]'
    with pytest.raises(TimeoutError):
        model.ask("", "")


def test_salvageable_items_are_part_of_the_reply():
    salvaged = [chaos for chaos in answers() if chaos.facts]
    assert len(salvaged) > 10
    for chaos in salvaged:
        assert all(
            fact in chaos.answer or json.dumps(fact)[1:-1] in chaos.answer for fact in chaos.facts
        )


def test_large_replies_are_large():
    sizes = {chaos.id: len(chaos.answer) for chaos in answers()}
    assert sizes["huge-prose"] > 2_000_000
    assert answers()[[*sizes].index("huge-items")].answer.count("User has the number") == 10_000

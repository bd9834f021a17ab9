"""The forms in which people say dates."""

from __future__ import annotations

import pytest

from told.core.almanac import Shape, rules, time_words

SAID = (
    "now", "right now", "ahora", "现在", "3 days ago", "hace dos semanas", "vor 2 tagen", "il y a 3 mois", "3天前",
    "in 2 weeks", "two weeks from now", "dentro de 3 dias", "en 3 dias", "dans 2 jours", "the last 3 days",
    "past week", "los ultimos 3 dias", "ultimas 2 semanas", "in den letzten 3 tagen", "过去3天",
    "friday of last week", "last week's friday", "上周五", "last month", "la semana pasada", "le mois dernier",
    "may 2023", "may of 2023", "2023年5月", "5/2023", "march 3, 2024", "3 de marzo de 2024", "2024年3月5日",
    "the year 2020", "2020年", "ano 2020", "jahr 2020", "the 1990s", "1990's", "the end of last year", "fin de mes",
    "at noon on friday", "friday at 3 pm", "friday in the morning", "昨天晚上", "in summer", "on monday",
)  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_what_a_form_fits_has_the_words_that_it_cannot_do_without(text: str) -> None:
    fitting = [rule.shape for rule in rules() if rule.shape.pattern.search(text)]
    assert fitting
    assert all(shape.can_fit(text) for shape in fitting)


def test_most_forms_are_not_tried_on_a_question_that_names_a_day() -> None:
    assert sum(rule.shape.can_fit("what did we plan for monday") for rule in rules()) < len(rules()) / 3


@pytest.mark.parametrize(
    ("template", "text"), [("{n} {unit}|{word}", "hier"), ("(?:{n} )?{unit}", "day"), ("{part}", "")]
)
def test_only_what_must_be_there_is_asked_for(template: str, text: str) -> None:
    shape = Shape.of(template)
    assert shape.can_fit(text) == bool(shape.pattern.fullmatch(text))


@pytest.mark.parametrize("text", ["hace dos semanas", "vor 2 tagen", "il y a 3 mois"])
def test_a_form_with_words_of_its_own_is_not_tried_without_them(text: str) -> None:
    (shape,) = (rule.shape for rule in rules() if rule.form == "ago" and rule.shape.pattern.fullmatch(text))
    assert not shape.can_fit(text.replace(shape.needs[0], ""))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0), ("We met.", 0), ("Yesterday, we met!", 1), ("NOW or (in) May?", 2), ("in 2023", 1), ("room 20231", 0),
        ("the 1990s", 1), ("soon, soon", 2), ("we\tmet\nlast week", 2), ("heute früh", 2), ("Café, yesterday", 1),
        ("去年", 1),
    ],
)  # fmt: skip
def test_words_of_time_are_counted_whatever_stands_around_them(text: str, words: int) -> None:
    assert time_words(text, 9) == words
    assert time_words(text, 1) == min(words, 1)

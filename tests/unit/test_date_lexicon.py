"""Date templates and their word lists."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest

from tables import each_row
from told.text import date_lexicon, lexicon
from told.text.date_lexicon import (
    DateMatch,
    DateTemplate,
    count_time_words,
    date_rules_for,
    list_date_rules,
    match_date_forms,
)

SAID = (
    "now",
    "right now",
    "ahora",
    "现在",
    "3 days ago",
    "hace dos semanas",
    "vor 2 tagen",
    "il y a 3 mois",
    "3天前",
    "in 2 weeks",
    "two weeks from now",
    "dentro de 3 dias",
    "en 3 dias",
    "dans 2 jours",
    "the last 3 days",
    "past week",
    "los ultimos 3 dias",
    "ultimas 2 semanas",
    "in den letzten 3 tagen",
    "过去3天",
    "friday of last week",
    "last week's friday",
    "上周五",
    "last month",
    "la semana pasada",
    "le mois dernier",
    "may 2023",
    "may of 2023",
    "2023年5月",
    "5/2023",
    "march 3, 2024",
    "3 de marzo de 2024",
    "2024年3月5日",
    "the year 2020",
    "2020年",
    "ano 2020",
    "jahr 2020",
    "the 1990s",
    "1990's",
    "the end of last year",
    "fin de mes",
    "at noon on friday",
    "friday at 3 pm",
    "friday in the morning",
    "昨天晚上",
    "in summer",
    "on monday",
)


TEMPLATES = (
    *(template for templates in date_lexicon.DATE_FORMS.values() for template in templates),
    lexicon.NTH_TEMPLATE,
    lexicon.NTH_HALF_TEMPLATE,
    lexicon.WEEK_OF_TEMPLATE,
    lexicon.EDGE_TEMPLATE,
    *lexicon.DAY_RANGE_TEMPLATES,
    *lexicon.OFFSET_TEMPLATES,
    *lexicon.DAY_PART_TEMPLATES,
    lexicon.RELATIVE_PART_TEMPLATE,
)
BESIDE = (
    "first week of may",
    "second half of 2023",
    "week of the 5th",
    "early may",
    "may 8-10, 2023",
    "8 to 10 of may 2023",
    "two weeks before the ",
    "week after ",
    " in the morning",
    ", at around 3 pm",
    "晚上",
    "last night",
)


@each_row("text", SAID)
def test_a_template_matches_everyday_phrases(text: str) -> None:
    assert list(match_date_forms(text))


@each_row("text", [*SAID, *BESIDE])
def test_prefilters_do_not_change_matches(text: str) -> None:
    shapes = [DateTemplate.from_template(template) for template in TEMPLATES]
    fitting = [
        replace(shape, required_words=(), needs_digits=False).match(text) for shape in shapes
    ]
    assert any(fitting)
    assert [
        shape.match(text) if shape.can_start_with(text[0]) else None for shape in shapes
    ] == fitting


def test_most_templates_are_skipped_for_a_question_naming_a_day() -> None:
    tried = [
        rule
        for rule in date_rules_for("m")
        if rule.template.can_match("what did we plan for monday")
    ]
    assert 0 < len(tried) < len(list_date_rules()) / 3


@each_row("template", TEMPLATES)
def test_optional_template_text_never_consumes_the_start_of_a_slot_word(template: str) -> None:
    for pattern, slot in pairwise(DateTemplate.from_template(template).steps):
        if (
            isinstance(slot, str)
            and slot in date_lexicon.SLOT_WORDS
            and not isinstance(pattern, str)
        ):
            leads = [
                lead for lead in ("", " ", ", ", "-", "2023 ", "5 ") if pattern.fullmatch(lead)
            ]
            for lead, word in product(leads, date_lexicon.SLOT_WORDS[slot]):
                match = pattern.match(lead + word)
                assert match
                assert match.end() == len(lead)


@pytest.mark.parametrize(
    "text", ["first week of may", "primera semana del mes", "erste woche des mai", "fin de mayo"]
)
def test_a_template_may_match_a_prefix_of_a_longer_word(text: str) -> None:
    shapes = [
        DateTemplate.from_template(template)
        for template in (lexicon.NTH_TEMPLATE, lexicon.EDGE_TEMPLATE)
    ]
    ends = [fit.end for shape in shapes if (fit := shape.match(text))]
    assert text[ends[0] :] in date_lexicon.SLOT_WORDS["thing"]


def test_the_longest_word_matches_first_with_backtracking_to_shorter_ones() -> None:
    fit = DateTemplate.from_template("{n} {unit}").match("a couple of weeks")
    assert fit
    assert fit.slots == {"n": "a couple of", "unit": "weeks"}
    assert DateTemplate.from_template("{unit}{turn}").match("anlast", full=True)
    fit = DateTemplate.from_template("{n} ?{unit}[之以]?前").match("it was 三天之前", 7, full=True)
    assert fit
    assert fit == DateMatch(7, 11, "三天之前", {"n": "三", "unit": "天"}, {"n": 7, "unit": 8})


@each_row(
    ("text", "words"),
    [
        ("", 0),
        ("We met.", 0),
        ("Yesterday, we met!", 1),
        ("NOW or (in) May?", 2),
        ("in 2023", 1),
        ("room 20231", 0),
        ("the 1990s", 1),
        ("soon, soon", 2),
        ("we\tmet\nlast week", 2),
        ("heute früh", 2),
        ("Café, yesterday", 1),
        ("去年", 1),
    ],
)
def test_time_words_are_counted_regardless_of_context(text: str, words: int) -> None:
    assert count_time_words(text, 9) == words
    assert count_time_words(text, 1) == min(words, 1)

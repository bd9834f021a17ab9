"""Query analysis: answer source, intent, language, names and times."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tables import each_row
from told.errors import TimeError
from told.retrieval.intent import AnswerPurpose, AnswerSource, QueryIntent, analyse_query
from told.text.dates import parse_interval

NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)  # a Wednesday


def analyse(text: str) -> QueryIntent:
    return analyse_query(text, now=NOW)


def spans(text: str, now: datetime = NOW) -> list[str]:
    return [str(span) for span in analyse_query(text, now=now).spans]


# times


@each_row(
    ("text", "span"),
    [
        ("What did Caroline do last summer?", "2025-06/2025-08"),
        ("where was I in May 2023", "2023-05"),
        ("what did we decide two weeks ago about the office", "2026-03-02/2026-03-08"),
        ("What happened on 8 May?", "2025-05-08"),
        ("What happened on May 8th, 2023?", "2023-05-08"),
        ("What happened in the week before 9 June 2023?", "2023-06-02/2023-06-08"),
        ("What happened two weeks before 9 June 2023?", "2023-05-22/2023-05-28"),
        ("What did I do two weeks after 9 June 2023?", "2023-06-19/2023-06-25"),
        ("Where was I the day after 9 June 2023?", "2023-06-10"),
        ("Which film was shown on the Sunday before October 25, 2022?", "2022-10-23"),
        ("Who came on the Friday after 25 May 2023?", "2023-05-26"),
        ("What did I do in the month before June 2023?", "2023-05"),
        ("What changed between March and May 2023?", "2023-03/2023-05"),
        ("What changed between November and February 2023?", "2022-11/2023-02"),
        ("Summarise my steps between March and early May.", "2025-03-01/2025-05-10"),
        ("Which choices did I make from July through September 2024?", "2024-07/2024-09"),
        ("Where was I from 8 to 10 May 2023?", "2023-05-08/2023-05-10"),
        ("Where was I on May 8-10, 2023?", "2023-05-08/2023-05-10"),
        ("What have I read since January?", "2026-01/.."),
        ("What did I own before 2020?", "../2019"),
        ("What have I written after May 2023?", "2023-06/.."),
        ("How many had I won by 7 November, 2022?", "../2022-11-07"),
        ("What will I do next week?", "2026-03-23/2026-03-29"),
        ("What happens the day after tomorrow?", "2026-03-20"),
        ("What will happen in two weeks?", "2026-03-30/2026-04-05"),
        ("What am I doing on Sunday?", "2026-03-22"),
        ("What did I do on Sunday?", "2026-03-15"),
        ("Did I call her Tuesday?", "2026-03-17"),
        ("Will we meet on 25 December?", "2026-12-25"),
        ("Did we meet on 25 December?", "2025-12-25"),
        ("What happened in May?", "2025-05"),
        ("what happened in may?", "2025-05"),
        ("What did I wear in the summer?", "2025-06/2025-08"),
        ("What happened in 2023?", "2023"),
        ("2023", "2023"),
        ("How much did I earn in 2023 and why?", "2023"),
        ("What did people wear in the 1990s?", "1990/1999"),
        ("Where did I live in early 2023?", "2023-01-01/2023-05-01"),
        ("What did Nate win in the beginning of November 2022?", "2022-11-01/2022-11-10"),
        ("What happened towards the end of summer 2023?", "2023-08-01/2023-08-31"),
        ("Was the first half of September 2022 good?", "2022-09-01/2022-09-15"),
        ("What did I do in the last week of May 2023?", "2023-05-25/2023-05-31"),
        ("What did I do on the first weekend of August 2023?", "2023-08-05/2023-08-06"),
        ("Who called on the second Tuesday of May 2023?", "2023-05-09"),
        ("What did I do in the week of 9 May 2023?", "2023-05-08/2023-05-14"),
        ("What happened in May last year?", "2025-05"),
        ("What happened last year in May?", "2025-05"),
        ("Where was I on Tuesday, 9 May 2023?", "2023-05-09"),
        ("What did she finish last Friday on 23 January, 2022?", "2022-01-21"),
        ("What did I do with Rachel on the Wednesday two months ago?", "2026-01"),
        ("Did I run yesterday morning?", "2026-03-17T06Z/2026-03-17T12Z"),
        ("What did I eat last night?", "2026-03-17T18Z/2026-03-18T06Z"),
        ("Who called yesterday at 3pm?", "2026-03-17T15:00Z"),
        ("Did I run on Monday evening?", "2026-03-16T18Z/2026-03-17T00Z"),
        ("What happened the day before yesterday?", "2026-03-16"),
        ("What happened the week before last?", "2026-03-02/2026-03-08"),
        ("What did I do this past weekend?", "2026-03-14/2026-03-15"),
        ("What did I cook a couple of days ago?", "2026-03-15/2026-03-16"),
        ("What hobby did I start a few years ago?", "2021/2024"),
        (
            "Who has visited me in the last month?",
            "2026-02-18T15:30:00.000000+00:00/2026-03-18T15:30:00.000000+00:00",
        ),
        ("Whom did I meet fifteen days ago?", "2026-03-03"),
        ("What did I say on 2023-05-08?", "2023-05-08"),
        ("What did I say on 2023/5/8?", "2023-05-08"),
        ("What did I say on 5/28/2023?", "2023-05-28"),
        ("三天前我说了什么", "2026-03-15"),
        ("去年夏天我去了哪里？", "2025-06/2025-08"),
        ("上周三开会了吗", "2026-03-11"),
        ("我在2023年5月8日做了什么", "2023-05-08"),
        ("昨天下午谁来了", "2026-03-17T12Z/2026-03-17T18Z"),
        ("昨年の夏はどこに行きましたか", "2025-06/2025-08"),
        ("5月に何をしましたか", "2025-05"),
        ("先週の会議で何を決めた？", "2026-03-09/2026-03-15"),
        ("月曜日に誰と会いましたか", "2026-03-16"),
        ("¿Qué dije hace dos semanas?", "2026-03-02/2026-03-08"),
        ("¿Qué hice la semana pasada?", "2026-03-09/2026-03-15"),
        ("¿Dónde estaba el 5 de marzo de 2024?", "2024-03-05"),
        ("¿Qué voy a hacer mañana?", "2026-03-19"),
        ("¿Qué ha pasado desde enero?", "2026-01/.."),
        ("Was habe ich vor drei Tagen gesagt?", "2026-03-15"),
        ("Wo war ich letzten Sommer?", "2025-06/2025-08"),
        ("Was war am 5. März 2024?", "2024-03-05"),
        ("Was mache ich morgen?", "2026-03-19"),
        ("Was geschah Ende Mai 2023?", "2023-05-21/2023-05-31"),
        ("Wen habe ich gestern Abend getroffen?", "2026-03-17T18Z/2026-03-18T00Z"),
        ("Qu'ai-je fait la semaine dernière ?", "2026-03-09/2026-03-15"),
        ("Que s'est-il passé en mai 2023 ?", "2023-05"),
        ("Qu'ai-je mangé hier ?", "2026-03-17"),
        ("Qui ai-je vu il y a deux jours ?", "2026-03-16"),
    ],
)
def test_a_time_in_a_question_is_found(text: str, span: str) -> None:
    assert spans(text) == [span]


@each_row(
    "text",
    [
        "What did we do two weeks before her birthday?",
        "What did we do in the week before the party?",
        "Where was I on the Friday before her birthday?",
        "What happened in the summer before college?",
        "What did she do the next day?",
        "What did she do the next week?",
        "What happened in the last week of school?",
        "What did I do the weekend before last?",
        "What did I say two weeks earlier?",
        "Can I learn Python in two weeks?",
        "How much did I spend in three days?",
        "Did it happen 3.5 weeks ago?",
        "Did it happen twenty-three days ago?",
        "Did it happen one year and two months ago?",
        "It may rain, and you may march on.",
        "What did April say to June?",
        "When is June's birthday?",
        "When did his son fall off his bike?",
        "Who sat in the sun?",
        "Give me a second chance in a minute.",
        "Was it a last minute trip?",
        "What cost 100 in 2023 dollars?",
        "Where is the 2023 report?",
        "When did James try Cyberpunk 2077?",
        "Did 2000 people come?",
        "In March 10 people came, who were they?",
        "What do I usually do on Sunday?",
        "What do I wear in the summer?",
        "Why do I run on Tuesday and Thursday mornings?",
        "Did I walk past an old mill?",
        "How many classes do I attend in a typical week?",
        "How many days ago did I read the March 15th issue?",
        'Who sang "Summer of 2023"?',
        "Did I like 'Last Week Tonight'?",
        "What did I say on 5/8/2023?",
        "What happened on 31 February 2023?",
        "她生日的两周前我们做了什么",
        "夏威夷旅行花了多少钱",
        "晚上周杰伦唱了什么",
        "我每周五做什么",
        "Ist er hier?",
        "Trinke ich jeden Morgen Kaffee?",
        "¿Qué hago por la mañana?",
        "¿Quién nada en el mar?",
        "What do I know now?",
        "",
    ],
)
def test_text_that_only_looks_like_a_time_is_ignored(text: str) -> None:
    assert spans(text) == []


def test_times_are_ordered_and_unique() -> None:
    assert spans("Did I run yesterday, in May 2023 or yesterday?") == ["2026-03-17", "2023-05"]


def test_days_follow_the_zone() -> None:
    late = datetime(2026, 3, 18, 23, 30, tzinfo=UTC)
    there = analyse_query("What did I do today?", now=late, zone="Asia/Tokyo")
    assert there.spans == (parse_interval("2026-03-19", zone="Asia/Tokyo"),)
    assert (
        analyse_query("What did I do today?", now=late.astimezone(ZoneInfo("Asia/Tokyo"))).spans
        == there.spans
    )


def test_now_must_be_timezone_aware() -> None:
    with pytest.raises(TimeError, match="now"):
        analyse_query("What did I do today?", now=datetime(2026, 3, 18))  # noqa: DTZ001


SAID = {
    "en": (
        "What did I do on {d:%d %B %Y}?",
        "Who came on {d:%B} {d.day}, {d.year}, and why?",
        "Was I ill on {d}?",
    ),
    "de": ("Was habe ich am {d.day}.{d.month}.{d.year} gemacht?",),
    "zh": ("我在{d.year}年{d.month}月{d.day}日做了什么？",),
    "ja": ("{d.year}年{d.month}月{d.day}日に何をしましたか",),
}


@given(st.dates(date(1950, 1, 1), date(2090, 12, 31)), st.sampled_from(sum(SAID.values(), ())))
def test_a_date_is_found_in_every_notation(day: date, question: str) -> None:
    assert spans(question.format(d=day)) == [day.isoformat()]


@given(st.dates(date(1950, 1, 1), date(2090, 12, 31)), st.integers(2, 300))
def test_days_ago_are_counted_from_now(today: date, days: int) -> None:
    now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    there = (today - timedelta(days=days)).isoformat()
    assert spans(f"What did Ann say {days} days ago about the house?", now) == [there]
    assert spans(f"{days}天前我说了什么", now) == [there]
    assert spans(f"¿Qué dije hace {days} días?", now) == [there]
    assert spans(f"Was habe ich vor {days} Tagen gesagt?", now) == [there]


@given(st.dates(date(1950, 1, 1), date(2090, 12, 31)))
def test_a_month_without_a_year_is_the_latest_that_has_started(today: date) -> None:
    now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    for month in ("January", "May", "December"):
        (span,) = analyse_query(f"What did I do in {month}?", now=now).spans
        assert span.start is not None
        began = datetime.fromtimestamp(span.start / 1e6, tz=UTC)
        assert (f"{began:%B}", span.precision) == (month, "month")
        assert timedelta(0) <= now - began < timedelta(days=367)


# intent and answer source


@each_row(
    ("text", "intent"),
    [
        ("What did we decide about the database?", AnswerPurpose.HISTORICAL_DECISIONS),
        ("Why did we choose SQLite?", AnswerPurpose.HISTORICAL_DECISIONS),
        ("¿Qué decidimos sobre el piso?", AnswerPurpose.HISTORICAL_DECISIONS),
        ("Wofür haben wir uns entschieden?", AnswerPurpose.HISTORICAL_DECISIONS),
        ("Qu'avons-nous décidé ?", AnswerPurpose.HISTORICAL_DECISIONS),
        ("我们决定用哪个数据库？", AnswerPurpose.HISTORICAL_DECISIONS),
        ("何を決めましたか", AnswerPurpose.HISTORICAL_DECISIONS),
        ("What did we decide about the open tasks?", AnswerPurpose.HISTORICAL_DECISIONS),
        ("Which tasks are still pending?", AnswerPurpose.OPEN_ITEMS),
        ("What is left to do for the move?", AnswerPurpose.OPEN_ITEMS),
        ("¿Qué tareas están pendientes?", AnswerPurpose.OPEN_ITEMS),
        ("Welche offenen Punkte gibt es?", AnswerPurpose.OPEN_ITEMS),
        ("还没完成的任务有哪些？", AnswerPurpose.OPEN_ITEMS),
        ("How do I deploy the pending release?", AnswerPurpose.OPEN_ITEMS),
        ("How do I deploy the service?", AnswerPurpose.REUSABLE_SKILLS),
        ("What are the steps to rotate the keys?", AnswerPurpose.REUSABLE_SKILLS),
        ("¿Cómo se hace una copia?", AnswerPurpose.REUSABLE_SKILLS),
        ("Comment faire une sauvegarde ?", AnswerPurpose.REUSABLE_SKILLS),
        ("如何部署服务？", AnswerPurpose.REUSABLE_SKILLS),
        ("How are Ann and Bob related?", AnswerPurpose.ENTITY_RELATIONS),
        ("Who is Jill?", AnswerPurpose.ENTITY_RELATIONS),
        ("Wer ist Anna?", AnswerPurpose.ENTITY_RELATIONS),
        ("小明和小红是什么关系？", AnswerPurpose.ENTITY_RELATIONS),
        ("What does Alice do for a living?", AnswerPurpose.BACKGROUND_SUPPLEMENT),
        ("Where does Bob live?", AnswerPurpose.BACKGROUND_SUPPLEMENT),
        ("", AnswerPurpose.BACKGROUND_SUPPLEMENT),
    ],
)
def test_the_first_matching_intent_wins(text: str, intent: AnswerPurpose) -> None:
    assert analyse(text).purpose is intent


@each_row(
    ("text", "sort"),
    [
        ("What does Alice do for a living?", AnswerSource.MEMORY),
        ("What skills does Alice have?", AnswerSource.MEMORY),
        ("What are the skills that Nate has taught?", AnswerSource.MEMORY),
        ("What class is Sam taking to learn how to cook?", AnswerSource.MEMORY),
        ("Which skill do we use for releases?", AnswerSource.SKILL),
        ("How do I deploy the service?", AnswerSource.SKILL),
        ("how to rotate the keys", AnswerSource.SKILL),
        ("Is there a runbook for outages?", AnswerSource.SKILL),
        ("如何部署这个服务？", AnswerSource.SKILL),
        ("Find the design document for the parser", AnswerSource.RESOURCE),
        ("What does report.pdf say?", AnswerSource.RESOURCE),
        ("Where is the link to the wiki?", AnswerSource.RESOURCE),
        ("那个文档在哪里？", AnswerSource.RESOURCE),
    ],
)
def test_the_answer_source_is_detected(text: str, sort: AnswerSource) -> None:
    assert analyse(text).answer_source is sort


@each_row(
    ("text", "language"),
    [
        ("What did Caroline do last summer?", "en"),
        ("¿Qué hice la semana pasada?", "es"),
        ("Wo war ich letzten Sommer?", "de"),
        ("Où étais-je en mai ?", "fr"),
        ("Cosa ho fatto ieri?", "it"),
        ("O que eu fiz ontem?", "pt"),
        ("Wat heb ik gisteren gedaan?", "nl"),
        ("三天前我说了什么", "zh"),
        ("三日前に何を言いましたか", "ja"),
        ("어제 뭐 했어?", "ko"),
        ("Где я был летом?", "ru"),
        ("ماذا قلت أمس؟", "ar"),
        ("मैंने क्या कहा?", "hi"),
        ("ฉันพูดอะไร", "th"),
        ("Which meal did I order at 鼎泰豐 in Taipei?", "en"),
        ("我的 MacBook 在哪里", "zh"),
        ("xyzzy", ""),
        ("42", ""),
        ("", ""),
    ],
)
def test_the_language_is_detected_by_script_and_common_words(text: str, language: str) -> None:
    assert analyse(text).language == language


@each_row(
    ("text", "names"),
    [
        ("What did Caroline and Melanie do last summer?", ("Caroline", "Melanie")),
        ("Caroline's new Toyota Corolla, where is it?", ("Caroline", "Toyota Corolla")),
        ("Where did I go in New York City?", ("New York City",)),
        ("What did the Bank of America send me?", ("Bank of America",)),
        ("Do I use GPT-4 or the iPhone 13 Pro at NASA?", ("GPT-4", "iPhone 13 Pro", "NASA")),
        ("Did I like “The Lord of the Rings”?", ("The Lord of the Rings",)),
        (
            "Which group did I join, 'Page Turners' or 'Book Lovers'?",
            ("Page Turners", "Book Lovers"),
        ),
        ("I'm sure it wasn't Bob's idea, was it?", ("Bob",)),
        ("When did April visit?", ("April",)),
        ("What happened in April 2023 on Monday?", ()),
        ("what does caroline do", ()),
        ("WHERE DOES ALICE LIVE", ()),
        ("Remind me. Describe my plan. I forgot.", ()),
        ("Looking for advice from Ann: Ann or Bob?", ("Ann", "Bob")),
        ("Was hat Anna im Büro mit dem Chef besprochen?", ("Anna",)),
        ("¿Qué le dije a Lucía en Sevilla?", ("Lucía", "Sevilla")),
        ("Что сказала Анна в Москве?", ("Анна", "Москве")),
        ("我喜欢《三体》吗？", ("三体",)),
        ("田中さんは「吾輩は猫である」が好きですか", ("吾輩は猫である",)),
        ("小明在哪里工作？", ()),
    ],
)
def test_names_are_detected_by_capitalisation(text: str, names: tuple[str, ...]) -> None:
    assert analyse(text).names == names


@each_row(
    ("text", "expected"),
    [
        ("When did Ann move?", True),
        ("Tell me when Ann moved.", True),
        ("How long did it take?", True),
        ("How many weeks ago did I start?", True),
        ("What year was it?", True),
        ("On which day do we meet?", True),
        ("What was the date of the wedding?", True),
        ("¿Cuándo nació Luis?", True),
        ("¿Qué día es la boda?", True),
        ("Wann ist der Termin?", True),
        ("Wie lange hat es gedauert?", True),
        ("Quand est-ce que je pars ?", True),
        ("Combien de temps a-t-il fallu ?", True),
        ("我什么时候搬家的？", True),
        ("会议开了多久？", True),
        ("いつ引っ越しましたか", True),
        ("いつから働いていますか", True),
        ("What did I eat when I was in Paris?", False),
        ("When I was in Paris, what did I eat?", False),
        ("What is my day-to-day work?", False),
        ("Cuando estaba en París, ¿qué comí?", False),
        ("いつもどこで食べますか", False),
        ("Where did Ann move last year?", False),
    ],
)
def test_a_question_for_a_time_is_detected(text: str, expected: bool) -> None:
    assert analyse(text).asks_when is expected


@each_row(
    ("text", "expected"),
    [
        ("Which hotel did you suggest?", True),
        ("What was the name of the dish you recommended?", True),
        ("You told me to dilute it; how much?", True),
        ("Remind me what you said about tea", True),
        ("In our previous conversation you gave me a list", True),
        ("I'm going back to our previous chat. Can you remind me how many there were?", True),
        ("What was your advice on the visa?", True),
        ("I followed your advice about the visa, what next?", True),
        ("Which book have you already mentioned?", True),
        ("¿Qué restaurante me recomendaste?", True),
        ("Welches Buch hast du mir empfohlen?", True),
        ("Quel film m'as-tu conseillé ?", True),
        ("你上次推荐的餐厅叫什么？", True),
        ("前に教えてくれた本は何でしたか", True),
        ("What would you suggest?", False),
        ("Can you recommend a hotel?", False),
        ("Could you tell me where I live?", False),
        ("What did I tell you about Ann?", False),
        ("I told you my name, what is it?", False),
        ("I need your advice", False),
        ("Kannst du mir ein Buch empfehlen?", False),
        ("你推荐什么餐厅？", False),
        ("Which hotel did Ann suggest?", False),
    ],
)
def test_a_question_about_the_assistants_words_is_detected(text: str, expected: bool) -> None:
    assert analyse(text).asks_reply is expected


@each_row(
    ("text", "expected"),
    [
        ("Where did I live before?", True),
        ("Where did I live before I moved to Paris?", True),
        ("What was my original budget?", True),
        ("What did I initially plan?", True),
        ("Where did I previously work?", True),
        ("What was my previous job?", True),
        ("Where did I use to live?", True),
        ("What did we used to call it?", True),
        ("What was my old phone?", True),
        ("Who is my former boss?", True),
        ("What was her first job?", True),
        ("What was I like back then?", True),
        ("¿Dónde vivía antes?", True),
        ("Wo habe ich früher gewohnt?", True),
        ("Où habitais-je auparavant ?", True),
        ("我以前住在哪里？", True),
        ("以前はどこに住んでいましたか", True),
        ("Where do I live?", False),
        ("How old is Ann?", False),
        ("Which of them is ten years old?", False),
        ("I'm used to tea, what do I drink?", False),
        ("In our previous conversation, what was the number?", False),
        ("What is her first name?", False),
        ("Have I ever been to Rome before?", False),
        ("What happened in the week before 9 June 2023?", False),
        ("How many days before the party did I call?", False),
        ("三天以前我说了什么", False),
        ("3日前に何をしましたか", False),
    ],
)
def test_a_question_about_the_past_is_detected(text: str, expected: bool) -> None:
    assert analyse(text).asks_past is expected


# any text

PIECES = st.sampled_from(
    """in on since before after the May march 2023 8th Sunday last next two weeks ago end of summer between and to first
    hace vor dans 三 天 前 去年 夏 5 月 日 から 9999-12-31 2023-02-30 31 February
    " ' « 《 ß İ ﬁ é ١٢ \x00 \ud800""".split()  # noqa: E501
)


@given(
    st.text(max_size=300)
    | st.lists(PIECES, max_size=40).map(" ".join)
    | st.lists(PIECES, max_size=40).map("".join)
)
def test_no_text_crashes_the_analysis(text: str) -> None:
    found = analyse(text)
    assert found.text == text
    assert len(set(found.spans)) == len(found.spans)
    assert len(set(found.names)) == len(found.names)


@settings(max_examples=20)
@given(
    st.lists(PIECES, min_size=1, max_size=8),
    st.sampled_from(["", " ", "\n"]),
    st.integers(10_000, 100_000),
)
def test_only_both_ends_of_a_long_text_are_analysed(
    pieces: list[str], glue: str, size: int
) -> None:
    once = glue.join(pieces) + glue
    text = (once * (size // len(once) + 1))[:size]
    assert analyse(text).text == text
    middle = "x " * (size // 2)
    assert spans(f"I moved in May 2023. {middle} in June 2023 {middle} Where was I last year?") == [
        "2023-05",
        "2025",
    ]


@given(st.datetimes(timezones=st.just(UTC)), st.lists(PIECES, max_size=12).map(" ".join))
def test_no_date_crashes_the_analysis(now: datetime, text: str) -> None:
    assert analyse_query(text, now=now).text == text

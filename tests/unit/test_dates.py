"""Parsing, validating and formatting instants and intervals."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tables import each_row
from told.errors import TimeError
from told.text.date_lexicon import DATE_FORMS, shift_date
from told.text.dates import (
    ALWAYS,
    PRECISIONS,
    Interval,
    format_iso,
    from_us,
    parse_instant,
    parse_interval,
    parse_moment,
    parse_relative,
    to_us,
    to_zone,
)

NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)  # a Wednesday
FIRST, LAST = to_us(datetime.min.replace(tzinfo=UTC)), to_us(datetime.max.replace(tzinfo=UTC))
instants = st.integers(FIRST, LAST)


def us(text: str) -> int:
    return to_us(datetime.fromisoformat(text))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    start, end = draw(st.none() | instants), draw(st.none() | instants)
    assume(start is None or end is None or start < end)
    return Interval(start, end, draw(st.sampled_from(PRECISIONS)))


# instants


@given(instants, instants)
def test_iso_strings_sort_chronologically(one: int, other: int) -> None:
    assert (format_iso(one) < format_iso(other)) == (one < other)


@given(instants)
def test_an_instant_round_trips_through_every_format(value: int) -> None:
    assert to_us(from_us(value)) == value
    assert parse_instant(format_iso(value)) == value
    assert parse_instant(from_us(value)) == value


def test_an_instant_is_written_with_microseconds_and_offset() -> None:
    assert format_iso(us("2026-03-01T09:00+00:00")) == "2026-03-01T09:00:00.000000+00:00"


@each_row(
    ("value", "expected"),
    [
        ("2026-03-01T09:00:00Z", "2026-03-01T09:00:00+00:00"),
        ("2026-03-01t09:00:00z", "2026-03-01T09:00:00+00:00"),
        ("2026-03-01 09:00:00+01:00", "2026-03-01T08:00:00+00:00"),
        ("2026-03-01T09:00:00 -0530", "2026-03-01T14:30:00+00:00"),
        ("2026-03-01T09:00:00.123456789Z", "2026-03-01T09:00:00.123456+00:00"),
        ("2026-03-01T09:00:00,5Z", "2026-03-01T09:00:00.500000+00:00"),
        ("20260301T090000Z", "2026-03-01T09:00:00+00:00"),
        ("20260301", "2026-03-01T00:00:00+00:00"),
        (" 2026-03-01 ", "2026-03-01T00:00:00+00:00"),
        ("2026-03", "2026-03-01T00:00:00+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
        (1_700_000_000, "2023-11-14T22:13:20+00:00"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250000+00:00"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123000+00:00"),
        (-86400, "1969-12-31T00:00:00+00:00"),
        ("1700000000", "2023-11-14T22:13:20+00:00"),
        (date(2026, 3, 1), "2026-03-01T00:00:00+00:00"),
        (datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=2))), "2026-03-01T07:00:00+00:00"),
    ],
)
def test_an_instant_is_parsed(value: str | float | date, expected: str) -> None:
    assert parse_instant(value) == us(expected)


@each_row(
    "value",
    [
        True,
        float("nan"),
        float("inf"),
        10**30,
        -(10**30),
        1e300,
        1e306,
        10**400,
        "",
        "soon",
        "0000-01-01",
        "2026-13-01",
        "2026-02-29",
        "2026-03-01T25:00Z",
        "2026-03-01T09:00:61Z",
        "2026-03-01T09:00Z junk",
        "2026-03-01T09:00+99:00",
        "12026-03-01",
        "9999-12-31T23:00-05:00",
        "٢٠٢٦-03-01",
        "../2026",
        "yesterday",
        pytest.param("1" * 5000, id="many digits"),
        None,
        b"2026",
        [],
    ],
)
def test_an_invalid_instant_is_rejected(value: object) -> None:
    with pytest.raises(TimeError):
        parse_instant(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    ["2026-03-01T09:00", "2026-03-01 09:00:00", datetime(2026, 3, 1, 9)],  # noqa: DTZ001
)
def test_a_naive_time_is_rejected_with_a_hint(value: str | datetime) -> None:
    with pytest.raises(TimeError) as refusal:
        parse_instant(value)
    assert "zone=" in refusal.value.hint
    assert "+01:00" in refusal.value.hint
    assert parse_instant(value, zone="Europe/Berlin") == us("2026-03-01T08:00+00:00")


def test_a_date_starts_at_midnight_in_its_zone() -> None:
    assert parse_instant("2026-07-01", zone="Europe/Berlin") == us("2026-06-30T22:00+00:00")
    assert parse_instant(date(2026, 7, 1), zone=ZoneInfo("America/New_York")) == us(
        "2026-07-01T04:00+00:00"
    )
    assert parse_instant("2026-07-01", zone="+05:30") == us("2026-06-30T18:30+00:00")


def test_an_offset_in_the_text_wins_over_the_zone() -> None:
    assert parse_instant("2026-03-01T09:00Z", zone="Europe/Berlin") == us("2026-03-01T09:00+00:00")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc", "+99:99", "Europe"])
def test_an_unknown_zone_is_rejected_with_examples(zone: str) -> None:
    with pytest.raises(TimeError, match="Europe/Berlin"):
        parse_instant("2026-03-01", zone=zone)


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none())
def test_any_value_is_parsed_or_rejected(value: str | float | None) -> None:
    try:
        read = parse_interval(value, now=NOW)  # type: ignore[arg-type]
    except TimeError:
        return
    assert parse_interval(str(read)).start == read.start or read.precision in (
        "day",
        "month",
        "year",
    )


# intervals


@each_row(
    ("text", "start", "end", "precision"),
    [
        ("1979", "1979-01-01", "1980-01-01", "year"),
        ("1979-10", "1979-10-01", "1979-11-01", "month"),
        ("1979-12", "1979-12-01", "1980-01-01", "month"),
        ("1979-10-05", "1979-10-05", "1979-10-06", "day"),
        ("2026-03-01T09Z", "2026-03-01T09:00", "2026-03-01T10:00", "hour"),
        ("2026-03-01T09:00Z", "2026-03-01T09:00", "2026-03-01T09:01", "minute"),
        ("2026-03-01T09:00:00Z", "2026-03-01T09:00", "2026-03-01T09:00:00.000001", "instant"),
        ("2026-03-01/2026-04-01", "2026-03-01", "2026-04-02", "day"),
        ("2019/2021", "2019-01-01", "2022-01-01", "year"),
        ("2019-05/2021-02-03", "2019-05-01", "2021-02-04", "day"),
        ("2026-03-01T09:00Z/2026-03-01T11:30Z", "2026-03-01T09:00", "2026-03-01T11:30", "minute"),
        ("../2026", None, "2027-01-01", "year"),
        ("2026-03/..", "2026-03-01", None, "month"),
        ("9999", "9999-01-01", None, "year"),
    ],
)
def test_a_partial_date_keeps_its_precision(
    text: str, start: str | None, end: str | None, precision: str
) -> None:
    read = parse_interval(text)
    assert read == Interval(
        start and us(f"{start}+00:00" if "T" in start else f"{start}T00:00+00:00"),
        read.end,
        precision,
    )
    assert read.end == (end and us(f"{end}+00:00" if "T" in end else f"{end}T00:00+00:00"))
    assert parse_interval(str(read)) == read


@each_row(
    "text", ["1979", "1979-10", "1979-10-05", "9999-12-31", "2026-03-01/2026-04-01", "../2026"]
)
def test_an_interval_is_printed_at_its_precision(text: str) -> None:
    assert str(parse_interval(text)) == text


@each_row(
    "zone", ["Pacific/Honolulu", "America/New_York", "UTC", "Asia/Kolkata", "Pacific/Auckland"]
)
@each_row("text", ["1979", "1979-10", "1979-10-05", "2026-01-31/2026-03-29"])
def test_an_interval_prints_its_local_date_in_any_zone(text: str, zone: str) -> None:
    assert str(parse_interval(text, zone=zone)) == text


def test_the_length_of_a_day_follows_its_zone() -> None:
    spring = parse_interval("2026-03-29", zone="Europe/Berlin")
    assert spring.start is not None
    assert spring.end == spring.start + 23 * 3600 * 1_000_000


@given(intervals())
def test_an_interval_round_trips_through_json(given_interval: Interval) -> None:
    assert Interval.from_json(given_interval.as_json()) == given_interval


@given(intervals())
def test_an_interval_can_always_be_printed(given_interval: Interval) -> None:
    assert "/" in str(given_interval) or str(given_interval)[:4].isdigit()


@given(st.dates(), st.dates(), st.sampled_from([4, 7, 10]))
def test_a_printed_interval_round_trips(one: date, other: date, width: int) -> None:
    first, last = sorted([one.isoformat()[:width], other.isoformat()[:width]])
    read = parse_interval(f"{first}/{last}")
    assert parse_interval(str(read)) == read


@given(intervals(), intervals(), instants)
def test_intervals_that_share_an_instant_overlap(one: Interval, other: Interval, at: int) -> None:
    assert one.overlaps(other) == other.overlaps(one)
    if one.contains(at) and other.contains(at):
        assert one.overlaps(other)


def test_an_interval_includes_its_start_and_excludes_its_end() -> None:
    march = parse_interval("2026-03")
    assert march.start is not None
    assert march.end is not None
    assert march.contains(march.start)
    assert march.contains(march.end - 1)
    assert not march.contains(march.end)
    assert not march.contains(march.start - 1)
    assert not march.overlaps(parse_interval("2026-04"))
    assert march.overlaps(parse_interval("2026-03-31/2026-04-02"))


@given(instants)
def test_always_contains_every_instant(at: int) -> None:
    assert ALWAYS.contains(at)
    assert str(ALWAYS) == "../.."
    assert parse_interval("../..") == ALWAYS


@pytest.mark.parametrize(
    ("start", "end", "precision"), [(5, 5, "instant"), (6, 5, "day"), (0, 1, "fortnight")]
)
def test_an_invalid_interval_is_rejected(start: int, end: int, precision: str) -> None:
    with pytest.raises(TimeError):
        Interval(start, end, precision)


@pytest.mark.parametrize(
    "text", ["2026/2025", "2026-03-01/soon", "2026-03-01/2026-04-01/2026-05-01"]
)
def test_a_malformed_interval_is_rejected(text: str) -> None:
    with pytest.raises(TimeError):
        parse_interval(text, now=NOW)


# relative times


@each_row(
    ("text", "expected"),
    [
        ("today", "2026-03-18"),
        ("yesterday", "2026-03-17"),
        ("the day before yesterday", "2026-03-16"),
        ("tomorrow", "2026-03-19"),
        ("tuesday", "2026-03-17"),
        ("on Tuesday", "2026-03-17"),
        ("wednesday", "2026-03-18"),
        ("last wednesday", "2026-03-11"),
        ("Last  Tuesday?", "2026-03-17"),
        ("next friday", "2026-03-20"),
        ("tuesday of last week", "2026-03-10"),
        ("3 days ago", "2026-03-15"),
        ("two weeks ago", "2026-03-02/2026-03-08"),
        ("an hour ago", "2026-03-18T14Z"),
        ("10 minutes ago", "2026-03-18T15:20Z"),
        ("3 months ago", "2025-12"),
        ("two years ago", "2024"),
        ("in 3 days", "2026-03-21"),
        ("last week", "2026-03-09/2026-03-15"),
        ("this week", "2026-03-16/2026-03-22"),
        ("last month", "2026-02"),
        ("last quarter", "2025-10/2025-12"),
        ("last year", "2025"),
        ("next year", "2027"),
        ("last weekend", "2026-03-14/2026-03-15"),
        ("last summer", "2025-06/2025-08"),
        ("summer of 2023", "2023-06/2023-08"),
        ("winter 2023", "2023-12/2024-02"),
        ("this winter", "2026-12/2027-02"),
        ("march", "2026-03"),
        ("april", "2025-04"),
        ("last march", "2025-03"),
        ("in may 2023", "2023-05"),
        ("may 2023", "2023-05"),
        ("5 march 2026", "2026-03-05"),
        ("5th of March 2026", "2026-03-05"),
        ("march 5, 2026", "2026-03-05"),
        ("april 1", "2025-04-01"),
        ("in 2023", "2023"),
        ("the 1990s", "1990/1999"),
        ("end of last month", "2026-02-28"),
        ("beginning of march", "2026-03-01"),
        ("end of the year", "2026-12-31"),
        ("mid march", "2026-03-16"),
        ("noon yesterday", "2026-03-17T12:00Z"),
        ("yesterday at 3pm", "2026-03-17T15:00Z"),
        ("12 am today", "2026-03-18T00:00Z"),
        ("15:45 on tuesday", "2026-03-17T15:45Z"),
        ("last night", "2026-03-17T18Z/2026-03-18T06Z"),
        ("this morning", "2026-03-18T06Z/2026-03-18T12Z"),
        ("the last 3 days", "2026-03-15T15:30:00.000000+00:00/2026-03-18T15:30:00.000000+00:00"),
        ("三天前", "2026-03-15"),
        ("昨天", "2026-03-17"),
        ("上周二", "2026-03-10"),
        ("上个月", "2026-02"),
        ("去年", "2025"),
        ("2026年3月5日", "2026-03-05"),
        ("2023年5月", "2023-05"),
        ("3日前", "2026-03-15"),
        ("hace tres días", "2026-03-15"),
        ("hace tres dias", "2026-03-15"),
        ("ayer", "2026-03-17"),
        ("la semana pasada", "2026-03-09/2026-03-15"),
        ("5 de marzo de 2026", "2026-03-05"),
        ("gestern", "2026-03-17"),
        ("vor drei Tagen", "2026-03-15"),
        ("letzten Dienstag", "2026-03-17"),
        ("5. März 2026", "2026-03-05"),
        ("il y a deux jours", "2026-03-16"),
        ("la semaine dernière", "2026-03-09/2026-03-15"),
        ("1979-10", "1979-10"),
    ],
)
def test_a_relative_expression_becomes_an_interval(text: str, expected: str) -> None:
    assert str(parse_relative(text, now=NOW)) == expected
    assert parse_interval(text, now=NOW) == parse_relative(text, now=NOW)


@each_row(
    ("text", "expected"),
    [
        ("now", "2026-03-18T15:30:00.000000"),
        ("yesterday", "2026-03-17T23:59:59.999999"),
        ("last tuesday", "2026-03-17T23:59:59.999999"),
        ("2026-03-01", "2026-03-01T23:59:59.999999"),
        ("2025", "2025-12-31T23:59:59.999999"),
        ("2026-03-01T09:00Z", "2026-03-01T09:00:00.000000"),
        ("2026-03-01T09:00:00+01:00", "2026-03-01T08:00:00.000000"),
        ("3 days ago", "2026-03-15T15:30:00.000000"),
        ("two weeks ago", "2026-03-04T15:30:00.000000"),
        ("an hour ago", "2026-03-18T14:30:00.000000"),
        ("a month ago", "2026-02-18T15:30:00.000000"),
        ("last week", "2026-03-15T23:59:59.999999"),
        ("last year", "2025-12-31T23:59:59.999999"),
        ("end of last month", "2026-02-28T23:59:59.999999"),
        ("beginning of march", "2026-03-01T00:00:00.000000"),
        ("in may 2023", "2023-05-31T23:59:59.999999"),
        ("noon yesterday", "2026-03-17T12:00:00.000000"),
        ("2026/..", "2026-03-18T15:30:00.000000"),
        ("1700000000", "2023-11-14T22:13:20.000000"),
        ("9999", "9999-12-31T23:59:59.999999"),
        ("9999-12-31", "9999-12-31T23:59:59.999999"),
        ("2026/9999", "9999-12-31T23:59:59.999999"),
    ],
)
def test_a_moment_is_the_end_of_the_named_interval_or_the_exact_time(
    text: str, expected: str
) -> None:
    assert format_iso(parse_moment(text, now=NOW)) == f"{expected}+00:00"


def test_days_follow_the_zone() -> None:
    late = datetime(2026, 3, 18, 23, 30, tzinfo=UTC)
    assert str(parse_relative("today", now=late, zone="Asia/Tokyo")) == "2026-03-19"
    assert (
        parse_moment("yesterday", now=late, zone="Asia/Tokyo") == us("2026-03-19T00:00+09:00") - 1
    )
    assert parse_moment("noon yesterday", now=late, zone="Asia/Tokyo") == us(
        "2026-03-18T12:00+09:00"
    )


@pytest.mark.parametrize(
    ("last", "zone"),
    [("9999-12-31T23:59:59Z", "Asia/Tokyo"), ("0001-01-01T00:00:00Z", "America/New_York")],
)
def test_days_outside_the_zones_range_are_utc_days(last: str, zone: str) -> None:
    now = to_zone(us(last))
    assert str(parse_relative("today", now=now, zone=zone)) == last[:10]
    assert parse_moment("now", now=now, zone=zone) == us(last)


def test_without_a_zone_days_follow_the_zone_of_now() -> None:
    late = datetime(2026, 3, 18, 23, 30, tzinfo=UTC).astimezone(ZoneInfo("Asia/Tokyo"))
    assert str(parse_relative("today", now=late)) == "2026-03-19"


def test_a_day_skipped_by_the_zone_is_rejected() -> None:
    with pytest.raises(TimeError, match="2011-12-30 does not exist in Pacific/Apia"):
        parse_interval("2011-12-30", zone="Pacific/Apia")
    assert parse_interval("2011-12", zone="Pacific/Apia").contains(us("2011-12-31T12:00+14:00"))
    assert (
        parse_relative("yesterday", now=to_zone(us("2011-12-31T12:00+14:00"), "Pacific/Apia"))
        is None
    )


def test_across_a_clock_change_days_keep_wall_time_and_hours_keep_elapsed_time() -> None:
    after = datetime(2026, 3, 29, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    assert parse_moment("1 day ago", now=after) == us("2026-03-28T12:00+01:00")
    assert parse_moment("24 hours ago", now=after) == us("2026-03-28T11:00+01:00")


@each_row(
    "text",
    [
        "",
        "blah",
        "yesterdayish",
        "31 february 2026",
        "99999 years ago",
        "20/3/2026",
        "last",
        pytest.param("x" * 10_000, id="long"),
    ],
)
def test_an_unknown_expression_is_rejected_with_three_examples(text: str) -> None:
    assert parse_relative(text, now=NOW) is None
    with pytest.raises(TimeError) as refusal:
        parse_moment(text, now=NOW)
    assert refusal.value.hint.count("'") == 6


def test_an_impossible_iso_date_is_rejected_with_the_reason() -> None:
    with pytest.raises(TimeError, match="day is out of range"):
        parse_moment("2026-02-30", now=NOW)


def test_now_must_be_timezone_aware() -> None:
    with pytest.raises(TimeError, match="now"):
        parse_moment("yesterday", now=datetime(2026, 3, 18))  # noqa: DTZ001
    with pytest.raises(TimeError, match="now"):
        parse_relative("yesterday", now=datetime(2026, 3, 18))  # noqa: DTZ001


def test_relative_expressions_need_now() -> None:
    assert parse_instant("yesterday", now=NOW) == us("2026-03-17T00:00+00:00")
    with pytest.raises(TimeError):
        parse_instant("yesterday")


@given(st.text(max_size=100))
def test_no_text_crashes_the_parser(text: str) -> None:
    assert parse_relative(text, now=NOW) is None or isinstance(
        parse_relative(text, now=NOW), Interval
    )


@given(
    st.datetimes(timezones=st.just(UTC)),
    st.sampled_from(["last week", "yesterday", "last winter", "march", "5 ago"]),
)
def test_no_date_crashes_the_parser(now: datetime, text: str) -> None:
    found = parse_relative(text, now=now)
    assert found is None or found.start is None or found.start <= to_us(now)


@given(
    st.dates(date(2, 1, 1), date(9998, 1, 1)),
    st.sampled_from(["month", "quarter", "year"]),
    st.integers(-11, 11),
)
def test_month_steps_clamp_to_the_target_month(day: date, unit: str, count: int) -> None:
    assume(2 < day.year + count < 9998)
    there = shift_date(day, unit, count)
    assert there.day == day.day or (there.day < day.day and shift_date(there, "day", 1).day == 1)


def test_every_template_has_a_parser() -> None:
    from told.text import dates

    assert set(dates._READERS) == set(DATE_FORMS)

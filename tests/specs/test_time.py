"""Two times (issue 2 §4): when we came to believe something, and when it holds in the world."""

from datetime import UTC, date, datetime, timedelta

import pytest

from histories import stage
from told import InvalidInput, TimeError

SECOND = 1_000_000
DAY = 86_400 * SECOND


@pytest.fixture(params=["ram", "sqlite"])
def here(request):
    with stage(request.param, extract="verbatim") as opened:
        yield opened


def told(here, text, **more):
    """A new memory of u, told now."""
    return here.memory.add(text, user_id="u", **more)["results"][0]["id"]


def texts(here, **times):
    return [row["memory"] for row in here.memory.get_all(user_id="u", **times)["results"]]


@pytest.fixture
def moved(here):
    """Somebody lived in NYC, which we heard on Monday, and moved to Berlin, which we heard on
    Wednesday.
    """
    home = told(here, "lives in NYC", timestamp="2020-01-01")
    here.clock.tick(2 * DAY)
    here.memory.update(home, "lives in Berlin")
    here.clock.tick(2 * DAY)
    return home


# When we believed it


@pytest.mark.parametrize(
    ("as_of", "found"),
    [
        ("2026-01-04", []),
        ("2026-01-05", ["lives in NYC"]),
        ("2026-01-06", ["lives in NYC"]),
        ("2026-01-07", ["lives in Berlin"]),
        ("2026-01-07T07:59:59Z", ["lives in NYC"]),
        ("2026-01-07T08:00:00Z", ["lives in Berlin"]),
        ("2026-01-07T09:00:00+02:00", ["lives in NYC"]),
        ("now", ["lives in Berlin"]),
        ("yesterday", ["lives in Berlin"]),
        ("3 days ago", ["lives in NYC"]),
        ("last monday", ["lives in NYC"]),
        ("last tuesday", ["lives in NYC"]),
        ("2025", []),
        ("2026", ["lives in Berlin"]),
        ("#1", []),
        ("#2", ["lives in NYC"]),
        ("#3", ["lives in Berlin"]),
        ("#99", ["lives in Berlin"]),
        (datetime(2026, 1, 6, 12, tzinfo=UTC), ["lives in NYC"]),
        (1_767_700_000, ["lives in NYC"]),
    ],
)
def test_a_read_as_of_a_moment_sees_what_was_believed_at_it(here, moved, as_of, found):
    assert texts(here, as_of=as_of) == found
    assert [
        row["memory"] for row in here.memory.search("lives", user_id="u", as_of=as_of)["results"]
    ] == found
    assert [
        hit.fact.text for hit in here.memory.context("lives", user_id="u", as_of=as_of).hits
    ] == found
    one = here.memory.get(moved, as_of=as_of)
    assert ([] if one is None else [one["memory"]]) == found


def test_a_date_means_the_same_as_its_name(here, moved):
    """As of a day is at its end, whoever writes the day."""
    assert texts(here, as_of=date(2026, 1, 7)) == texts(here, as_of="2026-01-07")


def test_what_was_deleted_is_there_as_of_before_it(here):
    made = told(here, "tea")
    here.clock.tick(SECOND)
    here.memory.delete(made)
    assert texts(here) == []
    assert texts(here, as_of="#2") == ["tea"]
    assert here.memory.get(made, as_of="#2")["memory"] == "tea"
    assert here.memory.get(made, as_of="#3") is None


@pytest.mark.parametrize(
    "as_of",
    [
        "#0",
        "#",
        "#-1",
        "#x",
        "gibberish",
        "",
        "2026-13-01",
        datetime(2026, 1, 1),  # noqa: DTZ001
        True,
        [],
        "#1.5",
        "²",
    ],
)
def test_a_moment_that_is_none_is_refused(here, moved, as_of):
    with pytest.raises(TimeError):
        texts(here, as_of=as_of)
    with pytest.raises(TimeError):
        here.memory.get(moved, as_of=as_of)


def test_a_naive_time_is_read_in_the_zone_of_the_settings():
    with stage("ram", zone="Asia/Tokyo") as here:
        told(here, "tea")  # at 08:00 UTC, which is 17:00 in Tokyo
        assert texts(here, as_of="2026-01-05T16:59:59") == []
        assert texts(here, as_of="2026-01-05T17:00:00") == ["tea"]
        assert texts(here, as_of=datetime(2026, 1, 5, 17)) == ["tea"]  # noqa: DTZ001


# When it holds


@pytest.mark.parametrize(
    ("valid_at", "found"),
    [
        ("2019-12-31", []),
        ("2020-01-01", ["lives in NYC"]),
        ("2023", ["lives in NYC"]),
        ("2026-01-06", ["lives in NYC"]),
        ("2026-01-07", ["lives in Berlin"]),
        ("2030", ["lives in Berlin"]),
    ],
)
def test_a_read_of_the_world_sees_what_we_now_believe_held_then(here, moved, valid_at, found):
    assert texts(here, valid_at=valid_at) == found
    assert [
        row["memory"]
        for row in here.memory.search("lives", user_id="u", valid_at=valid_at)["results"]
    ] == found
    one = here.memory.get(moved, valid_at=valid_at)
    assert ([] if one is None else [one["memory"]]) == found


@pytest.mark.parametrize(
    ("as_of", "valid_at", "found"),
    [
        ("2026-01-05", "2023", ["lives in NYC"]),
        ("2026-01-05", "2030", ["lives in NYC"]),
        ("2026-01-04", "2023", []),
        ("2026-01-08", "2030", ["lives in Berlin"]),
        ("2026-01-08", "2019", []),
    ],
)
def test_both_axes_together_say_what_we_believed_then_of_a_time(
    here, moved, as_of, valid_at, found
):
    assert texts(here, as_of=as_of, valid_at=valid_at) == found


def test_a_correction_may_say_since_when_it_holds(here):
    made = told(here, "works at Acme", timestamp="2020-01-01")
    here.memory.update(made, "works at Globex", timestamp="2023-06")
    assert texts(here, valid_at="2023-05") == ["works at Acme"]
    assert texts(here, valid_at="2023-07") == ["works at Globex"]


@pytest.mark.parametrize(
    "valid_at", ["9998", "9999", "9999-12-31", date.max, "9999-12-31T23:59:59Z"]
)
def test_what_is_to_hold_later_holds_on_the_last_day_of_the_calendar(here, valid_at):
    made = told(here, "works at Acme", timestamp="2020-01-01")
    here.memory.update(made, "works at Globex", timestamp="2030-01-01")
    assert texts(here, valid_at=valid_at) == ["works at Globex"]


def test_a_question_may_be_asked_from_the_end_of_the_calendar_in_any_zone():
    with stage("ram", zone="Asia/Tokyo") as here:
        told(here, "works at Acme")
        found = here.memory.search(
            "where did I work last week?", user_id="u", as_of="9999-12-31T23:59:59Z"
        )
        assert len(found["results"]) == 1


def test_a_change_of_metadata_is_no_change_of_the_world(here):
    made = told(here, "tea", timestamp="2020-01-01")
    here.clock.tick(DAY)
    here.memory.update(made, metadata={"tag": "drinks"})
    assert texts(here, valid_at="2021") == ["tea"]
    assert here.memory.get(made, valid_at="2021")["metadata"] == {"tag": "drinks"}


def test_what_was_given_up_holds_at_no_time(here, moved):
    here.memory.delete(moved)
    assert texts(here, valid_at="2023") == []
    assert texts(here, valid_at="2023", as_of="#3") == ["lives in NYC"]


# When it fades


def test_an_expired_memory_is_hidden_from_listings_and_shown_on_request(here):
    made = told(here, "parking code 42", expiration_date="2026-01-05")
    told(here, "tea")
    assert texts(here) == ["parking code 42", "tea"], "the day itself still counts"
    here.clock.now = 1_767_657_600 * SECOND  # 2026-01-06T00:00:00Z
    assert texts(here) == ["tea"]
    assert texts(here, show_expired=True) == ["parking code 42", "tea"]
    assert made not in [
        row["id"] for row in here.memory.search("parking code", user_id="u")["results"]
    ]
    assert here.memory.search("parking", user_id="u", show_expired=True)["results"][0]["id"] == made
    assert "parking" not in here.memory.context("parking", user_id="u").text
    assert here.memory.get(made)["expiration_date"] == "2026-01-06T00:00:00.000000+00:00"
    assert texts(here, as_of="2026-01-05T12:00:00Z") == ["parking code 42", "tea"], (
        "as of then it had not expired"
    )


def test_an_expiration_can_be_set_kept_and_cleared(here):
    made = told(here, "tea", expiration_date="2026-02")
    here.memory.update(made, "green tea")
    assert here.memory.get(made)["expiration_date"].startswith("2026-03-01"), (
        "not named, so it stays"
    )
    here.memory.update(made, expiration_date="2027-01-01T12:00:00Z")
    assert here.memory.get(made)["expiration_date"] == "2027-01-01T12:00:00.000000+00:00"
    here.memory.update(made, expiration_date=None)
    assert "expiration_date" not in here.memory.get(made)
    assert [change["event"] for change in here.memory.history(made)] == [
        "ADD",
        "UPDATE",
        "UPDATE",
        "UPDATE",
    ]


@pytest.mark.parametrize("wrong", ["soon", "2026-13-01", [], True, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_an_expiration_that_is_no_time_is_refused(here, wrong):
    with pytest.raises(InvalidInput):
        told(here, "tea", expiration_date=wrong)
    with pytest.raises(InvalidInput):
        here.memory.update(told(here, "tea"), expiration_date=wrong)


# Looking along it


def test_a_timeline_tells_what_a_scope_came_to_believe_or_gave_up(here, moved):
    tea = told(here, "likes tea")
    here.memory.delete(tea)
    here.memory.add("elsewhere", user_id="v")
    rows = here.memory.timeline(user_id="u")["results"]
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in rows] == [
        ("ADD", None, "lives in NYC"),
        ("UPDATE", "lives in NYC", "lives in Berlin"),
        ("ADD", None, "likes tea"),
        ("DELETE", "likes tea", None),
    ]
    stamps = [row["timestamp"] for row in rows]
    assert stamps == sorted(stamps)
    assert here.memory.timeline(user_id="u", limit=2)["results"] == rows[-2:]


@pytest.mark.parametrize("limit", [0, -1, 1.5, "2", True])
def test_a_timeline_of_no_length_is_refused(here, moved, limit):
    with pytest.raises(InvalidInput):
        here.memory.timeline(user_id="u", limit=limit)


@pytest.mark.parametrize("offset", [-1, 1.5, "2", True, None])
def test_a_listing_from_nowhere_is_refused(here, moved, offset):
    with pytest.raises(InvalidInput):
        here.memory.get_all(user_id="u", offset=offset)


def test_a_listing_goes_on_where_the_last_page_ended(here):
    made = [told(here, f"fact {n}") for n in range(7)]
    pages = [
        here.memory.get_all(user_id="u", limit=3, offset=offset)["results"]
        for offset in (0, 3, 6, 9)
    ]
    assert [[row["id"] for row in page] for page in pages] == [made[:3], made[3:6], made[6:], []]


def test_a_difference_tells_what_changed_between_two_moments(here, moved):
    gone = told(here, "likes tea")
    here.clock.tick(DAY)
    here.memory.delete(gone)
    new = told(here, "likes soup")
    assert here.memory.diff("2026-01-05", user_id="u") == {
        "added": [{"id": new, "memory": "likes soup"}],
        "changed": [{"id": moved, "old_memory": "lives in NYC", "new_memory": "lives in Berlin"}],
        "removed": [],
    }
    assert here.memory.diff("2026-01-09", user_id="u")["removed"] == [
        {"id": gone, "memory": "likes tea"}
    ]
    assert here.memory.diff("2026-01-05", "2026-01-05", user_id="u") == {
        "added": [],
        "changed": [],
        "removed": [],
    }


def test_every_instant_is_utc_and_says_so(here):
    made = told(
        here,
        "tea",
        timestamp="2026-01-01T09:00:00+09:00",
        expiration_date="2030-01-01T00:00:00-05:00",
    )
    item = here.memory.get(made)
    assert item["said_at"] == "2026-01-01T00:00:00.000000+00:00"
    assert item["expiration_date"] == "2030-01-01T05:00:00.000000+00:00"
    for name in ("created_at", "updated_at", "said_at", "expiration_date"):
        assert datetime.fromisoformat(item[name]).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("timestamp", "said_at"),
    [
        ("2020-05-06", "2020-05-06T00:00:00"),
        ("2020-05", "2020-05-01T00:00:00"),
        (1_588_723_200, "2020-05-06T00:00:00"),
        (1_588_723_200_000, "2020-05-06T00:00:00"),
        (datetime(2020, 5, 6, tzinfo=UTC), "2020-05-06T00:00:00"),
    ],
)
def test_a_timestamp_is_read_in_every_usual_form(here, timestamp, said_at):
    assert here.memory.get(told(here, "tea", timestamp=timestamp))["said_at"].startswith(said_at)


@pytest.mark.parametrize(
    "timestamp",
    ["2020-05-06T10:00:00", datetime(2020, 5, 6), "whenever", True, float("nan")],  # noqa: DTZ001
)
def test_a_timestamp_that_names_no_instant_is_refused(here, timestamp):
    with pytest.raises(TimeError):
        told(here, "tea", timestamp=timestamp)
    assert texts(here) == []


# Of what was understood


@pytest.fixture(params=["ram", "sqlite"])
def listening(request):
    with stage(request.param) as opened:
        yield opened


def test_what_was_said_over_time_is_believed_over_time(listening):
    here = listening
    home = told(here, "I live in Lisbon", timestamp="2020-03-01")
    here.clock.tick(2 * DAY)
    assert told(here, "I moved to Porto in 2023") == home
    here.clock.tick(2 * DAY)
    told(here, "I no longer live in Porto")
    assert texts(here) == []
    assert texts(here, as_of="2026-01-05") == ["User lives in Lisbon"]
    assert texts(here, as_of="2026-01-08") == ["User lives in Porto"]
    assert texts(here, as_of="2026-01-08", valid_at="2021") == ["User lives in Lisbon"]
    assert texts(here, as_of="2026-01-08", valid_at="2024") == ["User lives in Porto"]
    events = [row["event"] for row in here.memory.timeline(user_id="u")["results"]]
    assert events == ["ADD", "UPDATE", "DELETE"]
    assert here.memory.diff("2026-01-05", "2026-01-08", user_id="u") == {
        "added": [],
        "removed": [],
        "changed": [
            {"id": home, "old_memory": "User lives in Lisbon", "new_memory": "User lives in Porto"}
        ],
    }


def test_what_was_understood_fades_with_what_was_said(listening):
    here = listening
    told(here, "I am staying in Oslo, I live in Lisbon", expiration_date="2026-01-05")
    assert texts(here) != []
    here.clock.tick(2 * DAY)
    assert texts(here) == []
    assert here.memory.search("Lisbon", user_id="u")["results"] == []
    assert here.memory.context("Lisbon", user_id="u").text == ""

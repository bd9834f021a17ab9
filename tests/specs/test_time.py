"""Bitemporal reads (issue 2 §4): when a fact was recorded, and when it holds in the world."""

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


def add_text(here, text, **more):
    """Add a memory of user u now; return its id."""
    return here.memory.add(text, user_id="u", **more)["results"][0]["id"]


def list_texts(here, **times):
    return [row["memory"] for row in here.memory.get_all(user_id="u", **times)["results"]]


@pytest.fixture
def moved(here):
    """A home in NYC recorded on Monday and updated to Berlin on Wednesday."""
    home = add_text(here, "lives in NYC", timestamp="2020-01-01")
    here.clock.tick(2 * DAY)
    here.memory.update(home, "lives in Berlin")
    here.clock.tick(2 * DAY)
    return home


# as_of: when it was recorded


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
def test_as_of_read_returns_the_state_at_that_time(here, moved, as_of, found):
    assert list_texts(here, as_of=as_of) == found
    assert [
        row["memory"] for row in here.memory.search("lives", user_id="u", as_of=as_of)["results"]
    ] == found
    assert [
        hit.fact.text for hit in here.memory.context("lives", user_id="u", as_of=as_of).hits
    ] == found
    one = here.memory.get(moved, as_of=as_of)
    assert ([] if one is None else [one["memory"]]) == found


def test_date_object_equals_its_iso_string(here, moved):
    """A day means its end, as a date object or as a string."""
    assert list_texts(here, as_of=date(2026, 1, 7)) == list_texts(here, as_of="2026-01-07")


def test_deleted_memory_is_returned_as_of_an_earlier_position(here):
    memory_id = add_text(here, "tea")
    here.clock.tick(SECOND)
    here.memory.delete(memory_id)
    assert list_texts(here) == []
    assert list_texts(here, as_of="#2") == ["tea"]
    assert here.memory.get(memory_id, as_of="#2")["memory"] == "tea"
    assert here.memory.get(memory_id, as_of="#3") is None


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
def test_invalid_as_of_is_rejected(here, moved, as_of):
    with pytest.raises(TimeError):
        list_texts(here, as_of=as_of)
    with pytest.raises(TimeError):
        here.memory.get(moved, as_of=as_of)


def test_naive_time_uses_the_configured_zone():
    with stage("ram", zone="Asia/Tokyo") as here:
        add_text(here, "tea")  # at 08:00 UTC, which is 17:00 in Tokyo
        assert list_texts(here, as_of="2026-01-05T16:59:59") == []
        assert list_texts(here, as_of="2026-01-05T17:00:00") == ["tea"]
        assert list_texts(here, as_of=datetime(2026, 1, 5, 17)) == ["tea"]  # noqa: DTZ001


# valid_at: when it holds


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
def test_valid_at_read_returns_what_held_at_that_time(here, moved, valid_at, found):
    assert list_texts(here, valid_at=valid_at) == found
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
def test_as_of_and_valid_at_combine(here, moved, as_of, valid_at, found):
    assert list_texts(here, as_of=as_of, valid_at=valid_at) == found


def test_update_timestamp_sets_when_the_new_text_holds(here):
    memory_id = add_text(here, "works at Acme", timestamp="2020-01-01")
    here.memory.update(memory_id, "works at Globex", timestamp="2023-06")
    assert list_texts(here, valid_at="2023-05") == ["works at Acme"]
    assert list_texts(here, valid_at="2023-07") == ["works at Globex"]


@pytest.mark.parametrize(
    "valid_at", ["9998", "9999", "9999-12-31", date.max, "9999-12-31T23:59:59Z"]
)
def test_future_update_holds_until_the_last_day_of_the_calendar(here, valid_at):
    memory_id = add_text(here, "works at Acme", timestamp="2020-01-01")
    here.memory.update(memory_id, "works at Globex", timestamp="2030-01-01")
    assert list_texts(here, valid_at=valid_at) == ["works at Globex"]


def test_search_as_of_the_end_of_the_calendar_works_in_any_zone():
    with stage("ram", zone="Asia/Tokyo") as here:
        add_text(here, "works at Acme")
        found = here.memory.search(
            "where did I work last week?", user_id="u", as_of="9999-12-31T23:59:59Z"
        )
        assert len(found["results"]) == 1


def test_metadata_update_does_not_change_validity(here):
    memory_id = add_text(here, "tea", timestamp="2020-01-01")
    here.clock.tick(DAY)
    here.memory.update(memory_id, metadata={"tag": "drinks"})
    assert list_texts(here, valid_at="2021") == ["tea"]
    assert here.memory.get(memory_id, valid_at="2021")["metadata"] == {"tag": "drinks"}


def test_deleted_memory_is_valid_at_no_time(here, moved):
    here.memory.delete(moved)
    assert list_texts(here, valid_at="2023") == []
    assert list_texts(here, valid_at="2023", as_of="#3") == ["lives in NYC"]


# Expiration


def test_expired_memory_is_hidden_and_shown_on_request(here):
    memory_id = add_text(here, "parking code 42", expiration_date="2026-01-05")
    add_text(here, "tea")
    assert list_texts(here) == ["parking code 42", "tea"], "the day itself still counts"
    here.clock.now = 1_767_657_600 * SECOND  # 2026-01-06T00:00:00Z
    assert list_texts(here) == ["tea"]
    assert list_texts(here, show_expired=True) == ["parking code 42", "tea"]
    assert memory_id not in [
        row["id"] for row in here.memory.search("parking code", user_id="u")["results"]
    ]
    assert (
        here.memory.search("parking", user_id="u", show_expired=True)["results"][0]["id"]
        == memory_id
    )
    assert "parking" not in here.memory.context("parking", user_id="u").text
    assert here.memory.get(memory_id)["expiration_date"] == "2026-01-06T00:00:00.000000+00:00"
    assert list_texts(here, as_of="2026-01-05T12:00:00Z") == ["parking code 42", "tea"], (
        "as of then it had not expired"
    )


def test_expiration_can_be_set_kept_and_cleared(here):
    memory_id = add_text(here, "tea", expiration_date="2026-02")
    here.memory.update(memory_id, "green tea")
    assert here.memory.get(memory_id)["expiration_date"].startswith("2026-03-01"), (
        "not named, so it stays"
    )
    here.memory.update(memory_id, expiration_date="2027-01-01T12:00:00Z")
    assert here.memory.get(memory_id)["expiration_date"] == "2027-01-01T12:00:00.000000+00:00"
    here.memory.update(memory_id, expiration_date=None)
    assert "expiration_date" not in here.memory.get(memory_id)
    assert [change["event"] for change in here.memory.history(memory_id)] == [
        "ADD",
        "UPDATE",
        "UPDATE",
        "UPDATE",
    ]


@pytest.mark.parametrize("wrong", ["soon", "2026-13-01", [], True, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_invalid_expiration_is_rejected(here, wrong):
    with pytest.raises(InvalidInput):
        add_text(here, "tea", expiration_date=wrong)
    with pytest.raises(InvalidInput):
        here.memory.update(add_text(here, "tea"), expiration_date=wrong)


# Timeline, listing and diff


def test_timeline_lists_the_changes_of_a_scope(here, moved):
    tea = add_text(here, "likes tea")
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
def test_invalid_timeline_limit_is_rejected(here, moved, limit):
    with pytest.raises(InvalidInput):
        here.memory.timeline(user_id="u", limit=limit)


@pytest.mark.parametrize("offset", [-1, 1.5, "2", True, None])
def test_invalid_listing_offset_is_rejected(here, moved, offset):
    with pytest.raises(InvalidInput):
        here.memory.get_all(user_id="u", offset=offset)


def test_listing_continues_where_the_last_page_ended(here):
    ids = [add_text(here, f"fact {n}") for n in range(7)]
    pages = [
        here.memory.get_all(user_id="u", limit=3, offset=offset)["results"]
        for offset in (0, 3, 6, 9)
    ]
    assert [[row["id"] for row in page] for page in pages] == [ids[:3], ids[3:6], ids[6:], []]


def test_diff_lists_changes_between_two_times(here, moved):
    gone = add_text(here, "likes tea")
    here.clock.tick(DAY)
    here.memory.delete(gone)
    new = add_text(here, "likes soup")
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


def test_every_timestamp_is_utc_with_an_offset(here):
    memory_id = add_text(
        here,
        "tea",
        timestamp="2026-01-01T09:00:00+09:00",
        expiration_date="2030-01-01T00:00:00-05:00",
    )
    item = here.memory.get(memory_id)
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
def test_timestamp_is_parsed_in_every_common_format(here, timestamp, said_at):
    assert here.memory.get(add_text(here, "tea", timestamp=timestamp))["said_at"].startswith(
        said_at
    )


@pytest.mark.parametrize(
    "timestamp",
    ["2020-05-06T10:00:00", datetime(2020, 5, 6), "whenever", True, float("nan")],  # noqa: DTZ001
)
def test_ambiguous_or_invalid_timestamp_is_rejected(here, timestamp):
    with pytest.raises(TimeError):
        add_text(here, "tea", timestamp=timestamp)
    assert list_texts(here) == []


# Extracted facts


@pytest.fixture(params=["ram", "sqlite"])
def extracting_stage(request):
    with stage(request.param) as opened:
        yield opened


def test_extracted_facts_follow_both_time_axes(extracting_stage):
    here = extracting_stage
    home = add_text(here, "I live in Lisbon", timestamp="2020-03-01")
    here.clock.tick(2 * DAY)
    assert add_text(here, "I moved to Porto in 2023") == home
    here.clock.tick(2 * DAY)
    add_text(here, "I no longer live in Porto")
    assert list_texts(here) == []
    assert list_texts(here, as_of="2026-01-05") == ["User lives in Lisbon"]
    assert list_texts(here, as_of="2026-01-08") == ["User lives in Porto"]
    assert list_texts(here, as_of="2026-01-08", valid_at="2021") == ["User lives in Lisbon"]
    assert list_texts(here, as_of="2026-01-08", valid_at="2024") == ["User lives in Porto"]
    events = [row["event"] for row in here.memory.timeline(user_id="u")["results"]]
    assert events == ["ADD", "UPDATE", "DELETE"]
    assert here.memory.diff("2026-01-05", "2026-01-08", user_id="u") == {
        "added": [],
        "removed": [],
        "changed": [
            {"id": home, "old_memory": "User lives in Lisbon", "new_memory": "User lives in Porto"}
        ],
    }


def test_extracted_facts_expire_with_their_turn(extracting_stage):
    here = extracting_stage
    add_text(here, "I am staying in Oslo, I live in Lisbon", expiration_date="2026-01-05")
    assert list_texts(here) != []
    here.clock.tick(2 * DAY)
    assert list_texts(here) == []
    assert here.memory.search("Lisbon", user_id="u")["results"] == []
    assert here.memory.context("Lisbon", user_id="u").text == ""

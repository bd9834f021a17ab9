"""The command line: every verb does what the SDK does, says it well to people and exactly to
machines.
"""

import json
import os
import re
import threading

import pytest


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


# Remembering


def test_add_keeps_each_text_as_a_memory(told, sdk):
    done = told("add", "I have a dog", "I play chess", "-u", "alice", "--json").json
    assert [row["memory"] for row in done["results"] if row["event"] == "ADD"] == [
        "I have a dog",
        "I play chess",
    ]
    assert [row["id"] for row in sdk("get_all", user_id="alice")["results"]] == [
        row["id"] for row in done["results"]
    ]


def test_add_reads_standard_input(told, sdk):
    told("add", "-", "-u", "alice", stdin="said through a pipe")
    assert sdk("get_all", user_id="alice")["results"][0]["memory"] == "said through a pipe"


def test_the_end_of_a_pipes_last_line_is_not_what_was_said(told, sdk):
    told("add", "-", "-u", "alice", stdin="said through a pipe,\nin two lines\n")
    (row,) = sdk("get_all", user_id="alice")["results"]
    assert row["memory"] == "said through a pipe,\nin two lines"
    told("update", row["id"], "-", stdin="said again\r\n")
    assert sdk("get", row["id"])["memory"] == "said again"


def test_an_id_makes_room_for_its_memory_where_both_do_not_fit_beside_each_other(told, monkeypatch):
    text = "the spare key is under the third pot"
    wide = told("add", text, "-u", "alice").out.splitlines()
    assert [line.split()[-1].count("-") for line in wide] == [4]
    monkeypatch.setenv("COLUMNS", "60")
    event, name = told("add", text, "-u", "bob").out.splitlines()
    assert text in event
    assert name.split()[0].count("-") == 4


MESSAGES = [
    {"role": "user", "content": "I like tea"},
    {"role": "assistant", "content": "Noted", "name": "bot"},
]


FORMS = [json.dumps(MESSAGES), json.dumps(MESSAGES, indent=2), "\n".join(map(json.dumps, MESSAGES))]


@pytest.mark.parametrize("text", FORMS, ids=["json", "indented", "lines"])
def test_add_reads_messages_from_a_file_or_a_pipe(text, told, sdk, tmp_path):
    file = tmp_path / "messages"
    file.write_text(text)
    first = told("add", "--file", str(file), "-u", "alice", "--json").json
    again = told("add", "--file", "-", "-u", "alice", "--json", stdin=text).json
    assert [row["event"] for row in first["results"]] == ["ADD", "ADD"]
    assert [row["event"] for row in again["results"]] == ["NONE", "NONE"]
    assert [row.get("actor_id") for row in sdk("get_all", user_id="alice")["results"]] == [
        None,
        "bot",
    ]


def test_a_pipe_with_a_name_is_read_like_a_file_and_a_folder_is_called_one(told, sdk, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=pipe.write_text, args=['[{"role": "user", "content": "I like tea"}]']
    )
    writer.start()
    told("add", "-f", str(pipe), "-u", "alice")
    writer.join()
    assert [row["memory"] for row in sdk("get_all", user_id="alice")["results"]] == ["I like tea"]
    assert "is a folder" in told("add", "-f", str(tmp_path), "-u", "alice", code=2).err
    assert "told blob sync" in told("blob", "upload", str(tmp_path), "-u", "alice", code=1).err


def test_a_folder_of_that_name_takes_nothing_from_standard_input(told, sdk, tmp_path, monkeypatch):
    (tmp_path / "-").mkdir()
    monkeypatch.chdir(tmp_path)
    told("add", "-f", "-", "-u", "alice", stdin='[{"role": "user", "content": "I like tea"}]')
    assert [row["memory"] for row in sdk("get_all", user_id="alice")["results"]] == ["I like tea"]


def test_add_passes_everything_on_to_the_sdk(told, sdk):
    told(
        "add",
        "The museum closes at six",
        "--user-id",
        "alice",
        "--agent",
        "guide",
        "--run-id",
        "r1",
        "--role",
        "assistant",
        "--name",
        "Guide",
        "--metadata",
        '{"topic": "art"}',
        "--timestamp",
        "2026-03-01",
        "--source",
        "leaflet",
        "--expires",
        "2099-01-01",
    )
    row = sdk("get_all", user_id="alice", agent_id="guide", run_id="r1")["results"][0]
    wanted = {
        "role": "assistant",
        "actor_id": "Guide",
        "metadata": {"topic": "art"},
        "source": "leaflet",
    }
    assert wanted.items() <= row.items()
    assert row["said_at"].startswith("2026-03-01T00:00:00")
    assert row["expiration_date"].startswith("2099-01-02T00:00:00")


def test_add_with_a_key_returns_the_first_receipt(told):
    add = ["add", "Once only", "-u", "alice", "--idempotency-key", "k1", "--json"]
    assert told(*add).json == told(*add).json
    other = told("add", "Something else", "-u", "alice", "--idempotency-key", "k1", code=1)
    assert "fresh key" in other.err


@pytest.mark.parametrize("words", [(), ("a text", "--file", "-")])
def test_add_wants_texts_or_a_file(words, told):
    done = told("add", *words, "-u", "alice", code=2)
    assert "--file" in done.err


def test_add_names_the_broken_line_of_a_file(told, tmp_path):
    file = tmp_path / "m.jsonl"
    file.write_text('{"content": "fine"}\n{broken\n')
    assert "Line 2 of" in told("add", "-f", str(file), "-u", "alice", code=2).err


@pytest.mark.usefixtures("listening")
def test_add_tells_what_was_understood(told, sdk):
    done = told("add", "I moved to Lisbon and I have a dog", "-u", "alice", "--json").json
    assert [row["memory"] for row in done["results"]] == ["User lives in Lisbon", "User has a dog"]
    assert sdk("get_all", user_id="alice")["results"][0]["memory"] == "User lives in Lisbon"
    assert "User lives in Porto" in told("add", "I moved to Porto", "-u", "alice").out
    assert [row["event"] for row in sdk("history", done["results"][0]["id"])] == ["ADD", "UPDATE"]


def test_update_keeps_the_earlier_version(told, sdk, moved):
    done = told("update", moved, "I moved to Porto", "--json").json
    assert (done["results"][0]["old_memory"], done["results"][0]["memory"]) == (
        "I moved to Lisbon",
        "I moved to Porto",
    )
    assert [row["event"] for row in sdk("history", moved)] == ["ADD", "UPDATE"]


def test_update_sets_and_takes_away_an_expiry(told, sdk, moved):
    told("update", moved, "--expires", "2099-01-01", "--metadata", '{"n": 1}')
    row = sdk("get", moved)
    assert (row["memory"], row["metadata"]) == ("I moved to Lisbon", {"n": 1})
    assert "expiration_date" in row
    told("update", moved, "--never-expires")
    assert "expiration_date" not in sdk("get", moved)
    told("update", moved, "--never-expires", "--expires", "2099-01-01", code=2)


def test_update_within_another_scope_finds_nothing(told, moved):
    told("update", moved, "stolen", "-u", "bob", code=1)


def test_link_relates_two_memories(told, moved):
    other = told("add", "I live in Porto", "-u", "alice", "--json").json["results"][0]["id"]
    done = told(
        "link", other, "contradicts", moved, "-u", "alice", "--weight", "0.5", "--json"
    ).json
    assert (done["src"], done["rel"], done["dst"]) == (other, "contradicts", moved)
    assert "contradicts" in told("link", other, "contradicts", moved, "-u", "alice").out


# Letting go


def test_delete_gives_up_one_memory(told, sdk, moved):
    assert told("delete", moved, "--json").json["message"] == "Memory deleted successfully!"
    assert sdk("get", moved) is None
    assert told("delete", moved, code=1).err.startswith("error: There is no memory")


def test_delete_all_asks_first(told, sdk, moved):
    refused = told("delete", "--all", "-u", "alice", stdin="n\n", code=1)
    assert "user alice" in refused.err
    assert sdk("get", moved) is not None
    told("delete", "--all", "-u", "alice", stdin="y\n")
    assert sdk("get", moved) is None


def test_nobody_is_asked_about_everything_of_no_one(told, moved):
    assert "--user" in told("delete", "--all", code=2).err


def test_nobody_to_ask_is_bad_usage_with_the_way_out(told, sdk, moved):
    assert "--yes" in told("delete", "--all", "-u", "alice", code=2).err
    assert "--yes" in told("reset", code=2).err
    assert sdk("get", moved) is not None


def test_a_dry_run_shows_what_would_go_and_lets_it_be(told, sdk, moved):
    for words in (
        ["delete", "--all", "-u", "alice"],
        ["delete", moved],
        ["erase", moved],
        ["erase", "-u", "alice"],
    ):
        assert "I moved to Lisbon" in told(*words, "--dry-run").out
    assert told("reset", "--dry-run", "--json").json == sdk("stats")
    assert sdk("get", moved) is not None


def test_delete_wants_an_id_or_all(told, moved):
    told("delete", code=2)
    told("delete", moved, "--all", "-u", "alice", code=2)


def test_retract_records_the_reason(told, sdk, moved):
    told("retract", moved, "--why", "it was a joke")
    assert sdk("history", moved)[-1]["why"] == "it was a joke"


def test_erase_destroys_and_certifies(told, sdk, moved, tmp_path):
    certificate = told("erase", moved, "--yes", "--json").json
    assert certificate["memories"] == [moved]
    assert all(b"Lisbon" not in file.read_bytes() for file in tmp_path.iterdir())
    assert sdk("verify")["ok"]


@pytest.mark.usefixtures("listening")
def test_erasing_what_was_understood_takes_the_words_it_was_taken_from(told, sdk, tmp_path):
    made = told("add", "I moved to Lisbon", "-u", "alice", "--json").json["results"][0]["id"]
    shown = told("erase", made, "--dry-run").out
    assert "User lives in Lisbon" in shown
    told("erase", made, "--yes")
    assert all(b"Lisbon" not in file.read_bytes() for file in tmp_path.iterdir())
    assert sdk("search", "Lisbon", user_id="alice")["results"] == []


def test_erase_shows_its_certificate_to_people(told, moved):
    shown = told("erase", moved, stdin="y\n")
    assert "Destroy 1 memory in 2 ledger entries for good?" in shown.err
    assert "Certificate of erasure" in shown.out
    assert "sha256:" in shown.out


def test_erase_takes_a_source_back(told, sdk, moved):
    told("add", "From the leaflet", "-u", "alice", "--source", "leaflet")
    told("erase", "--source", "leaflet", "--yes")
    assert [row["id"] for row in sdk("get_all", user_id="alice")["results"]] == [moved]


def test_erase_never_takes_its_user_from_the_environment(told, sdk, moved, monkeypatch):
    monkeypatch.setenv("TOLD_USER", "alice")
    assert "Pass exactly one of" in told("erase", "--yes", code=2).err
    told("erase", moved, "--dry-run")
    assert sdk("get", moved) is not None


def test_erase_of_nothing_is_not_found(told, moved):
    told("erase", "-u", "nobody", "--yes", code=1)
    told("erase", "no-such-id", "--yes", code=1)


def test_reset_begins_anew(told, sdk, moved):
    assert told("reset", "--yes", "--json").json == {"message": "All memories reset"}
    assert sdk("get_all", user_id="alice") == {"results": []}


# Recalling


READS = {
    "search": (["search", "lisbon", "-u", "alice"], ("search", "lisbon")),
    "search with options": (
        [
            "search",
            "lisbon",
            "-u",
            "alice",
            "-k",
            "1",
            "--threshold",
            "0.1",
            "--as-of",
            "2099-01-01",
            "--show-expired",
        ],
        (
            "search",
            "lisbon",
            {"limit": 1, "threshold": 0.1, "as_of": "2099-01-01", "show_expired": True},
        ),
    ),
    "search of kinds": (
        [
            "search",
            "lisbon",
            "-u",
            "alice",
            "--kind",
            "memory",
            "--kind",
            "skill",
            "--min-score",
            ".1",
        ],
        ("search", "lisbon", {"kinds": ["memory", "skill"], "min_score": 0.1}),
    ),
    "search of no such kind": (
        ["search", "lisbon", "-u", "alice", "--kind", "event"],
        ("search", "lisbon", {"kinds": ["event"]}),
    ),
    "search from then": (
        ["search", "lisbon last week", "-u", "alice", "--reference-date", "2026-03-01", "--rerank"],
        ("search", "lisbon last week", {"reference_date": "2026-03-01", "rerank": True}),
    ),
    "list": (["list", "-u", "alice"], ("get_all",)),
    "list from": (
        ["list", "-u", "alice", "--offset", "1", "-k", "5"],
        ("get_all", {"offset": 1, "limit": 5}),
    ),
    "list then": (
        ["list", "-u", "alice", "--valid-at", "2020-01-01"],
        ("get_all", {"valid_at": "2020-01-01"}),
    ),
    "list filtered": (
        ["list", "-u", "alice", "--filter", '{"n": {"gte": 2}}'],
        ("get_all", {"filters": {"n": {"gte": 2}}}),
    ),
    "list where": (
        ["list", "-u", "alice", "--where", "topic=home", "--where", "n=1"],
        ("get_all", {"filters": {"AND": [{"topic": "home"}, {"n": 1}]}}),
    ),
    "timeline": (["timeline", "-u", "alice", "--limit", "2"], ("timeline", {"limit": 2})),
    "diff": (["diff", "#1", "#4", "-u", "alice"], ("diff", "#1", "#4")),
    "diff until now": (["diff", "2020-01-01", "-u", "alice"], ("diff", "2020-01-01")),
}


@pytest.mark.parametrize(("words", "call"), READS.values(), ids=READS.keys())
def test_a_read_prints_what_the_sdk_returns(words, call, told, sdk):
    told("add", "I moved to Lisbon", "-u", "alice", "-m", '{"topic": "home", "n": 1}')
    told("add", "Lisbon has steep streets", "-u", "alice", "-m", '{"topic": "city", "n": 2}')
    told("add", "I live in Oslo", "-u", "bob")
    verb, *rest = call
    options = rest.pop() if rest and isinstance(rest[-1], dict) else {}
    expected = sdk(verb, *rest, user_id="alice", **options)
    assert told(*words, "--json").json == expected
    rows = [
        row for name in ("results", "added", "changed", "removed") for row in expected.get(name, ())
    ]
    texts = [row.get("memory") or row.get("new_value") for row in rows]
    shown = told(*words).out
    assert all(text in shown for text in texts)
    assert "Oslo" not in shown


def test_get_shows_one_memory_now_and_then(told, sdk, moved):
    told("update", moved, "I moved to Porto")
    assert told("get", moved, "--json").json == sdk("get", moved)
    assert told("get", moved, "--as-of", "#2", "--json").json == sdk("get", moved, as_of="#2")
    shown = told("get", moved).out
    assert "I moved to Porto" in shown
    assert moved in shown


def test_get_of_nothing_is_not_found(told, moved):
    assert one_line(told("get", "no-such-id", code=1).err)
    assert told("get", moved, "-u", "bob", "--json", code=1).error["code"] == "TOLD-E200"


def test_history_tells_every_version(told, sdk, moved):
    told("update", moved, "I moved to Porto")
    told("delete", moved)
    assert told("history", moved, "--json").json == sdk("history", moved)
    shown = told("history", moved).out
    assert all(
        word in shown
        for word in ("ADD", "UPDATE", "DELETE", "I moved to Lisbon", "I moved to Porto")
    )


def test_context_prints_the_block_alone_so_that_it_can_be_piped(told, sdk, moved):
    bundle = sdk("context", "lisbon", user_id="alice", budget=200)
    done = told("context", "lisbon", "-u", "alice", "--budget", "200")
    assert done.out == bundle.text + "\n"
    assert f"{bundle.tokens} of 200 tokens" in done.err
    body = told("context", "lisbon", "-u", "alice", "--budget", "200", "--json").json
    assert (body["text"], body["tokens"], body["budget"]) == (bundle.text, bundle.tokens, 200)


def test_context_without_a_query_holds_the_newest(told, sdk, moved):
    assert told("context", "-u", "alice").out == sdk("context", user_id="alice").text + "\n"


FORMATS = {
    "markdown": ["--format", "markdown"],
    "xml": ["--format", "xml", "--min-score", "0"],
    "tail": ["--tail", "1"],
    "kind": ["--kind", "memory", "--reference-date", "2026-03-01"],
}


@pytest.mark.parametrize("words", FORMATS.values(), ids=FORMATS.keys())
def test_context_takes_what_the_sdk_takes(words, told, sdk, moved):
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    options = {
        "format": pairs.get("--format"),
        "tail": int(pairs.get("--tail", 0)),
        "kinds": pairs.get("--kind"),
        "reference_date": pairs.get("--reference-date"),
    }
    bundle = sdk("context", "lisbon", user_id="alice", **options)
    assert told("context", "lisbon", "-u", "alice", *words).out == f"{bundle}\n"


def test_context_as_messages_is_a_list_for_a_chat_model(told, sdk, moved):
    bundle = sdk("context", "lisbon", user_id="alice", format="messages")
    done = told("context", "lisbon", "-u", "alice", "--format", "messages")
    assert done.json == [dict(message) for message in bundle.messages]
    assert "I moved to Lisbon" in done.json[0]["content"]
    whole = told("context", "lisbon", "-u", "alice", "--format", "messages", "--json").json
    assert (whole["messages"], whole["text"]) == (done.json, bundle.text)


def test_context_in_a_format_that_is_none_names_those_there_are(told, moved):
    assert (
        "text, markdown, xml, messages"
        in told("context", "lisbon", "-u", "alice", "--format", "pdf", code=2).err
    )


def test_a_search_says_how_sure_it_is(told, sdk, moved):
    told("add", "i moved to lisbon", "-u", "alice", "--run", "r1")
    sure = sdk("search", "lisbon", user_id="alice")["confidence"]
    shown = told("search", "lisbon", "-u", "alice").out
    assert f"confidence {sure:.2f}" in shown
    assert "1 more says the same as one of these" in shown


def test_on_a_narrow_terminal_the_reasons_name_ids_whole(told, listening, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told("add", "I live in Lisbon", "-u", "alice")
    rows = told("explain", "Lisbon", "-u", "alice", "--json").json["candidates"]
    shown = [line.strip() for line in told("explain", "Lisbon", "-u", "alice").out.splitlines()]
    kept = next(row["id"] for row in rows if row["kept"])
    assert kept in shown
    assert f"fold · folded into {kept}" in shown


def test_a_hint_is_spelled_as_it_is_typed(told, moved):
    assert "`told list`" in told("delete", "nope", "-u", "alice", code=1).err
    assert "`told faults list`" in told("faults", "drop", "99", code=1).err
    assert (
        "the setting `llm`"
        in told("add", "I like tea", "-u", "alice", "--extract", "facts", code=2).err
    )


def test_history_of_a_memory_that_never_was_is_not_found(told, moved):
    assert "There is no memory 'nope'" in told("history", "nope", "-u", "alice", code=1).err


def test_help_shows_arguments_as_they_are_typed_and_no_python_type_of_a_flag(told):
    shown = told("erase", "--help").out
    assert "told erase [OPTIONS] [ID] " in shown
    assert "<bool>" not in shown + told("--help").out + told("models", "--help").out
    for name in ("add", "link", "search", "export", "eval", "blob get"):
        assert not re.search(
            r"<(str|path|list\[|int)", told(*name.split(), "--help").out, re.IGNORECASE
        ), name
    assert "told add [OPTIONS] [TEXT]... " in told("add", "--help").out


def test_explain_accounts_for_every_candidate(told, sdk, moved):
    told("add", "Lisbon has steep streets", "-u", "alice")
    body = told("explain", "lisbon", "-u", "alice", "-k", "1", "--json").json
    assert body["candidates"] == sdk("explain", "lisbon", user_id="alice", limit=1)["candidates"]
    shown = told("explain", "lisbon", "-u", "alice", "-k", "1").out
    assert "I moved to Lisbon" in shown
    assert "after the limit" in shown
    assert "gather" in shown


@pytest.fixture
def talk(told):
    """A week of Ann and Ben, whose turns answer each other."""
    for day, name, text in (
        (3, "Ann", "I bought a canoe in Oslo"),
        (3, "Ben", "What colour is the canoe?"),
        (4, "Ben", "My knee hurts"),
    ):
        told("add", text, "-u", "alice", "--name", name, "--timestamp", f"2026-03-0{day}T12:00:00Z")


@pytest.mark.parametrize("columns", ["60", "80", "160"])
def test_explain_shows_what_was_understood_and_what_a_score_is_the_sum_of(
    columns, told, sdk, talk, monkeypatch
):
    monkeypatch.setenv("COLUMNS", columns)
    query = "When did Ann buy a canoe in March 2026?"
    lines = told("explain", query, "-u", "alice", "-k", "2").out.splitlines()
    shown = " ".join(" ".join(lines).split())
    assert all(len(line) <= int(columns) for line in lines)
    assert "names Ann" in shown
    assert "times from 2026-03-01 until 2026-04-01" in shown
    assert "asks when something was" in shown
    body = sdk("explain", query, user_id="alice", limit=2)
    assert all(step["stage"] in shown for step in body["steps"])
    for row in body["candidates"][:2]:
        assert f"{row['score']:.3f}" in shown
    best = body["candidates"][0]["parts"]
    for part in ("cover", "talk", "speaker", "time"):
        assert f"{part}\N{NO-BREAK SPACE}{best[part]:+.1f}" in "\n".join(lines)


def test_explain_shows_a_few_of_what_was_left_out_and_says_how_many_more(told):
    for n in range(12):
        told("add", f"tea number {n}", "-u", "alice")
    shown = told("explain", "tea", "-u", "alice", "-k", "1").out
    assert shown.count("after the limit") == 5
    assert "… and 6 more; --json shows all" in shown
    assert "… and 2 more; --json shows all" in told("explain", "tea", "-u", "alice").out


def test_why_not_says_it_in_a_sentence_beside_the_last_hit(told, sdk, moved):
    best = told("add", "Lisbon, Lisbon and again Lisbon", "-u", "alice", "--json").json["results"][
        0
    ]["id"]
    options = {"user_id": "alice", "limit": 1}
    order = [row["id"] for row in sdk("search", "lisbon", user_id="alice")["results"]]
    assert {moved, best} == set(order)
    assert told("why-not", "lisbon", order[1], "-u", "alice", "-k", "1", "--json").json == sdk(
        "why_not", "lisbon", order[1], **options
    )
    missing = told("why-not", "lisbon", order[1], "-u", "alice", "-k", "1").out
    assert missing.startswith("✗ Not among the hits: it ranks 2, beyond the limit.")
    assert all(
        word in missing for word in ("this memory", "last hit kept", "difference", "cover", "sum")
    )
    there = told("why-not", "lisbon", order[0], "-u", "alice", "-k", "1").out
    assert there.startswith("✓ It is among the hits: number 1.")


def test_why_not_of_what_never_got_a_score_is_one_line(told, moved):
    filtered = told("why-not", "lisbon", moved, "-u", "alice", "--where", "topic=work")
    assert one_line(filtered.out)
    assert "the filters leave it out" in filtered.out
    told("update", moved, "--expires", "2020-01-01")
    assert "--show-expired shows it" in told("why-not", "lisbon", moved, "-u", "alice").out
    assert one_line(told("why-not", "lisbon", "no-such-id", "-u", "alice", code=1).err)
    assert one_line(told("why-not", "lisbon", moved, "-u", "bob", code=1).err)


def test_a_search_without_an_embedder_warns_beside_the_result(told, moved):
    done = told("search", "lisbon", "-u", "alice")
    assert "warning:" in done.err
    assert "warning:" not in done.out


def test_nothing_found_is_said(told, moved):
    assert "Nothing found." in told("list", "-u", "bob").out
    assert told("list", "-u", "bob", "--json").json == {"results": []}


# Whose memory, and the global options


def test_a_scope_is_needed_and_the_error_says_how_to_give_one(told):
    done = told("search", "anything", code=2)
    assert "At least one of user_id, agent_id, or run_id must be provided" in done.err
    assert "--user" in done.err
    assert one_line(done.err)


def test_the_user_may_come_from_the_environment(told, sdk, moved, monkeypatch):
    monkeypatch.setenv("TOLD_USER", "alice")
    assert told("list", "--json").json == sdk("get_all", user_id="alice")
    assert told("list", "-u", "bob", "--json").json == {"results": []}


def test_global_options_stand_before_or_after_the_verb(told, sdk, moved):
    expected = sdk("get_all", user_id="alice")
    assert told("--json", "list", "-u", "alice").json == expected
    assert told("--account", "other", "list", "-u", "alice", "--json").json == {"results": []}
    assert (
        told("--account", "other", "list", "-u", "alice", "--json", "--account", "default").json
        == expected
    )


def test_a_zone_is_used_for_times_that_name_none(told, sdk):
    told("add", "Noon in Berlin", "-u", "alice", "--timestamp", "2026-01-15T12:00", code=2)
    told(
        "add",
        "Noon in Berlin",
        "-u",
        "alice",
        "--timestamp",
        "2026-01-15T12:00",
        "--zone",
        "Europe/Berlin",
    )
    assert sdk("get_all", user_id="alice")["results"][0]["said_at"].startswith("2026-01-15T11:00")


def test_times_may_be_said_in_words(told, moved):
    assert told("list", "-u", "alice", "--as-of", "last Tuesday", "--json").json == {"results": []}
    assert "last tuesday" in told("list", "-u", "alice", "--as-of", "someday", code=2).err

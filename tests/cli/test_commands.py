"""The memory commands: each does what the SDK does, and prints it for people or as JSON."""

import json
import os
import re
import threading

import pytest


def one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


# Adding and updating


def test_add_stores_each_text_as_a_memory(run_cli, sdk):
    done = run_cli("add", "I have a dog", "I play chess", "-u", "alice", "--json").json
    assert [row["memory"] for row in done["results"] if row["event"] == "ADD"] == [
        "I have a dog",
        "I play chess",
    ]
    assert [row["id"] for row in sdk("get_all", user_id="alice")["results"]] == [
        row["id"] for row in done["results"]
    ]


def test_add_reads_standard_input(run_cli, sdk):
    run_cli("add", "-", "-u", "alice", stdin="said through a pipe")
    assert sdk("get_all", user_id="alice")["results"][0]["memory"] == "said through a pipe"


def test_final_newline_of_piped_text_is_dropped(run_cli, sdk):
    run_cli("add", "-", "-u", "alice", stdin="said through a pipe,\nin two lines\n")
    (row,) = sdk("get_all", user_id="alice")["results"]
    assert row["memory"] == "said through a pipe,\nin two lines"
    run_cli("update", row["id"], "-", stdin="said again\r\n")
    assert sdk("get", row["id"])["memory"] == "said again"


def test_id_moves_to_its_own_line_on_a_narrow_terminal(run_cli, monkeypatch):
    text = "the spare key is under the third pot"
    wide = run_cli("add", text, "-u", "alice").out.splitlines()
    assert [line.split()[-1].count("-") for line in wide] == [4]
    monkeypatch.setenv("COLUMNS", "60")
    event, name = run_cli("add", text, "-u", "bob").out.splitlines()
    assert text in event
    assert name.split()[0].count("-") == 4


MESSAGES = [
    {"role": "user", "content": "I like tea"},
    {"role": "assistant", "content": "Noted", "name": "bot"},
]


FORMS = [json.dumps(MESSAGES), json.dumps(MESSAGES, indent=2), "\n".join(map(json.dumps, MESSAGES))]


@pytest.mark.parametrize("text", FORMS, ids=["json", "indented", "lines"])
def test_add_reads_messages_from_a_file_or_a_pipe(text, run_cli, sdk, tmp_path):
    file = tmp_path / "messages"
    file.write_text(text)
    first = run_cli("add", "--file", str(file), "-u", "alice", "--json").json
    again = run_cli("add", "--file", "-", "-u", "alice", "--json", stdin=text).json
    assert [row["event"] for row in first["results"]] == ["ADD", "ADD"]
    assert [row["event"] for row in again["results"]] == ["NONE", "NONE"]
    assert [row.get("actor_id") for row in sdk("get_all", user_id="alice")["results"]] == [
        None,
        "bot",
    ]


def test_named_pipe_is_read_like_a_file_and_a_folder_is_rejected(run_cli, sdk, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=pipe.write_text, args=['[{"role": "user", "content": "I like tea"}]']
    )
    writer.start()
    run_cli("add", "-f", str(pipe), "-u", "alice")
    writer.join()
    assert [row["memory"] for row in sdk("get_all", user_id="alice")["results"]] == ["I like tea"]
    assert "is a folder" in run_cli("add", "-f", str(tmp_path), "-u", "alice", code=2).err
    assert "told blob sync" in run_cli("blob", "upload", str(tmp_path), "-u", "alice", code=1).err


def test_folder_named_like_standard_input_is_ignored(run_cli, sdk, tmp_path, monkeypatch):
    (tmp_path / "-").mkdir()
    monkeypatch.chdir(tmp_path)
    run_cli("add", "-f", "-", "-u", "alice", stdin='[{"role": "user", "content": "I like tea"}]')
    assert [row["memory"] for row in sdk("get_all", user_id="alice")["results"]] == ["I like tea"]


def test_add_passes_every_option_to_the_sdk(run_cli, sdk):
    run_cli(
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


def test_add_with_a_key_returns_the_first_receipt(run_cli):
    add = ["add", "Once only", "-u", "alice", "--idempotency-key", "k1", "--json"]
    assert run_cli(*add).json == run_cli(*add).json
    other = run_cli("add", "Something else", "-u", "alice", "--idempotency-key", "k1", code=1)
    assert "fresh key" in other.err


@pytest.mark.parametrize("words", [(), ("a text", "--file", "-")])
def test_add_requires_texts_or_a_file(words, run_cli):
    done = run_cli("add", *words, "-u", "alice", code=2)
    assert "--file" in done.err


def test_add_names_the_broken_line_of_a_file(run_cli, tmp_path):
    file = tmp_path / "m.jsonl"
    file.write_text('{"content": "fine"}\n{broken\n')
    assert "Line 2 of" in run_cli("add", "-f", str(file), "-u", "alice", code=2).err


@pytest.mark.usefixtures("extraction_enabled")
def test_add_prints_the_extracted_facts(run_cli, sdk):
    done = run_cli("add", "I moved to Lisbon and I have a dog", "-u", "alice", "--json").json
    assert [row["memory"] for row in done["results"]] == ["User lives in Lisbon", "User has a dog"]
    assert sdk("get_all", user_id="alice")["results"][0]["memory"] == "User lives in Lisbon"
    assert "User lives in Porto" in run_cli("add", "I moved to Porto", "-u", "alice").out
    assert [row["event"] for row in sdk("history", done["results"][0]["id"])] == ["ADD", "UPDATE"]


def test_update_keeps_the_earlier_version(run_cli, sdk, memory_id):
    done = run_cli("update", memory_id, "I moved to Porto", "--json").json
    assert (done["results"][0]["old_memory"], done["results"][0]["memory"]) == (
        "I moved to Lisbon",
        "I moved to Porto",
    )
    assert [row["event"] for row in sdk("history", memory_id)] == ["ADD", "UPDATE"]


def test_update_sets_and_removes_an_expiry(run_cli, sdk, memory_id):
    run_cli("update", memory_id, "--expires", "2099-01-01", "--metadata", '{"n": 1}')
    row = sdk("get", memory_id)
    assert (row["memory"], row["metadata"]) == ("I moved to Lisbon", {"n": 1})
    assert "expiration_date" in row
    run_cli("update", memory_id, "--never-expires")
    assert "expiration_date" not in sdk("get", memory_id)
    run_cli("update", memory_id, "--never-expires", "--expires", "2099-01-01", code=2)


def test_update_within_another_scope_finds_nothing(run_cli, memory_id):
    run_cli("update", memory_id, "stolen", "-u", "bob", code=1)


def test_link_relates_two_memories(run_cli, memory_id):
    other = run_cli("add", "I live in Porto", "-u", "alice", "--json").json["results"][0]["id"]
    done = run_cli(
        "link", other, "contradicts", memory_id, "-u", "alice", "--weight", "0.5", "--json"
    ).json
    assert (done["src"], done["rel"], done["dst"]) == (other, "contradicts", memory_id)
    assert "contradicts" in run_cli("link", other, "contradicts", memory_id, "-u", "alice").out


# Deleting and erasing


def test_delete_removes_one_memory(run_cli, sdk, memory_id):
    assert run_cli("delete", memory_id, "--json").json["message"] == "Memory deleted successfully!"
    assert sdk("get", memory_id) is None
    assert run_cli("delete", memory_id, code=1).err.startswith("error: There is no memory")


def test_delete_all_asks_for_confirmation(run_cli, sdk, memory_id):
    refused = run_cli("delete", "--all", "-u", "alice", stdin="n\n", code=1)
    assert "user alice" in refused.err
    assert sdk("get", memory_id) is not None
    run_cli("delete", "--all", "-u", "alice", stdin="y\n")
    assert sdk("get", memory_id) is None


def test_delete_all_without_a_scope_fails_without_a_prompt(run_cli, memory_id):
    assert "--user" in run_cli("delete", "--all", code=2).err


def test_delete_all_and_reset_without_a_terminal_require_yes(run_cli, sdk, memory_id):
    assert "--yes" in run_cli("delete", "--all", "-u", "alice", code=2).err
    assert "--yes" in run_cli("reset", code=2).err
    assert sdk("get", memory_id) is not None


def test_dry_run_lists_memories_and_deletes_nothing(run_cli, sdk, memory_id):
    for words in (
        ["delete", "--all", "-u", "alice"],
        ["delete", memory_id],
        ["erase", memory_id],
        ["erase", "-u", "alice"],
    ):
        assert "I moved to Lisbon" in run_cli(*words, "--dry-run").out
    assert run_cli("reset", "--dry-run", "--json").json == sdk("stats")
    assert sdk("get", memory_id) is not None


def test_delete_requires_an_id_or_all(run_cli, memory_id):
    run_cli("delete", code=2)
    run_cli("delete", memory_id, "--all", "-u", "alice", code=2)


def test_retract_records_the_reason(run_cli, sdk, memory_id):
    run_cli("retract", memory_id, "--why", "it was a joke")
    assert sdk("history", memory_id)[-1]["why"] == "it was a joke"


def test_erase_destroys_and_writes_a_certificate(run_cli, sdk, memory_id, tmp_path):
    certificate = run_cli("erase", memory_id, "--yes", "--json").json
    assert certificate["memories"] == [memory_id]
    assert all(b"Lisbon" not in file.read_bytes() for file in tmp_path.iterdir())
    assert sdk("verify")["ok"]


@pytest.mark.usefixtures("extraction_enabled")
def test_erasing_an_extracted_fact_erases_its_evidence(run_cli, sdk, tmp_path):
    made = run_cli("add", "I moved to Lisbon", "-u", "alice", "--json").json["results"][0]["id"]
    shown = run_cli("erase", made, "--dry-run").out
    assert "User lives in Lisbon" in shown
    run_cli("erase", made, "--yes")
    assert all(b"Lisbon" not in file.read_bytes() for file in tmp_path.iterdir())
    assert sdk("search", "Lisbon", user_id="alice")["results"] == []


def test_erase_shows_its_certificate_to_people(run_cli, memory_id):
    shown = run_cli("erase", memory_id, stdin="y\n")
    assert "Destroy 1 memory in 2 ledger entries for good?" in shown.err
    assert "Certificate of erasure" in shown.out
    assert "sha256:" in shown.out


def test_erase_by_source(run_cli, sdk, memory_id):
    run_cli("add", "From the leaflet", "-u", "alice", "--source", "leaflet")
    run_cli("erase", "--source", "leaflet", "--yes")
    assert [row["id"] for row in sdk("get_all", user_id="alice")["results"]] == [memory_id]


def test_erase_never_takes_its_user_from_the_environment(run_cli, sdk, memory_id, monkeypatch):
    monkeypatch.setenv("TOLD_USER", "alice")
    assert "Pass exactly one of" in run_cli("erase", "--yes", code=2).err
    run_cli("erase", memory_id, "--dry-run")
    assert sdk("get", memory_id) is not None


def test_erase_of_nothing_is_not_found(run_cli, memory_id):
    run_cli("erase", "-u", "nobody", "--yes", code=1)
    run_cli("erase", "no-such-id", "--yes", code=1)


def test_reset_empties_the_store(run_cli, sdk, memory_id):
    assert run_cli("reset", "--yes", "--json").json == {"message": "All memories reset"}
    assert sdk("get_all", user_id="alice") == {"results": []}


# Reading


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
def test_read_command_prints_what_the_sdk_returns(words, call, run_cli, sdk):
    run_cli("add", "I moved to Lisbon", "-u", "alice", "-m", '{"topic": "home", "n": 1}')
    run_cli("add", "Lisbon has steep streets", "-u", "alice", "-m", '{"topic": "city", "n": 2}')
    run_cli("add", "I live in Oslo", "-u", "bob")
    verb, *rest = call
    options = rest.pop() if rest and isinstance(rest[-1], dict) else {}
    expected = sdk(verb, *rest, user_id="alice", **options)
    assert run_cli(*words, "--json").json == expected
    rows = [
        row for name in ("results", "added", "changed", "removed") for row in expected.get(name, ())
    ]
    texts = [row.get("memory") or row.get("new_value") for row in rows]
    shown = run_cli(*words).out
    assert all(text in shown for text in texts)
    assert "Oslo" not in shown


def test_get_returns_one_memory_now_and_as_of(run_cli, sdk, memory_id):
    run_cli("update", memory_id, "I moved to Porto")
    assert run_cli("get", memory_id, "--json").json == sdk("get", memory_id)
    assert run_cli("get", memory_id, "--as-of", "#2", "--json").json == sdk(
        "get", memory_id, as_of="#2"
    )
    shown = run_cli("get", memory_id).out
    assert "I moved to Porto" in shown
    assert memory_id in shown


def test_get_of_nothing_is_not_found(run_cli, memory_id):
    assert one_line(run_cli("get", "no-such-id", code=1).err)
    assert run_cli("get", memory_id, "-u", "bob", "--json", code=1).error["code"] == "TOLD-E200"


def test_history_lists_every_version(run_cli, sdk, memory_id):
    run_cli("update", memory_id, "I moved to Porto")
    run_cli("delete", memory_id)
    assert run_cli("history", memory_id, "--json").json == sdk("history", memory_id)
    shown = run_cli("history", memory_id).out
    assert all(
        word in shown
        for word in ("ADD", "UPDATE", "DELETE", "I moved to Lisbon", "I moved to Porto")
    )


def test_context_prints_only_the_block(run_cli, sdk, memory_id):
    bundle = sdk("context", "lisbon", user_id="alice", budget=200)
    done = run_cli("context", "lisbon", "-u", "alice", "--budget", "200")
    assert done.out == bundle.text + "\n"
    assert f"{bundle.tokens} of 200 tokens" in done.err
    body = run_cli("context", "lisbon", "-u", "alice", "--budget", "200", "--json").json
    assert (body["text"], body["tokens"], body["budget"]) == (bundle.text, bundle.tokens, 200)


def test_context_without_a_query_holds_the_newest(run_cli, sdk, memory_id):
    assert run_cli("context", "-u", "alice").out == sdk("context", user_id="alice").text + "\n"


FORMATS = {
    "markdown": ["--format", "markdown"],
    "xml": ["--format", "xml", "--min-score", "0"],
    "tail": ["--tail", "1"],
    "kind": ["--kind", "memory", "--reference-date", "2026-03-01"],
}


@pytest.mark.parametrize("words", FORMATS.values(), ids=FORMATS.keys())
def test_context_accepts_the_options_of_the_sdk(words, run_cli, sdk, memory_id):
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    options = {
        "format": pairs.get("--format"),
        "tail": int(pairs.get("--tail", 0)),
        "kinds": pairs.get("--kind"),
        "reference_date": pairs.get("--reference-date"),
    }
    bundle = sdk("context", "lisbon", user_id="alice", **options)
    assert run_cli("context", "lisbon", "-u", "alice", *words).out == f"{bundle}\n"


def test_context_as_messages_is_a_list_for_a_chat_model(run_cli, sdk, memory_id):
    bundle = sdk("context", "lisbon", user_id="alice", format="messages")
    done = run_cli("context", "lisbon", "-u", "alice", "--format", "messages")
    assert done.json == [dict(message) for message in bundle.messages]
    assert "I moved to Lisbon" in done.json[0]["content"]
    whole = run_cli("context", "lisbon", "-u", "alice", "--format", "messages", "--json").json
    assert (whole["messages"], whole["text"]) == (done.json, bundle.text)


def test_unknown_context_format_lists_the_known_ones(run_cli, memory_id):
    assert (
        "text, markdown, xml, messages"
        in run_cli("context", "lisbon", "-u", "alice", "--format", "pdf", code=2).err
    )


def test_search_prints_its_confidence(run_cli, sdk, memory_id):
    run_cli("add", "i moved to lisbon", "-u", "alice", "--run", "r1")
    sure = sdk("search", "lisbon", user_id="alice")["confidence"]
    shown = run_cli("search", "lisbon", "-u", "alice").out
    assert f"confidence {sure:.2f}" in shown
    assert "1 more says the same as one of these" in shown


def test_ids_in_reasons_are_not_cut_on_a_narrow_terminal(run_cli, extraction_enabled, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run_cli("add", "I live in Lisbon", "-u", "alice")
    rows = run_cli("explain", "Lisbon", "-u", "alice", "--json").json["candidates"]
    shown = [line.strip() for line in run_cli("explain", "Lisbon", "-u", "alice").out.splitlines()]
    kept = next(row["id"] for row in rows if row["kept"])
    assert kept in shown
    assert f"fold · folded into {kept}" in shown


def test_hint_uses_command_line_spelling(run_cli, memory_id):
    assert "`told list`" in run_cli("delete", "nope", "-u", "alice", code=1).err
    assert "`told faults list`" in run_cli("faults", "drop", "99", code=1).err
    assert (
        "the setting `llm`"
        in run_cli("add", "I like tea", "-u", "alice", "--extract", "facts", code=2).err
    )


def test_history_of_an_unknown_memory_is_not_found(run_cli, memory_id):
    assert "There is no memory 'nope'" in run_cli("history", "nope", "-u", "alice", code=1).err


def test_help_shows_arguments_as_typed_and_no_python_types(run_cli):
    shown = run_cli("erase", "--help").out
    assert "told erase [OPTIONS] [ID] " in shown
    assert "<bool>" not in shown + run_cli("--help").out + run_cli("models", "--help").out
    for name in ("add", "link", "search", "export", "eval", "blob get"):
        assert not re.search(
            r"<(str|path|list\[|int)", run_cli(*name.split(), "--help").out, re.IGNORECASE
        ), name
    assert "told add [OPTIONS] [TEXT]... " in run_cli("add", "--help").out


def test_explain_lists_every_candidate(run_cli, sdk, memory_id):
    run_cli("add", "Lisbon has steep streets", "-u", "alice")
    body = run_cli("explain", "lisbon", "-u", "alice", "-k", "1", "--json").json
    assert body["candidates"] == sdk("explain", "lisbon", user_id="alice", limit=1)["candidates"]
    shown = run_cli("explain", "lisbon", "-u", "alice", "-k", "1").out
    assert "I moved to Lisbon" in shown
    assert "after the limit" in shown
    assert "gather" in shown


@pytest.fixture
def week_of_turns(run_cli):
    """Add a few turns in which Ann and Ben answer each other."""
    for day, name, text in (
        (3, "Ann", "I bought a canoe in Oslo"),
        (3, "Ben", "What colour is the canoe?"),
        (4, "Ben", "My knee hurts"),
    ):
        run_cli(
            "add", text, "-u", "alice", "--name", name, "--timestamp", f"2026-03-0{day}T12:00:00Z"
        )


@pytest.mark.parametrize("columns", ["60", "80", "160"])
def test_explain_shows_the_query_analysis_and_the_parts_of_a_score(
    columns, run_cli, sdk, week_of_turns, monkeypatch
):
    monkeypatch.setenv("COLUMNS", columns)
    query = "When did Ann buy a canoe in March 2026?"
    lines = run_cli("explain", query, "-u", "alice", "-k", "2").out.splitlines()
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


def test_explain_shows_some_omitted_candidates_and_counts_the_rest(run_cli):
    for n in range(12):
        run_cli("add", f"tea number {n}", "-u", "alice")
    shown = run_cli("explain", "tea", "-u", "alice", "-k", "1").out
    assert shown.count("after the limit") == 5
    assert "… and 6 more; --json shows all" in shown
    assert "… and 2 more; --json shows all" in run_cli("explain", "tea", "-u", "alice").out


def test_why_not_compares_with_the_last_hit_in_one_sentence(run_cli, sdk, memory_id):
    best = run_cli("add", "Lisbon, Lisbon and again Lisbon", "-u", "alice", "--json").json[
        "results"
    ][0]["id"]
    options = {"user_id": "alice", "limit": 1}
    order = [row["id"] for row in sdk("search", "lisbon", user_id="alice")["results"]]
    assert {memory_id, best} == set(order)
    assert run_cli("why-not", "lisbon", order[1], "-u", "alice", "-k", "1", "--json").json == sdk(
        "why_not", "lisbon", order[1], **options
    )
    missing = run_cli("why-not", "lisbon", order[1], "-u", "alice", "-k", "1").out
    assert missing.startswith("✗ Not among the hits: it ranks 2, beyond the limit.")
    assert all(
        word in missing for word in ("this memory", "last hit kept", "difference", "cover", "sum")
    )
    there = run_cli("why-not", "lisbon", order[0], "-u", "alice", "-k", "1").out
    assert there.startswith("✓ It is among the hits: number 1.")


def test_why_not_of_an_unscored_memory_is_one_line(run_cli, memory_id):
    filtered = run_cli("why-not", "lisbon", memory_id, "-u", "alice", "--where", "topic=work")
    assert one_line(filtered.out)
    assert "the filters leave it out" in filtered.out
    run_cli("update", memory_id, "--expires", "2020-01-01")
    assert "--show-expired shows it" in run_cli("why-not", "lisbon", memory_id, "-u", "alice").out
    assert one_line(run_cli("why-not", "lisbon", "no-such-id", "-u", "alice", code=1).err)
    assert one_line(run_cli("why-not", "lisbon", memory_id, "-u", "bob", code=1).err)


def test_search_without_an_embedder_prints_a_warning(run_cli, memory_id):
    done = run_cli("search", "lisbon", "-u", "alice")
    assert "warning:" in done.err
    assert "warning:" not in done.out


def test_empty_result_is_reported(run_cli, memory_id):
    assert "Nothing found." in run_cli("list", "-u", "bob").out
    assert run_cli("list", "-u", "bob", "--json").json == {"results": []}


# Scope and global options


def test_missing_scope_is_an_error_that_says_how_to_give_one(run_cli):
    done = run_cli("search", "anything", code=2)
    assert "At least one of user_id, agent_id, or run_id must be provided" in done.err
    assert "--user" in done.err
    assert one_line(done.err)


def test_the_user_may_come_from_the_environment(run_cli, sdk, memory_id, monkeypatch):
    monkeypatch.setenv("TOLD_USER", "alice")
    assert run_cli("list", "--json").json == sdk("get_all", user_id="alice")
    assert run_cli("list", "-u", "bob", "--json").json == {"results": []}


def test_global_options_stand_before_or_after_the_verb(run_cli, sdk, memory_id):
    expected = sdk("get_all", user_id="alice")
    assert run_cli("--json", "list", "-u", "alice").json == expected
    assert run_cli("--account", "other", "list", "-u", "alice", "--json").json == {"results": []}
    assert (
        run_cli("--account", "other", "list", "-u", "alice", "--json", "--account", "default").json
        == expected
    )


def test_time_zone_setting_applies_to_times_without_one(run_cli, sdk):
    run_cli("add", "Noon in Berlin", "-u", "alice", "--timestamp", "2026-01-15T12:00", code=2)
    run_cli(
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


def test_times_may_be_given_in_words(run_cli, memory_id):
    assert run_cli("list", "-u", "alice", "--as-of", "last Tuesday", "--json").json == {
        "results": []
    }
    assert "last tuesday" in run_cli("list", "-u", "alice", "--as-of", "someday", code=2).err

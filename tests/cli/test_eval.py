"""`told eval`: measure conversations from a file in a separate store, and report every mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from told.tools.evaluate.run import EmbedderPool

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = str(ROOT / "docs" / "examples" / "conversations.json")
QUICK = ("--budget", "120", "--budget", "240")
FIGURES = {"R@5", "R@10", "R@20", "R@50", "nDCG@10", "newest first", "AUROC"} | {
    f"{name}@{budget}t" for name in ("R", "all", "words") for budget in (120, 240)
}


def test_example_is_measured_by_category_and_overall(run_cli):
    out = run_cli("eval", EXAMPLE, *QUICK, "--embedder", "hash:64").out
    assert "2 conversations, 24 turns, 13 questions; hash:64" in out
    rows = {line[:18].strip(): line.split() for line in out.splitlines()}
    assert rows["category"][:5] == ["category", "asked", "R@120t", "R@240t", "all@240t"]
    assert {"single fact", "several turns", "knowledge-update", "all"} <= rows.keys()
    assert rows["all"][1] == "10"


@pytest.mark.parametrize("width", [60, 80])
def test_narrow_terminal_cuts_no_figure_and_names_omitted_columns(run_cli, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    out = run_cli("eval", EXAMPLE, *QUICK, "--embedder", "none", "--compare", "depth=5").out
    lines = out.splitlines()
    head = next(line.split() for line in lines if line.startswith("category"))
    every = next(line.split() for line in lines if line.startswith("all "))
    assert len(head) == len(every)
    assert all(len(figure) == 5 for figure in every[2:])
    assert "hidden: " in out
    assert max(len(line.rstrip()) for line in lines) <= width


def test_report_holds_every_figure_question_and_setting(run_cli):
    done = run_cli("eval", EXAMPLE, *QUICK, "--set", "depth=7", "--misses", "1", "--json").json
    assert done["budgets"] == [120, 240]
    (file,) = done["files"]
    assert (file["file"], file["conversations"], file["turns"], file["questions"]) == (
        EXAMPLE,
        2,
        24,
        13,
    )
    (run,) = file["variants"]
    assert (run["name"], run["settings"], run["embedder"]) == ("told", {"depth": 7}, None)
    assert set(run["all"]) == FIGURES
    assert set(run["categories"]) == {"single fact", "several turns", "knowledge-update"}
    assert set(run["conversations"]) == {"allotment", "helper"}
    assert set(run["cost"]) == {"ingest_ms_per_turn", "search_ms", "context_ms", "bytes_per_turn"}
    assert len(run["questions"]) == 13
    asked = {row["id"]: row for row in run["questions"]}
    assert asked["waiting"]["ranks"].keys() == {"a3"}
    assert asked["rent"]["figures"] == {}
    assert all(0.0 <= value <= 1.0 for value in run["all"].values())
    assert run["all"]["R@120t"] <= run["all"]["R@240t"]


def test_misses_add_up_to_the_recall(run_cli):
    (run,) = run_cli("eval", EXAMPLE, *QUICK, "--json").json["files"][0]["variants"]
    for row in run["questions"]:
        for budget, missing in row["missing"].items():
            assert row["figures"][f"R@{budget}t"] == pytest.approx(
                1 - len(missing) / len(row["ranks"])
            )


def test_miss_reports_the_absent_turn_its_rank_and_the_reason(run_cli):
    words = ("eval", EXAMPLE, "--budget", "40", "--embedder", "hash:64", "--misses")
    (run,) = run_cli(*words, "2", "--json").json["files"][0]["variants"]
    assert len(run["misses"]) == 2
    for one in run["misses"]:
        assert one["budget"] == 40
        for turn in one["missing"]:
            assert turn["text"]
            assert turn["fate"]
            assert turn["rank"] is None or turn["rank"] >= 1
    out = run_cli(*words, "1").out
    assert f"✗ {run['misses'][0]['question']}" in out
    assert run["misses"][0]["missing"][0]["id"] in out
    assert "✗" not in run_cli(*words, "0").out


# Variants


def test_variants_run_beside_the_default_and_show_their_differences(run_cli):
    words = (
        "eval",
        EXAMPLE,
        *QUICK,
        "--compare",
        "letters=embedder=hash:64,depth=9",
        "--compare",
        "depth=8",
    )
    first, letters, last = run_cli(*words, "--json").json["files"][0]["variants"]
    assert [(run["name"], run["settings"], run["embedder"]) for run in (first, letters, last)] == [
        ("told", {}, None),
        ("letters", {"embedder": "hash:64", "depth": 9}, "hash:64"),
        ("depth=8", {"depth": 8}, None),
    ]
    apart = letters["all"]["nDCG@10"] - first["all"]["nDCG@10"]
    assert apart
    line = next(line for line in run_cli(*words).out.splitlines() if line.startswith("letters "))
    assert f"{apart:+.3f}" in line.split()


def test_setting_of_the_run_applies_to_every_variant(run_cli):
    done = run_cli(
        "eval", EXAMPLE, "--set", "depth=3", "--compare", "encoding=cl100k_base", *QUICK, "--json"
    ).json
    found = [run["settings"] for run in done["files"][0]["variants"]]
    assert found == [{"depth": 3}, {"depth": 3, "encoding": "cl100k_base"}]


@pytest.mark.parametrize("words", [("--set", "text_limit=5"), ("--compare", "short=text_limit=5")])
def test_settings_reach_the_measured_store(words, run_cli):
    err = run_cli("eval", EXAMPLE, *QUICK, *words, code=2).err
    assert "conversation 'allotment', session '1': The text has 64 characters; at most 5" in err


class Counting:
    """A `hash` embedder that counts the texts it embeds."""

    def __init__(self, inner):
        self.inner, self.asked = inner, []
        self.model, self.dim, self.local = inner.model, inner.dim, inner.local

    def embed(self, texts, purpose="passage"):
        self.asked += [(text, purpose) for text in texts]
        return self.inner.embed(texts, purpose)


def test_each_text_is_embedded_once_for_all_variants(run_cli, monkeypatch):
    counters = []

    def get(embedders, choice=None, real=EmbedderPool.get):
        found = real(embedders, choice)
        if found is not None and not isinstance(found.inner, Counting):
            found.inner = Counting(found.inner)
            counters.append(found.inner)
        return found

    monkeypatch.setattr(EmbedderPool, "get", get)
    run_cli(
        "eval",
        EXAMPLE,
        *QUICK,
        "--embedder",
        "hash:64",
        "--compare",
        "depth=9",
        "--compare",
        "depth=3",
    )
    (counter,) = counters
    assert len(counter.asked) > 30
    assert len(counter.asked) == len(set(counter.asked))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "encodng=x"), "Did you mean `encoding`?"),
        (("--compare", "x=batch_limit=many"), "batch_limit must be int"),
        (("--set", "depth"), "'depth' is not NAME=VALUE"),
        (("--compare", "a=depth=3,flat"), "'flat' is not NAME=VALUE"),
        (("--compare", "a=depth=3", "--compare", "a=depth=4"), "two variants are named 'a'"),
        (("--compare", "told=depth=3"), "two variants are named 'told'"),
        (("--set", "store=ram://"), "--store"),
        (("--budget", "0"), "--budget"),
    ],
)
def test_invalid_setting_is_rejected_before_any_file_is_read(words, says, run_cli, tmp_path):
    file = tmp_path / "broken.json"
    file.write_text("not JSON")
    assert says in run_cli("eval", str(file), *words, code=2).err


# Files


def test_each_file_has_its_own_figures(run_cli, tmp_path):
    whole = json.loads(Path(EXAMPLE).read_text("utf-8"))
    (tmp_path / "two.json").write_text(json.dumps(whole[1:]), "utf-8")
    done = run_cli(
        "eval", EXAMPLE, str(tmp_path / "two.json"), *QUICK, "--limit-conversations", "1", "--json"
    ).json
    assert [(file["turns"], file["questions"]) for file in done["files"]] == [(17, 9), (7, 4)]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "is not JSON"),
        ('{"id": "c1"}', "a list of conversations"),
        (
            '[{"id": "c", "turns": [], "questions": [{"text": "?", "evidence": ["t"]}]}]',
            "conversation 'c'.questions.0",
        ),
    ],
)
def test_invalid_file_is_reported_with_the_position(body, says, run_cli, tmp_path):
    file = tmp_path / "chats.json"
    file.write_text(body)
    err = run_cli("eval", str(file), code=2).err
    assert str(file) in err
    assert says in err


def test_missing_file_is_rejected(run_cli, tmp_path):
    assert "none.json" in run_cli("eval", str(tmp_path / "none.json"), code=2).err


# Stores


def test_the_users_own_store_is_never_touched(run_cli, sdk, tmp_path):
    run_cli("add", "I live in Lisbon", "-u", "allotment")
    run_cli("eval", EXAMPLE, *QUICK)
    assert [row["memory"] for row in sdk("get_all", user_id="allotment")["results"]] == [
        "I live in Lisbon"
    ]


def test_named_store_keeps_the_conversations_and_must_be_empty(run_cli, tmp_path):
    kept = ("--store", f"sqlite:///{tmp_path / 'kept.db'}")
    run_cli("eval", EXAMPLE, *QUICK, *kept, "--compare", "depth=3")
    found = run_cli("search", "Which plot?", "-u", "allotment", *kept, "--json").json["results"]
    assert found[0]["metadata"] == {"id": "a1", "session": "1"}
    assert (found[0]["actor_id"], found[0]["said_at"][:10]) == ("Nora", "2026-02-03")
    assert "holds memories already" in run_cli("eval", EXAMPLE, *QUICK, *kept, code=2).err
    assert "one file" in run_cli("eval", EXAMPLE, EXAMPLE, *kept, code=2).err


def test_ram_store_has_no_size_on_disk(run_cli):
    (run,) = run_cli("eval", EXAMPLE, *QUICK, "--store", "ram://", "--json").json["files"][0][
        "variants"
    ]
    assert run["cost"]["bytes_per_turn"] is None


def test_report_can_be_saved_to_a_file(run_cli, tmp_path):
    path = tmp_path / "figures.json"
    out = run_cli("eval", EXAMPLE, *QUICK, "--save", str(path)).out
    saved = json.loads(path.read_text("utf-8"))
    assert f"{saved['files'][0]['variants'][0]['all']['R@240t']:.3f}" in out


def test_warnings_are_reported(run_cli):
    done = run_cli("eval", EXAMPLE, *QUICK, "--json").json
    assert any("No embedder" in warning for warning in done["warnings"])


# The public data


def test_benchmark_says_how_to_name_its_data():
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "recall.py")],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "TOLD_EVAL_DATA"},
    )
    assert done.returncode == 2, done.stderr
    assert "TOLD_EVAL_DATA" in done.stderr


def test_larger_context_never_holds_less_of_the_public_data(run_cli):
    path = Path(os.environ.get("TOLD_EVAL_DATA", "")) / "locomo.json"
    if "TOLD_EVAL_DATA" not in os.environ or not path.is_file():
        pytest.skip("TOLD_EVAL_DATA names no folder with locomo.json")
    (run,) = run_cli("eval", str(path), "--limit-conversations", "1", "--json").json["files"][0][
        "variants"
    ]
    recalls = [run["all"][f"R@{budget}t"] for budget in (500, 1000, 2000, 4000)]
    assert recalls == sorted(recalls)
    assert recalls[0] > 0.4

"""`told doctor`: a healthy store has no findings, each fault is found, and nothing is changed."""

import json
import os
import shutil
from typing import NamedTuple

import apsw
import pytest

from told import Memory
from told.cli.app import run
from told.ids import IdGenerator, wall_clock_us
from told.testing.fakes import HashingEmbedder
from told.tools import doctor


class Usage(NamedTuple):
    free: int


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "told.db"


@pytest.fixture
def url(file):
    return f"sqlite:///{file}"


@pytest.fixture
def memory(url):
    """Create a store with some memories and no embedder."""
    with Memory(url, embedder="none") as opened:
        opened.add(["I moved to Lisbon", "I like tea"], user_id="alice")
        yield opened


@pytest.fixture
def examine(url, home):
    """Run the checks and return the findings by name."""

    def call(environment=None, **arguments):
        wanted = {"store": url, "embedder": "none", **arguments}
        found = doctor.run_checks({"XDG_CONFIG_HOME": str(home)} | (environment or {}), **wanted)
        assert all(check.fix for check in found if check.state != "ok"), (
            "each finding says how to mend it"
        )
        assert len({check.name for check in found}) == len(found)
        return {check.name: check for check in found}

    return call


def states(found) -> set[str]:
    return {check.state for check in found.values()}


def test_healthy_store_has_no_findings(memory, examine):
    found = examine()
    assert states(found) == {"ok"}
    assert len(found) >= 12


def test_doctor_does_not_change_the_store(memory, examine, file):
    before = memory.stats(), sorted(path.name for path in file.parent.iterdir())
    examine()
    assert (memory.stats(), sorted(path.name for path in file.parent.iterdir())) == before


def test_missing_store_is_not_created(examine, file, url):
    found = examine()
    assert states(found) == {"ok"}
    assert "does not exist yet" in found["store opens"].detail
    assert not file.parent.exists()


def test_ram_store_can_be_checked(examine):
    assert states(examine(store="ram://")) == {"ok"}


def test_old_sqlite_is_a_failure(examine, monkeypatch):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    assert examine()["SQLite"].state == "fail"


def test_old_python_is_a_failure(examine, monkeypatch):
    monkeypatch.setattr(doctor, "MIN_PYTHON", (4, 0))
    assert examine()["Python"].state == "fail"


def test_missing_numpy_is_a_warning(examine, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "numpy" else object())
    assert examine()["numpy"].state == "warn"


def test_unknown_setting_in_the_file_stops_the_checks(examine, home):
    (home / "told").mkdir()
    (home / "told" / "config.yaml").write_text("durablity: full\n")
    found = examine()
    assert found["configuration"].state == "fail"
    assert "durability" in found["configuration"].fix
    assert "ledger" not in found


def test_unknown_setting_in_the_environment_is_a_warning(examine):
    found = examine({"TOLD_DURABLITY": "full"})
    assert found["configuration"].state == "warn"
    assert "'durability'" in found["configuration"].fix
    assert examine({"TOLD_USER": "alice", "TOLD_ZONE": "UTC"})["configuration"].state == "ok"


def test_invalid_time_zone_is_a_failure(examine):
    found = examine(zone="Mars/Base")["configuration"]
    assert (found.state, found.detail) == ("fail", "zone: 'Mars/Base' is not a time zone.")


def test_folder_in_place_of_the_file_is_named_and_keeps_its_permissions(examine, tmp_path):
    found = examine(store=f"sqlite:///{tmp_path}")
    assert found["store writable"].detail == f"{tmp_path} is a folder"
    assert "told.db" in found["store writable"].fix
    assert found["file permissions"].state == "ok"


def test_reduced_durability_is_a_warning(examine):
    assert examine(durability="normal")["durability"].state == "warn"


def test_unwritable_folder_is_a_failure(memory, examine, file, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != file)
    assert "cannot be written" in examine()["store writable"].detail


@pytest.mark.parametrize(("free", "state"), [(2**20, "fail"), (100 * 2**20, "warn"), (2**40, "ok")])
def test_low_disk_space_is_reported(free, state, examine, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free))
    assert examine()["disk space"].state == state


def test_world_readable_store_is_a_warning(memory, examine, file):
    assert examine()["file permissions"].state == "ok"
    file.chmod(0o644)
    found = examine()["file permissions"]
    assert found.state == "warn"
    assert f"chmod 600 {file}" in found.fix


def test_failed_write_fails_the_round_trip(examine, monkeypatch):
    def full(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(doctor, "TemporaryDirectory", full)
    assert "No space left" in examine()["round trip"].detail


def test_file_that_is_not_a_store_does_not_open(examine, file):
    file.parent.mkdir()
    file.write_bytes(b"not a database at all" * 100)
    found = examine()
    assert found["store opens"].state == "fail"
    assert "ledger" not in found


def test_store_of_another_schema_version_is_reported(memory, examine, file):
    memory.close()
    with apsw.Connection(str(file)) as db:
        db.execute("UPDATE meta SET value = 99 WHERE key LIKE '%schema%'")
        db.execute("PRAGMA user_version = 99")
    assert examine()["schema"].state == "fail"


def tamper(file, seq: int) -> None:
    with apsw.Connection(str(file)) as db:
        db.execute("DROP TRIGGER entry_append_only")
        db.execute("UPDATE entry SET at = at + 1 WHERE id & ((1 << 40) - 1) = ?", (seq,))


def test_tampered_ledger_is_reported(memory, examine, file):
    tamper(file, 2)
    found = examine()["ledger"]
    assert found.state == "fail"
    assert "entry 2" in found.detail


LAST = -1


@pytest.mark.parametrize(("seq", "state"), [(LAST, "fail"), (1, "ok")])
def test_only_the_end_of_a_long_ledger_is_verified(seq, state, memory, examine, file, monkeypatch):
    monkeypatch.setattr(doctor, "MAX_VERIFIED_ENTRIES", 2)
    written = memory.stats()["entries"]
    assert examine()["ledger"].detail == f"2 of {written} entries verified"
    tamper(file, written if seq == LAST else seq)
    assert examine()["ledger"].state == state


def test_long_ledger_with_erased_entries_verifies(memory, examine, monkeypatch):
    memory.erase(memory.get_all(user_id="alice")["results"][1]["id"])
    monkeypatch.setattr(doctor, "MAX_VERIFIED_ENTRIES", 3)
    assert examine()["ledger"].state == "ok"


def test_inconsistent_index_is_reported(memory, examine, file):
    with apsw.Connection(str(file)) as db:
        db.execute("INSERT INTO block VALUES (9, 9, 0, 0, 0, x'00', x'00')")
    found = examine()["index"]
    assert found.state == "fail"
    assert "told rebuild" in found.fix


def test_ledger_with_future_times_is_reported(url, examine):
    with Memory(
        url, embedder="none", mint=IdGenerator(lambda: wall_clock_us() + 3_600_000_000)
    ) as ahead:
        ahead.add("Written tomorrow", user_id="alice")
    assert examine()["clock"].state == "warn"


def test_texts_without_vectors_are_counted(url, examine):
    with Memory(url, embedder=HashingEmbedder()) as memory:
        memory.add("With a vector", user_id="alice")
    assert examine()["pending vectors"].state == "ok"
    with Memory(url, embedder="none") as memory:
        memory.add("Without one", user_id="alice")
    assert examine()["pending vectors"].detail.startswith("1 texts")


def test_failed_jobs_are_reported(memory, examine):
    memory.engine.store.record_fault("default", "vectors", 2, "the model was away")
    found = examine()["faults"]
    assert "the model was away" in found.detail
    assert "told faults retry" in found.fix


def test_embedder_is_named_with_the_reason(memory, examine):
    assert "as chosen" in examine()["embedder"].detail
    best = examine(embedder=None)
    assert best["embedder"].detail == "local:minilm, the best that is installed"
    assert best["embedder works"].detail == "384 dimensions"
    chosen = examine({"TOLD_EMBEDDER": "local:minilm"}, embedder=None)
    assert chosen["embedder"].detail == "local:minilm, chosen by TOLD_EMBEDDER"


def test_different_embedder_than_the_store_is_a_failure(url, examine):
    with Memory(url, embedder=HashingEmbedder(model="other:model")) as memory:
        memory.add("Indexed by another model", user_id="alice")
    found = examine(embedder="local:minilm")["embedder works"]
    assert found.state == "fail"
    assert "told reindex --embedder local:minilm" in found.fix


def test_missing_model_is_a_failure_if_chosen_and_otherwise_a_warning(url, examine):
    assert examine(embedder="local:e5-small")["embedder"].state == "fail"
    with Memory(url, embedder=HashingEmbedder(model="local:e5-small")) as memory:
        memory.add("Indexed by a model that is gone", user_id="alice")
    found = examine(embedder=None)["embedder"]
    assert found.state == "warn"
    assert found.fix == "Run `told models install e5-small`."


def test_store_indexed_by_a_provider_needs_no_local_model(url, examine):
    with Memory(url, embedder=HashingEmbedder(model="far:model")) as memory:
        memory.add("Indexed far away", user_id="alice")
    assert "--embedder far:model" in examine(embedder=None)["embedder"].fix


def test_missing_language_model_is_reported_with_the_choices(examine):
    name = "language model"
    assert examine()[name].detail == "none, so no text leaves this machine"
    could = examine({"ANTHROPIC_API_KEY": "a-1"})[name]
    assert could.state == "ok"
    assert could.detail.endswith("; ANTHROPIC_API_KEY is set, so `llm: auto` would use anthropic")


def test_language_model_is_named_with_the_reason(examine, monkeypatch):
    name = "language model"
    assert examine({"TOLD_LLM": "auto"})[name].state == "warn"
    assert examine({"TOLD_LLM": "ollama:own"})[name].detail == "ollama:own, chosen by TOLD_LLM"
    monkeypatch.setenv("OPENAI_API_KEY", "k-secret")
    found = examine({"TOLD_LLM": "auto", "OPENAI_API_KEY": "k-secret"})[name]
    assert found.detail == "openai:gpt-4o-mini, for OPENAI_API_KEY is set"


def test_language_model_that_cannot_be_opened_is_a_failure(examine):
    found = examine(llm="openai:gpt-4o-mini")["language model"]
    assert (found.state, found.fix) == ("fail", "Set OPENAI_API_KEY, or give api_key.")


def test_command_exits_with_three_on_a_failure(memory, file, url, capsys):
    words = ["doctor", "--store", url, "--embedder", "none"]
    assert run([*words, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["ok"]
    assert {"name", "state", "what", "fix"} == set(body["checks"][0])
    tamper(file, 2)
    assert run(words) == 3
    shown = capsys.readouterr().out
    assert "✗" in shown
    assert "Run `told verify`" in shown

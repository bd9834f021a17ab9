"""Erasure is permanent: no file of the store keeps a trace, and nothing restores the content."""

import base64
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from told import Memory
from told.errors import NotFoundError, StoreBusy
from told.ledger.views import fold_all
from told.model.entry import Asserted, Claim, Draft, Linked
from told.model.query import AccessBatch, AccessCount, AccessRecord, ReviewReason, ReviewTask
from told.model.scope import Scope
from told.ports import VIEWS, Batch
from told.testing import hashing_embedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder that contains only the store."""
    return tmp_path / "store"


@pytest.fixture
def open_memory(folder: Path) -> Iterator[Callable[..., Memory]]:
    opened: list[Memory] = []

    def open_memory(**options: Any) -> Memory:
        # Access counts change scores and are no trace of erased content.
        options = {"expand_hot": 0.0, **options}
        opened.append(Memory(f"sqlite:///{folder}/m.db", embedder=hashing_embedder(), **options))
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    return open_memory()


# Finding canaries


def encodings(canary: str) -> Iterator[bytes]:
    """Yield the encodings of a text to look for: plain, JSON, hex, base64 at any offset."""
    plain = canary.encode()
    yield from (plain, plain.lower(), canary.encode("utf-16-le"), json.dumps(canary)[1:-1].encode())
    yield from (plain.hex().encode(), plain.hex().upper().encode())
    for offset in range(3):
        middle = base64.b64encode(bytes(offset) + plain)[4:-4]
        if len(middle) >= 8:
            yield middle


def find_traces(folder: Path, canaries: Iterable[str]) -> list[str]:
    """List the canaries found in any file of a folder, with the file name."""
    files = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    forms = {canary: list(encodings(canary)) for canary in canaries}
    return [
        f"{canary} in {name}"
        for name, content in files.items()
        for canary, encoded in forms.items()
        if any(form in content for form in encoded)
    ]


def assert_clean(memory: Memory, folder: Path, canaries: Iterable[str]) -> None:
    """Assert that no file has a trace, open or closed, and that the store verifies."""
    canaries = list(canaries)
    assert find_traces(folder, canaries) == []
    verdict = memory.verify()
    assert verdict["ok"], verdict
    rows = {view: list(memory.engine.store.view_rows("default", view)) for view in VIEWS}
    memory.rebuild()
    assert {view: list(memory.engine.store.view_rows("default", view)) for view in VIEWS} == rows
    memory.close()
    assert find_traces(folder, canaries) == []


# Planting canaries

CANARIES = {
    "text": "Xanthippe1text",
    "version": "Xanthippe2version",
    "key": "Xanthippe3key",
    "value": "Xanthippe4value",
    "name": "Xanthippe5name",
    "source": "Xanthippe6source",
    "user": "Xanthippe7user",
    "agent": "Xanthippe8agent",
    "run": "Xanthippe9run",
    "link": "Xanthippe10link",
    "rel": "Xanthippe11rel",
    "ticket": "Xanthippe12ticket",
    "big": "Xanthippe13big",
    "cjk": "東京湾秘密灯台",
    "second": "Xanthippe14second",
    "nested": "Xanthippe15nested",
    "why": "Xanthippe16why",
    "deleted": "Xanthippe17deleted",
    "said again": "Xanthippe18again",
    "emoji": "🦜🏴‍☠️🦜",
    "meta only": "Xanthippe19metaonly",
    "derived": "Xanthippe20derived",
}
C = CANARIES


def plant_canaries(memory: Memory) -> dict[str, str]:
    """Put a canary wherever a user's text can be stored; return memory ids by label."""
    who = {"user_id": C["user"]}
    whole = {**who, "agent_id": C["agent"], "run_id": C["run"]}
    ids: dict[str, str] = {}

    def add(label: str, said: Any, **options: Any) -> str:
        ids[label] = memory.add(said, **{**who, **options})["results"][0]["id"]
        return ids[label]

    add(
        "text", f"my code is {C['text']}", source=f"chat-{C['source']}", idempotency_key=C["ticket"]
    )
    add("version", "first version")
    memory.update(ids["version"], f"second version {C['version']}")
    memory.update(
        ids["version"],
        "third version",
        metadata={C["meta only"]: [C["meta only"], {"a": C["meta only"]}]},
    )
    memory.update(ids["version"], "fourth version", metadata={})
    add(
        "meta",
        "with metadata",
        metadata={C["key"]: C["value"], "deep": {"er": [{"x": C["nested"]}]}},
    )
    add("name", {"role": "user", "content": "named", "name": C["name"]})
    add("space", "in a narrower space", **whole)
    add("second", f"also {C['second']}", agent_id="other agent")
    add("big", f"{C['big']} " + f"{C['big']} padding " * 2000)
    add("cjk", f"我住在{C['cjk']}附近 {C['emoji']}")
    add("deleted", f"gone {C['deleted']}")
    memory.retract(ids["deleted"], why=C["why"])
    add("again", f"said {C['said again']}")
    memory.add({"role": "assistant", "content": f"said {C['said again']}"}, **who)
    memory.add(f"said {C['said again']}", **who, idempotency_key=f"again {C['ticket']}")
    memory.link(ids["text"], C["rel"], ids["big"], metadata={C["link"]: C["link"]}, **who)
    add_derived(
        memory,
        "derived-thread",
        f"we think {C['derived']}",
        [ids["text"], ids["cjk"]],
        Scope(user_id=C["user"]),
    )
    return {**ids, "derived": "derived-thread"}


def add_derived(memory: Memory, thread: str, text: str, sources: list[str], scope: Scope) -> str:
    """Add a model's claim with `derived_from` links to its sources."""
    drafts = [Draft(Asserted(thread, Claim(text)), scope, author="model")]
    drafts += [
        Draft(Linked(thread, "derived_from", source), scope, author="model") for source in sources
    ]
    memory.engine.store.commit(Batch("default", drafts), fold_all)
    return thread


def add_other_users(memory: Memory) -> None:
    """Add memories of other users, some with the same words."""
    for number in range(30):
        memory.add(
            f"my code is {number}, a version with metadata", user_id="bob", metadata={"n": number}
        )
    memory.add(
        ["my code is green tea", "second version", "我住在東京附近"],
        user_id="carol",
        agent_id="other agent",
    )
    memory.add("the agent's own note about a code", agent_id="other agent")


def answers(memory: Memory) -> str:
    """Serialise everything other users can read, scores included."""
    seen: list[Any] = []
    for who in ({"user_id": "bob"}, {"user_id": "carol"}, {"agent_id": "other agent"}):
        queries = ("my code", "version metadata", "東京", "green tea note")
        seen += [memory.search(query, **who, limit=50, explain=True) for query in queries]
        seen.append(memory.get_all(**who, limit=1000))
        seen.append(memory.timeline(**who))
    return json.dumps(seen, ensure_ascii=False, sort_keys=True)


# Erase by user, memory or source, and reset


def test_planted_canaries_are_found_before_erasure(memory: Memory, folder: Path) -> None:
    plant_canaries(memory)
    found = {line.split(" in ")[0] for line in find_traces(folder, CANARIES.values())}
    assert found == set(CANARIES.values())


def test_erasing_user_removes_all_traces_and_keeps_other_answers(
    memory: Memory, folder: Path
) -> None:
    add_other_users(memory)
    for row in memory.get_all(agent_id="other agent")["results"]:
        assert row.get("user_id") in (None, "carol")
    before = answers(memory)
    ids = plant_canaries(memory)
    certificate = memory.erase(user_id=C["user"])
    assert set(certificate["memories"]) == set(ids.values())
    assert certificate["warnings"] == []
    assert certificate["entries"] == certificate["destroyed"]["entries"]
    assert answers(memory) == before
    assert_clean(memory, folder, CANARIES.values())


def test_reset_removes_all_traces(memory: Memory, folder: Path) -> None:
    plant_canaries(memory)
    memory.reset()
    assert_clean(memory, folder, CANARIES.values())


def test_erasing_each_memory_removes_all_traces(memory: Memory, folder: Path) -> None:
    add_other_users(memory)
    before = answers(memory)
    for label, id_ in plant_canaries(memory).items():
        if label != "derived":  # erased with its sources
            memory.erase(id_)
    assert answers(memory) == before
    assert_clean(memory, folder, CANARIES.values())


def test_erasing_memory_removes_versions_evidence_links_tickets_and_derived(
    memory: Memory, folder: Path
) -> None:
    ids = plant_canaries(memory)
    memory.erase(ids["text"])
    gone = ["text", "source", "link", "rel", "derived"]
    assert find_traces(folder, [C[name] for name in gone]) == []
    assert memory.get(ids["derived"]) is None
    assert memory.get(ids["cjk"])["memory"].endswith(C["emoji"])
    assert memory.get(ids["big"]) is not None
    memory.erase(ids["version"])
    memory.erase(ids["again"])
    assert_clean(
        memory,
        folder,
        [C[name] for name in [*gone, "version", "meta only", "said again", "ticket"]],
    )


def test_erasing_user_removes_scope_digest(memory: Memory, folder: Path) -> None:
    memory.add(
        [f"turn {number} of a long talk" for number in range(30)], user_id="ann", infer=False
    )
    memory.add("I am Bob", user_id="bob")
    memory.consolidate(force=True)
    marks = [Scope(user_id="ann").digest(), json.dumps({"user_id": "ann"}, separators=(",", ":"))]
    assert find_traces(folder, marks)
    memory.erase(user_id="ann")
    assert_clean(memory, folder, marks)


def test_erasing_user_removes_unused_idempotency_keys(memory: Memory, folder: Path) -> None:
    memory.add("I am Ann", user_id="ann")
    memory.add("I am Bob", user_id="bob")
    memory.add(
        {"role": "system", "content": "Be kind."},
        user_id="ann",
        idempotency_key="ann@example.org-1",
    )
    assert find_traces(folder, ["ann@example.org"])
    memory.erase(user_id="ann")
    assert_clean(memory, folder, ["ann@example.org"])


def test_erasing_source_removes_only_its_memories_and_derived(memory: Memory, folder: Path) -> None:
    add_other_users(memory)
    before = answers(memory)
    first = memory.add("the contract says Quokka1", user_id="alice", source="contract.pdf")[
        "results"
    ][0]["id"]
    memory.update(first, "the contract really says Quokka2")
    memory.add(
        "page two says Quokka3", user_id="dave", source="contract.pdf", metadata={"Quokka4": 1}
    )
    kept = memory.add("my own opinion", user_id="alice", source="chat")["results"][0]["id"]
    add_derived(memory, "summary", "in short Quokka5", [first], Scope(user_id="alice"))
    add_derived(memory, "summary of it", "shorter Quokka6", ["summary"], Scope(user_id="erin"))
    certificate = memory.erase(source="contract.pdf")
    assert {"summary", "summary of it", first} <= set(certificate["memories"])
    assert memory.get(kept)["memory"] == "my own opinion"
    assert answers(memory) == before
    assert_clean(
        memory, folder, [*(f"Quokka{n}" for n in range(1, 7)), "contract.pdf", "dave", "erin"]
    )


def test_run_or_agent_can_be_erased_separately(memory: Memory, folder: Path) -> None:
    memory.add("Wombat1 in the run", user_id="alice", run_id="Wombat2run")
    memory.add("Wombat3 by the agent", agent_id="Wombat4agent", user_id="alice")
    memory.add("kept by alice", user_id="alice")
    memory.erase(run_id="Wombat2run")
    assert find_traces(folder, ["Wombat1", "Wombat2run"]) == []
    memory.erase(agent_id="Wombat4agent")
    assert [row["memory"] for row in memory.get_all(user_id="alice")["results"]] == [
        "kept by alice"
    ]
    assert_clean(memory, folder, ["Wombat1", "Wombat2run", "Wombat3", "Wombat4agent"])


def test_erasing_memory_removes_access_records_and_consumer_notes(
    memory: Memory, folder: Path
) -> None:
    first, second = (
        memory.add(text, user_id="alice")["results"][0]["id"]
        for text in ("green tea", "red bicycle")
    )
    store = memory.engine.store
    store.record_accesses(
        "default",
        AccessBatch(
            records=[AccessRecord(first, 1, query="Numbat1query"), AccessRecord(second, 1)],
            keep_per_thread=10,
        ),
    )
    store.record_accesses(
        "default",
        AccessBatch(
            tasks=[ReviewTask(first, ReviewReason.RECALL), ReviewTask(second, ReviewReason.RECALL)],
            cooccurrences={(first, second): AccessCount(1, 1)},
        ),
    )
    store.update_consumer("default", "topics", notes={first: b"Numbat2note", second: b"kept"})
    assert len(find_traces(folder, ["Numbat1query", "Numbat2note"])) >= 2
    memory.erase(first)
    assert [task.thread for task in store.list_tasks("default")] == [second]
    assert (
        dict(store.cooccurrence("default", [second])),
        dict(store.read_notes("default", "topics")),
    ) == ({}, {second: b"kept"})
    assert_clean(memory, folder, ["Numbat1query", "Numbat2note"])


def test_erased_memories_are_absent_from_every_read_at_every_as_of(memory: Memory) -> None:
    ids = plant_canaries(memory)
    positions = memory.stats()["entries"]
    memory.erase(user_id=C["user"])
    who = {"user_id": C["user"]}
    for as_of in (None, *(f"#{n}" for n in range(1, positions + 2, 3))):
        assert memory.get_all(**who, as_of=as_of, show_expired=True)["results"] == []
        assert memory.search("code version Xanthippe1text", **who, as_of=as_of)["results"] == []
        assert str(memory.context("code", **who, as_of=as_of)) == ""
        assert all(memory.get(id_, as_of=as_of) is None for id_ in ids.values())
    assert memory.timeline(**who)["results"] == []
    assert memory.diff("#1", f"#{positions}", **who) == {"added": [], "changed": [], "removed": []}
    for id_ in ids.values():
        changes = memory.history(id_)
        assert {change["event"] for change in changes} == {"ERASE"}
        assert not [change for change in changes if change["old_memory"] or change["new_memory"]]
    exported = io.BytesIO()
    memory.export(exported)
    assert not [
        form
        for canary in CANARIES.values()
        for form in encodings(canary)
        if form in exported.getvalue()
    ]


def test_errors_after_erasure_do_not_leak_content(memory: Memory) -> None:
    ids = plant_canaries(memory)
    memory.erase(user_id=C["user"])
    for attempt in (memory.delete, memory.update):
        with pytest.raises(NotFoundError) as refused:
            attempt(ids["text"], *(["anew"] if attempt == memory.update else []))
        assert not [canary for canary in CANARIES.values() if canary in str(refused.value)]


def test_erasure_follows_memories_derived_for_other_users(memory: Memory, folder: Path) -> None:
    id_ = memory.add("Numbat1 is my bank", user_id="alice")["results"][0]["id"]
    add_derived(memory, "d1", "the household banks at Numbat2", [id_], Scope(user_id="bob"))
    add_derived(memory, "d2", "they save money, says Numbat3", ["d1"], Scope(agent_id="planner"))
    memory.engine.store.commit(
        Batch("default", [Draft(Linked("d1", "derived_from", "d2"), Scope(user_id="bob"))]),
        fold_all,
    )
    certificate = memory.erase(user_id="alice")
    assert set(certificate["memories"]) == {id_, "d1", "d2"}
    assert_clean(memory, folder, ["Numbat1", "Numbat2", "Numbat3"])


def test_same_text_can_be_added_and_erased_repeatedly(memory: Memory, folder: Path) -> None:
    for _ in range(3):
        memory.add("I am Bilby1", user_id="alice", idempotency_key="Bilby2")
        assert len(memory.search("Bilby1", user_id="alice")["results"]) == 1
        memory.erase(user_id="alice")
    assert_clean(memory, folder, ["Bilby1", "Bilby2"])


def test_erasing_twice_raises_not_found(memory: Memory) -> None:
    memory.add("tea", user_id="alice")
    memory.erase(user_id="alice")
    with pytest.raises(NotFoundError):
        memory.erase(user_id="alice")
    with pytest.raises(NotFoundError):
        memory.erase("no such memory")
    with pytest.raises(NotFoundError):
        memory.erase(source="no such source")


def test_erasure_without_vacuum_removes_all_traces(
    open_memory: Callable[..., Memory], folder: Path
) -> None:
    memory = open_memory(erase_vacuum=False)
    add_other_users(memory)
    plant_canaries(memory)
    add_other_users(memory)
    memory.erase(user_id=C["user"])
    assert_clean(memory, folder, CANARIES.values())


# Import, export and backup


def exported(memory: Memory) -> bytes:
    file = io.BytesIO()
    memory.export(file)
    return file.getvalue()


def test_importing_older_export_does_not_restore_erased_memories(
    open_memory: Callable[..., Memory], folder: Path
) -> None:
    memory = open_memory()
    ids = plant_canaries(memory)
    memory.add("bob stays", user_id="bob")
    older = exported(memory)
    memory.erase(user_id=C["user"])
    assert memory.import_(older) == {"entries": 0}
    assert memory.get_all(user_id=C["user"])["results"] == []
    elsewhere = open_memory(account="elsewhere")
    elsewhere.import_(older)
    assert [row["memory"] for row in elsewhere.get_all(user_id="bob")["results"]] == ["bob stays"]
    assert elsewhere.get_all(user_id=C["user"])["results"] == []
    assert elsewhere.verify()["ok"]
    assert all(elsewhere.get(id_) is None for id_ in ids.values())
    elsewhere.close()
    assert_clean(memory, folder, CANARIES.values())


def test_importing_newer_export_erases_previously_imported_memories(
    open_memory: Callable[..., Memory], tmp_path: Path, folder: Path
) -> None:
    with Memory(f"sqlite:///{tmp_path}/origin.db", embedder=hashing_embedder()) as origin:
        origin.add(["Dingo1 is here", "bob is not"], user_id="alice")
        older = exported(origin)
        origin.erase(user_id="alice")
        origin.add("after", user_id="alice")
        newer = exported(origin)
    memory = open_memory()
    memory.import_(older)
    memory.import_(newer)
    assert [row["memory"] for row in memory.get_all(user_id="alice")["results"]] == ["after"]
    assert exported(memory) == newer
    assert_clean(memory, folder, ["Dingo1"])


def test_backup_after_erasure_has_no_traces(memory: Memory, folder: Path, tmp_path: Path) -> None:
    plant_canaries(memory)
    memory.erase(user_id=C["user"])
    (tmp_path / "copies").mkdir()
    memory.backup(tmp_path / "copies" / "copy.db")
    assert find_traces(tmp_path / "copies", CANARIES.values()) == []
    with Memory(f"sqlite:///{tmp_path}/copies/copy.db", embedder=hashing_embedder()) as copy:
        assert_clean(copy, tmp_path / "copies", CANARIES.values())


# Concurrency


def test_concurrent_searches_do_not_block_erasure(memory: Memory, folder: Path) -> None:
    add_other_users(memory)
    plant_canaries(memory)
    stop, errors = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            try:
                memory.search("code version", user_id=C["user"])
                memory.get_all(user_id="bob")
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    certificate = memory.erase(user_id=C["user"])
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert memory.search("code version", user_id=C["user"])["results"] == []
    if not certificate["warnings"]:
        assert find_traces(folder, CANARIES.values()) == []
    assert_clean(memory, folder, CANARIES.values())


def erase_during_read(memory: Memory, folder: Path) -> None:
    """Erase during an open read: no trace is left, or a warning reports it."""
    try:
        warnings = memory.erase(user_id=C["user"])["warnings"]
    except StoreBusy as error:
        warnings = [str(error)]
    left = find_traces(folder, CANARIES.values())
    assert warnings or left == []
    assert all("told verify" in warning or "Retry" in warning for warning in warnings)


def test_open_read_in_another_thread_is_awaited_or_reported(
    open_memory: Callable[..., Memory], folder: Path
) -> None:
    memory = open_memory(busy_timeout=0.2)
    plant_canaries(memory)
    reading, erased = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.engine.store._database.read_transaction() as db:
            db.execute("SELECT count(*) FROM entry").fetchall()
            reading.set()
            erased.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    reading.wait(30)
    try:
        erase_during_read(memory, folder)
    finally:
        erased.set()
        thread.join()
    assert memory.get_all(user_id=C["user"])["results"] == []
    memory.verify()
    assert_clean(memory, folder, CANARIES.values())


READER = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN")
db.execute("SELECT count(*) FROM entry").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""


def test_open_read_in_another_process_is_awaited_or_reported(
    open_memory: Callable[..., Memory], folder: Path
) -> None:
    memory = open_memory(busy_timeout=0.2)
    plant_canaries(memory)
    command = [sys.executable, "-c", READER, str(folder / "m.db")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout.readline() == "reading\n"
        erase_during_read(memory, folder)
        reader.stdin.close()
    memory.verify()
    assert_clean(memory, folder, CANARIES.values())


def test_erasure_applies_to_other_store_objects_on_the_same_file(
    open_memory: Callable[..., Memory], folder: Path
) -> None:
    memory, other = open_memory(), open_memory()
    plant_canaries(memory)
    assert other.search("code", user_id=C["user"])["results"]
    memory.erase(user_id=C["user"])
    assert other.search("code", user_id=C["user"])["results"] == []
    assert other.get_all(user_id=C["user"], as_of="#3")["results"] == []
    other.close()
    assert_clean(memory, folder, CANARIES.values())


def test_version_written_during_erasure_is_erased_too(
    open_memory: Callable[..., Memory], folder: Path
) -> None:
    memory, other = open_memory(), open_memory()
    id_ = memory.add("Potoroo1", user_id="alice")["results"][0]["id"]
    store = memory.engine.store
    erase = store.erase

    def update_then_erase(*arguments: Any) -> Any:
        store.erase = erase
        other.update(id_, "Potoroo2 still here")
        return erase(*arguments)

    store.erase = update_then_erase
    memory.erase(id_)
    assert memory.get(id_) is None
    assert {change["event"] for change in memory.history(id_)} == {"ERASE"}
    other.close()
    assert_clean(memory, folder, ["Potoroo1", "Potoroo2"])

"""Images and documents through the public API: add, revise, search and erase."""

import base64
import io
from pathlib import Path

import pytest

from papers import blank, docx, paragraph, pdf, png
from told import AsyncMemory, Memory
from told.errors import InvalidInput, MediaError, NotFoundError, ScopeError, TooLarge, Unsupported
from told.ids import hash_content
from told.testing import hashing_embedder

SETUP = "Handbook · Setup"
MORE = "More words follow here. " * 30


def handbook(**changed: str) -> bytes:
    """Return a Markdown handbook of three long sections; keyword arguments replace their text."""
    said = {
        "Setup": "Connect the blue cable first.",
        "Safety": "Never open the case.",
        "Care": "Dust it weekly.",
    }
    body = "".join(
        f"## {title}\n\n{text} {MORE}\n\n" for title, text in {**said, **changed}.items() if text
    )
    return f"# Handbook\n\nWelcome.\n\n{body}".encode()


def read_image(image: bytes, media_type: str) -> str:
    return "WIFI CODE ZEBRA"


@pytest.fixture(params=["ram", "sqlite"])
def memory(request, tmp_path):
    url = "ram://" if request.param == "ram" else f"sqlite:///{tmp_path}/m.db"
    with Memory(url, embedder="none", reader=read_image, document_part=800) as opened:
        yield opened


def texts(memory: Memory, **ids: str) -> list[str]:
    return [row["memory"] for row in memory.get_all(**(ids or {"user_id": "alice"}))["results"]]


# Images


def test_image_in_message_is_found_by_its_text(memory):
    part = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(blank()).decode()},
    }
    done = memory.add(
        [{"role": "user", "content": [{"type": "text", "text": "Keep this"}, part]}],
        user_id="alice",
    )
    assert done["results"][0]["memory"] == "Keep this\n[OCR text from image #1]\nWIFI CODE ZEBRA"
    assert "warnings" not in done
    assert memory.search("zebra", user_id="alice")["results"][0]["id"] == done["results"][0]["id"]
    [kept] = memory.blobs(user_id="alice")["results"]
    assert kept == {
        "hash": hash_content(blank()),
        "media_type": "image/png",
        "size": len(blank()),
        "sources": [],
    }
    assert base64.b64decode(memory.blob(kept["hash"], user_id="alice")["data"]) == blank()


def test_image_without_reader_is_kept_with_its_turn(tmp_path):
    with Memory("ram://", embedder="none", reader="none") as memory:
        done = memory.add({"content": ["Look", blank(640, 480)]}, user_id="alice")
        assert done["results"][0]["memory"] == "Look\n[image #1: png 640x480]"
        assert any("no image reader is available" in warning for warning in done["warnings"])
        assert memory.blobs(user_id="alice")["results"]


def test_decompression_bomb_is_skipped_and_the_turn_kept(memory):
    done = memory.add({"content": ["Look", png([b"\0"], 60_000, 60_000)]}, user_id="alice")
    assert done["results"][0]["memory"] == "Look\n[image #1]"
    assert "3,600,000,000 pixels" in done["warnings"][0]
    assert memory.blobs(user_id="alice")["results"] == []


def test_same_image_is_stored_once(memory):
    for _ in range(2):
        done = memory.add({"content": ["Look", blank()]}, user_id="alice")
    assert done["results"][0]["event"] == "NONE"
    memory.add({"content": ["Again", blank()]}, user_id="alice")
    assert len(memory.blobs(user_id="alice")["results"]) == 1


def test_retry_with_key_ignores_changed_reader_output(tmp_path):
    answers = iter(["FIRST", "SECOND"])
    with Memory(
        "ram://", embedder="none", reader=lambda image, media_type: next(answers)
    ) as memory:
        receipts = [
            memory.add({"content": [blank()]}, user_id="alice", idempotency_key="k")
            for _ in range(2)
        ]
        assert receipts[0]["results"][0]["id"] == receipts[1]["results"][0]["id"]
        assert len(texts(memory)) == 1
        with pytest.raises(Exception, match="idempotency"):
            memory.add({"content": [blank(shade=0)]}, user_id="alice", idempotency_key="k")


def test_erasing_turn_removes_its_image(memory):
    done = memory.add({"content": ["Look", blank()]}, user_id="alice")
    certificate = memory.erase(done["results"][0]["id"])
    assert certificate["destroyed"]["blobs"] == 1
    assert memory.engine.store.get_blobs("default") == {}


def test_erased_image_leaves_no_trace_in_the_file(tmp_path):
    marked = png([bytes(range(1, 200)) * 5] * 3)
    needle = marked[40:90]
    with Memory(f"sqlite:///{tmp_path}/m.db", embedder="none", reader="none") as memory:
        done = memory.add({"content": ["Look", marked]}, user_id="alice")
        memory.upload(b"# Secret\n\nxyzzy-the-canary", name="s.md", user_id="bob")
        assert any(needle in file.read_bytes() for file in tmp_path.iterdir())
        memory.erase(done["results"][0]["id"])
        memory.erase(user_id="bob")
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert needle not in left
    assert b"xyzzy" not in left


def test_urls_are_not_fetched_by_default(memory):
    part = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest/meta-data/"}}
    done = memory.add({"content": ["Look", part]}, user_id="alice")
    assert "fetching URLs is disabled" in done["warnings"][0]
    with pytest.raises(Unsupported, match="fetch_urls"):
        memory.upload("http://169.254.169.254/latest/meta-data/", user_id="alice")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://localhost/"]
)
def test_private_urls_are_rejected_with_fetch_urls(url):
    with Memory("ram://", embedder="none", reader="none", fetch_urls=True) as memory:
        done = memory.add(
            {"content": ["Look", {"type": "image_url", "image_url": {"url": url}}]}, user_id="alice"
        )
        assert "not on the public internet" in done["warnings"][0]
        assert done["results"][0]["memory"].startswith("Look\n[image #1: http://")


def exported(memory: Memory) -> bytes:
    file = io.BytesIO()
    memory.export(file)
    return file.getvalue()


def test_export_and_import_carry_blobs(memory):
    memory.add({"content": ["Look", blank()]}, user_id="alice")
    memory.upload(handbook(), name="a.md", user_id="alice")
    whole = exported(memory)
    with Memory("ram://", embedder="none", reader="none") as copy:
        copy.import_(whole)
        assert copy.blobs(user_id="alice") == memory.blobs(user_id="alice")
        assert exported(copy) == whole
        assert copy.verify()["ok"]


def test_import_does_not_restore_erased_blob(memory):
    done = memory.add({"content": ["Look", blank()]}, user_id="alice")
    before = exported(memory)
    memory.erase(done["results"][0]["id"])
    memory.import_(before)
    assert memory.engine.store.get_blobs("default") == {}
    assert hash_content(blank()).encode() not in exported(memory)


@pytest.mark.parametrize(
    "change",
    [
        (b'"data":"', b'"data":"AAAA'),
        (b'"data":"', b'"data":"!'),
        (b'"media_type":"image/png"', b'"media_type":7'),
    ],
)
def test_blob_with_wrong_hash_is_not_imported(memory, change):
    memory.add({"content": ["Look", blank()]}, user_id="alice")
    spoiled = exported(memory).replace(*change)
    with Memory("ram://", embedder="none", reader="none") as copy:
        with pytest.raises(InvalidInput, match="cannot be read"):
            copy.import_(spoiled)
        assert copy.engine.store.get_blobs("default") == {}


# Documents


def test_document_is_found_by_the_text_of_its_parts(memory):
    done = memory.upload(handbook(), name="handbook.md", user_id="alice")
    [root] = done["results"]
    assert (root["event"], root["role"], root["actor_id"]) == ("ADD", "document", "handbook.md")
    assert root["memory"] == "Handbook\nSetup\nSafety\nCare"
    assert done["document"] == {
        "hash": hash_content(handbook()),
        "title": "Handbook",
        "media_type": "text/markdown",
    }
    hit = memory.search("connect the blue cable first", user_id="alice")["results"][0]
    assert "blue cable" in hit["memory"]
    assert (hit["kind"], hit["role"], hit["source"]) == ("document", "document", "handbook.md")
    assert hit["metadata"]["document"] == {"title": "Handbook", "section": "Handbook · Setup"}


def test_parts_are_linked_to_the_document(memory):
    root = memory.upload(handbook(), name="handbook.md", user_id="alice")["results"][0]["id"]
    links = memory.engine.store.find_links("default", [root])
    assert {link.rel for link in links} == {"part_of"}
    assert len(links) == len(texts(memory)) - 1 == 3


def test_short_document_is_one_memory(memory):
    memory.upload(
        b"The code is 1234.", name="note.txt", user_id="alice", metadata={"topic": "keys"}
    )
    assert texts(memory) == ["The code is 1234."]
    [row] = memory.get_all(user_id="alice", filters={"topic": "keys"})["results"]
    assert row["metadata"]["document"]["parts"] == 1


def test_uploading_same_document_again_changes_nothing(memory):
    first = memory.upload(handbook(), name="handbook.md", user_id="alice")
    before = memory.stats()
    again = memory.upload(handbook(), name="handbook.md", user_id="alice")
    assert again["results"][0]["event"] == "NONE"
    assert again["results"][0]["id"] == first["results"][0]["id"]
    assert memory.stats() == before


def test_revision_replaces_only_changed_parts(memory):
    root = memory.upload(handbook(), name="handbook.md", user_id="alice")["results"][0]["id"]
    old = {
        row["metadata"]["document"].get("section"): row["id"]
        for row in memory.get_all(user_id="alice")["results"]
    }
    done = memory.upload(
        handbook(Setup="Connect the green cable first.", Care=""),
        name="handbook.md",
        user_id="alice",
    )
    assert (done["results"][0]["event"], done["results"][0]["id"]) == ("UPDATE", root)
    new = {
        row["metadata"]["document"].get("section"): row["id"]
        for row in memory.get_all(user_id="alice")["results"]
    }
    assert new["Safety"] == old["Safety"]
    assert new[SETUP] != old[SETUP]
    assert not any("blue cable" in text or "Dust" in text for text in texts(memory))
    assert [change["event"] for change in memory.history(old[SETUP])][-1] == "DELETE"
    links = {
        (link.src, link.rel, link.dst)
        for link in memory.engine.store.find_links("default", [old[SETUP]])
    }
    assert (new[SETUP], "supersedes", old[SETUP]) in links
    assert any(
        "blue cable" in row["memory"]
        for row in memory.get_all(user_id="alice", as_of="#6")["results"]
    )


def test_earlier_revision_can_be_uploaded_again(memory):
    for version in (handbook(), handbook(Setup="Green."), handbook()):
        memory.upload(version, name="handbook.md", user_id="alice")
    assert len(texts(memory)) == 4
    assert "blue cable" in memory.search("cable", user_id="alice")["results"][0]["memory"]
    assert len(memory.blobs(user_id="alice")["results"]) == 2


def test_document_can_shrink_to_one_part_and_grow_again(memory):
    root = memory.upload(handbook(), name="a.md", user_id="alice")["results"][0]["id"]
    for content, count in ((b"# Handbook\n\nGone.", 1), (handbook(), 4)):
        assert memory.upload(content, name="a.md", user_id="alice")["results"][0]["id"] == root
        assert len(texts(memory)) == count


def test_documents_of_different_sources_or_scopes_are_independent(memory):
    memory.upload(b"one", name="a.txt", user_id="alice")
    memory.upload(b"one", name="b.txt", user_id="alice")
    memory.upload(b"one", name="a.txt", user_id="bob")
    memory.upload(b"two", name="a.txt", user_id="alice")
    assert sorted(texts(memory)) == ["one", "two"]
    assert texts(memory, user_id="bob") == ["one"]
    memory.erase(source="b.txt")
    assert texts(memory) == ["two"]
    assert [blob.size for blob in memory.engine.store.get_blobs("default").values()] == [3, 3]


def test_erasing_source_removes_every_revision(memory):
    memory.upload(handbook(), name="a.md", user_id="alice")
    memory.upload(handbook(Setup="Green."), name="a.md", user_id="alice")
    certificate = memory.erase(source="a.md")
    assert certificate["destroyed"]["blobs"] == 2
    assert texts(memory) == []
    assert memory.blobs(user_id="alice")["results"] == []
    assert memory.verify()["ok"]


def test_blob_is_visible_only_in_its_scope(memory):
    name = memory.upload(b"secret", name="a.txt", user_id="alice")["document"]["hash"]
    for ids in ({"user_id": "bob"}, {"agent_id": "alice"}):
        with pytest.raises(NotFoundError):
            memory.blob(name, **ids)
        assert memory.blobs(**ids)["results"] == []
    with pytest.raises(NotFoundError):
        memory.blob("sha256:" + "0" * 64, user_id="alice")
    for call in (lambda: memory.blob(name), memory.blobs):
        with pytest.raises(ScopeError):
            call()


def test_guard_on_documents_hides_their_blobs():
    with Memory(
        "ram://", embedder="none", reader="none", guard=lambda row: row.get("kind") != "document"
    ) as memory:
        name = memory.upload(b"hidden", name="a.txt", user_id="alice")["document"]["hash"]
        assert memory.blobs(user_id="alice")["results"] == []
        with pytest.raises(NotFoundError):
            memory.blob(name, user_id="alice")


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (pdf("The code is in the drawer"), "a.pdf", "application/pdf"),
        (docx(paragraph("The code is in the drawer")), "a.docx", "wordprocessingml"),
        (b"<html><p>The code is in the drawer", "a.html", "text/html"),
        (b"The code is in the drawer", "", "text/plain"),
    ],
    ids=["pdf", "docx", "html", "text"],
)
def test_every_format_is_found_by_its_text(memory, data, name, kind):
    done = memory.upload(data, name=name or None, user_id="alice")
    assert kind in done["document"]["media_type"]
    assert "drawer" in memory.search("where is the code?", user_id="alice")["results"][0]["memory"]


def test_uploaded_image_is_stored_as_its_ocr_text(memory):
    done = memory.upload(blank(), name="sign.png", user_id="alice")
    assert done["results"][0]["memory"] == "[OCR text from image #1]\nWIFI CODE ZEBRA"
    with pytest.raises(MediaError, match="pixels"):
        memory.upload(png([b"\0"], 60_000, 60_000), name="bomb.png", user_id="alice")


def test_document_can_be_a_path_a_file_or_bytes(memory, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("from a file", "utf-8")
    monkeypatch.chdir(tmp_path)
    given = (Path("a.txt"), "a.txt", tmp_path / "a.txt", io.BytesIO(b"from a stream"), b"bytes")
    for number, content in enumerate(given):
        memory.upload(content, user_id=f"user{number}")
        [row] = memory.get_all(user_id=f"user{number}")["results"]
        assert row["source"] == {0: "a.txt", 1: "a.txt", 2: (tmp_path / "a.txt").as_posix()}.get(
            number, row["source"]
        )
    for wrong in (7, None, ["a"], io.StringIO("text")):
        with pytest.raises(InvalidInput):
            memory.upload(wrong, user_id="alice")
    with pytest.raises(MediaError, match="no file"):
        memory.upload("nothing-here.txt", user_id="alice")


def test_invalid_upload_is_rejected_before_writing(memory):
    for call in (
        lambda: memory.upload(b"x"),
        lambda: memory.upload(b"x" * 10, user_id="alice", metadata={"a": "b" * 20_000}),
        lambda: memory.upload(b"x", user_id="alice", name=" "),
        lambda: memory.upload(b"x", user_id="alice", source="s" * 2000),
    ):
        with pytest.raises((ScopeError, TooLarge, InvalidInput)):
            call()
    assert memory.stats()["entries"] == 0
    assert memory.engine.store.get_blobs("default") == {}


def test_document_role_is_kept_in_a_conversation(memory):
    done = memory.add(
        [{"role": "document", "content": "The router is in the cellar."}], user_id="alice"
    )
    assert done["results"][0]["role"] == "document"
    said = next(
        entry.verb
        for entry in memory.engine.store.scan_entries("default")
        if entry.sort == "observed"
    )
    assert said.evidence.sort == "document"


def test_every_document_part_is_embedded():
    with Memory("ram://", embedder=hashing_embedder(), reader="none", document_part=800) as memory:
        memory.upload(handbook(), name="a.md", user_id="alice")
        assert memory.stats()["pending_vectors"] == 0


@pytest.mark.anyio
async def test_async_client_uploads():
    async with AsyncMemory("ram://", embedder="none", reader="none") as memory:
        done = await memory.upload(handbook(), name="a.md", user_id="alice")
        assert (await memory.blobs(user_id="alice"))["results"][0]["hash"] == done["document"][
            "hash"
        ]
        assert (await memory.blob(done["document"]["hash"], user_id="alice"))["size"] == len(
            handbook()
        )


@pytest.fixture
def anyio_backend():
    return "asyncio"


def test_upload_succeeds_if_embedder_fails():
    def down(texts):
        if texts != ["told"]:
            raise RuntimeError("down")
        return [[1.0, 0.0]]

    with Memory("ram://", embedder=down, reader="none") as memory:
        done = memory.upload(b"The code is in the drawer", name="a.txt", user_id="alice")
        assert "Not embedded yet" in done["warnings"][0]
        assert memory.search("drawer", user_id="alice")["results"]

"""Secrets that are to be kept: encrypted with a key that is in no file of told's, and revealed only
with it.
"""

from base64 import b64decode

import pytest

from told import ConfigError, InvalidInput, Memory
from told.errors import Denied

KEY = "0123456789abcdef" * 4
SECRET = "AKIA" + "QRSTUVWXYZ234567"
OTHER = "AKIA" + "ZYXWVUTSRQ765432"


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/m.db"


def opened(url, monkeypatch, key=KEY):
    monkeypatch.setenv("TOLD_VAULT_KEY", key)
    return Memory(url, embedder="none", secrets="encrypt")


def test_a_secret_is_nowhere_in_the_file_and_comes_back_with_the_key(url, monkeypatch, tmp_path):
    with opened(url, monkeypatch) as memory:
        done = memory.add(f"The deploy key is {SECRET} for now", user_id="ann")
        [row] = done["results"]
        assert SECRET not in row["memory"]
        assert "encrypted" in done["warnings"][0]
        assert memory.reveal(row["id"])["memory"] == f"The deploy key is {SECRET} for now"
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_two_secrets_are_two_memories_and_the_same_one_is_one(url, monkeypatch):
    with opened(url, monkeypatch) as memory:
        for secret in (SECRET, OTHER, SECRET):
            memory.add(f"The deploy key is {secret} for now", user_id="ann")
        shown = [
            memory.reveal(row["id"])["memory"] for row in memory.get_all(user_id="ann")["results"]
        ]
        assert sorted(shown) == sorted(
            f"The deploy key is {secret} for now" for secret in (SECRET, OTHER)
        )


def test_another_key_opens_nothing(url, monkeypatch):
    with opened(url, monkeypatch) as memory:
        [row] = memory.add(f"The deploy key is {SECRET} for now", user_id="ann")["results"]
    with (
        opened(url, monkeypatch, "f" * 64) as memory,
        pytest.raises(Denied, match="cannot decrypt"),
    ):
        memory.reveal(row["id"])


@pytest.mark.parametrize("key", ["", "short", "zz" * 32])
def test_without_a_key_nothing_is_opened_to_keep_secrets(url, monkeypatch, key):
    with pytest.raises(ConfigError, match="TOLD_VAULT_KEY"):
        opened(url, monkeypatch, key)


# Documents

FILLING = "So it is. " * 50
PAPER = (
    f"# Router\n\nIts key is {SECRET}. {FILLING}\n\n# Garden\n\nWater it on Fridays. {FILLING}\n"
).encode()


@pytest.mark.parametrize("policy", ["redact", "encrypt"])
def test_a_document_with_a_secret_is_kept_as_its_redacted_text(url, tmp_path, policy, monkeypatch):
    monkeypatch.setenv("TOLD_VAULT_KEY", KEY)
    with Memory(url, embedder="none", secrets=policy, document_part=600) as memory:
        done = memory.upload(PAPER, name="house.md", user_id="ann")
        assert "redacted" in done["warnings"][0]
        [kept] = memory.blobs(user_id="ann")["results"]
        shown = b64decode(memory.blob(kept["hash"], user_id="ann")["data"])
        assert shown == PAPER.replace(SECRET.encode(), b"[redacted: AWS access key]")
        parts = [row["memory"] for row in memory.get_all(user_id="ann")["results"]]
        assert [part[:31] for part in parts if part.startswith("# Garden")] == [
            "# Garden\n\nWater it on Fridays. "
        ]
        assert memory.upload(PAPER, name="house.md", user_id="ann")["results"][0]["event"] == "NONE"
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_a_document_with_a_secret_can_be_refused_or_kept_as_it_is(url):
    with Memory(url, embedder="none", secrets="reject") as memory:
        with pytest.raises(InvalidInput, match="contains a secret"):
            memory.upload(PAPER, name="house.md", user_id="ann")
        assert memory.blobs(user_id="ann")["results"] == []
    with Memory(url, embedder="none", secrets="keep") as memory:
        assert "unencrypted" in memory.upload(PAPER, name="house.md", user_id="ann")["warnings"][0]
        assert SECRET in memory.search("router key", user_id="ann")["results"][0]["memory"]

"""The fakes behave as the ports say, and the same on every run."""

import os
import subprocess
import sys

import pytest

from told.errors import EmbeddingError, LLMError
from told.model.scoring import cosine, quantise
from told.ports import LLM, Embedder
from told.testing import (
    FlakyEmbedder,
    HashingEmbedder,
    ManualClock,
    ScriptedLLM,
    hashing_embedder,
    seeded_mint,
)


def nearness(a: str, b: str) -> float:
    left, right = HashingEmbedder().embed([a, b])
    return cosine(quantise(left), quantise(right))


def test_a_clock_moves_only_when_it_is_moved():
    clock = ManualClock(100)
    assert [clock(), clock()] == [100, 100]
    assert clock.tick(5) == clock() == 105
    assert clock.tick(-50) == clock() == 55
    clock.now = 7
    assert clock() == 7


def test_a_seeded_mint_repeats_itself():
    one, same, other = seeded_mint(1), seeded_mint(1), seeded_mint(2)
    minted = [[mint.new_id(), mint.new_salt(), mint.new_id()] for mint in (one, same, other)]
    assert minted[0] == minted[1]
    assert not set(minted[0]) & set(minted[2])
    assert len({one.new_salt() for _ in range(100)}) == 100
    assert len(one.new_salt()) == 16


def test_a_seeded_mint_tells_the_time_of_its_clock():
    clock = ManualClock(42)
    mint = seeded_mint(1, clock)
    clock.tick(1)
    assert mint.now() == 43


def test_hashed_vectors_are_unit_vectors_of_their_dimension():
    embedder = hashing_embedder(dim=32, model="hash-32")
    assert (embedder.model, embedder.dim, embedder.local) == ("hash-32", 32, True)
    for vector in embedder.embed(["green tea", "", "...", "\u6771\u4eac", "\ud800"]):
        assert len(vector) == 32
        assert sum(value * value for value in vector) == pytest.approx(1.0)


def test_texts_that_share_words_are_nearer_than_those_that_share_none():
    assert nearness("Alice drinks green tea", "green tea for Alice") > 0.5
    assert nearness("Alice drinks green tea", "the bicycle broke down") < 0.3
    assert nearness("gardening", "garden") > nearness("gardening", "bicycle")


def printed_by(program: str, **environment: str) -> str:
    env = {**environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    ).stdout


def test_hashed_vectors_are_the_same_in_every_process():
    program = (
        "from told.testing import HashingEmbedder; print(HashingEmbedder(4).embed(['green "
        "tea'])[0])"
    )
    printed = {printed_by(program, PYTHONHASHSEED=seed) for seed in ("1", "2")}
    assert printed == {f"{HashingEmbedder(4).embed(['green tea'])[0]}\n"}


def test_a_flaky_embedder_recovers():
    embedder = FlakyEmbedder(2)
    assert (embedder.local, embedder.model, embedder.dim) == (False, "hash:64", 64)
    for _ in range(2):
        with pytest.raises(EmbeddingError):
            embedder.embed(["tea"])
    assert embedder.embed(["tea"]) == HashingEmbedder().embed(["tea"])
    assert embedder.calls == 3


def test_a_scripted_model_says_its_lines_and_remembers_the_questions():
    llm = ScriptedLLM(["one", LLMError("busy"), "two"])
    assert llm.ask("be brief", "hello", schema={"type": "string"}) == "one"
    with pytest.raises(LLMError, match="busy"):
        llm.ask("s", "again")
    assert llm.ask("s", "and again") == "two"
    with pytest.raises(LLMError, match="no reply to question 4"):
        llm.ask("s", "more")
    assert llm.asked[:2] == [("be brief", "hello"), ("s", "again")]
    assert llm.schemas[0] == {"type": "string"}


@pytest.mark.parametrize(
    ("fake", "port"),
    [(HashingEmbedder(), Embedder), (FlakyEmbedder(0), Embedder), (ScriptedLLM([]), LLM)],
)
def test_a_fake_stands_where_its_port_is_asked_for(fake, port):
    assert isinstance(fake, port)


def test_the_tools_load_without_pytest():
    assert (
        printed_by("import sys; import told.testing.fakes; print('pytest' in sys.modules)")
        == "False\n"
    )

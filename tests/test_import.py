"""`import told` is light and complete; neither it, a memory nor the demo uses the network."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ALLOWED = {"told", "platformdirs"}
"""The only third-party modules that `import told` may load."""

CLIENTS = {
    "sqlite3",
    "http.client",
    "http.server",
    "urllib.request",
    "socketserver",
    "xmlrpc",
    "ftplib",
    "smtplib",
}
"""Modules of the standard library for databases and the web."""


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Return the modules that `import told` adds to a fresh Python."""
    code = (
        "import json, sys\nbefore = set(sys.modules)\nimport "
        "told\nprint(json.dumps([*set(sys.modules) - before]))"
    )
    return set(json.loads(python(code)))


def test_import_told_loads_nothing_heavy(loaded):
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - ALLOWED
    assert foreign == set(), "import these inside the function that needs them"


def test_import_told_loads_no_client(loaded):
    assert loaded & CLIENTS == set(), "import these inside the function that needs them"


def test_import_told_starts_no_thread_and_opens_no_socket():
    code = (
        "import sys, threading\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(event) if "
        "event.startswith('socket.') else None)\n"
        "import told\n"
        "print(threading.active_count(), opened)"
    )
    assert python(code) == "1 []\n"


def test_every_public_name_exists():
    code = (
        "import told, json; print(json.dumps([name for name in told.__all__ if not "
        "hasattr(told, name)]))"
    )
    assert json.loads(python(code)) == []


def test_version_matches_the_distribution():
    code = "import importlib.metadata as m, told; print(told.__version__ == m.version('told'))"
    assert python(code) == "True\n"


def test_memory_makes_no_network_request(refusals):
    code = (
        "import told\n"
        "with told.Memory() as memory:\n"
        "    memory.add('I moved to Lisbon', user_id='alice')\n"
        "    print(len(memory.search('where?', user_id='alice')['results']))"
    )
    assert python(code) == "1\n"
    assert refusals.take() == []


@pytest.mark.slow
def test_demo_makes_no_network_request(refusals):
    told = Path(sys.executable).with_name("told")
    done = subprocess.run(
        [told, "demo"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert refusals.take() == []


PATTERNS = 45
"""Limit of told's regular expressions compiled before the first answer, of more than 250."""

COUNTING = """
import re._compiler, sys
compiled, compile_ = [], re._compiler.compile

def counted(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] in ("re", "functools", "told.runtime"):
        frame = frame.f_back
    if frame.f_globals["__name__"].startswith("told."):
        compiled.append(pattern)
    return compile_(pattern, flags)

re._compiler.compile = counted
"""


def test_plain_call_compiles_only_the_patterns_it_needs():
    code = (
        f"{COUNTING}\n"
        "from told import Memory\n"
        "with Memory('ram://', embedder='none') as memory:\n"
        "    memory.add('I moved to Lisbon', user_id='alice', infer=False)\n"
        "    assert len(memory.search('where did I move?', user_id='alice')['results']) == 1\n"
        "print(len(compiled))"
    )
    assert 0 < int(python(code)) <= PATTERNS, (
        "where neither needs it, write told.runtime.lazy_regex"
    )


WRITTEN = 2_600
"""Limit of the total length of patterns compiled by the first date question.

A pattern of the whole date lexicon would be ten times as long and take 20 ms.
"""


@pytest.mark.parametrize(
    "question",
    [
        "What did I do last Tuesday?",
        "What happened in March 2024?",
        "What did I eat 3 days ago?",
        "And on 2024-03-05?",
        "What did I do between March and May 2023?",
        "Who called two weeks before 9 June 2023?",
        "¿Qué hice la semana pasada?",
        "Was habe ich gestern Abend gemacht?",
        "我上周做了什么",
    ],
)
def test_date_question_does_not_compile_the_full_date_pattern(
    question: str,
) -> None:
    code = (
        f"{COUNTING}\n"
        "from told import Memory\n"
        "with Memory('ram://', embedder='none') as memory:\n"
        "    memory.add('I moved to Lisbon', user_id='alice', infer=False)\n"
        "    memory.search('where did I move?', user_id='alice')\n"
        "    compiled.clear()\n"
        f"    memory.search({question!r}, user_id='alice')\n"
        "print(sum(map(len, compiled)))"
    )
    assert 0 < int(python(code)) <= WRITTEN, "let told.text.date_lexicon look the words up"

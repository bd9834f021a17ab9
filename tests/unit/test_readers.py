"""Who reads images: tesseract where it is installed, any function or object, or nobody."""

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
def test_tesseract_reads_the_words_in_a_picture():
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
def test_a_picture_without_words_has_none():
    assert open_tesseract().read(blank(200, 100), "image/png") == ""


@tesseract
def test_what_tesseract_cannot_read_is_an_error_that_says_so():
    for data in (b"no image", written("HELLO")[:60]):
        with pytest.raises(MediaError, match="tesseract failed"):
            open_tesseract().read(data, "image/png")
    with pytest.raises(MediaError, match="tesseract failed"):
        open_tesseract("xyz").read(written("HELLO"), "image/png")


@tesseract
def test_tesseract_is_ended_when_it_is_late():
    with pytest.raises(MediaError, match="longer than"):
        open_tesseract(timeout=0.001).read(written("HELLO"), "image/png")


def test_a_program_that_is_not_there_is_missing(monkeypatch, tmp_path):
    with pytest.raises(ReaderMissing, match="apt install"):
        TesseractReader(str(tmp_path / "tesseract")).read(b"", "image/png")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReaderMissing, match="apt install"):
        open_tesseract()
    assert open_reader("auto") is None


@pytest.mark.parametrize("languages", ["eng;rm -rf", "-l", "eng+", "../x", ""])
def test_languages_are_names_and_nothing_else(languages):
    if languages:
        with pytest.raises(ConfigError):
            open_tesseract(languages)


def test_anything_that_reads_is_a_reader():
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


def test_a_model_that_sees_is_a_reader_and_joins_what_is_chosen_by_itself(monkeypatch, tmp_path):
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
def test_what_is_no_reader_is_refused(choice):
    with pytest.raises(ConfigError):
        open_reader(choice)

"""Images in messages: accepted forms, type detection, and the turns they belong to."""

import base64
from pathlib import Path

import pytest

from papers import blank, bmp, gif, jpeg, png, webp
from tables import each_row
from told.errors import InvalidInput, MediaError, TooLarge, Unsupported
from told.flow import arun, run
from told.ids import hash_content
from told.ingest.fetch import FetchedContent
from told.ingest.image_parts import ImageHeader, is_image, parse_image, read_image_header
from told.ingest.images import ImageContext, VisionReader, read_images
from told.ingest.messages import get_own_words, parse_messages
from told.model.entry import Blob
from told.settings import Settings

PNG = blank()
SETTINGS = Settings()
DATA_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def parse(messages, settings=SETTINGS):
    return parse_messages(messages, metadata=None, timestamp=None, source=None, settings=settings)


def as_url(data):
    """Return an image part with arbitrary bytes as a data URL."""
    return {"type": "image", "image": f"data:image/png;base64,{base64.b64encode(data).decode()}"}


def make_context(*readers, settings=SETTINGS, fetch=None):
    return ImageContext(readers, settings, fetch)


class FixedReader:
    """A reader that always returns the same text."""

    model = "reads"

    def __init__(self, words="HELLO"):
        self.words, self.shown = words, []

    def read(self, image, media_type):
        self.shown.append((image, media_type))
        return self.words


class FailingReader:
    model = "breaks"

    def read(self, image, media_type):
        raise RuntimeError("the reader is on fire")


# Headers


@each_row(
    ("data", "kind"),
    [
        (blank(640, 480), "png"),
        (jpeg(640, 480), "jpeg"),
        (gif(640, 480), "gif"),
        (bmp(640, 480), "bmp"),
        (bmp(640, -480), "bmp"),
        *((webp(640, 480, sort), "webp") for sort in (b"VP8X", b"VP8L", b"VP8 ")),
    ],
    ids=[
        "png",
        "jpeg",
        "gif",
        "bmp",
        "bmp from the top",
        "webp extended",
        "webp lossless",
        "webp lossy",
    ],
)
def test_the_image_type_is_read_from_the_header(data, kind):
    assert read_image_header(data) == ImageHeader(f"image/{kind}", 640, 480)
    assert str(read_image_header(data)) == f"{kind} 640x480"


@pytest.mark.parametrize("data", [blank(), jpeg(3, 4), gif(3, 4), bmp(3, 4), webp(3, 4)])
def test_a_truncated_image_has_either_no_header_or_the_right_one(data):
    for end in range(30):
        found = read_image_header(data[:end])
        assert found is None or found == read_image_header(data)


@each_row(
    "data", [b"", b"hello", b"<svg/>", b"%PDF-1.4", b"\xff\xd8\xff", b"RIFF1234WAVEfmt ", gif(0, 5)]
)
def test_non_image_bytes_have_no_header(data):
    assert read_image_header(data) is None


# Accepted forms


@each_row(
    "part",
    [
        {"type": "image_url", "image_url": {"url": DATA_URL}},
        {"type": "image_url", "image_url": DATA_URL},
        {"type": "input_image", "image_url": DATA_URL},
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": "image/png",
                "data": DATA_URL.partition(",")[2],
            },
        },
        {"type": "image", "data": DATA_URL.partition(",")[2], "mimeType": "image/png"},
        {"type": "image", "image": PNG},
        {"type": "image", "source": {"type": "base64", "data": DATA_URL}},
        PNG,
        bytearray(PNG),
        memoryview(PNG),
    ],
)
def test_every_form_of_an_image_gives_the_same_bytes(part):
    assert is_image(part)
    assert parse_image(part, 1, limit=10**6).data == PNG


@pytest.mark.parametrize(
    "url",
    [
        DATA_URL.rstrip("="),
        DATA_URL.replace("+", "-").replace("/", "_").replace("image_png", "image/png"),
        DATA_URL.replace("data:image/png", "DATA:IMAGE/PNG"),
        DATA_URL.replace("image/png", ""),
        DATA_URL.replace(";base64", ";name=a.png;base64"),
    ],
)
def test_a_sloppy_data_url_is_accepted(url):
    assert parse_image({"type": "image_url", "image_url": url}, 1, limit=10**6).data == PNG


def test_a_percent_encoded_data_url_is_read():
    url = "data:image/png," + "".join(f"%{byte:02x}" for byte in PNG)
    assert parse_image({"type": "image", "image": url}, 1, limit=10**6).data == PNG


@each_row(
    "where",
    ["/etc/passwd", "file:///etc/passwd", "ftp://x.org/a.png", "picture.png", "", 7, None, {}],
)
def test_a_text_is_never_read_as_a_local_path(where):
    with pytest.raises(InvalidInput):
        parse_image({"type": "image_url", "image_url": {"url": where}}, 1, limit=100)


def test_paths_and_urls_are_told_apart_by_type():
    assert parse_image(Path("a.png"), 1, limit=1).path == Path("a.png")
    part = {"type": "image", "source": {"type": "url", "url": "https://x.org/a"}}
    assert parse_image(part, 1, limit=1).url == "https://x.org/a"


def test_oversized_data_is_not_decoded():
    huge = "data:image/png;base64," + "A" * 4000
    assert (
        "the limit is 1,000" in parse_image({"type": "image", "image": huge}, 1, limit=1000).problem
    )
    assert parse_image(PNG + bytes(1001), 1, limit=1000).data is None


@pytest.mark.parametrize("data", [b"", b"x", b"tea", bytearray(b"x"), memoryview(b"text")])
def test_bytes_that_are_not_an_image_raise_an_error(data):
    with pytest.raises(InvalidInput, match="decode"):
        parse_image(data, 1, limit=1000)


def test_invalid_base64_is_reported_without_an_exception():
    assert (
        "base64"
        in parse_image(
            {"type": "image", "image": "data:image/png;base64,!!!!"}, 1, limit=1000
        ).problem
    )


# Messages


def test_text_and_images_of_a_message_are_separated():
    found = parse(
        [
            {
                "role": "user",
                "content": ["Look:", {"type": "image_url", "image_url": DATA_URL}, PNG, "nice?"],
            }
        ]
    )
    [turn] = found.turns
    assert [picture.number for picture in turn.images] == [1, 2]
    assert turn.evidence.content == "Look:\nnice?\n[image #1]\n[image #2]"
    assert get_own_words(turn.evidence) == "Look:\nnice?"


def test_a_message_with_only_an_image_is_not_empty():
    found = parse([{"role": "user", "content": PNG}, {"role": "user", "content": ""}])
    assert [turn.evidence.content for turn in found.turns] == ["[image #1]"]
    assert [row["reason"] for row in found.skipped] == ["empty message"]


@pytest.mark.parametrize(
    "messages", [PNG, [PNG], {"type": "image_url", "image_url": DATA_URL}, {"content": PNG}]
)
def test_an_image_can_be_passed_as_a_message(messages):
    assert [turn.evidence.content for turn in parse(messages).turns] == ["[image #1]"]


def test_a_document_turn_keeps_its_source_type():
    [turn] = parse([{"role": "document", "content": "The manual says so."}]).turns
    assert (turn.evidence.role, turn.evidence.sort) == ("document", "document")


def test_an_unsupported_part_is_rejected_with_a_hint():
    with pytest.raises(Unsupported, match="upload"):
        parse([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}])


def test_too_many_images_are_rejected():
    with pytest.raises(TooLarge, match="2 images"):
        parse([PNG, PNG], Settings(images_limit=1))


# Reading


def test_image_text_is_appended_to_the_turn_and_its_bytes_stored_as_a_blob():
    reader = FixedReader("HELLO\nWORLD")
    found = run(read_images(parse([{"content": ["See", PNG]}]), make_context(reader)))
    [turn] = found.turns
    assert turn.evidence.content == "See\n[OCR text from image #1]\nHELLO\nWORLD"
    assert get_own_words(turn.evidence) == "See"
    assert found.blobs == (Blob.from_bytes(PNG, "image/png"),)
    assert turn.evidence.meta["blobs"] == [hash_content(PNG)]
    assert reader.shown == [(PNG, "image/png")]
    assert not found.warnings


def test_the_reader_gets_the_detected_type_not_the_declared_one():
    reader = FixedReader()
    source = {"type": "base64", "media_type": "image/jpeg", "data": DATA_URL.partition(",")[2]}
    run(
        read_images(parse({"content": [{"type": "image", "source": source}]}), make_context(reader))
    )
    assert reader.shown[0][1] == "image/png"


def test_a_vision_model_description_has_its_own_heading():
    class Model:
        model = "eyes"

        def see(self, image, media_type, prompt):
            assert "never see it" in prompt
            return "A cat on a chair."

    found = run(read_images(parse(PNG), make_context(FixedReader("MEOW"), VisionReader(Model()))))
    said_of = "[OCR text from image #1]\nMEOW\n[Description of image #1]\nA cat on a chair."
    assert found.turns[0].evidence.content == said_of


@pytest.mark.anyio
async def test_an_async_vision_model_is_supported():
    class Model:
        model = "eyes"

        async def see(self, image, media_type, prompt):
            return "A dog."

    found = await arun(read_images(parse(PNG), make_context(VisionReader(Model()))))
    assert found.turns[0].evidence.content == "[Description of image #1]\nA dog."
    assert run(read_images(parse(PNG), make_context(VisionReader(Model())))).turns == found.turns


@pytest.fixture
def anyio_backend():
    return "asyncio"


def test_without_a_reader_the_turn_is_kept_with_a_placeholder_and_a_warning():
    found = run(read_images(parse({"content": ["See", blank(640, 480)]}), make_context()))
    assert found.turns[0].evidence.content == "See\n[image #1: png 640x480]"
    assert found.blobs
    assert "install tesseract" in found.warnings[0]


def test_an_image_without_text_gives_a_placeholder_and_no_warning():
    found = run(read_images(parse(PNG), make_context(FixedReader("  \n"))))
    assert found.turns[0].evidence.content == "[image #1: png 64x48]"
    assert found.warnings == ()


@pytest.mark.parametrize("reader", [FailingReader(), FixedReader(None), FixedReader(b"bytes")])
def test_a_failing_reader_only_gives_a_warning(reader):
    found = run(read_images(parse({"content": ["See", PNG]}), make_context(reader)))
    assert found.turns[0].evidence.content == "See\n[image #1: png 64x48]"
    assert found.blobs
    assert reader.model in found.warnings[0]


def test_reader_output_is_cleaned_and_truncated():
    found = run(read_images(parse(PNG), make_context(FixedReader("a\0b\ud800c\x07d"))))
    assert found.turns[0].evidence.content.endswith("\nabcd")
    found = run(
        read_images(
            parse({"content": ["x" * 90, PNG]}),
            make_context(FixedReader("y" * 500), settings=Settings(text_limit=200)),
        )
    )
    assert len(found.turns[0].evidence.content) == 200


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (png([b"\0"], 60_000, 60_000), "3,600,000,000 pixels"),
        (gif(65_535, 65_535), "pixels"),
        (as_url(b"not an image at all"), "not a PNG"),
        (as_url(b"\x89PNG\r\n\x1a\n" + bytes(3)), "not a PNG"),
    ],
)
def test_a_decompression_bomb_or_fake_image_never_reaches_the_reader(data, why):
    reader = FixedReader()
    found = run(read_images(parse({"content": ["See", data]}), make_context(reader)))
    assert found.turns[0].evidence.content == "See\n[image #1]"
    assert why in found.warnings[0]
    assert found.blobs == ()
    assert reader.shown == []


def test_a_file_is_read_only_if_it_exists_and_is_within_the_limit(tmp_path):
    good, large = tmp_path / "a.png", tmp_path / "b.png"
    good.write_bytes(PNG)
    large.write_bytes(PNG + bytes(2000))
    found = run(
        read_images(
            parse([good, large]), make_context(FixedReader(), settings=Settings(image_limit=1000))
        )
    )
    assert [turn.evidence.content for turn in found.turns] == [
        "[OCR text from image #1]\nHELLO",
        "[image #1]",
    ]
    assert "the limit is 1,000" in found.warnings[0]
    for missing in (tmp_path, tmp_path / "none.png"):
        with pytest.raises(InvalidInput, match="no file"):
            run(read_images(parse([missing]), make_context(FixedReader())))


def test_a_url_is_fetched_only_when_allowed():
    turn = parse(
        {"content": ["See", {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}]}
    )
    off = run(read_images(turn, make_context(FixedReader())))
    assert off.turns[0].evidence.content == "See\n[image #1: https://x.org/a.png]"
    assert "fetch_urls" in off.warnings[0]
    on = run(
        read_images(
            turn,
            make_context(
                FixedReader(), fetch=lambda url, accept: FetchedContent(PNG, "image/png", url)
            ),
        )
    )
    assert on.turns[0].evidence.content == "See\n[OCR text from image #1]\nHELLO"

    def refuse(url, accept):
        raise MediaError("it is not on the public internet")

    failed = run(read_images(turn, make_context(FixedReader(), fetch=refuse)))
    assert "public internet" in failed.warnings[0]


def test_different_images_of_one_size_are_different_evidence():
    first, second = (
        run(read_images(parse(blank(shade=shade)), make_context())).turns[0].evidence
        for shade in (0, 255)
    )
    assert first.content == second.content
    assert first.digest() != second.digest()


def test_turns_without_images_are_unchanged():
    plain = parse(["hello", "world"])
    assert run(read_images(plain, make_context(FailingReader()))) is plain

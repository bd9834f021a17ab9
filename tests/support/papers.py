"""Images and documents built by hand, so that no test needs a library to create them."""

import zipfile
import zlib
from io import BytesIO
from struct import pack

LETTERS = {
    "A": "01110 10001 10001 11111 10001 10001 10001",
    "B": "11110 10001 10001 11110 10001 10001 11110",
    "C": "01110 10001 10000 10000 10000 10001 01110",
    "D": "11110 10001 10001 10001 10001 10001 11110",
    "E": "11111 10000 10000 11110 10000 10000 11111",
    "H": "10001 10001 10001 11111 10001 10001 10001",
    "I": "01110 00100 00100 00100 00100 00100 01110",
    "L": "10000 10000 10000 10000 10000 10000 11111",
    "O": "01110 10001 10001 10001 10001 10001 01110",
    "R": "11110 10001 10001 11110 10100 10010 10001",
    "T": "11111 00100 00100 00100 00100 00100 00100",
    "U": "10001 10001 10001 10001 10001 10001 01110",
    "W": "10001 10001 10001 10101 10101 11011 10001",
    " ": "00000 00000 00000 00000 00000 00000 00000",
}


def chunk(name: bytes, data: bytes) -> bytes:
    """Build one chunk of a PNG."""
    return pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data))


def png(rows: list[bytes], width: int | None = None, height: int | None = None) -> bytes:
    """Build a grey PNG of these rows; it may claim a false width and height."""
    head = pack(">IIBBBBB", width or len(rows[0]), height or len(rows), 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def blank(width: int = 64, height: int = 48, shade: int = 255) -> bytes:
    """Build a PNG of one shade."""
    return png([bytes([shade]) * width] * height)


def written(text: str, scale: int = 8) -> bytes:
    """Build a PNG with black text on white."""
    margin = 6 * scale
    lines = text.split("\n")
    wide = max(map(len, lines)) * 6 * scale + 2 * margin
    rows = [b"\xff" * wide] * margin
    for line in lines:
        for dots in zip(*(LETTERS[letter].split() for letter in line), strict=True):
            row = "".join(cell + "0" for cell in dots)
            ink = b"".join((b"\0" if dot == "1" else b"\xff") * scale for dot in row)
            rows += [(b"\xff" * margin + ink).ljust(wide, b"\xff")] * scale
        rows += [b"\xff" * wide] * (5 * scale)
    return png(rows + [b"\xff" * wide] * margin)


def jpeg(width: int, height: int) -> bytes:
    """Build the head of a JPEG, up to its size."""
    app = b"\xff\xe0" + pack(">H", 16) + b"JFIF\0\1\1\0\0\1\0\1\0\0"
    comment = (
        b"\xff\xfe" + pack(">H", 2 + 300) + b"\xff\xc0" * 150
    )  # a comment that looks like a frame
    frame = b"\xff\xc2" + pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + app + comment + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    """Build the head of a GIF."""
    return b"GIF89a" + pack("<HH", width, height) + b"\0\0\0;"


def bmp(width: int, height: int) -> bytes:
    """Build the head of a BMP."""
    return (
        b"BM" + pack("<IHHI", 54, 0, 0, 54) + pack("<IiiHH", 40, width, height, 1, 24) + bytes(24)
    )


def webp(width: int, height: int, sort: bytes = b"VP8X") -> bytes:
    """Build the head of a WebP of one of its three sorts."""
    if sort == b"VP8X":
        body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif sort == b"VP8L":
        body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(5)
    else:
        body = b"\0\0\0\x9d\x01\x2a" + pack("<HH", width, height) + bytes(10)
    return b"RIFF" + pack("<I", 12 + len(body)) + b"WEBP" + sort + pack("<I", len(body)) + body


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def paragraph(text: str, style: str = "") -> str:
    """Build a paragraph of a Word document."""
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{named}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def docx(body: str | bytes, title: str = "", **members: bytes) -> bytes:
    """Build a Word document with this body, or with a complete member."""
    if isinstance(body, str):
        body = (
            '<?xml version="1.0"?><w:document '
            f'xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
        ).encode()
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", body)
        if title:
            core = (
                f'<p xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></p>'
            )
            archive.writestr("docProps/core.xml", core)
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def pdf(*pages: str, title: str = "") -> bytes:
    """Build a PDF with one line of text on each page."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for page in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET".encode("latin-1")
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "  # noqa: E501
            b"/Contents %d 0 R >>" % (len(objects) + 2)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    objects.append(f"<< /Title ({title}) >>".encode("latin-1"))
    return _numbered(objects, len(objects))


def _numbered(objects: list[bytes], info: int) -> bytes:
    """Build a PDF of these objects with its cross-reference table."""
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        count,
        info,
        len(out),
    )
    return out + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (count, table, trailer)

"""PDF: the text of its pages, found by pypdf in a process of its own with little memory and little time."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import as_file, files
from importlib.util import find_spec
from typing import Any, Final

from told.core.errors import MediaError, ReaderMissing
from told.core.text import snippet
from told.write.documents.document import Pages, Section

INSTALL: Final = 'Install the extra: pip install "told[documents]".'
NO_TEXT: Final = "The PDF has no text in it; it may hold scanned pages."


def pdf(data: bytes, limit: int, timeout: float = 60.0) -> Pages:
    """The pages of a PDF, each a section; whatever the file does to its reader, it does to another process."""
    if find_spec("pypdf") is None:
        raise ReaderMissing("PDFs are read with pypdf, which is not installed.", hint=INSTALL)
    found = _asked(data, limit, timeout)
    if "error" in found:
        raise MediaError(f"The PDF cannot be read: {snippet(str(found['error']), 200).rstrip('.')}.",
                         hint="Save it again, without a password.")  # fmt: skip
    text, sections = "", []
    for number, page in enumerate(found["pages"], 1):
        if page.strip():
            start = len(text)
            text += f"{page.strip()}\n\n"
            sections.append(Section(f"page {number}", start, len(text)))
    return Pages(text, found["title"], tuple(sections), () if sections else (NO_TEXT,))


def _asked(data: bytes, limit: int, timeout: float) -> dict[str, Any]:
    """What the other process says."""
    with as_file(files("told.write.documents").joinpath("pdf_child.py")) as program:
        command = [sys.executable, "-P", str(program), str(limit), str(round(timeout))]
        try:
            done = subprocess.run(command, input=data, capture_output=True, timeout=timeout, check=False)  # noqa: S603
        except subprocess.TimeoutExpired as error:
            raise MediaError(f"Reading the PDF took longer than {timeout:g} seconds.") from error
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise MediaError("The PDF broke its reader; it may be damaged, or made to do that.") from error
    return found

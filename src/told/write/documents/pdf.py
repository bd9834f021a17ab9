"""PDF: the text of its pages, found by pypdf in a process of its own with little memory and little time."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import as_file, files
from importlib.util import find_spec
from typing import Any, Final

from told.core.errors import MediaError, ReaderMissing
from told.core.text import make_snippet
from told.write.documents.document import ParsedDocument, Section

INSTALL_HINT: Final = 'Install the extra: pip install "told[documents]".'
NO_TEXT_WARNING: Final = "The PDF has no text in it; it may hold scanned pages."


def read_pdf(data: bytes, limit: int, timeout: float = 60.0) -> ParsedDocument:
    """The pages of a PDF, each a section; whatever the file does to its reader, it does to another process."""
    if find_spec("pypdf") is None:
        raise ReaderMissing("PDFs are read with pypdf, which is not installed.", hint=INSTALL_HINT)
    result = _run_child(data, limit, timeout)
    if "error" in result:
        raise MediaError(
            f"The PDF cannot be read: {make_snippet(str(result['error']), 200).rstrip('.')}.",
            hint="Save it again, without a password.",
        )
    text, sections = "", []
    for number, page in enumerate(result["pages"], 1):
        if page.strip():
            start = len(text)
            text += f"{page.strip()}\n\n"
            sections.append(Section(f"page {number}", start, len(text)))
    return ParsedDocument(
        text, result["title"], tuple(sections), () if sections else (NO_TEXT_WARNING,)
    )


def _run_child(data: bytes, limit: int, timeout: float) -> dict[str, Any]:
    """What the other process says."""
    with as_file(files("told.write.documents").joinpath("pdf_child.py")) as program:
        command = [sys.executable, "-P", str(program), str(limit), str(round(timeout))]
        try:
            process = subprocess.run(
                command, input=data, capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise MediaError(f"Reading the PDF took longer than {timeout:g} seconds.") from error
    try:
        result: dict[str, Any] = json.loads(process.stdout)
    except ValueError as error:
        raise MediaError(
            "The PDF broke its reader; it may be damaged, or made to do that."
        ) from error
    return result

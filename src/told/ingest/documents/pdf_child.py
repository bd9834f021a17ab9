"""Read a PDF from standard input and print its pages as JSON; imports nothing from told."""

from __future__ import annotations

import json
import logging
import sys
from io import BytesIO

MEMORY_LIMIT = 2**30
MAX_PAGES = 20_000


def limit_resources(seconds: int) -> None:
    """Limit the memory and CPU time of this process, where supported."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 1))


def extract_pages(data: bytes, limit: int) -> dict[str, object]:
    """Return the title and page texts, up to `limit` characters."""
    from pypdf import PdfReader

    logging.disable()
    reader = PdfReader(BytesIO(data))
    title = reader.metadata.title if reader.metadata else None
    texts: list[str] = []
    size = 0
    for page in reader.pages[:MAX_PAGES]:
        texts.append(page.extract_text())
        size += len(texts[-1])
        if size > limit:
            break
    return {"title": title or "", "pages": texts}


def main(limit: int, seconds: int) -> dict[str, object]:
    """Return the pages, or an error: pypdf raises its own errors and many of Python's."""
    from pypdf.errors import PyPdfError

    data = sys.stdin.buffer.read()
    limit_resources(seconds)
    try:
        return extract_pages(data, limit)
    except (
        PyPdfError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        OSError,
        RuntimeError,
        AssertionError,
        MemoryError,
    ) as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))

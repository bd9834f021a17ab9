"""OCR with the `tesseract` program, in a child process that is killed on timeout.

An image that crashes the decoder crashes only that process.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import Final

from told.errors import ConfigError, MediaError, ReaderMissing
from told.runtime import lazy_regex
from told.text.tokens import format_value, make_snippet

PROGRAM: Final = "tesseract"
DEFAULT_LANGUAGES: Final = "eng"
INSTALL_HINT: Final = (
    "Install it, such as by `apt install tesseract-ocr` or `brew install tesseract`."
)
_LANGUAGES_PATTERN: Final = lazy_regex(r"\w+(?:\+\w+)*", re.ASCII)
_ENVIRONMENT_VARIABLES: Final = ("PATH", "TESSDATA_PREFIX", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class TesseractReader:
    """Reads the text of an image in the configured languages."""

    program: str
    languages: str = DEFAULT_LANGUAGES
    timeout: float = 60.0

    @property
    def model(self) -> str:
        """Return the reader's name and languages."""
        return f"{PROGRAM}:{self.languages}"

    def read(self, image: bytes, media_type: str) -> str:  # noqa: ARG002
        """Return the text of an image line by line, or an empty string."""
        import subprocess

        try:
            process = subprocess.run(  # noqa: S603
                [self.program, "stdin", "stdout", "-l", self.languages],
                input=image,
                capture_output=True,
                timeout=self.timeout,
                check=False,
                env=_build_environment(),
            )
        except subprocess.TimeoutExpired as error:
            raise MediaError(f"tesseract took longer than {self.timeout:g} seconds.") from error
        except OSError as error:
            raise ReaderMissing(
                f"tesseract cannot be started: {error.strerror}.", hint=INSTALL_HINT
            ) from error
        if process.returncode:
            raise MediaError(
                f"tesseract failed: {make_snippet(_get_last_line(process.stderr), 200)}."
            )
        lines = (line.rstrip() for line in process.stdout.decode("utf-8", "replace").splitlines())
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n\f ")


def open_reader(languages: str | None = None, *, timeout: float = 60.0) -> TesseractReader:
    """Open a reader for languages such as `deu+eng`, if tesseract is installed."""
    if languages is not None and not _LANGUAGES_PATTERN.fullmatch(languages):
        raise ConfigError(
            f"{format_value(languages)} is not a language list.",
            hint="Such as tesseract:eng or tesseract:deu+eng.",
        )
    program = shutil.which(PROGRAM)
    if program is None:
        raise ReaderMissing("tesseract is not installed.", hint=INSTALL_HINT)
    return TesseractReader(program, languages or DEFAULT_LANGUAGES, timeout)


def _build_environment() -> dict[str, str]:
    """Build a minimal environment with one thread per process."""
    return {name: os.environ[name] for name in _ENVIRONMENT_VARIABLES if name in os.environ} | {
        "OMP_THREAD_LIMIT": "1",
        "LC_ALL": "C",
    }


def _get_last_line(stderr: bytes) -> str:
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip().rstrip(".") if lines else "no message"

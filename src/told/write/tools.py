"""A tool's output, kept whole and handed back short enough for an agent to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from told.core.blob import NAMED, Blob
from told.core.entry import Evidence
from told.core.errors import TooLarge
from told.core.query import Receipt
from told.core.scope import Scope
from told.flow import Flow
from told.write import gate, path
from told.write.desk import Desk
from told.write.messages import Said, Turn
from told.write.mind import Ask
from told.write.toolresult import compress, is_large

PLAIN_TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class Output:
    """What an agent is shown of a tool's output, and where the whole of it is."""

    text: str
    receipt: Receipt
    blob: str | None = None
    properties: dict[str, Any] | None = None


def keep(desk: Desk, scope: Scope, text: str, tool: str | None, source: str | None) -> Flow[Output]:
    """Keep a tool's output: a short one as it is, a long one shortened, with the original as a blob beside it."""
    if len(text) > desk.settings.document_limit:
        raise TooLarge(f"The output has {len(text)} characters; the limit is {desk.settings.document_limit}.")
    safe, warnings = gate.screen(text, desk.settings)
    if not is_large(safe, desk.settings):
        said = Said((Turn(Evidence(safe, "tool", tool, source=source), {}),), (), warnings=warnings)
        return Output(safe, (yield from _added(desk, scope, said)))
    blob = Blob.of(safe.encode(), PLAIN_TEXT)
    short = compress(safe, blob.hash, keep=desk.settings.tool_keep)
    known = dict(short.properties)
    evidence = Evidence(short.l0, "tool", tool, source=source, meta={NAMED: [blob.hash]})
    said = Said((Turn(evidence, {"overview": short.l1}),), (), blobs=(blob,), warnings=warnings)
    return Output(short.l0, (yield from _added(desk, scope, said)), blob.hash, known)


def _added(desk: Desk, scope: Scope, said: Said) -> Flow[Receipt]:
    wanted = path.order(desk, scope, said, expires=None, kind=path.PLAIN, ask=Ask())
    return (yield from path.add(desk, wanted, None))

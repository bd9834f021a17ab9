"""A tool's output, kept whole and handed back short enough for an agent to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from told.core.blob import BLOBS_KEY, Blob
from told.core.entry import Evidence
from told.core.errors import TooLarge
from told.core.query import Receipt
from told.core.scope import Scope
from told.flow import Flow
from told.write import gate, path
from told.write.desk import WriteContext
from told.write.messages import InputTurn, ParsedMessages
from told.write.mind import ExtractionOptions
from told.write.toolresult import compress_output, is_large

PLAIN_TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What an agent is shown of a tool's output, and where the whole of it is."""

    text: str
    receipt: Receipt
    blob: str | None = None
    properties: dict[str, Any] | None = None


def keep_output(
    ctx: WriteContext, scope: Scope, text: str, tool: str | None, source: str | None
) -> Flow[ToolOutput]:
    """Keep a tool's output: a short one as it is, a long one shortened, with the original as a blob beside it."""
    if len(text) > ctx.settings.document_limit:
        raise TooLarge(
            f"The output has {len(text)} characters; the limit is {ctx.settings.document_limit}."
        )
    screened, warnings = gate.screen_text(text, ctx.settings)
    if not is_large(screened, ctx.settings):
        parsed = ParsedMessages(
            (InputTurn(Evidence(screened, "tool", tool, source=source), {}),), (), warnings=warnings
        )
        return ToolOutput(screened, (yield from _add_evidence(ctx, scope, parsed)))
    blob = Blob.from_bytes(screened.encode(), PLAIN_TEXT)
    compressed = compress_output(screened, blob.hash, keep=ctx.settings.tool_keep)
    properties = dict(compressed.properties)
    evidence = Evidence(
        compressed.shown_text, "tool", tool, source=source, meta={BLOBS_KEY: [blob.hash]}
    )
    parsed = ParsedMessages(
        (InputTurn(evidence, {"overview": compressed.overview}),),
        (),
        blobs=(blob,),
        warnings=warnings,
    )
    return ToolOutput(
        compressed.shown_text, (yield from _add_evidence(ctx, scope, parsed)), blob.hash, properties
    )


def _add_evidence(ctx: WriteContext, scope: Scope, parsed: ParsedMessages) -> Flow[Receipt]:
    request = path.build_request(
        ctx, scope, parsed, expires=None, kind=path.PLAIN_KIND, options=ExtractionOptions()
    )
    return (yield from path.write_memories(ctx, request, None))

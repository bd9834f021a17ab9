"""Render hits into a context that never exceeds its token budget.

Pinned lines are packed first, up to their share, then recent turns, then recalled ones, each
greedily in the order given. Items that do not fit are tried in their shorter forms. Lines are
priced in one tokenizer call; the final text is counted again.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect, insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from itertools import count
from typing import Final, Literal, TypeAlias

from told.errors import ConfigError, InvalidInput
from told.ids import sha256
from told.model.beliefs import EXTERNAL_SOURCES, trust_of_source
from told.model.fact import Fact
from told.model.query import Hit
from told.model.scope import Caller
from told.runtime import lazy_regex
from told.text.dates import to_zone
from told.text.echo import CONTEXT_NOTE

Format = Literal["text", "markdown", "xml", "messages"]
FORMATS: Final[tuple[Format, ...]] = ("text", "markdown", "xml", "messages")
SECTIONS: Final = ("pinned", "recalled", "recent")
"""Sections in print order: stable text first, so that prompt caches hit."""

MESSAGE_TOKENS: Final = 4
"""Tokens a chat message costs besides its content."""

DatedLine: TypeAlias = tuple[str, str]
"""The year heading a line belongs under (empty if lines carry their own), and the line."""


@dataclass(frozen=True, slots=True)
class RenderStyle:
    """An output format: its lines, section titles, and the frame around each block."""

    format_line: Callable[[Fact, datetime, str], str]
    opening: str
    closing: str
    titles: Mapping[str, str]
    section_ends: Mapping[str, str] = field(default_factory=dict)
    shows_years: bool = False
    omits_first_title: bool = False
    """Leave out the title of recalled lines if they come first."""
    blocks: tuple[tuple[str, ...], ...] = (SECTIONS,)
    overhead: int = 0

    def get_title(self, section: str, *, is_first: bool) -> str:
        """Return the title of a section, if any."""
        return (
            ""
            if self.omits_first_title and is_first and section == "recalled"
            else self.titles.get(section, "")
        )

    def render_block(self, sections: Mapping[str, Sequence[DatedLine]]) -> str:
        """Render sections in a frame whose mark does not occur in them."""
        lines: list[str] = []
        for section, rows in sections.items():
            title = self.get_title(section, is_first=not lines)
            lines += (
                line
                for line in (title, *_insert_years(rows), self.section_ends.get(section, ""))
                if line
            )
        body = "\n".join(lines)
        first, last = self.render_frame(body)
        return "\n".join((first, body, last) if last else (first, body))

    def render_frame(self, body: str = "") -> tuple[str, str]:
        """Return the opening and closing of a frame around a body."""
        mark = _choose_mark(body)
        return self.opening.format(mark=mark), self.closing.format(mark=mark)


def _insert_years(rows: Sequence[DatedLine]) -> Iterator[str]:
    """Iterate over the lines, inserting a year heading wherever it changes."""
    previous_year = ""
    for year, line in rows:
        if year != previous_year:
            yield year
        yield line
        previous_year = year


# Frame

_SHORT_MARKS: Final = 256


def _choose_mark(body: str) -> str:
    """Return the first mark that does not occur in the body.

    Marks come in a fixed order so that two contexts begin alike.
    """
    normalised = unicodedata.normalize("NFKC", body).lower()
    return next(mark for mark in _iter_marks() if mark not in normalised)


def _iter_marks() -> Iterator[str]:
    for number in count():
        yield sha256(b"told fence", str(number).encode()).hex()[: 4 if number < _SHORT_MARKS else 8]


# Sanitising

_INVISIBLE: Final = (
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
# Joiners shape emoji and several scripts; after an ASCII character they only hide text.
_INVISIBLE_RUN: Final = lazy_regex(rf"(?<=[!-~])[\u200c\u200d{_INVISIBLE}]+|[{_INVISIBLE}]+")
_CONTROL: Final = lazy_regex(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE: Final = lazy_regex(r"[\ud800-\udfff]")


def flatten_text(text: str) -> str:
    """Return the text on one line, without control or invisible characters."""
    folded = " ".join(text.split())
    if folded.isprintable():
        return folded
    visible = _SURROGATE.sub("\ufffd", _INVISIBLE_RUN.sub("", folded))
    return " ".join(_CONTROL.sub(" ", visible).split())


def format_speaker(fact: Fact) -> str:
    """Return the speaker's label; anyone but a user is labelled by role, whatever their name."""
    names = (fact.actor, fact.role) if fact.role in (None, "user") else (fact.role, fact.actor)
    for name in (*names, fact.author):
        if name and (label := flatten_text(name)):
            return label
    return "unknown"


HUMAN_AUTHORS: Final = ("user", Caller().name)
"""Author names of humans; any other author is a model."""


def get_trust_label(fact: Fact) -> str:
    """Return the origin of a text: "model", "reported" or "stated"."""
    if fact.role == "assistant" or fact.author not in HUMAN_AUTHORS:
        return "model"
    return "reported" if fact.source or trust_of_source(fact) in EXTERNAL_SOURCES else "stated"


_BRACKETS_TO_PARENS: Final = str.maketrans("[]", "()")


def _format_origin(fact: Fact) -> str:
    source = flatten_text(fact.source) if fact.source else ""
    return f" [from {source.translate(_BRACKETS_TO_PARENS)}]" if source else ""


_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)


def _format_day(day: datetime) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


# Formats


def _format_plain_line(fact: Fact, day: datetime, text: str) -> str:
    return f"{_format_day(day)} {format_speaker(fact)}: {text}{_format_origin(fact)}"


# Backslash, code, tag, entity, link or bold; a single asterisk or bracket is harmless.
_MARKUP: Final = lazy_regex(r"[\\`<]|&(?=#?\w+;)|(?<=\])\(|_{2,}|\*{2,}")
_MARKUP_IN_BOLD: Final = lazy_regex(_MARKUP.pattern + r"|\*")


def _escape_markup(match: re.Match[str]) -> str:
    return "".join(f"\\{character}" for character in match[0])


def _format_bullet(fact: Fact, day: datetime, text: str) -> str:
    name = _MARKUP_IN_BOLD.sub(_escape_markup, format_speaker(fact))
    escaped = _MARKUP.sub(_escape_markup, text + _format_origin(fact))
    return f"- **{_format_day(day)} {day.year}, {name}:** {escaped}"


_XML_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\ufffe": "\ufffd", "\uffff": "\ufffd"}
)
_ATTRIBUTE_ESCAPES: Final = _XML_ESCAPES | str.maketrans({'"': "&quot;"})


def _format_element(fact: Fact, day: datetime, text: str) -> str:
    values = {
        "id": flatten_text(fact.id),
        "date": day.date().isoformat(),
        "speaker": format_speaker(fact),
        "source": flatten_text(fact.source or ""),
        "trust": get_trust_label(fact),
    }
    attributes = " ".join(
        f'{name}="{value.translate(_ATTRIBUTE_ESCAPES)}"' for name, value in values.items() if value
    )
    return f"<memory {attributes}>{text.translate(_XML_ESCAPES)}</memory>"


_TITLES: Final = {"pinned": "Always:", "recalled": "Recalled:", "recent": "Just said:"}
_OPENING: Final = f"<memory {{mark}}>\n{CONTEXT_NOTE}"
_CLOSING: Final = "</memory {mark}>"

STYLES: Final[Mapping[str, RenderStyle]] = {
    "text": RenderStyle(
        _format_plain_line, _OPENING, _CLOSING, _TITLES, shows_years=True, omits_first_title=True
    ),
    "markdown": RenderStyle(
        _format_bullet,
        f"## What is remembered\n*{CONTEXT_NOTE}*",
        "",
        {"pinned": "### Profile", "recalled": "### Retrieved memories", "recent": "### Recent"},
    ),
    "xml": RenderStyle(
        _format_element,
        f'<memories note="{CONTEXT_NOTE[:-1]}">',
        "</memories>",
        {"pinned": "<pinned>", "recent": "<recent>"},
        {"pinned": "</pinned>", "recent": "</recent>"},
    ),
    # Two blocks: the stable one goes above the conversation, the volatile one below it.
    "messages": RenderStyle(
        _format_plain_line,
        _OPENING,
        _CLOSING,
        _TITLES,
        shows_years=True,
        omits_first_title=True,
        blocks=(("pinned",), ("recalled", "recent")),
        overhead=MESSAGE_TOKENS,
    ),
}


def count_tokens_batch(texts: Sequence[str], encoding: str) -> list[int]:
    """Return the number of tokens of each text."""
    import toktok

    try:
        return list(toktok.batch_count(texts, encoding, threads=1))
    except KeyError as error:
        raise ConfigError(
            f"Unknown tokenizer {encoding!r}.", hint="Use o200k_base or cl100k_base."
        ) from error


def count_tokens(text: str, encoding: str) -> int:
    """Return the number of tokens of a text."""
    return count_tokens_batch([text], encoding)[0] if text else 0


PACKING_ORDER: Final = ("pinned", "recent", "recalled")

TokenCosts: TypeAlias = Mapping[str, int]
PassageKey: TypeAlias = tuple[int, int]
PrintPosition: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The shape of a context: token budget, format, and number of recent turns to append."""

    budget: int
    format: Format = "text"
    tail: int = 0


@dataclass(frozen=True, slots=True)
class ContextItem:
    """A hit and the texts that may represent it, longest first."""

    hit: Hit
    variants: tuple[str, ...]
    section: str = "recalled"


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """A rendered context with its cost and items, and the level printed of each (0 is full).

    With the messages format, each message costs four tokens besides its content.
    """

    text: str
    tokens: int
    items: tuple[ContextItem, ...]
    levels: Mapping[PassageKey, int]
    messages: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _ContextDraft:
    """An item with its print position, year and the line of each variant."""

    index: int
    item: ContextItem
    position: PrintPosition
    year: str
    lines: tuple[tuple[int, str], ...]

    @property
    def passage_key(self) -> PassageKey:
        """Return the (seq, slot) of the item; each is printed once."""
        return self.item.hit.fact.seq, self.item.hit.slot


@dataclass(frozen=True, slots=True)
class _PickedLine:
    """A draft chosen at one level, with the tokens it added."""

    draft: _ContextDraft
    level: int
    line: str
    cost: int


def assemble(
    items: Sequence[ContextItem],
    budget: int,
    encoding: str,
    *,
    format: Format = "text",
    pinned_share: float = 0.3,
    zone: str | tzinfo | None = None,
) -> AssembledContext:
    """Render the best items that fit, stable sections first, each in time order.

    Dates are in UTC unless a zone is given.
    """
    if format not in STYLES:
        raise InvalidInput(f"Unknown format {format!r}.", hint=f"Use one of {', '.join(FORMATS)}.")
    style = STYLES[format]
    drafts = [_build_draft(index, item, style, zone) for index, item in enumerate(items)]
    costs = _count_line_tokens(style, drafts, encoding)
    return _print_within_budget(
        _pack_sections(drafts, style, costs, budget, pinned_share), style, budget, encoding
    )


def _build_draft(
    index: int, item: ContextItem, style: RenderStyle, zone: str | tzinfo | None
) -> _ContextDraft:
    """Build the draft of an item: its position, year, and one line per variant."""
    if item.section not in SECTIONS:
        raise InvalidInput(
            f"Unknown section {item.section!r}.", hint=f"Use one of {', '.join(SECTIONS)}."
        )
    fact = item.hit.fact
    at = fact.updated_at if fact.said_at is None else fact.said_at
    day = to_zone(at, zone)
    year = str(day.year) if style.shows_years else ""
    lines = [
        (level, style.format_line(fact, day, text))
        for level, variant in enumerate(item.variants)
        if (text := flatten_text(variant))
    ]
    return _ContextDraft(
        index,
        item,
        (0 if item.section == "pinned" else at, fact.seq, item.hit.slot),
        year,
        tuple(lines),
    )


# Packing


def _count_line_tokens(
    style: RenderStyle, drafts: Sequence[_ContextDraft], encoding: str
) -> TokenCosts:
    """Return the cost of every line that may be printed, including its newline.

    No line starts with a newline, so the costs add up.
    """
    frame_lines = (
        "",
        *style.render_frame(),
        *style.titles.values(),
        *style.section_ends.values(),
        *(draft.year for draft in drafts),
    )
    lines = list(
        dict.fromkeys((*frame_lines, *(line for draft in drafts for _, line in draft.lines)))
    )
    token_counts = count_tokens_batch([f"{line}\n" if line else "" for line in lines], encoding)
    return dict(zip(lines, token_counts, strict=True))


def _pack_sections(
    drafts: Sequence[_ContextDraft],
    style: RenderStyle,
    costs: TokenCosts,
    budget: int,
    pinned_share: float,
) -> list[_PickedLine]:
    """Return the lines to print; the last ones are dropped first if the text is too long."""
    picks: list[_PickedLine] = []
    opened: set[str] = set()
    remaining = budget
    for section in PACKING_ORDER:
        frame, titles = _count_section_overhead(section, opened, style, costs)
        share = int(budget * pinned_share) if section == "pinned" else budget
        section_drafts = [draft for draft in drafts if draft.item.section == section]
        included = {pick.draft.passage_key for pick in picks}
        if picked := list(
            _fit_drafts(section_drafts, min(remaining - frame, share) - titles, costs, included)
        ):
            remaining -= frame + titles + sum(pick.cost for pick in picked)
            picks += picked
            opened.add(section)
    return picks


def _count_section_overhead(
    section: str, opened: Collection[str], style: RenderStyle, costs: TokenCosts
) -> tuple[int, int]:
    """Return the cost of a section's frame, if its block has none yet, and of its title."""
    block = next(block for block in style.blocks if section in block)
    frame = (
        0
        if any(name in opened for name in block)
        else sum(map(costs.__getitem__, style.render_frame())) + style.overhead
    )
    is_first = not any(name in opened for name in block[: block.index(section)])
    return frame, costs[style.get_title(section, is_first=is_first)] + costs[
        style.section_ends.get(section, "")
    ]


def _fit_drafts(
    drafts: Sequence[_ContextDraft], room: int, costs: TokenCosts, included: Collection[PassageKey]
) -> Iterator[_PickedLine]:
    """Pick drafts in order, each in the longest variant that fits; skip those that do not."""
    shortest = min((costs[line] for draft in drafts for _, line in draft.lines), default=0)
    placed: list[tuple[PrintPosition, str]] = []
    seen = {*included}
    for draft in drafts:
        if room < shortest:
            return
        if draft.passage_key in seen:
            continue
        line_position = (draft.position, draft.year)
        year_cost = _count_year_lines(placed, line_position, costs)
        for level, line in draft.lines:
            cost = costs[line] + year_cost
            if cost <= room:
                yield _PickedLine(draft, level, line, cost)
                room -= cost
                seen.add(draft.passage_key)
                insort(placed, line_position)
                break


def _count_year_lines(
    placed: Sequence[tuple[PrintPosition, str]],
    line_position: tuple[PrintPosition, str],
    costs: TokenCosts,
) -> int:
    """Return the extra cost of year headings if a line is added at this position."""
    index, year = bisect(placed, line_position), line_position[1]
    before = placed[index - 1][1] if index else ""
    after = placed[index][1] if index < len(placed) else ""
    if year in (before, after):
        return 0
    return costs[year] + (costs[after] if before == after else 0)


# Printing


def _print_within_budget(
    picks: Sequence[_PickedLine], style: RenderStyle, budget: int, encoding: str
) -> AssembledContext:
    """Render the picks, dropping the last ones while the text is over budget."""
    while picks:
        blocks = _render_blocks(picks, style)
        tokens = sum(count_tokens_batch(blocks, encoding)) + style.overhead * len(blocks)
        if tokens <= budget:
            return _build_result(picks, style, blocks, tokens)
        picks = _drop_last(picks, tokens - budget)
    return AssembledContext("", 0, (), {})


def _drop_last(picks: Sequence[_PickedLine], excess: int) -> Sequence[_PickedLine]:
    """Return the picks without the last ones that cost at least the excess."""
    keep = len(picks)
    while keep and excess > 0:
        keep -= 1
        excess -= picks[keep].cost
    return picks[:keep]


def _render_blocks(picks: Sequence[_PickedLine], style: RenderStyle) -> list[str]:
    """Render the blocks that have lines."""
    ordered = sorted(picks, key=lambda pick: pick.draft.position)
    rows = {
        name: [(pick.draft.year, pick.line) for pick in ordered if pick.draft.item.section == name]
        for name in SECTIONS
    }
    filled = ({name: rows[name] for name in block if rows[name]} for block in style.blocks)
    return [style.render_block(sections) for sections in filled if sections]


def _build_result(
    picks: Sequence[_PickedLine], style: RenderStyle, blocks: Sequence[str], tokens: int
) -> AssembledContext:
    in_order = sorted(picks, key=lambda pick: pick.draft.index)
    messages = (
        tuple({"role": "system", "content": block} for block in blocks) if style.overhead else ()
    )
    return AssembledContext(
        "\n\n".join(blocks),
        tokens,
        tuple(pick.draft.item for pick in in_order),
        {pick.draft.passage_key: pick.level for pick in in_order},
        messages,
    )

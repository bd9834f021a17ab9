"""Hits into a context that never costs more tokens than its budget.

What is pinned is packed first, up to its share, then what was just said, then what was recalled; inside each, greedily
in the order given. What does not fit in full is tried in its shorter forms. Lines are priced in one call of the
tokenizer; the real count of the whole has the last word.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, TypeAlias

from told.core.errors import InvalidInput
from told.core.query import Hit
from told.core.value import fast_frozen_init
from told.core.when import to_zone
from told.read.render import FORMATS, SECTIONS, STYLES, Format, RenderStyle, flatten_text
from told.read.tokens import count_tokens_batch

__all__ = ["FORMATS", "AssembledContext", "Format", "ContextItem", "assemble"]

PACKING_ORDER: Final = ("pinned", "recent", "recalled")

TokenCosts: TypeAlias = Mapping[str, int]
PassageKey: TypeAlias = tuple[int, int]
PrintPosition: TypeAlias = tuple[int, int, int]


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class ContextItem:
    """One hit and the texts that may stand for it, the fullest first."""

    hit: Hit
    variants: tuple[str, ...]
    section: str = "recalled"


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """A context, its cost, the items inside in the order given, and which form of each (0 is the fullest) is printed.

    A context of messages costs four tokens for each of them besides their contents.
    """

    text: str
    tokens: int
    items: tuple[ContextItem, ...]
    levels: Mapping[PassageKey, int]
    messages: tuple[Mapping[str, str], ...] = ()


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class _ContextDraft:
    """An item as it could be printed: where in its section, under which year, and the line for each of its forms."""

    index: int
    item: ContextItem
    position: PrintPosition
    year: str
    lines: tuple[tuple[int, str], ...]

    @property
    def passage_key(self) -> PassageKey:
        """The fact and the slot of it that the item stands for; each is printed once."""
        return self.item.hit.fact.seq, self.item.hit.slot


@fast_frozen_init
@dataclass(frozen=True, slots=True)
class _PickedLine:
    """A draft that was taken, in one of its forms, and what that added to the cost."""

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
    """The best of the items that fit, printed from stable to volatile, in time order; dates are UTC without a zone."""
    if format not in STYLES:
        raise InvalidInput(
            f"There is no format {format!r}.", hint=f"Use one of {', '.join(FORMATS)}."
        )
    style = STYLES[format]
    drafts = [_build_draft(index, item, style, zone) for index, item in enumerate(items)]
    costs = _count_line_tokens(style, drafts, encoding)
    return _print_within_budget(
        _pack_sections(drafts, style, costs, budget, pinned_share), style, budget, encoding
    )


def _build_draft(
    index: int, item: ContextItem, style: RenderStyle, zone: str | tzinfo | None
) -> _ContextDraft:
    if item.section not in SECTIONS:
        raise InvalidInput(
            f"There is no section {item.section!r}.", hint=f"Use one of {', '.join(SECTIONS)}."
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


# ------------------------------------------------------------------------------------------------------------- packing


def _count_line_tokens(
    style: RenderStyle, drafts: Sequence[_ContextDraft], encoding: str
) -> TokenCosts:
    """What every line that may be printed costs with its end; no line begins like one, so the costs add up."""
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
    """The drafts to print; the first to give up stands last."""
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
    """What a section costs besides its lines: the frame if its block has none yet, and its title and end."""
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
    """In the order given, each in the fullest form that fits; a long one that does not fit stops no short one."""
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
    """What the lines with years cost more once there is a line at this spot."""
    index, year = bisect(placed, line_position), line_position[1]
    before = placed[index - 1][1] if index else ""
    after = placed[index][1] if index < len(placed) else ""
    if year in (before, after):
        return 0
    return costs[year] + (costs[after] if before == after else 0)


# ------------------------------------------------------------------------------------------------------------ printing


def _print_within_budget(
    picks: Sequence[_PickedLine], style: RenderStyle, budget: int, encoding: str
) -> AssembledContext:
    """The picks in print; as long as the whole costs too much, the last ones are given up."""
    while picks:
        blocks = _render_blocks(picks, style)
        tokens = sum(count_tokens_batch(blocks, encoding)) + style.overhead * len(blocks)
        if tokens <= budget:
            return _build_result(picks, style, blocks, tokens)
        picks = _drop_last(picks, tokens - budget)
    return AssembledContext("", 0, (), {})


def _drop_last(picks: Sequence[_PickedLine], excess: int) -> Sequence[_PickedLine]:
    """The picks without the last ones that together cost at least the excess."""
    keep = len(picks)
    while keep and excess > 0:
        keep -= 1
        excess -= picks[keep].cost
    return picks[:keep]


def _render_blocks(picks: Sequence[_PickedLine], style: RenderStyle) -> list[str]:
    """The blocks that have something in them."""
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

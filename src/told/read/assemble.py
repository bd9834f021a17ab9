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
from told.core.value import quick
from told.core.when import by_clock
from told.read.render import FORMATS, SECTIONS, STYLES, Format, Style, flat
from told.read.tokens import counts

__all__ = ["FORMATS", "Assembly", "Format", "Item", "assemble"]

PACKED: Final = ("pinned", "recent", "recalled")

Prices: TypeAlias = Mapping[str, int]
Passage: TypeAlias = tuple[int, int]
Place: TypeAlias = tuple[int, int, int]


@quick
@dataclass(frozen=True, slots=True)
class Item:
    """One hit and the texts that may stand for it, the fullest first."""

    hit: Hit
    forms: tuple[str, ...]
    section: str = "recalled"


@dataclass(frozen=True, slots=True)
class Assembly:
    """A context, its cost, the items inside in the order given, and which form of each (0 is the fullest) is printed.

    A context of messages costs four tokens for each of them besides their contents.
    """

    text: str
    tokens: int
    items: tuple[Item, ...]
    levels: Mapping[Passage, int]
    messages: tuple[Mapping[str, str], ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class _Draft:
    """An item as it could be printed: where in its section, under which year, and the line for each of its forms."""

    number: int
    item: Item
    place: Place
    year: str
    lines: tuple[tuple[int, str], ...]

    @property
    def passage(self) -> Passage:
        """The fact and the slot of it that the item stands for; each is printed once."""
        return self.item.hit.fact.seq, self.item.hit.slot


@quick
@dataclass(frozen=True, slots=True)
class _Pick:
    """A draft that was taken, in one of its forms, and what that added to the cost."""

    draft: _Draft
    level: int
    line: str
    cost: int


def assemble(
    items: Sequence[Item], budget: int, encoding: str, *,
    format: Format = "text", pinned_share: float = 0.3, zone: str | tzinfo | None = None,
) -> Assembly:  # fmt: skip
    """The best of the items that fit, printed from stable to volatile, in time order; dates are UTC without a zone."""
    if format not in STYLES:
        raise InvalidInput(f"There is no format {format!r}.", hint=f"Use one of {', '.join(FORMATS)}.")
    style = STYLES[format]
    drafts = [_draft(number, item, style, zone) for number, item in enumerate(items)]
    prices = _prices(style, drafts, encoding)
    return _settle(_pack(drafts, style, prices, budget, pinned_share), style, budget, encoding)


def _draft(number: int, item: Item, style: Style, zone: str | tzinfo | None) -> _Draft:
    if item.section not in SECTIONS:
        raise InvalidInput(f"There is no section {item.section!r}.", hint=f"Use one of {', '.join(SECTIONS)}.")
    fact = item.hit.fact
    at = fact.updated_at if fact.said_at is None else fact.said_at
    day = by_clock(at, zone)
    year = str(day.year) if style.years else ""
    lines = [(level, style.line(fact, day, text)) for level, form in enumerate(item.forms) if (text := flat(form))]
    return _Draft(number, item, (0 if item.section == "pinned" else at, fact.seq, item.hit.slot), year, tuple(lines))


# ------------------------------------------------------------------------------------------------------------- packing


def _prices(style: Style, drafts: Sequence[_Draft], encoding: str) -> Prices:
    """What every line that may be printed costs with its end; no line begins like one, so the costs add up."""
    around = ("", *style.frame(), *style.titles.values(), *style.ends.values(), *(draft.year for draft in drafts))
    lines = list(dict.fromkeys((*around, *(line for draft in drafts for _, line in draft.lines))))
    costs = counts([f"{line}\n" if line else "" for line in lines], encoding)
    return dict(zip(lines, costs, strict=True))


def _pack(drafts: Sequence[_Draft], style: Style, prices: Prices, budget: int, pinned_share: float) -> list[_Pick]:
    """The drafts to print; the first to give up stands last."""
    picks: list[_Pick] = []
    opened: set[str] = set()
    left = budget
    for section in PACKED:
        frame, titles = _toll(section, opened, style, prices)
        share = int(budget * pinned_share) if section == "pinned" else budget
        those = [draft for draft in drafts if draft.item.section == section]
        inside = {pick.draft.passage for pick in picks}
        if taken := list(_fill(those, min(left - frame, share) - titles, prices, inside)):
            left -= frame + titles + sum(pick.cost for pick in taken)
            picks += taken
            opened.add(section)
    return picks


def _toll(section: str, opened: Collection[str], style: Style, prices: Prices) -> tuple[int, int]:
    """What a section costs besides its lines: the frame if its block has none yet, and its title and end."""
    block = next(block for block in style.blocks if section in block)
    frame = 0 if any(name in opened for name in block) else sum(map(prices.__getitem__, style.frame())) + style.overhead
    first = not any(name in opened for name in block[: block.index(section)])
    return frame, prices[style.title(section, first=first)] + prices[style.ends.get(section, "")]


def _fill(drafts: Sequence[_Draft], room: int, prices: Prices, inside: Collection[Passage]) -> Iterator[_Pick]:
    """In the order given, each in the fullest form that fits; a long one that does not fit stops no short one."""
    shortest = min((prices[line] for draft in drafts for _, line in draft.lines), default=0)
    placed: list[tuple[Place, str]] = []
    known = {*inside}
    for draft in drafts:
        if room < shortest:
            return
        if draft.passage in known:
            continue
        spot = (draft.place, draft.year)
        above = _above(placed, spot, prices)
        for level, line in draft.lines:
            cost = prices[line] + above
            if cost <= room:
                yield _Pick(draft, level, line, cost)
                room -= cost
                known.add(draft.passage)
                insort(placed, spot)
                break


def _above(placed: Sequence[tuple[Place, str]], spot: tuple[Place, str], prices: Prices) -> int:
    """What the lines with years cost more once there is a line at this spot."""
    index, year = bisect(placed, spot), spot[1]
    before = placed[index - 1][1] if index else ""
    after = placed[index][1] if index < len(placed) else ""
    if year in (before, after):
        return 0
    return prices[year] + (prices[after] if before == after else 0)


# ------------------------------------------------------------------------------------------------------------ printing


def _settle(picks: Sequence[_Pick], style: Style, budget: int, encoding: str) -> Assembly:
    """The picks in print; as long as the whole costs too much, the last ones are given up."""
    while picks:
        blocks = _printed(picks, style)
        tokens = sum(counts(blocks, encoding)) + style.overhead * len(blocks)
        if tokens <= budget:
            return _assembly(picks, style, blocks, tokens)
        picks = _shed(picks, tokens - budget)
    return Assembly("", 0, (), {})


def _shed(picks: Sequence[_Pick], excess: int) -> Sequence[_Pick]:
    """The picks without the last ones that together cost at least the excess."""
    keep = len(picks)
    while keep and excess > 0:
        keep -= 1
        excess -= picks[keep].cost
    return picks[:keep]


def _printed(picks: Sequence[_Pick], style: Style) -> list[str]:
    """The blocks that have something in them."""
    ordered = sorted(picks, key=lambda pick: pick.draft.place)
    rows = {
        name: [(pick.draft.year, pick.line) for pick in ordered if pick.draft.item.section == name] for name in SECTIONS
    }
    filled = ({name: rows[name] for name in block if rows[name]} for block in style.blocks)
    return [style.block(sections) for sections in filled if sections]


def _assembly(picks: Sequence[_Pick], style: Style, blocks: Sequence[str], tokens: int) -> Assembly:
    given = sorted(picks, key=lambda pick: pick.draft.number)
    messages = tuple({"role": "system", "content": block} for block in blocks) if style.overhead else ()
    return Assembly(
        "\n\n".join(blocks), tokens, tuple(pick.draft.item for pick in given),
        {pick.draft.passage: pick.level for pick in given}, messages,
    )  # fmt: skip

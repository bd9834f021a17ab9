"""Parse relatives, pets and projects.

Examples: "my sister Emma", "two cats named Luna and Milo", "Anna is my wife".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from told.extraction.rules.claim import (
    ASSERTED,
    FRAGMENT_CONFIDENCE,
    NEGATED,
    RuleClaim,
    TurnContext,
    add_article,
    build_sentence,
)
from told.extraction.rules.grammar import (
    Clause,
    Referent,
    ValueSpan,
    capitalise_name,
    find_value_end,
    is_name,
    is_thing,
    split_items,
    trim_value,
)
from told.extraction.rules.lexicon import get_pattern, load_relatives, load_words
from told.runtime import lazy_regex

_NAME_PATTERN: Final = lazy_regex(r"\b(?!and\b)[^\W\d_][\w'-]*(?:\s+[A-Z][\w'-]*)?")
_BRACKETS: Final = lazy_regex(r"\([^)]*\)")
_SINGULAR_COUNTS: Final = frozenset("a an one no any some".split())
_CHILD_NOUNS: Final = frozenset(("girl", "boy"))
_UNIQUE_PREDICATES: Final = frozenset(("has_partner", "has_parent", "manager", "has"))
"""Predicates with one value: the text says who it is, not that there is one."""
_CHILD_RELATIONS: Final = frozenset("eldest youngest oldest firstborn lad little_one kiddo".split())
_TRIVIAL_PREDICATES: Final = frozenset(("has", "manager", "has_colleague", "has_friend"))
"""Predicates that say nothing without a name."""


def _singularise(noun: str) -> str:
    """Return the singular of a noun: kid for kids."""
    lowered = noun.lower()
    return {"children": "child", "puppies": "puppy", "mice": "mouse"}.get(
        lowered, lowered.removesuffix("s")
    )


def get_relation_predicate(noun: str) -> str:
    """Return the predicate of a relation: has_pet for a dog, has_sibling for a sister."""
    lowered = noun.lower()
    if lowered.removesuffix("s") in _CHILD_NOUNS or lowered.endswith("old"):
        return "has_child"
    return (
        load_relatives().get(lowered)
        or load_relatives().get(lowered.removesuffix("s"))
        or "has_pet"
    )


def parse_household(
    ctx: TurnContext, clause: Clause, referent: Referent, start: int, denial: str = ""
) -> Iterator[RuleClaim]:
    """Parse the people and pets somebody has.

    `denial` is "no" or "no longer".
    """
    if not get_pattern("people.counted").match(ctx.text, start, clause.end):
        return
    for match in get_pattern("people.owned").finditer(ctx.text, start, clause.end):
        other_owner = get_pattern("people.no_owner").match(ctx.text, match.end("noun"), clause.end)
        if other_owner or not load_words("NOT_OWNED").isdisjoint(
            match["adjective"].lower().split()
        ):
            continue
        denial = denial or ("no" if match["count"].lower() in ("no", "any") else "")
        named_claims = [] if denial else list(_parse_named_members(match, referent, clause))
        yield from named_claims or _parse_unnamed_members(ctx, match, referent, clause, denial)


def _parse_named_members(
    match: re.Match[str], referent: Referent, clause: Clause
) -> Iterator[RuleClaim]:
    """Parse people or pets with their names, one claim each."""
    group = "names" if match["names"] else "beside"
    names = list(
        _NAME_PATTERN.finditer(
            _BRACKETS.sub(lambda bracket: " " * len(bracket[0]), match[group] or "")
        )
    )
    singular = _singularise(match["noun"])
    if all(is_name(name[0]) for name in names):
        for name in names:
            text = f"{referent.name} has {add_article(singular)} named {capitalise_name(name[0])}"
            end = match.start(group) + name.end()
            meta = {"relation": singular}
            yield RuleClaim(
                referent.name,
                get_relation_predicate(singular),
                capitalise_name(name[0]),
                text,
                clause.start,
                end,
                meta=meta,
            )


def _parse_unnamed_members(
    ctx: TurnContext, match: re.Match[str], referent: Referent, clause: Clause, denial: str
) -> Iterator[RuleClaim]:
    """Parse people or pets by number only, or the denial of one."""
    noun, count = match["noun"], match["count"].lower()
    predicate = get_relation_predicate(noun)
    is_single = bool(denial) or count in _SINGULAR_COUNTS
    value = (
        f"{match['adjective']}{noun}"
        if is_single
        else ctx.text[match.start("count") : match.end("noun")]
    )
    denied_phrase = (
        f"does not have {add_article(value)}" if count in ("a", "an") else f"has no {value}"
    )
    verb_phrase = {"no": denied_phrase, "no longer": f"no longer has {add_article(value)}"}.get(
        denial, f"has {add_article(value)}"
    )
    if denial or predicate not in _TRIVIAL_PREDICATES:
        polarity = NEGATED if denial else ASSERTED
        meta = {"relation": _singularise(noun)}
        end = match.end("noun")
        text = (
            build_sentence(referent.name, f"={verb_phrase}")
            if denial
            else build_sentence(referent.name, f"have {add_article(value)}")
        )
        yield RuleClaim(
            referent.name, predicate, value, text, clause.start, end, polarity, meta=meta
        )


# Names


def parse_named_relatives(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse relatives with their names, e.g. "my daughter Mia"."""
    for match in get_pattern("people.named").finditer(ctx.text, start, end):
        first, _, second = match["name"].partition(" ")
        name = first if second.lower() in ("is", "and", "has") else match["name"]
        relation = match["relation"].lower()
        is_former = match["adjective"].strip().lower() in ("ex", "ex-", "late", "former")
        is_plural = relation.endswith("s") and relation in load_relatives()
        if is_name(name, require_known=True) and not is_former and not is_plural:
            yield build_relation_claim(
                ctx.speaker,
                relation,
                capitalise_name(name),
                match.start(),
                match.start("name") + len(name),
            )


def find_introduced(text: str) -> dict[str, Referent]:
    """Return the people introduced with a relation, by name."""
    matches = (
        match
        for name in ("people.named", "people.theirs")
        for match in get_pattern(name).finditer(text)
    )
    names = ((match["name"].partition(" ")[0], match["relation"].lower()) for match in matches)
    return {
        name: Referent(name, relation=relation)
        for name, relation in names
        if is_name(name, require_known=True)
    }


def parse_name_lists(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse several names at once: "my kids are named Ava and Ben"."""
    for match in get_pattern("people.listed").finditer(ctx.text, start, end):
        relation = _singularise(match["relation"] or "child")
        group = "names" if match["names"] else "their"
        for name in _NAME_PATTERN.finditer(match[group]):
            stop = match.start(group) + name.end()
            if is_name(name[0], require_known=True):
                yield build_relation_claim(
                    ctx.speaker, relation, capitalise_name(name[0]), match.start(), stop
                )
    for match in get_pattern("people.several").finditer(ctx.text, start, end):
        names = list(
            _NAME_PATTERN.finditer(
                _BRACKETS.sub(lambda bracket: " " * len(bracket[0]), match["names"])
            )
        )
        if len(names) > 1 and all(is_name(name[0], require_known=True) for name in names):
            for name in names:
                stop = match.start("names") + name.end()
                yield build_relation_claim(
                    ctx.speaker,
                    _singularise(match["relation"]),
                    capitalise_name(name[0]),
                    match.start(),
                    stop,
                )


def parse_relatives_of_others(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse relatives of relatives: "my brother lives in Melbourne with his husband Tom"."""
    if get_pattern("people.of_theirs").search(ctx.text, start, end) is None:
        return
    for match in get_pattern("people.their_own").finditer(ctx.text, start, end):
        relation, name = match["kin"].lower(), capitalise_name(match["name"])
        if is_name(name, require_known=True):
            owner = (
                capitalise_name(match["called"])
                if match["called"]
                else f"{ctx.speaker}'s {match['relation'].lower()}"
            )
            yield build_relation_claim(owner, relation, name, match.start(), match.end("name"))


def parse_pet_name(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse a pet whose name follows: "a puppy, she's called Momo"."""
    for match in get_pattern("people.pet_called").finditer(ctx.text, start, end):
        if is_name(match["name"]):
            yield build_relation_claim(
                ctx.speaker,
                match["noun"].lower(),
                capitalise_name(match["name"]),
                match.start(),
                match.end(),
            )


def parse_separation(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse the end of a relationship: "Tom and I split up"."""
    if match := get_pattern("people.separation").search(ctx.text, start, end):
        group = next(name for name in ("kin", "name", "kin_", "name_") if match[name])
        value = match[group]
        partner = value if group.startswith("name") else f"their {value}"
        text = f"{ctx.speaker} is no longer with {partner}"
        yield RuleClaim(
            ctx.speaker, "has_partner", value, text, match.start(), match.end(group), NEGATED
        )


def build_relation_claim(
    speaker: str, relation: str, name: str, start: int, end: int, polarity: str = ASSERTED
) -> RuleClaim:
    """Build the claim for a named relative or pet."""
    predicate = get_relation_predicate(relation)
    shown = "child" if relation in _CHILD_RELATIONS or relation.endswith("old") else relation
    text = f"{speaker} has {add_article(shown)} named {name}"
    if polarity == NEGATED:
        text = f"{speaker} no longer has {add_article(shown)} named {name}"
    elif predicate in _UNIQUE_PREDICATES:
        text = f"{speaker}'s {relation} is {name}"
    return RuleClaim(
        speaker, predicate, name, text, start, end, polarity, meta={"relation": relation}
    )


def build_pet_loss(speaker: str, pet: str, start: int, end: int) -> RuleClaim:
    """Build the claim for an unnamed pet that died."""
    return RuleClaim(
        speaker, "has_pet", pet, f"{speaker} no longer has {add_article(pet)}", start, end, NEGATED
    )


def parse_is_mine(
    ctx: TurnContext, clause: Clause, referent: Referent, start: int
) -> RuleClaim | None:
    """Parse "Anna is my wife"."""
    match = get_pattern("people.is_mine").match(ctx.text, start, clause.end)
    return (
        build_relation_claim(
            ctx.speaker, match["relation"].lower(), referent.name, clause.start, match.end()
        )
        if match
        else None
    )


def is_deceased(text: str, start: int, end: int) -> bool:
    """Return True if a clause says that its subject died."""
    return get_pattern("people.deceased").match(text, start, end) is not None


_OWN_PARTS: Final = frozenset("project app codebase stack backend frontend".split())
"""Parts that belong to the speaker even with "the"."""
_NAMED_BY_PRODUCT: Final = ("stack", "database", "infra", "backend", "frontend")
"""Parts that are named by their product: "our database is Postgres"."""
_MAX_THING_WORDS = 10
_NAME_LOOKBACK = 200
"""Number of characters before a name searched for the project it belongs to."""


def parse_project(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse a clause about the speaker's project."""
    text = ctx.text
    if stack_match := get_pattern("projects.all").match(text, clause.start, clause.end):
        for item in _split_things(text, stack_match.start("value"), clause.end):
            sentence = f"{ctx.speaker}'s project uses {item.text}"
            yield RuleClaim(
                ctx.speaker, "project_uses", item.text, sentence, clause.start, item.end
            )
        return
    match = get_pattern("projects.frame").match(text, clause.start, clause.end)
    if match is None or (match["own"] or "").lower() + match["part"].lower()[-5:] == "mystack":
        return  # "my stack" is what the speaker uses
    if match["the"] and match["part"].lower() not in _OWN_PARTS:
        return
    value = trim_value(
        text, match.start("value"), find_value_end(text, match.start("value"), clause.end)
    )
    if not is_thing(value.text.partition(",")[0], _MAX_THING_WORDS):
        return
    if (match["uses"] or "").lower() == "is" and not _is_product(match["part"], value):
        return
    part = f"{ctx.speaker}'s {(match['adjective'] + match['part']).lower()}"
    if match["needs"]:
        shown = (
            add_article(value.text)
            if text[value.start - 2 : value.start] in ("a ", "n ")
            else value.text
        )
        yield RuleClaim(
            ctx.speaker,
            "project_needs",
            value.text,
            f"{part} needs {shown}",
            clause.start,
            value.end,
        )
        return
    for item in _split_things(text, value.start, value.end):
        yield RuleClaim(
            ctx.speaker,
            "project_uses",
            item.text,
            f"{part} uses {item.text}",
            clause.start,
            item.end,
        )


def parse_project_parts(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse the parts of a project: "Backend in Go, front end is Svelte"."""
    part_matches = [*get_pattern("projects.part").finditer(ctx.text, start, end)]
    is_own = part_matches or get_pattern("projects.mine").search(ctx.text, start, end)
    host_matches = get_pattern("projects.hosted").finditer(ctx.text, start, end) if is_own else ()
    for match in (*part_matches, *host_matches):
        for item in _split_things(ctx.text, *match.span("value")):
            text = f"{ctx.speaker}'s project uses {item.text}"
            yield RuleClaim(
                ctx.speaker,
                "project_uses",
                item.text,
                text,
                match.start(),
                item.end,
                confidence=FRAGMENT_CONFIDENCE,
            )


def parse_project_name(ctx: TurnContext, start: int, end: int) -> Iterator[RuleClaim]:
    """Parse the name of a project just mentioned: "… a reminder app. It's called Drip"."""
    match = get_pattern("projects.called").search(ctx.text, start, end)
    if match and (
        match["own"]
        or get_pattern("projects.mine").search(
            ctx.text, max(0, start - _NAME_LOOKBACK), match.start()
        )
    ):
        name = match["own"] or match["name"]
        text = f"{ctx.speaker} works on {name}"
        yield RuleClaim(
            ctx.speaker,
            "works_on",
            name,
            text,
            match.start(),
            match.end(),
            confidence=FRAGMENT_CONFIDENCE,
        )


def _split_things(text: str, start: int, end: int) -> Iterator[ValueSpan]:
    """Split a list of technologies, including those joined by "with"."""
    stop = find_value_end(text, start, end)
    for item in split_items(text, start, stop):
        parts = get_pattern("projects.with").split(item.text, maxsplit=1)
        position = item.start
        for part in parts:
            part_start = text.index(part, position)
            position = part_start + len(part)
            if is_thing(part, _MAX_THING_WORDS):
                yield ValueSpan(part, part_start, position)


def _is_product(part: str, value: ValueSpan) -> bool:
    return part.lower().endswith(_NAMED_BY_PRODUCT) and value.text[:1].isupper()

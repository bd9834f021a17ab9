"""Topics that are one, and topics of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from told.core.entry import Asserted, Claim, Linked, Retracted
from told.core.errors import LLMError
from told.core.fact import TOPIC, Fact
from told.core.query import LATEST, AsOf, Find, Touch
from told.core.scope import Scope
from told.core.text import shown
from told.core.topics import ABSTRACTED_FROM, DERIVED_FROM, LABEL, SUPER, Mean, centre_in, clusters, label, unions
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import LLM
from told.read.topics import CONSUMER, PAGE, is_current, listing, shared_name
from told.tend.filing import Files, Filing, codes_of, held, members_of, opened
from told.tend.topics import changing
from told.write.extract.brief import asked, fenced, page

MOST_WORDS: Final = 10
"""What a model calls topics in more words than this is a sentence and no name."""


@dataclass(frozen=True, slots=True)
class United:
    """What became of topics: which are one with which, which topics of topics there are, and what went wrong."""

    merged: tuple[tuple[str, str], ...] = ()
    supers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def merge(files: Files, scope: Scope) -> Flow[United]:
    """Make one of topics that are nearly the same: the older takes the members of the younger."""
    one: dict[str, str] = {}

    def change(filing: Filing) -> Flow[None]:
        one.clear()
        one.update(unions((yield from _centres(filing)), files.limits.merge))
        for younger, older in one.items():
            yield from _unite(filing, younger, older)

    yield from changing(files, scope, change)
    yield from _introduce(files, scope.account, one)
    return United(tuple(one.items()))


def _centres(filing: Filing) -> Flow[dict[str, bytes]]:
    """Where every topic of a scope points to."""
    files, account = filing.files, filing.scope.account
    topics = [fact.id for fact in (yield from held(files, filing.scope))]
    found: dict[str, bytes] = {}
    for start in range(0, len(topics), PAGE):
        page = topics[start : start + PAGE]
        noted = {**(yield from call(files.store.notes, account, CONSUMER, page)), **filing.notes}
        centres = ((topic, centre_in(noted.get(topic), files.model)) for topic in page)
        found |= {topic: centre for topic, centre in centres if centre is not None}
    return found


def _unite(filing: Filing, younger: str, older: str) -> Flow[None]:
    joining = yield from members_of(filing, younger)
    codes = yield from codes_of(filing, [*(yield from members_of(filing, older)), *joining])
    mean = Mean()
    for code in codes.values():
        mean = mean.plus(code)
    filing.end(younger, "merged")
    filing.enrol(older, joining)
    filing.put(older, mean)


def _introduce(files: Files, account: str, one: dict[str, str]) -> Flow[None]:
    """Whom a topic came up with, the one that took its place has come up with too."""
    met = (yield from call(files.store.met, account, list(one))) if one else {}
    pairs: dict[tuple[str, str], Touch] = {}
    for (first, second), touch in met.items():
        a, b = sorted((one.get(first, first), one.get(second, second)))
        if a != b:
            pairs[a, b] = pairs[a, b] + touch if (a, b) in pairs else touch
    if pairs:
        yield from call(files.store.meet, account, pairs)


# Topics of topics -----------------------------------------------------------------------------------------------------


Names: TypeAlias = dict[frozenset[str], str]
"""What topics of topics are to be called, by what they are made of."""


def abstract(files: Files, scope: Scope, llm: LLM | None) -> Flow[United]:
    """Make topics of topics, named by a model if there is one; those that no longer hold give way.

    The model is asked before anything is decided, once for each; what changed since then is named without it.
    """
    names, warnings = ({}, []) if llm is None else (yield from _asked(files, scope, llm))
    done: dict[str, None] = {}

    def change(filing: Filing) -> Flow[None]:
        done.clear()
        for known in (yield from _abstracted(filing, names)):
            done[known] = None

    yield from changing(files, scope, change)
    return United(supers=tuple(done), warnings=tuple(dict.fromkeys(warnings)))


@dataclass(frozen=True, slots=True)
class _Group:
    """Topics that make a topic of topics, the one there is of just these, and whether that has their name."""

    parts: tuple[Fact, ...]
    whole: Fact | None
    named: bool

    @property
    def labels(self) -> list[str]:
        return [part.text for part in self.parts]

    @property
    def key(self) -> frozenset[str]:
        return frozenset(part.id for part in self.parts)


def _abstracted(filing: Filing, names: Names) -> Flow[list[str]]:
    """Draft the topics of topics as they are to be; those that there are then."""
    groups, gone = yield from _groups(filing)
    found: list[str] = []
    for group in groups:
        whole = filing.files.mint.id() if group.whole is None else group.whole.id
        if not group.named:
            name = names.get(group.key) or shared_name(group.labels)
            since = None if group.whole is None else group.whole.created_at
            filing.say(Asserted(whole, Claim(name, TOPIC, meta={SUPER: True}), since))
        if group.whole is None:
            rels = (ABSTRACTED_FROM, DERIVED_FROM)
            filing.say(*(Linked(whole, rel, part.id) for part in group.parts for rel in rels))
        found.append(whole)
    filing.say(*(Retracted(each, "abstracted anew") for each in gone))
    return found


def _groups(filing: Filing) -> Flow[tuple[list[_Group], list[str]]]:
    """The topics of a scope in which anything is held, as they belong together; topics of topics that no longer do."""
    files, scope = filing.files, filing.scope
    listed = yield from listing(files.store, Find(scope, AsOf(LATEST, files.mint.now())))
    seen = {each.fact.id: each.fact for each in listed if each.fact.scope == scope}
    centres = {topic: centre for topic, centre in (yield from _centres(filing)).items() if topic in seen}
    told = {fact.id: fact for fact in (yield from held(files, scope))}
    standing = yield from _standing(files, scope)
    groups: list[_Group] = []
    for names in clusters(centres, files.limits.group):
        if len(names) > 1:
            whole, parts = standing.pop(frozenset(names), None), [seen[name] for name in names]
            named = whole is not None and is_current(whole, (told[name] for name in names), parts)
            groups.append(_Group(tuple(parts), whole, named))
    return groups, [whole.id for whole in standing.values()]


def _standing(files: Files, scope: Scope) -> Flow[dict[frozenset[str], Fact]]:
    """The topics of topics there are, by what they are made of."""
    found = yield from call(files.store.held, scope, files.mint.now(), kinds=[TOPIC])
    supers = {fact.id: (fact, set[str]()) for fact in found if fact.meta.get(SUPER)}
    for link in (yield from call(files.store.links, scope.account, list(supers))) if supers else ():
        if link.rel == ABSTRACTED_FROM and link.src in supers:
            supers[link.src][1].add(link.dst)
    return {frozenset(parts): fact for fact, parts in supers.values()}


# What a model calls them ----------------------------------------------------------------------------------------------


def _asked(files: Files, scope: Scope, llm: LLM) -> Flow[tuple[Names, list[str]]]:
    """What a model calls the topics of topics that want a name, as things are now, and what it could not name."""
    groups, _ = yield from _groups((yield from opened(files, scope)))
    names: Names = {}
    warnings: list[str] = []
    for group in groups:
        if not group.named:
            said = yield from attempt(_name(llm, group.labels))
            if isinstance(said, Failure):
                warnings.append(f"Named without the model: {said}")
            else:
                names[group.key] = said
    return names, warnings


def _name(llm: LLM, labels: Sequence[str]) -> Flow[str]:
    """What a model says topics have in common, if that can be a name."""
    reply, _ = yield from asked(llm, page("topic"), fenced("topics", (f"- {name}" for name in labels)))
    said = str(reply).strip().strip("\"'`*.").strip()
    if not any(map(str.isalnum, said)) or "\n" in said or len(said) > LABEL or len(said.split()) > MOST_WORDS:
        raise LLMError(f"{llm.model} gave no name for topics, but {shown(reply)}.", raw=str(reply))
    return label(said)

"""Topics that are one, and topics of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from told.core.entry import Asserted, Claim, Linked, Retracted
from told.core.fact import TOPIC, Fact
from told.core.query import Touch
from told.core.scope import Scope
from told.core.topics import ABSTRACTED_FROM, DERIVED_FROM, SUPER, Mean, centre_in, clusters, common, label, unions
from told.flow import Flow, call
from told.ledger.consume import Failure, attempt
from told.ports import LLM
from told.tend.filing import CONSUMER, PAGE, Files, Filing, codes_of, held, members_of
from told.tend.topics import changing
from told.write.extract.brief import page


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


def abstract(files: Files, scope: Scope, llm: LLM | None) -> Flow[United]:
    """Make topics of topics, named by a model if there is one; those that no longer hold give way."""
    done: dict[str, None] = {}
    warnings: dict[str, None] = {}

    def change(filing: Filing) -> Flow[None]:
        done.clear()
        names = {fact.id: fact for fact in (yield from held(files, scope))}
        wanted = [group for group in clusters((yield from _centres(filing)), files.limits.group) if len(group) > 1]
        standing = yield from _standing(files, scope)
        for group in wanted:
            known = standing.pop(frozenset(group), None)
            if known is None:
                known = files.mint.id()
                name = yield from _named(llm, [names[topic] for topic in group], warnings)
                filing.say(
                    Asserted(known, Claim(name, TOPIC, meta={SUPER: True})),
                    *(Linked(known, rel, topic) for topic in group for rel in (ABSTRACTED_FROM, DERIVED_FROM)),
                )
            done[known] = None
        filing.say(*(Retracted(gone, "abstracted anew") for gone in standing.values()))

    yield from changing(files, scope, change)
    return United(supers=tuple(done), warnings=tuple(warnings))


def _standing(files: Files, scope: Scope) -> Flow[dict[frozenset[str], str]]:
    """The topics of topics there are, by what they are made of."""
    found = yield from call(files.store.held, scope, files.mint.now(), kinds=[TOPIC])
    supers = {fact.id: set[str]() for fact in found if fact.meta.get(SUPER)}
    for link in (yield from call(files.store.links, scope.account, list(supers))) if supers else ():
        if link.rel == ABSTRACTED_FROM and link.src in supers:
            supers[link.src].add(link.dst)
    return {frozenset(parts): topic for topic, parts in supers.items()}


def _named(llm: LLM | None, topics: Sequence[Fact], warnings: dict[str, None]) -> Flow[str]:
    """What topics have in common: in a model's words, or else in theirs."""
    labels = [topic.text for topic in topics]
    if llm is not None:
        said = yield from attempt(call(llm.ask, page("topic"), "\n".join(f"- {name}" for name in labels)))
        if isinstance(said, str) and (name := label(said)):
            return name
        warnings[f"Named without the model: {said}" if isinstance(said, Failure) else "The model gave no name."] = None
    return common(labels) or label(labels[0])

"""From a verb to what it says of its subject: the first rule that fits, with its values, its polarity and its time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from told.core.predicates import predicate as known_predicate
from told.core.when import Interval
from told.write.local import dates, doings, people, slots
from told.write.local.render import sentence, when
from told.write.local.rules import Rule, compiled, rules
from told.write.local.said import ASSERTED, HEDGED, INFERRED, NEGATED, STATED, Said, Talk
from told.write.local.sentence import Clause
from told.write.local.speaker import Who, titled
from told.write.local.tables import names, pattern, words
from told.write.local.value import Value, is_place, trimmed
from told.write.local.verb import ING, PAST, PRESENT, Stance, Verb, verb_at

_OWNING: Final = frozenset("have get adopt own foster".split())
_TIMELESS: Final = frozenset("born_in born_on comes_from age".split())
_LONGEST_NOTE: Final = 12
_BEHIND: Final = 12
"""How far behind a clause "since I was" may tell that what it says still holds."""
_TAILS: Final = {"comes_from": "come from {}", "lives_in": "live in {}"}


def said_by(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    """What a verb says of somebody."""
    verb = replace(verb, stance=_whole(talk, clause, verb.stance))
    stance = verb.stance
    if stance.supposed:
        return
    if not who.first and verb.lemma == "be" and (mine := people.is_mine(talk, clause, who, verb.at)):
        if not stance.negated and stance.tense == PRESENT:
            yield mine
        return
    if _owns(verb):
        denial = "no longer" if stance.ended else "no" if stance.negated else ""
        if had := list(people.household(talk, clause, who, verb.at, denial)):
            yield from had
            return
    yield from by_rules(talk, clause, who, verb)


def _whole(talk: Talk, clause: Clause, stance: Stance) -> Stance:
    """The stance with what the end of the clause adds: not … any more."""
    if stance.negated and pattern("verbal.no_more").search(talk.text, clause.start, clause.end):
        return replace(stance, ended=True, negated=False)
    return stance


def _owns(verb: Verb) -> bool:
    """Whether a verb says that somebody has something now."""
    stance = verb.stance
    if verb.lemma not in _OWNING or stance.wished or stance.future or stance.doubted:
        return False
    return (stance.tense == PRESENT) if verb.lemma in ("have", "own") else (stance.tense == PAST)


def by_rules(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    """What the first rule that fits says, and what hangs behind it."""
    for rule in rules().get(verb.lemma, ()):
        match = compiled(rule.pattern).match(talk.text, verb.at, clause.end)
        found = list(_Reading(talk, clause, who, verb, rule).claims(match)) if match and _fits(rule, who, verb) else []
        if not (match and found):
            continue
        if rule.predicate == "name" and who.relation:
            yield people.related(talk.speaker, who.relation, found[0].object, clause.start, found[0].end)
            return
        yield from found
        if "tail" in rule.when:
            yield from _tail(talk, clause, who, replace(verb, at=match.end()), rule, found[-1].end)
        elif verb.lemma == "be" and verb.stance == Stance():
            yield from _more(talk, clause, who, found[-1].end)
        return
    if who.first or who.relation:
        yield from doings.done(talk, clause, who, verb)


# ------------------------------------------------------------------------------------------------------ whether it fits


def _fits(rule: Rule, who: Who, verb: Verb) -> bool:
    """Whether a rule speaks of a verb said like this by or of somebody like this."""
    flags, stance = rule.when, verb.stance
    denied = stance.negated or stance.ended
    if ("first" in flags and not who.first) or stance.wished != ("wished" in flags):
        return False
    if not who.first and not who.known and rule.predicate not in names("OF_PERSONS"):
        return False
    if (flags & {"denied", "deny"} and not denied) or ("able" in flags and not stance.able):
        return False
    if stance.able and not denied and rule.predicate not in ("speaks", "plays"):
        return False
    if ("perfect" in flags and not stance.perfect) or ("passive" in flags and not stance.passive):
        return False
    if "future" in flags:
        return (stance.future or (stance.tense == ING and not stance.perfect)) and not denied
    might_be = stance.doubted and verb.lemma == "be"
    return (not stance.future or "planned" in flags or might_be) and _in_tense(rule, verb)


def _in_tense(rule: Rule, verb: Verb) -> bool:
    flags, stance = rule.when, verb.stance
    if flags & {"any", "state"}:
        return True
    wanted = next((tense for tense in (PAST, ING, PRESENT) if tense in flags), "")
    if wanted:
        return stance.tense == wanted
    if stance.tense == PAST and not stance.perfect:
        former = rule.predicate in names("FORMER") or rule.predicate == "comes_from"
        return verb.lemma == "be" and former and "job" not in flags
    return True


# --------------------------------------------------------------------------------------------------------- what it says


@dataclass(frozen=True, slots=True)
class _Reading:
    """A verb read by a rule."""

    talk: Talk
    clause: Clause
    who: Who
    verb: Verb
    rule: Rule

    def claims(self, match: re.Match[str]) -> Iterator[Said]:
        """What the rule says once its values are read; nothing if one of them will not do."""
        talk, clause, flags = self.talk, self.clause, self.rule.when
        named = [slot for slot in match.groupdict() if match.start(slot) >= 0]
        read = {slot: slots.values_in(talk.text, slot, match, self.verb, self.rule) for slot in named}
        main = next((slot for slot in ("org", *named) if slot in read and slot not in ("old", "other")), "")
        if not main or not all(read.values()) or not self._will_do(read[main][0].text):
            return
        time = dates.named(talk.text, clause.lead, clause.end, talk.clock, ahead="planned" in flags)
        if ("dated" in flags and time is None) or self._is_over(time):
            return
        for value in read[main]:
            yield from self._said(main, {slot: values[0] for slot, values in read.items()} | {main: value}, time)

    def _will_do(self, value: str) -> bool:
        if "job" in self.rule.when and value.lower() in words("FIRST_NAMES"):
            return False
        if "study" in self.rule.when and value.lower() in words("STUDENTS"):
            return False
        return not self.rule.when & {"capital", "org"} or any(c.isupper() or c.isdigit() for c in value)

    def _is_over(self, time: dates.Time | None) -> bool:
        """Whether something has been done before without being done still: I've played chess."""
        stance = self.verb.stance
        done = stance.perfect and stance.tense == PAST and not stance.habit and not self.rule.when & {"past", "any"}
        since = pattern("verbal.since").search(self.talk.text, self.verb.at, self.clause.end + _BEHIND)
        return done and since is None and (time is None or time.mark != "since")

    def _said(self, main: str, values: dict[str, Value], time: dates.Time | None) -> Iterator[Said]:
        stance, who, flags = self.verb.stance, self.who, self.rule.when
        predicate, polarity, phrase = self._polarity()
        if not polarity:
            return
        former, value = self._is_former(), values[main]
        valid = self.talk.default if former else self._valid(predicate, time)
        text = slots.filled(phrase, values, self.verb)
        used_to = former or (stance.ended and bool(self._used_to()))
        text = sentence(who.name, text, polarity, former=used_to, ended=stance.ended or "negates" in flags)
        if known_predicate(predicate).kind == "event" and valid != self.talk.default:
            text = pattern("dates.expression").sub("", text).rstrip() + when(valid)
        doubted = stance.doubted or "maybe" in flags
        modality = "hedged" if doubted else "planned" if "planned" in flags else "stated"
        shown = titled(value.text) if main in ("name", "known") else value.text
        meta = {slot: each.text for slot, each in values.items() if slot in ("job", "other") and slot != main}
        start, end, sure = self.clause.start, max(each.end for each in values.values()), HEDGED if doubted else STATED
        said = Said(who.name, predicate, shown, text, start, end, polarity, modality, sure, valid, meta)
        yield _of_meat(said) if predicate == "diet_again" else said
        if "old" in values:
            old = values["old"]
            gone = f"{who.name} no longer {predicate} {old.text}"
            yield Said(who.name, predicate, old.text, gone, start, old.end, NEGATED, valid=valid)

    def _polarity(self) -> tuple[str, str, str]:
        """The predicate, polarity and phrase, as a denial or an end turns them; no polarity if it says nothing."""
        rule, stance = self.rule, self.verb.stance
        predicate, phrase = rule.predicate, rule.phrase
        if "denied" in rule.when:
            return predicate, ASSERTED, phrase
        if stance.ended and predicate not in names("DENIED") | names("ENDED"):
            return predicate, "", phrase
        if stance.ended or "negates" in rule.when or self._is_former():
            return predicate, NEGATED, phrase
        if not stance.negated:
            return predicate, ASSERTED, phrase
        if rule.opposite:
            return rule.opposite, ASSERTED, re.sub(r"^\w+(?: \w+)*? (?=\{)", "dislike ", phrase)
        deniable = predicate in names("DENIED") and (stance.perfect or known_predicate(predicate).kind != "event")
        return predicate, NEGATED if deniable else "", phrase

    def _is_former(self) -> bool:
        """Whether a state is told in the past: I lived in Paris."""
        stance, state = self.verb.stance, "state" in self.rule.when or self.verb.lemma == "be"
        if self.rule.predicate in _TIMELESS:
            return False
        return state and stance.tense == PAST and not stance.perfect and not self.rule.phrase.startswith("=")

    def _used_to(self) -> re.Match[str] | None:
        return pattern("verbal.used_to").search(self.talk.text, self.clause.start, self.verb.at)

    def _valid(self, predicate: str, time: dates.Time | None) -> Interval:
        """When it holds: a state only from a time on or until it, unless it has just come about."""
        stance, default = self.verb.stance, self.talk.default
        state = known_predicate(predicate).kind != "event"
        if predicate in _TIMELESS or (state and (stance.ended or "negates" in self.rule.when)):
            return default
        if state and time is not None and not time.lasts and stance.tense != PAST:
            return default
        return dates.bearing(time, state=state, default=default)


def _of_meat(said: Said) -> Said:
    """Whoever eats meat again is no vegetarian, though they did not say the word."""
    return replace(
        said, predicate="diet", object="vegetarian", polarity=NEGATED, modality="inferred", confidence=INFERRED
    )


# ---------------------------------------------------------------------------------------------------- what hangs behind


def notes(talk: Talk, clause: Clause, who: Who, start: int) -> list[Said]:
    """What short notes between commas say of somebody: "29, product designer, living in Barcelona"."""
    found: list[Said] = []
    at = start
    for comma in (*pattern("verbal.notes").finditer(talk.text, start, clause.end), None):
        part = trimmed(talk.text, at, comma.start() if comma else clause.end)
        at = comma.end() if comma else clause.end
        if len(part.text.split()) > _LONGEST_NOTE:
            break
        found += note(talk, who, part)
    return [said for said in found if said.predicate != "name"]


def note(talk: Talk, who: Who, part: Value) -> list[Said]:
    """What one short note says of somebody: what they have, what they do, what they are."""
    clause = Clause(part.start, part.end, lead=part.start)
    has = list(people.household(talk, clause, who, part.start))
    if has:
        return has
    verb = verb_at(talk.text, part.start, part.end)
    noted = verb is not None and verb.stance.tense in (PRESENT, ING) and verb.lemma in words("NOTED")
    if verb is not None and noted and verb.word == part.start:
        return list(by_rules(talk, clause, who, verb))
    return list(by_rules(talk, clause, who, Verb("be", Stance(), part.start, part.start)))


def _more(talk: Talk, clause: Clause, who: Who, end: int) -> list[Said]:
    """What else somebody is, between commas: "I'm vegan, left-handed, and terrible with names"."""
    comma = pattern("verbal.comma").match(talk.text, end, clause.end)
    return notes(talk, clause, who, comma.end()) if comma else []


def _tail(talk: Talk, clause: Clause, who: Who, verb: Verb, rule: Rule, end: int) -> Iterator[Said]:
    """What is said right behind a name, an age or a job: "…, a nurse from Leeds living in York"."""
    found: list[Said] = []
    if rule.predicate == "name":
        found = notes(talk, clause, who, end)
    elif rule.predicate == "age":
        behind = by_rules(talk, clause, who, replace(verb, at=verb.at))
        found = [said for said in behind if said.predicate not in ("name", "age", "is")]
        found = found or _more(talk, clause, who, end)
    yield from found
    if found:
        return
    for predicate, phrase in _TAILS.items():
        tail = pattern(f"verbal.tail_{predicate}").match(talk.text, end, clause.end)
        place = slots.place_at(talk.text, tail.start("place"), clause.end) if tail else None
        if place and is_place(place.text):
            text = sentence(who.name, phrase.format(place.text))
            yield Said(who.name, predicate, place.text, text, clause.start, place.end)
            end = place.end

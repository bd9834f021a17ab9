"""From a clause to what it says: its subject, its verb, the first rule that fits, and the values that stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from told.core.predicates import predicate as known_predicate
from told.core.when import ALWAYS, Interval
from told.write.local import attributes, dates, people, projects, requests, words
from told.write.local.render import article, sentence, theirs, when
from told.write.local.rules import Rule, compiled, rules
from told.write.local.said import Said
from told.write.local.sentence import Clause
from told.write.local.speaker import Subject, Who, subject_at, titled
from told.write.local.value import CHECKS, Value, is_name, is_place, items, trimmed, until
from told.write.local.verb import ING, PAST, PRESENT, Stance, Verb, verb_at

STATED, HEDGED, INFERRED = 0.9, 0.5, 0.7


@dataclass(slots=True)
class Talk:
    """A turn as it is read: who speaks, when, and who was spoken of last."""

    text: str
    speaker: str
    clock: dates.Clock
    default: Interval = ALWAYS
    last: Who | None = None
    subject: Who | None = None


def understood(talk: Talk, clause: Clause) -> list[Said]:
    """Everything a clause says, surer or less sure as its opening words leave it."""
    text, start, end = talk.text, clause.start, clause.end
    found: list[Said] = []
    for special in (requests.nickname(text, start, end, talk.speaker), requests.reply_style(text, start, end, talk.speaker),
                    requests.reply_style(text, clause.lead, end, talk.speaker), attributes.appointment(text, start, end, talk.speaker, talk.clock)):  # fmt: skip
        if special is not None:
            found.append(special)
            break
    found = found or list(projects.project(text, start, end, talk.speaker)) or attributes.attribute(text, start, end, talk.speaker, talk.last, talk.clock) or list(_told(talk, clause))
    return [_hedged(said) if clause.sure < 1 else said for said in found]


def _hedged(said: Said) -> Said:
    return replace(said, modality="hedged", confidence=min(said.confidence, HEDGED)) if said.modality != "planned" else replace(said, confidence=HEDGED)


def _told(talk: Talk, clause: Clause) -> Iterator[Said]:
    subject = _subject(talk, clause)
    if subject is None:
        talk.subject = None
        yield from _unsaid(talk, clause)
        return
    talk.subject = subject.who
    if not subject.who.first:
        talk.last = subject.who
    if subject.called:
        gone = people.is_gone(talk.text, subject.at, clause.end)
        stop = subject.called_at + len(subject.called)
        yield people.related(talk.speaker, subject.who.relation, titled(subject.called), clause.start, stop, "negated" if gone else "asserted")
    if verb := verb_at(talk.text, subject.at, clause.end):
        yield from _by_verb(talk, clause, subject.who, verb)


def _subject(talk: Talk, clause: Clause) -> Subject | None:
    subject = subject_at(talk.text, clause.start, clause.end, talk.speaker, talk.last)
    if subject is None and clause.goes_on and talk.subject is not None:
        return Subject(talk.subject, clause.start)
    return subject


# ---------------------------------------------------------------------------------------------------------- without subject

_ALONE: Final = frozenset("move relocate start quit buy adopt get switch graduate join visit finish grow bear run complete migrate retire".split())


@cache
def _bare() -> re.Pattern[str]:
    return re.compile(
        r"(?:(?:recently|just|finally|currently|now)\s+)*(?P<verb>allergic\s+to|(?:lifelong\s+|strict\s+)?(?:vegetarian|vegan|pescatarian)\b(?=\s*(?:here|$|since|for|,))|based\s+in|originally\s+from|big\s+fan\s+of|not\s+a\s+fan\s+of|"
        r"living\s+in|working\s+(?:at|as|for)|live\s+in|work\s+(?:at|as)|love\s+(?!it\b|this|that|you|the\b|how|and\b|is\b|of\b|for\b|to see)|hate\s+(?!it\b|this|that|you|the\b|how|to\b)|prefer\s+|huge\s+fan\s+of|studying\s+\w+\s+at|(?:married|single|divorced)\b(?=\s*[,.]|\s*$|\s+with)|(?:as|being)\s+an?\s+)",
        re.IGNORECASE,
    )


def _unsaid(talk: Talk, clause: Clause) -> Iterator[Said]:
    """A clause whose subject is left out: "Moved to Berlin last month", "Allergic to nuts", "As a vegan, …"."""
    text, start, end = talk.text, clause.start, clause.end
    who = Who(talk.speaker, first=True)
    if found := _bare().match(text, start, end):
        first = found["verb"].split()[0].lower()
        at = found.end("verb") if first in ("as", "being") else found.start("verb")
        verb = verb_at(text, at, end) if first in ("living", "working", "live", "work", "love", "hate", "prefer", "studying") else None
        at = at - 2 if first in ("as", "being") and text[at - 2 : at] in ("a ", "n ") else at
        if first in ("as", "being"):
            at = found.start("verb") + len(first)
        verb = verb or Verb("be", Stance(negated=first == "not"), at, at + (4 if first == "not" else 0))
        yield from (replace(said, confidence=0.8) for said in _by_verb(talk, clause, who, verb) if said.predicate not in ("name",))
        return
    if named := _named_here().match(text, start, end):
        if is_name(named["name"], known=True):
            name = titled(named["name"])
            yield Said(talk.speaker, "name", name, f"{talk.speaker}'s name is {name}", start, named.end("name"))
        return
    if fragments := list(_fragments(talk, clause)):
        yield from fragments
        return
    verb = verb_at(text, start, end)
    if verb is not None and verb.lemma in _ALONE and verb.stance.tense == PAST and not verb.stance.negated:
        yield from (replace(said, confidence=0.8) for said in _by_verb(talk, clause, who, verb))


def _fragments(talk: Talk, clause: Clause) -> Iterator[Said]:
    """Notes about oneself, set apart by commas: "29, product designer, living in Barcelona"."""
    text, parts, at = talk.text, [], clause.start
    for part in text[clause.start : clause.end].split(","):
        parts.append(trimmed(text, at, at + len(part)))
        at += len(part) + 1
    if not 2 <= len(parts) <= 8 or any(len(part.text.split()) > 6 for part in parts):
        return
    who = Who(talk.speaker, first=True)
    found: list[Said] = []
    for part in parts:
        verb = Verb("be", Stance(), part.start, part.start)
        said = [said for said in _by_rules(talk, Clause(part.start, part.end, lead=part.start), who, verb) if said.predicate != "name"] if part.text else []
        found += said
    if len({said.predicate for said in found}) >= 2:
        yield from (replace(said, confidence=0.8) for said in found)


@cache
def _named_here() -> re.Pattern[str]:
    return re.compile(r"(?:(?:this\s+is|it's|it\s+is)\s+)?(?P<name>(?-i:[A-Z][a-z]+)(?:\s+(?-i:[A-Z][a-z]+))?|[a-z]+)(?:\s+here\b(?!\s+(?:is|are))|,\s+not\s+(?=[A-Z])|\s+speaking\b)",
                      re.IGNORECASE)  # fmt: skip


# -------------------------------------------------------------------------------------------------------------------- rules

_FORMER: Final = frozenset("works_as works_at works_in diet lives_in relationship_status studies_at studies member_of team plays speaks uses".split())
_DENIED: Final = frozenset(
    """lives_in works_at works_as works_in diet allergic_to speaks plays owns drives uses has_condition takes has_pet comes_from
    married_to relationship_status studies studies_at member_of is visited skilled_in habit age name has_child team has_partner learning
    goal plans""".split()
)
_STATES_OF_PERSONS: Final = frozenset("lives_in works_at works_as allergic_to diet comes_from age studies_at has_condition".split())
_OWNING: Final = frozenset("have get adopt own foster raise expect".split())


def _by_verb(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    stance = _whole_stance(talk, clause, verb.stance)
    verb = replace(verb, stance=stance)
    if stance.supposed:
        return
    if not who.first and verb.lemma == "be" and (mine := people.is_mine(talk.text, verb.at, clause.end, who, talk.speaker, clause.start)):
        if not stance.negated and stance.tense == PRESENT:
            yield mine
        return
    if verb.lemma in _OWNING and not (stance.wished or stance.future or stance.doubted) and (verb.lemma in ("have", "own") or stance.tense == PAST):
        had = list(people.household(talk.text, verb.at, clause.end, who, clause.start, denied="no longer" if stance.ended else "no" if stance.negated else ""))
        if had and not (verb.lemma == "have" and stance.tense == PAST and not stance.perfect):
            yield from had
            return
    yield from _by_rules(talk, clause, who, verb)


def _whole_stance(talk: Talk, clause: Clause, stance: Stance) -> Stance:
    """The stance with what the end of the clause adds: not … any more."""
    if stance.negated and _no_more().search(talk.text, clause.start, clause.end):
        return replace(stance, ended=True, negated=False)
    return stance


@cache
def _no_more() -> re.Pattern[str]:
    return re.compile(r"\b(?:any\s?more|any\s+longer)\b", re.IGNORECASE)


def _by_rules(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    for rule in rules().get(verb.lemma, ()):
        if not _fits(rule, who, verb.stance, verb.lemma):
            continue
        match = compiled(rule.pattern).match(talk.text, verb.at, clause.end)
        if match is None:
            continue
        found = list(_filled(talk, clause, who, verb, rule, match))
        if rule.predicate == "name" and who.relation and found:
            yield people.related(talk.speaker, who.relation, found[0].object, clause.start, found[0].end)
            return
        if found:
            yield from found
            if "tail" in rule.when or rule.predicate == "name":
                yield from _tail(talk, clause, who, verb, rule, match, found[-1].end)
            return
    if who.first:
        yield from _doings(talk, clause, who, verb)


def _fits(rule: Rule, who: Who, stance: Stance, lemma: str) -> bool:
    """Whether a rule speaks of a verb said like this by or of somebody like this."""
    flags = rule.when
    if "first" in flags and not who.first or stance.wished != ("wished" in flags):
        return False
    if not who.first and not who.known and rule.predicate not in _STATES_OF_PERSONS:
        return False
    denied = stance.negated or stance.ended
    if ("denied" in flags or "denied_only" in flags) and not denied or stance.able and not (denied or rule.predicate in ("speaks", "plays")):
        return False
    if "future" in flags:
        return (stance.future or (stance.tense == ING and not stance.perfect)) and not denied
    if stance.future and "planned" not in flags and not (stance.doubted and lemma == "be"):
        return False
    if "perfect" in flags and not stance.perfect or "passive" in flags and not stance.passive:
        return False
    return _in_tense(flags, stance, lemma, rule)


def _in_tense(flags: frozenset[str], stance: Stance, lemma: str, rule: Rule) -> bool:
    if "any" in flags or "state" in flags:
        return True
    if "past" in flags:
        return stance.tense == PAST
    if "ing" in flags:
        return stance.tense == ING
    if "present" in flags:
        return stance.tense == PRESENT
    if stance.tense == PAST and not stance.perfect:
        return lemma == "be" and rule.predicate in _FORMER and "job" not in flags
    return True


def _filled(talk: Talk, clause: Clause, who: Who, verb: Verb, rule: Rule, match: re.Match[str]) -> Iterator[Said]:
    """What a rule says once its values are read; nothing if one of them will not do."""
    groups = [name for name in match.groupdict() if match.start(name) >= 0]
    read = {name: _read(talk.text, name, match, verb, clause, rule) for name in groups}
    main = next((name for name in groups if name == "org"), next((name for name in groups if name not in ("old", "other")), ""))
    if not main or any(not values for values in read.values()):
        return
    if ("capital" in rule.when or rule.predicate == "works_at") and not _is_proper(read[main][0].text, "capital" in rule.when or "org" in rule.when):
        return
    if "study" in rule.when and read[main][0].text.lower() in _STUDENTS:
        return
    time = dates.named(talk.text, clause.lead, clause.end, talk.clock, ahead="planned" in rule.when)
    if "dated" in rule.when and time is None:
        return
    done = verb.stance.perfect and verb.stance.tense == PAST and not verb.stance.habit and not {"past", "any"} & rule.when
    if done and (time is None or time.mark != "since"):
        return
    for value in read[main]:
        shown = {name: values[0] for name, values in read.items()} | {main: value}
        yield from _claimed(talk, clause, who, verb, rule, main, shown, time)


_STUDENTS: Final = frozenset("good full-time part-time phd exchange grad graduate high school medical international former college university honor first-year second-year third-year final-year straight-a mature".split())


def _is_proper(value: str, strictly: bool) -> bool:
    return value[:1].isupper() or any(c.isupper() or c.isdigit() for c in value) or not strictly


def _claimed(talk: Talk, clause: Clause, who: Who, verb: Verb, rule: Rule, main: str, shown: dict[str, Value], time: dates.Time | None) -> Iterator[Said]:
    stance = verb.stance
    former = ("state" in rule.when or verb.lemma == "be") and stance.tense == PAST and not stance.perfect and not rule.phrase.startswith("=")
    used_to = stance.ended and bool(_used_to().search(talk.text, clause.start, verb.at))
    predicate, polarity, phrase = rule.predicate, "asserted", rule.phrase
    if "negates" in rule.when or stance.ended or former:
        polarity = "negated"
    elif stance.negated and "denied" not in rule.when:
        if rule.opposite:
            predicate, phrase = rule.opposite, re.sub(r"^\w+(?: \w+)*? (?=\{)", "dislike ", phrase)
        elif predicate in _DENIED and (stance.perfect or known_predicate(predicate).kind != "event"):
            polarity = "negated"
        else:
            return
    if stance.ended and "denied" in rule.when:
        polarity = "asserted"
    if stance.ended and predicate not in _DENIED | {"likes", "interested_in", "habit", "prefers", "avoids", "dislikes", "takes"}:
        return
    value = shown[main]
    values = {name: _shown(name, item, verb, phrase) for name, item in shown.items()}
    written = _written(phrase, values)
    ended = stance.ended or "negates" in rule.when
    valid = talk.default if former else _valid(talk, rule, predicate, stance, time)
    if predicate == "diet_again":
        yield Said(who.name, "diet", "vegetarian", f"{who.name} started eating meat again", clause.start, value.end, "negated", "inferred", INFERRED, valid)
        return
    said = sentence(who.name, written, polarity, former=used_to or former, ended=ended)
    if known_predicate(predicate).kind == "event" and valid != talk.default:
        said += when(valid)
    modality = "hedged" if stance.doubted or "maybe" in rule.when else "planned" if "planned" in rule.when else "stated"
    confidence = HEDGED if modality == "hedged" else STATED
    object_ = titled(value.text) if main in ("name", "known") else value.text
    meta = {name: item.text for name, item in shown.items() if name in ("job", "other") and name != main}
    end = max(item.end for item in shown.values())
    yield Said(who.name, predicate, object_, said, clause.start, max(end, value.end), polarity, modality, confidence, valid, meta)
    if "old" in shown and predicate == "uses":
        old = shown["old"]
        yield Said(who.name, predicate, old.text, f"{who.name} no longer uses {old.text}", clause.start, old.end, "negated", confidence=STATED, valid=valid)


@cache
def _used_to() -> re.Pattern[str]:
    return re.compile(r"\bused\s+to\b", re.IGNORECASE)


def _valid(talk: Talk, rule: Rule, predicate: str, stance: Stance, time: dates.Time | None) -> Interval:
    if predicate in ("born_in", "born_on", "comes_from", "age"):
        return talk.default
    state = known_predicate(predicate).kind != "event" and predicate != "graduated_from"
    if state and time is not None and time.mark not in ("since", "from", "until", "till", "starting") and stance.tense != PAST:
        return talk.default
    if state and (stance.ended or "negates" in rule.when):
        return talk.default
    return dates.bearing(time, state=state, default=talk.default)


# ------------------------------------------------------------------------------------------------------------------- values


def _read(text: str, slot: str, match: re.Match[str], verb: Verb, clause: Clause, rule: Rule) -> list[Value]:
    """The values that stand in a slot, none if they are of the wrong sort."""
    start, end = match.span(slot)
    if slot == "verb":
        stop = until(text, verb.at, match.end()) if match.end() > verb.at else verb.at
        value = trimmed(text, verb.word, max(stop, verb.at), article=False)
        return [value] if len(value.text.split()) <= 12 else []
    if slot == "date":
        value = dates.day_at(text, start, end)
        return [value] if value else []
    explicit = f"({slot}=" in rule.pattern
    stop = until(text, start, end)
    if stop == start:
        return []
    if rule.predicate in ("uses", "project_uses") and (cut := _purpose().search(text, start, stop)):
        stop = cut.start()
    if slot in ("things", "places", "jobs"):
        check = CHECKS[{"things": "thing", "places": "place", "jobs": "job"}[slot]]
        found = list(items(text, start, stop))
        if slot == "jobs":
            found = [trimmed(text, item.start, _cut(text, item.start, item.end, "job")) for item in found]
        if slot == "places":
            found = [trimmed(text, item.start, _cut(text, item.start, item.end, "place")) for item in found]
        if found and stop < end and " " not in found[-1].text and found[-1].text.endswith("ing") and _THAT.match(text, stop):
            found.pop()
        return _checked(found, check)
    if slot not in ("whole", "long") or "," in text[start:stop]:
        stop = stop if slot == "whole" else _cut(text, start, stop, slot)
    value = trimmed(text, start, stop, article=not explicit)
    check = CHECKS.get({"whole": "long", "other": "thing", "old": "thing"}.get(slot, slot), CHECKS["thing"])
    return [value] if value.text and (explicit and slot == "thing" or check(value.text)) else []


def _checked(found: list[Value], check: object) -> list[Value]:
    """The items up to the first that will not do; all fail with the first."""
    good: list[Value] = []
    for value in found:
        if not check(value.text):  # type: ignore[operator]
            break
        good.append(value)
    return good


_THAT: Final = re.compile(r"(?:what|how|who|where|that|why)\b", re.IGNORECASE)


@cache
def _purpose() -> re.Pattern[str]:
    return re.compile(r"\s+(?:to|for|with|in|on|at|as|via|when|instead)\b", re.IGNORECASE)


@cache
def _cuts() -> dict[str, re.Pattern[str]]:
    place = r",(?!\s*(?-i:[A-Z])[\w.]+(?:\s(?-i:[A-Z])\w+)?\s*(?:$|,))|\s+(?:and|with|near|by|as|for|on|during|in|working|doing|at|to|is|was|from|or|so|about|just|together|not|living|based|who|where|before|once|area\b(?=.)|studying)\b"
    org = r",|\s+(?:and\s+(?=[a-z])|as|in|on|with|where|doing|for|by|from|to|is|since|during|near|full[- ]time|part[- ]time|building|working|writing|managing|leading|over|right|just|out\s+of|based|or)\b"
    job = r",|\s+(?:and|at|in|with|who|from|living|based|working|here|by|on|specializing|specialising|during|for|or|that)\b"
    name = r",|\s+(?:and|from|but|i|with|by|here|or|in|at|is|so|last|on|the|who|this|a|an|since|for|nearly|almost)\b|[(]"
    thing = r",|\s+(?:and|or)\s+(?=i\b|my\b|we\b)"
    return {sort: re.compile(pattern, re.IGNORECASE) for sort, pattern in
            {"place": place, "org": org, "job": job, "name": name, "known": name}.items()} | {"": re.compile(thing, re.IGNORECASE)}  # fmt: skip


def _cut(text: str, start: int, end: int, slot: str) -> int:
    found = _cuts().get(slot, _cuts()[""]).search(text, start, end)
    return found.start() if found and found.start() > start else end


def _shown(slot: str, value: Value, verb: Verb, phrase: str) -> str:
    """A value as the sentence shows it."""
    if slot in ("name", "known"):
        return titled(value.text)
    if slot in ("job", "jobs"):
        return article(value.text)
    if slot == "verb" and "plan to" in phrase:
        _, _, rest = value.text.partition(" ")
        return theirs(f"{verb.lemma} {rest}".strip())
    return theirs(value.text)


def _written(phrase: str, values: dict[str, str]) -> str:
    if re.match(r"\w+ing\b", values.get("vp", "")):
        phrase = phrase.replace("plan to {vp}", "plan on {vp}")

    def fill(slot: re.Match[str]) -> str:
        name = slot[1]
        if name in values:
            return values[name]
        kind, _, base = name.partition("_")
        return article(values[base]) if kind == "a" else f"their {values[base]}"

    return re.sub(r"\{(\w+)\}", fill, phrase)


# --------------------------------------------------------------------------------------------------------- what hangs behind


@cache
def _tails() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    return tuple((name, phrase, re.compile(pattern, re.IGNORECASE)) for name, phrase, pattern in (
        ("comes_from", "come from {}", r"[,\s]+(?:and\s+(?:i'm\s+)?)?(?:(?:male|female|nonbinary|[mf])\s*,\s*)?(?:originally\s+)?from\s+(?:the\s+)?(?P<place>(?-i:[A-Z]).*)"),
        ("lives_in", "live in {}", r"[,\s]+(?:and\s+(?:i'm\s+)?)?(?:currently\s+|now\s+)?(?:based|living|located|residing)\s+in\s+(?:the\s+)?(?P<place>\S.*)"),
    ))  # fmt: skip


def _tail(talk: Talk, clause: Clause, who: Who, verb: Verb, rule: Rule, match: re.Match[str], end: int) -> Iterator[Said]:
    """What is said right behind a name, an age or a job: "…, a nurse from Leeds living in York"."""
    text = talk.text
    if rule.predicate in ("name", "age") and (more := re.compile(r"\s*,?\s*(?=an?\s)|\s+(?=\w)").match(text, end if rule.predicate == "name" else match.end(), clause.end)):
        if rule.predicate == "age" or text[more.end() : more.end() + 2].lower() in ("a ", "an"):
            jobs = (found for found in _by_rules(talk, clause, who, replace(verb, at=more.end())) if found.predicate not in ("name", "age", "is"))
            yield from jobs
            return
    for predicate, phrase, pattern in _tails():
        found = pattern.match(text, end, clause.end)
        if found is None:
            continue
        value = trimmed(text, found.start("place"), _cut(text, found.start("place"), until(text, found.start("place"), clause.end), "place"))
        if is_place(value.text):
            yield Said(who.name, predicate, value.text, sentence(who.name, phrase.format(value.text), "asserted"), clause.start, value.end)
            end = value.end


# ------------------------------------------------------------------------------------------------------------ doing things

_NO_EVENTS: Final = frozenset(
    """be have think want need like love hate use know try decide prefer believe do make see get go give consider stop mind wish
    hope plan stand work live call name keep start begin expect lead manage build write develop read turn come take""".split()
)
_NO_HABITS: Final = frozenset("be think want need know believe wish hope plan mind stand prefer like love hate use consider decide get try see make".split())


_POINTING: Final = re.compile(r"\b(?:it|you|this|that|them|your|there|those|these|something|anything|one|him|her)\b", re.IGNORECASE)


@cache
def _often() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:every\s+(?:single\s+|other\s+)?(?:day|morning|night|evening|week|weekend|month|year|\w+day)s?|each\s+(?:day|morning|week|night)|daily|weekly|"
        r"(?:once|twice|three\s+times|four\s+times|five\s+times|\d+\s+times)\s+(?:a|per|each)\s+(?:day|week|month|year)|on\s+(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends|weekdays)|"
        r"in\s+the\s+(?:mornings|evenings)|at\s+night|before\s+(?:work|bed|breakfast)|after\s+work|\d+\s+(?:cups|hours|glasses|miles|km)\s+(?:a|per)\s+(?:day|week))\b",
        re.IGNORECASE,
    )


@cache
def _clock() -> re.Pattern[str]:
    return re.compile(r"\s*(?:at|around|by)\s+\d{1,2}(?::\d\d)?(?:\s?[ap]\.?m\b\.?)?", re.IGNORECASE)


def _doings(talk: Talk, clause: Clause, who: Who, verb: Verb) -> Iterator[Said]:
    """What somebody does again and again, did at a time, or will do at one, where no rule knows the thing itself."""
    text, stance = talk.text, verb.stance
    if stance.negated or stance.ended or stance.wished or stance.able or stance.perfect:
        return
    often = _often().search(text, verb.at, clause.end)
    before = None if often else _often().search(text, clause.lead, clause.start)
    if (stance.tense == PRESENT and not stance.future and (often or before or stance.habit)) and verb.lemma not in _NO_HABITS:
        stop = often.end() if often else until(text, verb.at, clause.end)
        stop = clock.end() if (clock := _clock().match(text, stop, clause.end)) else stop
        value = trimmed(text, verb.word, max(stop, verb.at), article=False)
        if 2 <= len(value.text.split()) <= 12 and not _POINTING.search(value.text):
            rest = value.text.partition(" ")[2]
            yield Said(who.name, "habit", value.text, sentence(who.name, f"{verb.lemma} {theirs(rest)}", "asserted"), clause.start, value.end, valid=talk.default)
        return
    ahead = stance.future or stance.tense == ING
    time = dates.named(text, clause.lead, clause.end, talk.clock, ahead=ahead)
    if stance.future and re.compile(words.LIFE, re.IGNORECASE).match(text, verb.word, clause.end) is None and time is None or not stance.future and time is None:
        return
    if time is not None and time.mark in ("since", "until", "till") or verb.lemma in _NO_EVENTS or often or stance.tense == PRESENT and not stance.future:
        return
    value = trimmed(text, verb.word, until(text, verb.at, clause.end), article=False)
    if not 2 <= len(value.text.split()) <= 10 or _POINTING.search(value.text):
        return
    if ahead and stance.perfect:
        return
    rest = value.text.partition(" ")[2]
    said = f"{who.name} plans to {theirs(f'{verb.lemma} {rest}')}" if ahead else f"{who.name} {theirs(value.text)}"
    modality = "hedged" if stance.doubted else "planned" if ahead else "stated"
    valid = time.interval if time else talk.default
    yield Said(who.name, "plans" if ahead else "did", value.text, said + (when(valid) if time else ""), clause.start, value.end, modality=modality,
               confidence=HEDGED if stance.doubted else STATED, valid=valid)  # fmt: skip

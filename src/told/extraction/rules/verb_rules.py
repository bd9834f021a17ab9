"""Apply verb rules: find the first matching rule and build claims from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from told.extraction.rules import people, slots
from told.extraction.rules.claim import (
    ASSERTED,
    HEDGED_CONFIDENCE,
    INFERRED_CONFIDENCE,
    NEGATED,
    STATED_CONFIDENCE,
    RuleClaim,
    TimeMention,
    TurnContext,
    build_sentence,
    compute_validity,
    find_time,
    format_interval,
    to_third_person,
)
from told.extraction.rules.grammar import (
    ING,
    PAST,
    PRESENT,
    Clause,
    ParsedVerb,
    Referent,
    ValueSpan,
    VerbFeatures,
    capitalise_name,
    find_value_end,
    is_place,
    parse_subject,
    parse_verb,
    trim_value,
)
from told.extraction.rules.lexicon import (
    VerbRule,
    compile_rule_pattern,
    get_pattern,
    load_predicates,
    load_verb_rules,
    load_words,
)
from told.model.kind import lookup_predicate
from told.text.dates import Interval

_MAX_ACTIVITY_WORDS: Final = 12


def parse_activity(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """Parse a habit, an event or a plan."""
    features = verb.features
    frequency = get_pattern("activity.frequency").search(ctx.text, clause.lead, clause.end)
    if (
        features.ended
        and frequency
        and not features.negated
        and verb.lemma not in load_words("NOT_HABITS")
    ):
        for claim in _parse_habit(ctx, clause, referent, verb, frequency):
            text = claim.text.replace(f"{referent.name} ", f"{referent.name} no longer ", 1)
            yield replace(claim, polarity=NEGATED, text=text)
    if features.perfect and features.tense == ING and not features.negated:
        yield from _parse_lasting(ctx, clause, referent, verb)
    if features.negated or features.ended or features.wished or features.able or features.perfect:
        return
    if features.tense == PRESENT and not features.future:
        if (frequency or features.habit) and verb.lemma not in load_words("NOT_HABITS"):
            yield from _parse_habit(ctx, clause, referent, verb, frequency)
    elif not frequency:
        yield from _parse_event(ctx, clause, referent, verb)


def parse_livelihood(ctx: TurnContext, clause: Clause) -> Iterator[RuleClaim]:
    """Parse any livelihood, e.g. "I weave rugs for a living"."""
    match = get_pattern("activity.livelihood").search(ctx.text, clause.start, clause.end)
    subject = (
        parse_subject(ctx.text, clause.start, clause.end, ctx.speaker, ctx.last_referent)
        if match
        else None
    )
    if match is None or subject is None:
        return
    value = trim_value(ctx.text, subject.verb_start, match.start(), strip_article=False)
    if 1 < len(value.text.split()) <= _MAX_ACTIVITY_WORDS and not get_pattern(
        "activity.deictic"
    ).search(value.text):
        prefix = "" if subject.referent.is_speaker else "="
        text = build_sentence(
            subject.referent.name, f"{prefix}{to_third_person(value.text)} for a living"
        )
        yield RuleClaim(
            subject.referent.name, "works_as", value.text, text, clause.start, value.end
        )


def _parse_habit(
    ctx: TurnContext,
    clause: Clause,
    referent: Referent,
    verb: ParsedVerb,
    frequency: re.Match[str] | None,
) -> Iterator[RuleClaim]:
    """Parse an activity with a frequency as a habit."""
    is_after_verb = frequency is not None and frequency.start() >= verb.complement_start
    stop = (
        frequency.end()
        if frequency and is_after_verb
        else find_value_end(ctx.text, verb.complement_start, clause.end)
    )
    if (
        not ctx.text[verb.complement_start : stop].strip()
        and len(ctx.text[verb.complement_start : clause.end].split()) < _MAX_ACTIVITY_WORDS
    ):
        stop = clause.end
    time_match = get_pattern("activity.clock").match(ctx.text, stop, clause.end)
    value = trim_value(
        ctx.text,
        verb.word_start,
        max(time_match.end() if time_match else stop, verb.complement_start),
        strip_article=False,
    )
    if _is_meaningful(value):
        text = build_sentence(
            referent.name, f"{verb.lemma} {to_third_person(value.text.partition(' ')[2])}"
        )
        yield RuleClaim(referent.name, "habit", value.text, text, clause.start, value.end)


def _parse_lasting(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """Parse a lasting activity as a habit: "I've been climbing since 2019"."""
    time = find_time(ctx.text, clause.lead, clause.end, ctx.speech_time)
    if (
        time is None
        or time.marker != "since"
        or verb.lemma in load_words("NOT_HABITS") | load_words("NOT_EVENTS")
    ):
        return
    value = trim_value(
        ctx.text,
        verb.word_start,
        max(find_value_end(ctx.text, verb.complement_start, clause.end), verb.complement_start),
        strip_article=False,
    )
    if (
        value.text
        and len(value.text.split()) <= _MAX_ACTIVITY_WORDS
        and not get_pattern("activity.deictic").search(value.text)
    ):
        text = build_sentence(referent.name, f"have been {to_third_person(value.text)}")
        yield RuleClaim(
            referent.name,
            "habit",
            value.text,
            text,
            clause.start,
            value.end,
            valid=compute_validity(time, is_state=True, default=ctx.default_interval),
        )


def _parse_event(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """Parse a dated event or plan; life events need no date when planned."""
    features = verb.features
    is_future = features.future or features.tense == ING
    time = find_time(ctx.text, clause.lead, clause.end, ctx.speech_time, is_future=is_future)
    is_life_event = features.future and get_pattern("words.life").match(
        ctx.text, verb.word_start, clause.end
    )
    if (verb.lemma in load_words("NOT_EVENTS") and not is_life_event) or (
        time is None and not is_life_event
    ):
        return
    if (time is not None and time.is_open_ended) or (not is_future and features.tense != PAST):
        return
    value = trim_value(
        ctx.text,
        verb.word_start,
        find_value_end(ctx.text, verb.complement_start, clause.end),
        strip_article=False,
    )
    if not _is_meaningful(value):
        return
    plan_phrase = to_third_person(f"plan to {verb.lemma} {value.text.partition(' ')[2]}")
    text = build_sentence(
        referent.name, plan_phrase if is_future else f"={to_third_person(value.text)}"
    ) + (format_interval(time.interval) if time else "")
    modality = "hedged" if features.doubted else "planned" if is_future else "stated"
    yield RuleClaim(
        referent.name,
        "plans" if is_future else "did",
        value.text,
        text,
        clause.start,
        value.end,
        modality=modality,
        confidence=HEDGED_CONFIDENCE if features.doubted else STATED_CONFIDENCE,
        valid=time.interval if time else ctx.default_interval,
    )


def _is_meaningful(value: ValueSpan) -> bool:
    """Return True if an activity is understandable without context."""
    return 2 <= len(value.text.split()) <= _MAX_ACTIVITY_WORDS and not get_pattern(
        "activity.deictic"
    ).search(value.text)


_OWNERSHIP_VERBS: Final = frozenset("have get adopt own foster".split())
_TIMELESS_PREDICATES: Final = frozenset("born_in born_on comes_from age".split())
_MAX_NOTE_WORDS: Final = 12
_SINCE_LOOKAHEAD: Final = 12
"""Number of characters after a clause searched for "since"."""
_TAIL_PHRASES: Final = {"comes_from": "come from {}", "lives_in": "live in {}"}


def parse_verb_clause(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """Return the claims of a verb about a referent."""
    verb = replace(verb, features=_complete_features(ctx, clause, verb.features))
    features = verb.features
    if features.supposed:
        return
    if (
        not referent.is_speaker
        and verb.lemma == "be"
        and (relation_claim := people.parse_is_mine(ctx, clause, referent, verb.complement_start))
    ):
        if not features.negated and features.tense == PRESENT:
            yield relation_claim
        return
    if _is_ownership(verb):
        denial = "no longer" if features.ended else "no" if features.negated else ""
        if household_claims := list(
            people.parse_household(ctx, clause, referent, verb.complement_start, denial)
        ):
            yield from household_claims
            return
    yield from apply_verb_rules(ctx, clause, referent, verb)


def _complete_features(ctx: TurnContext, clause: Clause, features: VerbFeatures) -> VerbFeatures:
    """Complete the verb features with the end of the clause: "not … any more"."""
    if features.negated and get_pattern("verbal.no_more").search(
        ctx.text, clause.start, clause.end
    ):
        return replace(features, ended=True, negated=False)
    return features


def _is_ownership(verb: ParsedVerb) -> bool:
    """Return True if a verb states current possession."""
    features = verb.features
    if verb.lemma not in _OWNERSHIP_VERBS or features.wished or features.future or features.doubted:
        return False
    return (
        (features.tense == PRESENT) if verb.lemma in ("have", "own") else (features.tense == PAST)
    )


def apply_verb_rules(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb
) -> Iterator[RuleClaim]:
    """Apply the first matching rule and parse what follows it."""
    for rule in load_verb_rules().get(verb.lemma, ()):
        match = compile_rule_pattern(rule.pattern).match(
            ctx.text, verb.complement_start, clause.end
        )
        claims = (
            list(_RuleReading(ctx, clause, referent, verb, rule).build_claims(match))
            if match and _is_applicable(rule, referent, verb)
            else []
        )
        if not (match and claims):
            continue
        if rule.predicate == "name" and referent.relation:
            yield people.build_relation_claim(
                ctx.speaker, referent.relation, claims[0].object, clause.start, claims[0].end
            )
            return
        yield from claims
        if "tail" in rule.flags:
            yield from _parse_tail(
                ctx,
                clause,
                referent,
                replace(verb, complement_start=match.end()),
                rule,
                claims[-1].end,
            )
        elif verb.lemma == "be" and verb.features == VerbFeatures():
            yield from _parse_more_notes(ctx, clause, referent, claims[-1].end)
        return
    if referent.is_speaker or referent.relation:
        yield from parse_activity(ctx, clause, referent, verb)


# Matching


def _is_applicable(rule: VerbRule, referent: Referent, verb: ParsedVerb) -> bool:
    """Return True if a rule applies to the referent and the verb features."""
    flags, features = rule.flags, verb.features
    is_denied = features.negated or features.ended
    if ("first" in flags and not referent.is_speaker) or features.wished != ("wished" in flags):
        return False
    if (
        not referent.is_speaker
        and not referent.is_person
        and rule.predicate not in load_predicates("PERSON_PREDICATES")
    ):
        return False
    if (flags & {"denied", "deny"} and not is_denied) or ("able" in flags and not features.able):
        return False
    if features.able and not is_denied and rule.predicate not in ("speaks", "plays"):
        return False
    if ("perfect" in flags and not features.perfect) or (
        "passive" in flags and not features.passive
    ):
        return False
    if "future" in flags:
        return (
            features.future or (features.tense == ING and not features.perfect)
        ) and not is_denied
    is_doubted_state = features.doubted and verb.lemma == "be"
    return (not features.future or "planned" in flags or is_doubted_state) and _is_tense_match(
        rule, verb
    )


def _is_tense_match(rule: VerbRule, verb: ParsedVerb) -> bool:
    flags, features = rule.flags, verb.features
    if flags & {"any", "state"}:
        return True
    wanted_tense = next((tense for tense in (PAST, ING, PRESENT) if tense in flags), "")
    if wanted_tense:
        return features.tense == wanted_tense
    if features.tense == PAST and not features.perfect:
        is_former = (
            rule.predicate in load_predicates("PAST_PREDICATES") or rule.predicate == "comes_from"
        )
        return verb.lemma == "be" and is_former and "job" not in flags
    return True


# Claims


@dataclass(frozen=True, slots=True)
class _RuleReading:
    """A rule applied to a verb."""

    ctx: TurnContext
    clause: Clause
    referent: Referent
    verb: ParsedVerb
    rule: VerbRule

    def build_claims(self, match: re.Match[str]) -> Iterator[RuleClaim]:
        """Build the claims of a match, or none if a value is invalid."""
        ctx, clause, flags = self.ctx, self.clause, self.rule.flags
        filled_slots = [slot for slot in match.groupdict() if match.start(slot) >= 0]
        values_by_slot = {
            slot: slots.parse_slot_values(ctx.text, slot, match, self.verb, self.rule)
            for slot in filled_slots
        }
        main_slot = next(
            (
                slot
                for slot in ("org", *filled_slots)
                if slot in values_by_slot and slot not in ("old", "other")
            ),
            "",
        )
        if (
            not main_slot
            or not all(values_by_slot.values())
            or not self._is_acceptable(values_by_slot[main_slot][0].text)
        ):
            return
        time = find_time(
            ctx.text, clause.lead, clause.end, ctx.speech_time, is_future="planned" in flags
        )
        if ("dated" in flags and time is None) or self._is_over(time):
            return
        for value in values_by_slot[main_slot]:
            yield from self._build_value_claims(
                main_slot,
                {slot: values[0] for slot, values in values_by_slot.items()} | {main_slot: value},
                time,
            )

    def _is_acceptable(self, value: str) -> bool:
        if "job" in self.rule.flags and value.lower() in load_words("FIRST_NAMES"):
            return False
        if "study" in self.rule.flags and value.lower() in load_words("STUDENTS"):
            return False
        return not self.rule.flags & {"capital", "org"} or any(
            c.isupper() or c.isdigit() for c in value
        )

    def _is_over(self, time: TimeMention | None) -> bool:
        """Return True for a finished action: "I've played chess"."""
        features = self.verb.features
        is_perfect = (
            features.perfect
            and features.tense == PAST
            and not features.habit
            and not self.rule.flags & {"past", "any"}
        )
        since = get_pattern("verbal.since").search(
            self.ctx.text, self.verb.complement_start, self.clause.end + _SINCE_LOOKAHEAD
        )
        return is_perfect and since is None and (time is None or time.marker != "since")

    def _build_value_claims(
        self, main_slot: str, values: dict[str, ValueSpan], time: TimeMention | None
    ) -> Iterator[RuleClaim]:
        """Build the claim of a value, and the denial of the one it replaces, if named."""
        referent, flags = self.referent, self.rule.flags
        predicate, polarity, phrase = self._resolve_polarity()
        if not polarity:
            return
        is_former, value = self._is_former(), values[main_slot]
        valid = self.ctx.default_interval if is_former else self._compute_validity(predicate, time)
        text = self._build_text(slots.fill_phrase(phrase, values, self.verb), polarity)
        if lookup_predicate(predicate).kind == "event" and valid != self.ctx.default_interval:
            text = get_pattern("dates.expression").sub("", text).rstrip() + format_interval(valid)
        is_doubted = self.verb.features.doubted or "maybe" in flags
        claim = RuleClaim(
            referent.name,
            predicate,
            capitalise_name(value.text) if main_slot in ("name", "known") else value.text,
            text,
            self.clause.start,
            max(slot_value.end for slot_value in values.values()),
            polarity,
            "hedged" if is_doubted else "planned" if "planned" in flags else "stated",
            HEDGED_CONFIDENCE if is_doubted else STATED_CONFIDENCE,
            valid,
            {
                slot: slot_value.text
                for slot, slot_value in values.items()
                if slot in ("job", "other") and slot != main_slot
            },
        )
        yield _to_diet_denial(claim) if predicate == "diet_again" else claim
        if "old" in values:
            old_value = values["old"]
            ended_text = f"{referent.name} no longer {predicate} {old_value.text}"
            yield RuleClaim(
                referent.name,
                predicate,
                old_value.text,
                ended_text,
                self.clause.start,
                old_value.end,
                NEGATED,
                valid=valid,
            )

    def _build_text(self, phrase: str, polarity: str) -> str:
        is_ended = self.verb.features.ended
        return build_sentence(
            self.referent.name,
            phrase,
            polarity,
            is_former=self._is_former() or (is_ended and bool(self._match_used_to())),
            is_ended=is_ended or "negates" in self.rule.flags,
        )

    def _resolve_polarity(self) -> tuple[str, str, str]:
        """Return predicate, polarity and phrase after negation; no polarity means no claim."""
        rule, features = self.rule, self.verb.features
        predicate, phrase = rule.predicate, rule.phrase
        if "denied" in rule.flags:
            return predicate, ASSERTED, phrase
        if features.ended and predicate not in load_predicates(
            "DENIABLE_PREDICATES"
        ) | load_predicates("ENDING_PREDICATES"):
            return predicate, "", phrase
        if features.ended or "negates" in rule.flags or self._is_former():
            return predicate, NEGATED, phrase
        if not features.negated:
            return predicate, ASSERTED, phrase
        if rule.opposite:
            return rule.opposite, ASSERTED, re.sub(r"^\w+(?: \w+)*? (?=\{)", "dislike ", phrase)
        is_deniable = predicate in load_predicates("DENIABLE_PREDICATES") and (
            features.perfect or lookup_predicate(predicate).kind != "event"
        )
        return predicate, NEGATED if is_deniable else "", phrase

    def _is_former(self) -> bool:
        """Return True if a state is told in the past tense: "I lived in Paris"."""
        features = self.verb.features
        is_state = "state" in self.rule.flags or self.verb.lemma == "be"
        if self.rule.predicate in _TIMELESS_PREDICATES:
            return False
        return (
            is_state
            and features.tense == PAST
            and not features.perfect
            and not self.rule.phrase.startswith("=")
        )

    def _match_used_to(self) -> re.Match[str] | None:
        return get_pattern("verbal.used_to").search(
            self.ctx.text, self.clause.start, self.verb.complement_start
        )

    def _compute_validity(self, predicate: str, time: TimeMention | None) -> Interval:
        """Return the validity; a state without "since" or "until" gets the default."""
        features, default = self.verb.features, self.ctx.default_interval
        is_state = lookup_predicate(predicate).kind != "event"
        if predicate in _TIMELESS_PREDICATES or (
            is_state and (features.ended or "negates" in self.rule.flags)
        ):
            return default
        if is_state and time is not None and not time.is_open_ended and features.tense != PAST:
            return default
        return compute_validity(time, is_state=is_state, default=default)


def _to_diet_denial(claim: RuleClaim) -> RuleClaim:
    """Turn "eats meat again" into a denied vegetarian diet."""
    return replace(
        claim,
        predicate="diet",
        object="vegetarian",
        polarity=NEGATED,
        modality="inferred",
        confidence=INFERRED_CONFIDENCE,
    )


# Notes and tails


def parse_notes(
    ctx: TurnContext, clause: Clause, referent: Referent, start: int
) -> list[RuleClaim]:
    """Parse comma-separated notes: "29, product designer, living in Barcelona"."""
    claims: list[RuleClaim] = []
    position = start
    for comma in (*get_pattern("verbal.notes").finditer(ctx.text, start, clause.end), None):
        part = trim_value(ctx.text, position, comma.start() if comma else clause.end)
        position = comma.end() if comma else clause.end
        if len(part.text.split()) > _MAX_NOTE_WORDS:
            break
        claims += parse_note(ctx, referent, part)
    return [claim for claim in claims if claim.predicate != "name"]


def parse_note(ctx: TurnContext, referent: Referent, part: ValueSpan) -> list[RuleClaim]:
    """Parse one short note: a possession, an activity or a state."""
    clause = Clause(part.start, part.end, lead=part.start)
    household_claims = list(people.parse_household(ctx, clause, referent, part.start))
    if household_claims:
        return household_claims
    verb = parse_verb(ctx.text, part.start, part.end)
    is_note_verb = (
        verb is not None
        and verb.features.tense in (PRESENT, ING)
        and verb.lemma in load_words("NOTE_VERBS")
    )
    if verb is not None and is_note_verb and verb.word_start == part.start:
        return list(apply_verb_rules(ctx, clause, referent, verb))
    return list(
        apply_verb_rules(
            ctx, clause, referent, ParsedVerb("be", VerbFeatures(), part.start, part.start)
        )
    )


def _parse_more_notes(
    ctx: TurnContext, clause: Clause, referent: Referent, end: int
) -> list[RuleClaim]:
    """Parse further states after a comma: "I'm vegan, left-handed, and terrible with names"."""
    comma = get_pattern("verbal.comma").match(ctx.text, end, clause.end)
    return parse_notes(ctx, clause, referent, comma.end()) if comma else []


def _parse_tail(
    ctx: TurnContext, clause: Clause, referent: Referent, verb: ParsedVerb, rule: VerbRule, end: int
) -> Iterator[RuleClaim]:
    """Parse what follows a name, age or job: "…, a nurse from Leeds living in York"."""
    claims: list[RuleClaim] = []
    if rule.predicate == "name":
        claims = parse_notes(ctx, clause, referent, end)
    elif rule.predicate == "age":
        rule_claims = apply_verb_rules(
            ctx, clause, referent, replace(verb, complement_start=verb.complement_start)
        )
        claims = [claim for claim in rule_claims if claim.predicate not in ("name", "age", "is")]
        claims = claims or _parse_more_notes(ctx, clause, referent, end)
    yield from claims
    if claims:
        return
    for predicate, phrase in _TAIL_PHRASES.items():
        tail = get_pattern(f"verbal.tail_{predicate}").match(ctx.text, end, clause.end)
        place = slots.parse_place(ctx.text, tail.start("place"), clause.end) if tail else None
        if place and is_place(place.text):
            text = build_sentence(referent.name, phrase.format(place.text))
            yield RuleClaim(referent.name, predicate, place.text, text, clause.start, place.end)
            end = place.end

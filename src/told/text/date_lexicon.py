"""Date expressions as data: words in several languages, their templates, and calendar steps.

To add a language, add its words to the tables and its word order to `DATE_FORMS`; the rest of the
module matches them against a text, and `dates` interprets the matches. Words are lower case without
accents, as `fold_text` returns them; an underscore is a space inside a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import cache, lru_cache
from typing import Final, NamedTuple, TypeAlias, TypeVar

from told.runtime import lazy_regex

_T = TypeVar("_T")


def fold_text(text: str) -> str:
    """Fold a text as the tables spell it: no case, accents, extra spaces or outer punctuation."""
    if text.isascii():
        return " ".join(text.lower().split()).strip(" .,;:!?")
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(c for c in decomposed if not unicodedata.combining(c)).split()).strip(
        " .,;:!?"
    )


def _build_word_table(rows: Mapping[_T, str]) -> dict[str, _T]:
    return {
        fold_text(word.replace("_", " ")): meaning
        for meaning, words in rows.items()
        for word in words.split()
    }


# Calendar steps

UNIT_MONTHS: Final = {"month": 1, "quarter": 3, "season": 3, "year": 12, "decade": 120}
UNIT_DAYS: Final = {"day": 1, "weekend": 2, "week": 7}
UNIT_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600}


def shift_date(day: date, unit: str, count: int) -> date:
    """Return the date this many units later; the 31st becomes the last day of a shorter month."""
    if unit in UNIT_DAYS:
        return day + timedelta(days=count * UNIT_DAYS[unit])
    year, month = divmod(day.year * 12 + day.month - 1 + count * UNIT_MONTHS[unit], 12)
    last_day = 31 if month == 11 else (date(year, month + 2, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last_day))


def start_of_unit(day: date, unit: str) -> date:
    """Return the first day of the unit that contains this day."""
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return date(day.year, day.month - (day.month - 1) % 3, 1)
        case "year":
            return date(day.year, 1, 1)
        case "decade":
            return date(max(day.year - day.year % 10, 1), 1, 1)
    return day


@dataclass(frozen=True, slots=True)
class RecurringUnit:
    """A unit that recurs weekly (position: days after Monday) or yearly (its first month)."""

    unit: str
    position: int

    def start_in_cycle(self, today: date, cycle: int = 0) -> date:
        """Return its first day, this many weeks or years from now."""
        if self.unit in UNIT_DAYS:
            return start_of_unit(today, "week") + timedelta(weeks=cycle, days=self.position)
        return date(today.year + cycle, self.position, 1)

    def resolve_start(self, today: date, direction: int | None) -> date:
        """Return its first day: the last completed (-1), the current (0) or the next one (1).

        Without a direction it is the last that has begun.
        """
        starts = [self.start_in_cycle(today, cycle) for cycle in (-2, -1, 0, 1, 2)]
        match direction:
            case -1:
                return max(start for start in starts if shift_date(start, self.unit, 1) <= today)
            case 0:
                return next(
                    (start for start in starts if start <= today < shift_date(start, self.unit, 1)),
                    starts[2],
                )
            case 1:
                return min(start for start in starts if start > today)
        return max(start for start in starts if start <= today)


# Words

NUMBER_WORDS: Final = _build_word_table(
    {
        1: "a an one un una une ein eine einem einer einen 一",
        2: "two a_couple a_couple_of couple_of dos zwei deux 二 两 兩",
        3: "three a_few few tres drei trois 三",
        4: "four cuatro vier quatre 四",
        5: "five cinco fünf cinq 五",
        6: "six seis sechs 六",
        7: "seven siete sieben sept 七",
        8: "eight ocho acht huit 八",
        9: "nine nueve neun neuf 九",
        10: "ten diez zehn dix 十",
        11: "eleven once elf onze 十一",
        12: "twelve doce zwölf douze 十二",
        13: "thirteen trece dreizehn treize 十三",
        14: "fourteen catorce vierzehn quatorze 十四",
        15: "fifteen quince fünfzehn quinze 十五",
        16: "sixteen dieciséis sechzehn seize 十六",
        17: "seventeen diecisiete siebzehn 十七",
        18: "eighteen dieciocho achtzehn 十八",
        19: "nineteen diecinueve neunzehn 十九",
        20: "twenty veinte zwanzig vingt 二十",
        30: "thirty treinta dreissig dreißig trente 三十",
    }
)
ORDINAL_WORDS: Final = _build_word_table(
    {
        1: "first 1st primer primera erste ersten premier premiere",
        2: "second 2nd segunda segundo zweite zweiten deuxieme",
        3: "third 3rd tercera tercer dritte dritten troisieme",
        4: "fourth 4th cuarta vierte vierten quatrieme",
        -1: "last final ultima ultimo letzte letzten derniere",
    }
)
UNIT_WORDS: Final = _build_word_table(
    {
        "second": "second seconds sec secs segundo segundos sekunde sekunden seconde secondes 秒 "
        "秒钟",
        "minute": "minute minutes min mins minuto minutos minuten 分 分钟 分鐘",
        "hour": "hour hours hr hrs hora horas stunde stunden heure heures 小时 小時 个小时 時間",
        "day": "day days día días tag tage tagen jour jours 天 日",
        "week": "week weeks semana semanas woche wochen semaine semaines 周 週 星期 个星期 週間",
        "month": "month months mes meses monat monate monaten mois 月 个月 個月 か月 ヶ月",
        "quarter": "quarter quarters trimestre trimestres quartal quartale quartalen 季度 个季度",
        "year": "year years año años jahr jahre jahren an ans année années 年",
        "decade": "decade decades década décadas jahrzehnt jahrzehnte jahrzehnten décennie "
        "décennies",
    }
)
RELATIVE_MODIFIERS: Final = _build_word_table(
    {
        -1: """last previous past this_past letzte letzten letztes letzter vergangene vergangenen
            vergangenes vergangener pasado pasada dernier dernière 上 上个 上個 上一 上一个 先""",
        0: "this current diese diesen dieses dieser este esta ce cet cette 这 这个 這 這個 本 今",
        1: """next coming this_coming nächste nächsten nächstes nächster kommende kommenden
            kommendes kommender próximo próxima que_viene prochain prochaine 下 下个 下個 下一
            下一个 来""",
    }
)
RELATIVE_DATE_WORDS: Final = _build_word_table(
    {
        (
            "day",
            -2,
        ): "day_before_yesterday the_day_before_yesterday vorgestern anteayer avant-hier 前天 "
        "一昨日 おととい",
        ("day", -1): "yesterday gestern ayer anoche hier 昨天 昨日 昨晚 昨夜 きのう",
        ("day", 0): "today tonight heute hoy aujourd'hui 今天 今日 今晚 今夜 きょう",
        ("day", 1): "tomorrow morgen mañana demain 明天 明日",
        (
            "day",
            2,
        ): "day_after_tomorrow the_day_after_tomorrow übermorgen après-demain 后天 後天 明後日",
        (
            "week",
            -2,
        ): "week_before_last the_week_before_last vorletzte_woche 上上周 上上个星期 先々週",
        (
            "week",
            2,
        ): "week_after_next the_week_after_next übernächste_woche 下下周 下下个星期 再来週",
        ("month", -2): "month_before_last the_month_before_last vorletzten_monat 上上个月 先々月",
        ("year", -2): "year_before_last the_year_before_last vorletztes_jahr 前年 一昨年",
        ("year", -1): "去年 昨年",
        ("year", 0): "今年",
        ("year", 1): "明年",
    }
)
_WEEKDAYS: Final = _build_word_table(
    {
        RecurringUnit("day", 0): "monday mon lunes montag lundi 周一 星期一 礼拜一 月曜日 月曜",
        RecurringUnit(
            "day", 1
        ): "tuesday tue tues martes dienstag mardi 周二 星期二 礼拜二 火曜日 火曜",
        RecurringUnit(
            "day", 2
        ): "wednesday wed miércoles mittwoch mercredi 周三 星期三 礼拜三 水曜日 水曜",
        RecurringUnit(
            "day", 3
        ): "thursday thu thurs jueves donnerstag jeudi 周四 星期四 礼拜四 木曜日 木曜",
        RecurringUnit(
            "day", 4
        ): "friday fri viernes freitag vendredi 周五 星期五 礼拜五 金曜日 金曜",
        RecurringUnit(
            "day", 5
        ): "saturday sat sábado samstag sonnabend samedi 周六 星期六 礼拜六 土曜日 土曜",
        RecurringUnit(
            "day", 6
        ): "sunday sun domingo sonntag dimanche 周日 星期天 星期日 礼拜天 日曜日 日曜",
        RecurringUnit("weekend", 5): "weekend fin_de_semana wochenende week-end 周末 週末",
    }
)
_MONTHS: Final = _build_word_table(
    {
        RecurringUnit("month", 1): "january jan enero januar jänner janvier 一月 1月",
        RecurringUnit("month", 2): "february feb febrero februar février 二月 2月",
        RecurringUnit("month", 3): "march mar marzo märz mars 三月 3月",
        RecurringUnit("month", 4): "april apr abril avril 四月 4月",
        RecurringUnit("month", 5): "may mayo mai 五月 5月",
        RecurringUnit("month", 6): "june jun junio juni juin 六月 6月",
        RecurringUnit("month", 7): "july jul julio juli juillet 七月 7月",
        RecurringUnit("month", 8): "august aug agosto août 八月 8月",
        RecurringUnit("month", 9): "september sep sept septiembre septembre 九月 9月",
        RecurringUnit("month", 10): "october oct octubre oktober octobre 十月 10月",
        RecurringUnit("month", 11): "november nov noviembre novembre 十一月 11月",
        RecurringUnit("month", 12): "december dec diciembre dezember décembre 十二月 12月",
    }
)
_SEASONS: Final = _build_word_table(
    {
        RecurringUnit("season", 3): "spring primavera frühling frühjahr printemps 春天 春",
        RecurringUnit("season", 6): "summer verano sommer été 夏天 夏",
        RecurringUnit("season", 9): "autumn fall otoño herbst automne 秋天 秋",
        RecurringUnit("season", 12): "winter invierno hiver 冬天 冬",
    }
)
CALENDAR_NAMES: Final = _WEEKDAYS | _MONTHS | _SEASONS
EDGE_WORDS: Final = _build_word_table(
    {
        0.0: "beginning start early anfang principios comienzos début",
        0.5: "middle mid mitte mediados milieu",
        1.0: "end late ende finales fin",
    }
)
CLOCK_WORDS: Final = _build_word_table(
    {0: "midnight mitternacht medianoche minuit", 12: "noon midday mittag mediodía midi"}
)
DAY_PART_WORDS: Final = _build_word_table(
    {
        (6, 12): "morning morgen früh vormittag mañana matin 早上 上午",
        (12, 18): "afternoon nachmittag tarde après-midi 下午",
        (18, 24): "evening abend soir 晚上",
        (18, 30): "night nacht noche nuit",
    }
)


def parse_number_word(word: str) -> int:
    """Parse a number word or digits."""
    return NUMBER_WORDS[word] if word in NUMBER_WORDS else int(word)


def parse_time_of_day(clock: str) -> time:
    """Parse a time such as "noon", "3pm", "3:30 p.m" or "15:30"."""
    if clock in CLOCK_WORDS:
        return time(CLOCK_WORDS[clock])
    hour, _, minute = re.sub("[^0-9:]", "", clock).partition(":")
    past_noon = 12 if "p" in clock else 0
    return time(int(hour) % 12 + past_noon if clock.endswith("m") else int(hour), int(minute or 0))


# Templates


def _filter_by_initial(letters: str, words: Mapping[str, _T]) -> dict[str, _T]:
    return {word: meaning for word, meaning in words.items() if word[0] in letters}


SLOT_DIGITS: Final[Mapping[str, tuple[str, ...]]] = {
    "n": (r"\d{1,6}",),
    "year": (r"\d{4}",),
    "day": (r"\d{1,2}(?:st|nd|rd|th|er|\.)?",),
    "digits": (r"\d{1,2}",),
    "clock": (r"\d{1,2}(?::\d\d)? ?[ap]\.?m", r"\d{1,2}:\d\d"),
}
"""Digit patterns of the slots."""
SLOT_WORDS: Final[Mapping[str, Mapping[str, object]]] = {
    "n": NUMBER_WORDS,
    "nth": ORDINAL_WORDS,
    "unit": UNIT_WORDS,
    "turn": RELATIVE_MODIFIERS,
    "word": RELATIVE_DATE_WORDS,
    "name": CALENDAR_NAMES,
    "thing": {**CALENDAR_NAMES, **UNIT_WORDS},
    "weekday": _WEEKDAYS,
    "month": _MONTHS,
    "yearly": _MONTHS | _SEASONS,
    "edge": EDGE_WORDS,
    "clock": CLOCK_WORDS,
    "part": DAY_PART_WORDS,
    "weekday_zh": _filter_by_initial("周星礼", _WEEKDAYS),
    "part_zh": _filter_by_initial("早上下晚", DAY_PART_WORDS),
}
"""Words of the slots; a suffix after an underscore narrows a slot."""
# Modifiers that may follow their noun: "la semana pasada", but not "May this".
_POSTPOSED_MODIFIERS: Final = "last|next|pasad[oa]|derniere|dernier|que viene|proxim[oa]|prochaine?"
# The first matching form wins; `{slot}` matches one of the words above.
DATE_FORMS: Final = {
    "now": ("(?:right )?now", "ahora", "jetzt", "maintenant", "现在", "現在"),
    "word": ("{word}",),
    "ago": (
        "{n} {unit} (?:ago|earlier|back)",
        "hace {n} {unit}",
        "vor {n} {unit}",
        "il y a {n} {unit}",
        "{n} ?{unit}[之以]?前",
    ),
    "ahead": (
        "in {n} {unit}(?: time)?",
        "{n} {unit} from now",
        "dentro de {n} {unit}",
        "en {n} {unit}",
        "dans {n} {unit}",
        "{n} ?{unit}[之以]?[后後]",
    ),
    "window": (
        "(?:the |these )?(?:last|past) {n} {unit}",
        "(?:the )?past {unit}",
        "(?:l[oa]s )?ultim[oa]s {n} {unit}",
        "(?:(?:in )?den |die )?letzten {n} {unit}",
        "(?:(?:in )?den |die )?vergangenen {n} {unit}",
        "过去{n} ?{unit}",
        "最近{n} ?{unit}",
        "過去{n} ?{unit}",
    ),
    "weekday_of_week": (
        "{weekday} (?:of )?{turn} week",
        "{turn} week(?:'s)? {weekday}",
        "{turn}{weekday_zh}",
    ),
    "turn": (
        "{turn} {thing}",
        f"(?:el |la |le |l')?{{thing}} (?P<turn>{_POSTPOSED_MODIFIERS})",
        "{turn}{thing}",
    ),
    "name": ("{name}",),
    "name_of_year": ("{yearly},? (?:of |de |del |in )?{year}", "{year}(?: ?年 ?[的の]?| ){yearly}"),
    "month_of_year": ("{year} ?年 ?{digits} ?月", "{digits}/{year}"),
    "date": (
        "{month} {day}(?:,? {year})?",
        "(?:the )?{day} (?:of |de )?{month}(?:,? (?:de |del )?{year})?",
    ),
    "numbered_date": (r"(?:{year} ?年 ?)?{digits} ?月 ?(?P<numbered>\d{1,2}) ?[日号號]",),
    "year": ("{year} ?年", "(?:the )?year {year}", "ano {year}", "jahr {year}"),
    "decade": (r"(?:the )?(?P<decade>\d{3}0)'?s",),
    "edge": ("(?:the |at the |a )?{edge}[- ](?:of |de |del |des |du )?(?:the )?{rest}",),
    "clock": ("(?:at )?{clock},? (?:on )?{rest}", "{rest},? (?:at |um |a las )?{clock}"),
    "part": ("{rest},? (?:in the |at |am |in der |por la |de la )?{part}", "{rest}{part_zh}"),
    "inner": ("(?:in|on|at|during|from|by|the|am|im|en|el|la|le|au|vom) {rest}",),
}


# Time vocabulary

_TIME_TOKEN: Final = lazy_regex("[a-z]+|[\u3040-\u30ff\u3400-\u9fff]{1,2}")
_LETTERS_ONLY: Final = {
    code: chr(code).lower() if chr(code).isalpha() else " " for code in range(128)
}
_YEAR_PATTERN: Final = re.compile("(?:19|20)[0-9]{2}(?![0-9])")
_LOOSE_TIME_WORDS: Final = frozenset(
    "ago since recently lately soon just now seit desde hace depuis kürzlich".split()
)


@cache
def _time_vocabulary() -> frozenset[str]:
    """Return the single words that refer to time."""
    return _LOOSE_TIME_WORDS.union(
        *(
            table.keys()
            for table in (
                UNIT_WORDS,
                RELATIVE_MODIFIERS,
                RELATIVE_DATE_WORDS,
                CALENDAR_NAMES,
                DAY_PART_WORDS,
            )
        )
    )


def count_time_words(text: str, limit: int) -> int:
    """Count the time words of a text, up to a limit."""
    folded = text if text.isascii() else fold_text(text)
    words = (
        folded.translate(_LETTERS_ONLY).split() if folded.isascii() else _TIME_TOKEN.findall(folded)
    )
    return min(
        sum(map(_time_vocabulary().__contains__, words)) + len(_YEAR_PATTERN.findall(folded)), limit
    )


_SlotSpan: TypeAlias = tuple[str, int, int]
_TemplateStep: TypeAlias = str | re.Pattern[str]


class DateMatch(NamedTuple):
    """A template match: its span, the text of each slot ("" if empty) and their offsets."""

    start: int
    end: int
    text: str
    slots: Mapping[str, str]
    slot_starts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DateTemplate:
    """A compiled template: its steps, and the words and digits it requires."""

    steps: tuple[_TemplateStep, ...]
    required_words: tuple[str, ...]
    needs_digits: bool

    @classmethod
    def from_template(cls, template: str) -> DateTemplate:
        """Compile a template over the slots, for folded texts."""
        expanded = _SLOT_PATTERN.sub(_expand_digit_slot, template)
        steps = [
            part if index % 2 else _compile_pattern(part)
            for index, part in enumerate(_SLOT_PATTERN.split(expanded))
            if part
        ]
        required_words = _REQUIRED_WORD.findall(_VARIABLE_PART.sub(" ", template))
        return cls(tuple(steps), tuple(required_words), r"\d" in _OPTIONAL_GROUP.sub("", expanded))

    def match(self, text: str, start: int = 0, *, full: bool = False) -> DateMatch | None:
        """Match a text at a position; `full` requires a match to its end."""
        if not self.can_match(text) or not (
            matched := _match_steps(self.steps, text, start, full, ())
        ):
            return None
        end, spans = matched
        slots = {slot.partition("_")[0]: text[first:last] for slot, first, last in spans}
        return DateMatch(
            start, end, text[start:end], slots, {slot: first for slot, first, _ in spans}
        )

    def can_match(self, text: str) -> bool:
        """Return True if a text contains everything the template requires."""
        has_words = not self.required_words or all(map(text.__contains__, self.required_words))
        return has_words and (not self.needs_digits or _has_digits(text))

    def can_start_with(self, letter: str) -> bool:
        """Return True if a match may begin with a letter, judging by the first slot."""
        first = self.steps[0]
        return (
            first not in SLOT_WORDS
            or letter in _slot_words_by_letter(str(first))
            or (letter in _DIGIT_CHARS and first in SLOT_DIGITS)
        )


def _match_steps(
    steps: tuple[_TemplateStep, ...],
    text: str,
    position: int,
    full: bool,
    spans: tuple[_SlotSpan, ...],
) -> tuple[int, tuple[_SlotSpan, ...]] | None:
    """Match steps at a position; return the end and the slot spans."""
    if not steps:
        return None if full and position < len(text) else (position, spans)
    step, remaining_steps = steps[0], steps[1:]
    if isinstance(step, str):
        for end in _slot_ends(step, text, position):
            if matched := _match_steps(
                remaining_steps, text, end, full, (*spans, (step, position, end))
            ):
                return matched
        return None
    match = (
        step.match(text, position)
        if remaining_steps or not full
        else step.fullmatch(text, position)
    )
    if match is None:
        return None
    groups = ((name, *match.span(name)) for name in step.groupindex) if step.groups else ()
    return _match_steps(remaining_steps, text, match.end(), full, (*spans, *groups))


# Slots


@lru_cache(maxsize=256)
def _slot_ends(slot: str, text: str, position: int) -> Sequence[int]:
    """Return the possible ends of a slot, longest word first; for the rest, shortest first."""
    if slot == "rest":
        return range(position + 1, len(text) + 1)
    first = text[position : position + 1]
    figures = (
        _compile_pattern(figures).match(text, position)
        for figures in SLOT_DIGITS.get(slot, ())
        if first in _DIGIT_CHARS
    )
    words = (
        position + len(word)
        for word in _slot_words_by_letter(slot).get(first, ())
        if text.startswith(word, position)
    )
    return *(match.end() for match in figures if match), *words


@cache
def _slot_words_by_letter(slot: str) -> Mapping[str, Sequence[str]]:
    """Group the words of a slot by first letter, longest first."""
    by_letter: dict[str, list[str]] = {}
    for word in sorted(SLOT_WORDS[slot], key=len, reverse=True):
        by_letter.setdefault(word[0], []).append(word)
    return by_letter


def _expand_digit_slot(slot: re.Match[str]) -> str:
    """Replace a digits-only slot by its pattern."""
    return (
        slot[0]
        if slot[1] in SLOT_WORDS or slot[1] == "rest"
        else f"(?P<{slot[1]}>{'|'.join(SLOT_DIGITS[slot[1]])})"
    )


@lru_cache(maxsize=64)
def _has_digits(text: str) -> bool:
    return not _DIGIT_CHARS.isdisjoint(text)


@cache
def _compile_pattern(source: str) -> re.Pattern[str]:
    return lazy_regex(source, re.ASCII)


_DIGIT_CHARS: Final = frozenset("0123456789")
_SLOT_PATTERN: Final = re.compile(r"\{([a-z_]+)\}")
_GROUP_PATTERN: Final = r"\((?:[^()]|\([^()]*\))*\)"
_OPTIONAL_GROUP: Final = re.compile(rf"{_GROUP_PATTERN}\?")
# The variable parts of a template: groups, classes, slots and optional characters.
_VARIABLE_PART: Final = re.compile(rf"{_GROUP_PATTERN}|\[[^]]*\]|\{{[^}}]*\}}|.\?")
_REQUIRED_WORD: Final = re.compile(r"[a-z]{2,}|[^\x00-\x7f]")


# Rules


class DateRule(NamedTuple):
    """A form and one of its templates."""

    form: str
    template: DateTemplate


@cache
def list_date_rules() -> tuple[DateRule, ...]:
    """Return all rules in the order they are tried."""
    return tuple(
        DateRule(form, DateTemplate.from_template(template))
        for form, templates in DATE_FORMS.items()
        for template in templates
    )


@lru_cache(maxsize=256)
def date_rules_for(letter: str) -> tuple[DateRule, ...]:
    """Return the rules whose matches may begin with a letter."""
    return tuple(rule for rule in list_date_rules() if rule.template.can_start_with(letter))


def match_date_forms(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield every form that matches a whole folded text, with its slots."""
    for form, template in date_rules_for(text[:1]):
        if date_match := template.match(text, full=True):
            yield form, date_match.slots

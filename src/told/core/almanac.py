"""How people say dates, as data: the words of a few languages, the forms they stand in, and steps on the calendar.

To teach a language, add its words to the tables and its word order to `FORMS`; `forms` fits them to a text, and what
one means is read in `when`.
Words are in lower case without accents, as `plain` leaves a text; an underscore stands for a space inside one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import cache
from typing import Final, TypeVar

from told.core.lazy import regex

_T = TypeVar("_T")


def plain(text: str) -> str:
    """The text as the tables spell it: no case, no accents, single spaces, no punctuation around."""
    if text.isascii():
        return " ".join(text.lower().split()).strip(" .,;:!?")
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(c for c in apart if not unicodedata.combining(c)).split()).strip(" .,;:!?")


def _table(rows: Mapping[_T, str]) -> dict[str, _T]:
    return {plain(word.replace("_", " ")): meaning for meaning, words in rows.items() for word in words.split()}


# ---------------------------------------------------------------------------------------------------- calendar in steps

MONTHS_IN: Final = {"month": 1, "quarter": 3, "season": 3, "year": 12, "decade": 120}
DAYS_IN: Final = {"day": 1, "weekend": 2, "week": 7}
SECONDS_IN: Final = {"second": 1, "minute": 60, "hour": 3600}


def moved(day: date, unit: str, count: int) -> date:
    """The date so many units later; the 31st becomes the last day of a shorter month."""
    if unit in DAYS_IN:
        return day + timedelta(days=count * DAYS_IN[unit])
    year, month = divmod(day.year * 12 + day.month - 1 + count * MONTHS_IN[unit], 12)
    last = 31 if month == 11 else (date(year, month + 2, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


def first_of(day: date, unit: str) -> date:
    """The first day of the unit that holds this day."""
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
class Recurring:
    """A unit that comes back every week (place: days after Monday) or every year (place: its first month)."""

    unit: str
    place: int

    def first(self, today: date, cycle: int = 0) -> date:
        """Its first day, so many weeks or years from the present one."""
        if self.unit in DAYS_IN:
            return first_of(today, "week") + timedelta(weeks=cycle, days=self.place)
        return date(today.year + cycle, self.place, 1)

    def chosen(self, today: date, turn: int | None) -> date:
        """Its first day: of the last that is over (-1), of this (0), of the next (1), or of the last that has begun."""
        firsts = [self.first(today, cycle) for cycle in (-2, -1, 0, 1, 2)]
        match turn:
            case -1:
                return max(first for first in firsts if moved(first, self.unit, 1) <= today)
            case 0:
                return next((f for f in firsts if f <= today < moved(f, self.unit, 1)), firsts[2])
            case 1:
                return min(first for first in firsts if first > today)
        return max(first for first in firsts if first <= today)


# ---------------------------------------------------------------------------------------------------------------- words

NUMBERS: Final = _table(
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
ORDINALS: Final = _table(
    {
        1: "first 1st primer primera erste ersten premier premiere",
        2: "second 2nd segunda segundo zweite zweiten deuxieme",
        3: "third 3rd tercera tercer dritte dritten troisieme",
        4: "fourth 4th cuarta vierte vierten quatrieme",
        -1: "last final ultima ultimo letzte letzten derniere",
    }
)
UNITS: Final = _table(
    {
        "second": "second seconds sec secs segundo segundos sekunde sekunden seconde secondes 秒 秒钟",
        "minute": "minute minutes min mins minuto minutos minuten 分 分钟 分鐘",
        "hour": "hour hours hr hrs hora horas stunde stunden heure heures 小时 小時 个小时 時間",
        "day": "day days día días tag tage tagen jour jours 天 日",
        "week": "week weeks semana semanas woche wochen semaine semaines 周 週 星期 个星期 週間",
        "month": "month months mes meses monat monate monaten mois 月 个月 個月 か月 ヶ月",
        "quarter": "quarter quarters trimestre trimestres quartal quartale quartalen 季度 个季度",
        "year": "year years año años jahr jahre jahren an ans année années 年",
        "decade": "decade decades década décadas jahrzehnt jahrzehnte jahrzehnten décennie décennies",
    }
)
TURNS: Final = _table(
    {
        -1: """last previous past this_past letzte letzten letztes letzter vergangene vergangenen vergangenes
            vergangener pasado pasada dernier dernière 上 上个 上個 上一 上一个 先""",
        0: "this current diese diesen dieses dieser este esta ce cet cette 这 这个 這 這個 本 今",
        1: """next coming this_coming nächste nächsten nächstes nächster kommende kommenden kommendes kommender
            próximo próxima que_viene prochain prochaine 下 下个 下個 下一 下一个 来""",
    }
)
WORDS: Final = _table(
    {
        (
            "day",
            -2,
        ): "day_before_yesterday the_day_before_yesterday vorgestern anteayer avant-hier 前天 一昨日 おととい",
        ("day", -1): "yesterday gestern ayer anoche hier 昨天 昨日 昨晚 昨夜 きのう",
        ("day", 0): "today tonight heute hoy aujourd'hui 今天 今日 今晚 今夜 きょう",
        ("day", 1): "tomorrow morgen mañana demain 明天 明日",
        ("day", 2): "day_after_tomorrow the_day_after_tomorrow übermorgen après-demain 后天 後天 明後日",
        ("week", -2): "week_before_last the_week_before_last vorletzte_woche 上上周 上上个星期 先々週",
        ("week", 2): "week_after_next the_week_after_next übernächste_woche 下下周 下下个星期 再来週",
        ("month", -2): "month_before_last the_month_before_last vorletzten_monat 上上个月 先々月",
        ("year", -2): "year_before_last the_year_before_last vorletztes_jahr 前年 一昨年",
        ("year", -1): "去年 昨年",
        ("year", 0): "今年",
        ("year", 1): "明年",
    }
)
_WEEKDAYS: Final = _table(
    {
        Recurring("day", 0): "monday mon lunes montag lundi 周一 星期一 礼拜一 月曜日 月曜",
        Recurring("day", 1): "tuesday tue tues martes dienstag mardi 周二 星期二 礼拜二 火曜日 火曜",
        Recurring("day", 2): "wednesday wed miércoles mittwoch mercredi 周三 星期三 礼拜三 水曜日 水曜",
        Recurring("day", 3): "thursday thu thurs jueves donnerstag jeudi 周四 星期四 礼拜四 木曜日 木曜",
        Recurring("day", 4): "friday fri viernes freitag vendredi 周五 星期五 礼拜五 金曜日 金曜",
        Recurring("day", 5): "saturday sat sábado samstag sonnabend samedi 周六 星期六 礼拜六 土曜日 土曜",
        Recurring("day", 6): "sunday sun domingo sonntag dimanche 周日 星期天 星期日 礼拜天 日曜日 日曜",
        Recurring("weekend", 5): "weekend fin_de_semana wochenende week-end 周末 週末",
    }
)
_MONTHS: Final = _table(
    {
        Recurring("month", 1): "january jan enero januar jänner janvier 一月 1月",
        Recurring("month", 2): "february feb febrero februar février 二月 2月",
        Recurring("month", 3): "march mar marzo märz mars 三月 3月",
        Recurring("month", 4): "april apr abril avril 四月 4月",
        Recurring("month", 5): "may mayo mai 五月 5月",
        Recurring("month", 6): "june jun junio juni juin 六月 6月",
        Recurring("month", 7): "july jul julio juli juillet 七月 7月",
        Recurring("month", 8): "august aug agosto août 八月 8月",
        Recurring("month", 9): "september sep sept septiembre septembre 九月 9月",
        Recurring("month", 10): "october oct octubre oktober octobre 十月 10月",
        Recurring("month", 11): "november nov noviembre novembre 十一月 11月",
        Recurring("month", 12): "december dec diciembre dezember décembre 十二月 12月",
    }
)
_SEASONS: Final = _table(
    {
        Recurring("season", 3): "spring primavera frühling frühjahr printemps 春天 春",
        Recurring("season", 6): "summer verano sommer été 夏天 夏",
        Recurring("season", 9): "autumn fall otoño herbst automne 秋天 秋",
        Recurring("season", 12): "winter invierno hiver 冬天 冬",
    }
)
NAMES: Final = _WEEKDAYS | _MONTHS | _SEASONS
EDGES: Final = _table(
    {
        0.0: "beginning start early anfang principios comienzos début",
        0.5: "middle mid mitte mediados milieu",
        1.0: "end late ende finales fin",
    }
)
CLOCKS: Final = _table({0: "midnight mitternacht medianoche minuit", 12: "noon midday mittag mediodía midi"})
PARTS: Final = _table(
    {
        (6, 12): "morning morgen früh vormittag mañana matin 早上 上午",
        (12, 18): "afternoon nachmittag tarde après-midi 下午",
        (18, 24): "evening abend soir 晚上",
        (18, 30): "night nacht noche nuit",
    }
)


def number(word: str) -> int:
    """The number a numeral or a run of digits says."""
    return NUMBERS[word] if word in NUMBERS else int(word)


def time_of_day(clock: str) -> time:
    """The time that "noon", "3pm", "3:30 p.m" or "15:30" says."""
    if clock in CLOCKS:
        return time(CLOCKS[clock])
    hour, _, minute = re.sub("[^0-9:]", "", clock).partition(":")
    past_noon = 12 if "p" in clock else 0
    return time(int(hour) % 12 + past_noon if clock.endswith("m") else int(hour), int(minute or 0))


# ---------------------------------------------------------------------------------------------------------------- forms


def _beginning(letters: str, words: Mapping[str, _T]) -> dict[str, _T]:
    return {word: meaning for word, meaning in words.items() if word[0] in letters}


FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "n": (r"\d{1,6}",), "year": (r"\d{4}",), "day": (r"\d{1,2}(?:st|nd|rd|th|er|\.)?",), "digits": (r"\d{1,2}",),
    "clock": (r"\d{1,2}(?::\d\d)? ?[ap]\.?m", r"\d{1,2}:\d\d"),
}  # fmt: skip
"""The slots that figures may fill."""
SLOTS: Final[Mapping[str, Mapping[str, object]]] = {
    "n": NUMBERS, "nth": ORDINALS, "unit": UNITS, "turn": TURNS, "word": WORDS, "name": NAMES,
    "thing": {**NAMES, **UNITS}, "weekday": _WEEKDAYS, "month": _MONTHS, "yearly": _MONTHS | _SEASONS, "edge": EDGES,
    "clock": CLOCKS, "part": PARTS,
    "weekday_zh": _beginning("周星礼", _WEEKDAYS), "part_zh": _beginning("早上下晚", PARTS),
}  # fmt: skip
"""The slots that words may fill; an underscore narrows one down."""
# Turns that may follow what they turn: "la semana pasada", but not "May this".
_BEHIND: Final = "last|next|pasad[oa]|derniere|dernier|que viene|proxim[oa]|prochaine?"
# The first form that fits wins; `{slot}` takes one of the words above.
FORMS: Final = {
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
    "weekday_of_week": ("{weekday} (?:of )?{turn} week", "{turn} week(?:'s)? {weekday}", "{turn}{weekday_zh}"),
    "turn": ("{turn} {thing}", f"(?:el |la |le |l')?{{thing}} (?P<turn>{_BEHIND})", "{turn}{thing}"),
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


# ----------------------------------------------------------------------------------------------------- speaking of time

_SPOKEN: Final = regex("[a-z]+|[\u3040-\u30ff\u3400-\u9fff]{1,2}")
_LETTERS: Final = {code: chr(code).lower() if chr(code).isalpha() else " " for code in range(128)}
_YEARS: Final = re.compile("(?:19|20)[0-9]{2}(?![0-9])")
_LOOSE: Final = frozenset("ago since recently lately soon just now seit desde hace depuis kürzlich".split())


@cache
def _time_words() -> frozenset[str]:
    """The single words that speak of time, whatever they say of it."""
    return _LOOSE.union(*(table.keys() for table in (UNITS, TURNS, WORDS, NAMES, PARTS)))


def time_words(text: str, most: int) -> int:
    """How many words of a text speak of time, counted up to some number."""
    said = text if text.isascii() else plain(text)
    words = said.translate(_LETTERS).split() if said.isascii() else _SPOKEN.findall(said)
    return min(sum(map(_time_words().__contains__, words)) + len(_YEARS.findall(said)), most)

"""Parse birth dates and exit dates of a roster, in the spellings of many systems."""

from __future__ import annotations

import re
from datetime import date, timedelta

from django.utils.translation import gettext as _

from survey.people.rosters.field_parsers import (
    BLANK_WORDS,
    InvalidCell,
    cached_parser,
    parse_text,
    plain_text,
)

_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/. ])(\d{1,2})\2(\d{4}|\d{2})")
_NAMED = r"([a-z]{3,9})", r"(\d{1,2})(?:st|nd|rd|th)?", r"(\d{2,4})"
_MONTH_DAY = re.compile(r"{}[-/. ]+{}[-/., ]+{}".format(*_NAMED))
_DAY_MONTH = re.compile(r"{1}[-/. ]+{0}[-/., ]+{2}".format(*_NAMED))
_EIGHT_DIGITS = re.compile(r"\d{8}")
_TIME = re.compile(r"[t ]+\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[ap]m|z)?$")
_EXCEL_DAYS = re.compile(r"\d{5}(?:\.\d+)?")
_MONTHS = {
    name: str(number)
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}


@cached_parser(65536)
def parse_birth_date(cell: str, today: date) -> tuple[str, str]:
    """Return the ISO date as read month first, and as read day first.

    They differ for 3/4/2015; the first is blank for 13/4/2015. Both are blank
    for a blank cell.
    """
    text = parse_text(plain_text(cell)).casefold()
    if text in BLANK_WORDS:
        return "", ""
    candidates = _possible_dates(_TIME.sub("", text), today)
    if not any(candidates):
        raise InvalidCell(_("is not a date"))
    month_first, day_first = (
        day.isoformat() if day and 2 <= (today - day).days / 365.25 <= 110 else ""
        for day in candidates
    )
    if not month_first and not day_first:
        raise InvalidCell(_("is not a plausible birth date (age 2 to 110)"))
    return month_first, day_first


_FIRST_EXIT = 1950
# PowerSchool's date of nothing.
_NO_DATE = frozenset({"0/0/0", "00/00/00", "0/0/0000", "00/00/0000", "0000-00-00"})


@cached_parser(4096)
def parse_date(cell: str, today: date) -> tuple[date | None, date | None]:
    """Return any date as read month first, and as read day first.

    Both are None for a blank cell.
    """
    text = parse_text(plain_text(cell)).casefold()
    if text in BLANK_WORDS or text in _NO_DATE:
        return None, None
    dates = _possible_dates(_TIME.sub("", text), today)
    if not any(dates):
        raise InvalidCell(_("is not a date"))
    return dates


def parse_exit_date(cell: str, today: date, *, day_first: bool | None) -> bool:
    """Tell whether the date is not after today.

    `day_first` None: raise InvalidCell if it depends on the order.
    """
    dates = parse_date(cell, today)
    if day_first is not None and all(dates):
        dates = (dates[day_first],) * 2
    # A year of two digits is read as that of a birth date, in the past.
    has_passed = {
        (day.replace(year=day.year + 100) if day.year < _FIRST_EXIT else day) <= today
        for day in dates
        if day
    }
    if len(has_passed) > 1:
        raise InvalidCell(
            _("could be two dates: choose if the day or the month is first")
        )
    return True in has_passed


def _possible_dates(text: str, today: date) -> tuple[date | None, date | None]:
    """Return the date as read month first, and as read day first."""
    if match := _YEAR_FIRST.fullmatch(text):
        day = _date(match[1], match[2], match[3], today)
    elif match := _YEAR_LAST.fullmatch(text):
        first, sign, second, year = match.groups()
        day_first = _date(year, second, first, today)
        # Where people write dots, the day comes first.
        if sign == ".":
            return day_first, day_first
        return _date(year, first, second, today), day_first
    elif match := _DAY_MONTH.fullmatch(text):
        day = _date(match[3], _MONTHS.get(match[2], "0"), match[1], today)
    elif match := _MONTH_DAY.fullmatch(text):
        day = _date(match[3], _MONTHS.get(match[1], "0"), match[2], today)
    elif _EXCEL_DAYS.fullmatch(text):
        day = date(1899, 12, 30) + timedelta(days=int(text[:5]))
    elif _EIGHT_DIGITS.fullmatch(text) and text.startswith(("19", "20")):
        day = _date(text[:4], text[4:6], text[6:], today)
    elif _EIGHT_DIGITS.fullmatch(text):
        first, second, year = text[:2], text[2:4], text[4:]
        return _date(year, first, second, today), _date(year, second, first, today)
    else:
        day = None
    return day, day


def _date(year: str, month: str, day: str, today: date) -> date | None:
    number = int(year)
    if len(year) == 2:
        number += 2000 if 2000 + number <= today.year else 1900
    try:
        return date(number, int(month), int(day))
    except ValueError:
        return None

"""What a cell of a roster means; `Unreadable` says why it means nothing.

Read as tolerantly as is safe: what can only mean one thing is taken for it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache

from django.conf.locale import LANG_INFO
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from survey.models import Role

LONGEST_TEXT = 200
LONGEST_ID = 128
LONGEST_CODE = 64
# The template's example has this ID.
EXAMPLE_ID = "EXAMPLE"

# How people write that an optional cell is empty. Not for names: somebody is
# called Na, and somebody Null.
_NOTHING = frozenset(
    {"", "n/a", "na", "none", "null", "nil", "-", "--", "#n/a", "unknown"}
)
_EXCEL_ERRORS = frozenset(
    {"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NUM!", "#NULL!"}
)
# Zero-width space, byte order mark, direction marks and overrides. The
# joiners stay, which Persian and Indian names need.
_INVISIBLE = dict.fromkeys(
    [0x200B, 0x2060, 0xFEFF, 0x00AD, 0x200E, 0x200F]
    + [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)


class Unreadable(ValueError):
    """Why a cell cannot be read, to be shown to a person."""


def text_of(cell: str, longest: int = LONGEST_TEXT) -> str:
    """One line, single spaces; at most `longest` characters."""
    if cell.isascii() and cell.isprintable():
        text = " ".join(cell.split())
    else:
        text = _cleaned(cell)
    if len(text) > longest:
        raise Unreadable(f"is longer than {longest} characters")
    if text in _EXCEL_ERRORS:
        raise Unreadable("is an error of Excel, not a value")
    return text


def _cleaned(cell: str) -> str:
    text = unicodedata.normalize("NFC", cell).translate(_INVISIBLE)
    text = " ".join(text.split())
    if any(unicodedata.category(symbol) in ("Cc", "Cs") for symbol in text):
        raise Unreadable("holds a control character")
    return text


_WHOLE_AS_DECIMAL = re.compile(r"(\d+)\.0+")
_SHORTENED = re.compile(r"\d(?:[.,]\d+)?E\+?\d+", re.IGNORECASE)
# ="00123" and '00123 keep Excel from dropping the zeros.
_GUARDED = re.compile(r"=\"([^\"]*)\"|'(\w.*)")


def _identifier(cell: str, longest: int) -> str:
    text = text_of(unicodedata.normalize("NFKC", cell), longest)
    guarded = _GUARDED.fullmatch(text)
    if guarded:
        text = (guarded[1] or guarded[2] or "").strip()
    whole = _WHOLE_AS_DECIMAL.fullmatch(text)
    return whole[1] if whole else text


def external_id_of(cell: str) -> str:
    text = _identifier(cell, LONGEST_ID)
    if not text:
        raise Unreadable("is missing")
    if text == EXAMPLE_ID:
        raise Unreadable("is the template's example: delete this row")
    if _SHORTENED.fullmatch(text):
        raise Unreadable("was shortened by Excel; format the column as text")
    return text


def code_of_place(cell: str) -> str:
    """A district's or school's code: its given code or name, in small letters."""
    # Cut before it becomes a key of the cache; too long it stays.
    return _code_of_place(cell.strip()[: LONGEST_TEXT + 1])


@lru_cache(maxsize=4096)
def _code_of_place(cell: str) -> str:
    text = _identifier(cell, LONGEST_CODE).casefold()
    if not text:
        raise Unreadable("is missing")
    if len(text) > LONGEST_CODE:
        raise Unreadable(f"is longer than {LONGEST_CODE} characters")
    return text


_ROLES = {
    Role.STUDENT: "student students pupil pupils learner stu s",
    Role.TEACHER: (
        "teacher teachers staff staffs faculty educator educators instructor tch t"
    ),
    Role.PARENT: "parent parents guardian guardians caregiver family families par p",
}
_ROLE_OF = {word: role for role, words in _ROLES.items() for word in words.split()}


def role_of(cell: str, expected: str) -> str:
    """`expected`, which a blank cell means too."""
    text = text_of(cell)
    found = _ROLE_OF.get(text.casefold()) if text else expected
    if found is None:
        raise Unreadable("is none of student, teacher, parent")
    if found != expected:
        raise Unreadable(f"is not asked here: this administration is for {expected}s")
    return expected


_GRADES = {
    "IT": "it infant toddler infant/toddler",
    "PR": "pr preschool",
    "PK": "pk prek prekindergarten p -1",
    "TK": "tk transitionalkindergarten",
    "KG": "kg k kinder kindergarten 0 00",
    "PS": "ps postsecondary",
    "UG": "ug ungraded",
    "Other": "other",
} | {f"{n:02}": f"{n} {n:02} {n}st {n}nd {n}rd {n}th {n}.0" for n in range(1, 14)}
_GRADES["09"] += " freshman"
_GRADES["10"] += " sophomore"
_GRADES["11"] += " junior"
_GRADES["12"] += " senior"
_GRADE_OF = {word: grade for grade, words in _GRADES.items() for word in words.split()}
_GRADE_NOISE = re.compile(r"\b(?:grade|gr|year)\b\.?|[\s_]|(?<=pre)-")


def grade_of(cell: str) -> str:
    """CEDS's code: IT PR PK TK KG 01…13 PS UG Other."""
    return _grade_of(cell[: LONGEST_TEXT + 1])


@lru_cache(maxsize=4096)
def _grade_of(cell: str) -> str:
    text = text_of(cell).casefold()
    if text in _NOTHING:
        return ""
    grade = _GRADE_OF.get(_GRADE_NOISE.sub("", text))
    if grade is None:
        raise Unreadable("is no grade (PK, KG, 1 to 12, …)")
    return grade


def classroom_of(cell: str) -> str:
    text = text_of(cell, LONGEST_CODE)
    return "" if text.casefold() in _NOTHING else text


# Of nearly all, and three times as fast as Django's validator, which judges
# the others.
_PLAIN_EMAIL = re.compile(
    r"\w+(?:[.+-]\w+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}",
    re.ASCII | re.IGNORECASE,
)


def email_of(cell: str) -> str:
    text = text_of(cell, 254)
    if text.casefold() in _NOTHING:
        return ""
    if _PLAIN_EMAIL.fullmatch(text):
        return text
    try:
        validate_email(text)
    except ValidationError as error:
        raise Unreadable("is not an e-mail address") from error
    return text


def split_name(text: str) -> tuple[str, str]:
    """Given and family name of "Ortiz, Ana Maria" or "Ana Maria Ortiz"."""
    family, comma, given = text.partition(",")
    if comma:
        return given.strip(), family.strip()
    given, _, family = text.rpartition(" ")
    return (given, family) if given else (family, "")


_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/. ])(\d{1,2})\2(\d{4}|\d{2})")
_NAMED = r"([a-z]{3,9})", r"(\d{1,2})(?:st|nd|rd|th)?", r"(\d{2,4})"
_MONTH_DAY = re.compile(r"{}[-/. ]+{}[-/., ]+{}".format(*_NAMED))
_DAY_MONTH = re.compile(r"{1}[-/. ]+{0}[-/., ]+{2}".format(*_NAMED))
_EIGHT = re.compile(r"\d{8}")
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


def birth_dates_of(cell: str, today: date) -> tuple[str, str]:
    """The date in ISO, twice: as read month first, and as read day first.

    They differ for 3/4/2015; one is blank for 13/4/2015. Both are blank for a
    blank cell.
    """
    return _birth_dates_of(text_of(cell).casefold(), today)


@lru_cache(maxsize=65536)
def _birth_dates_of(text: str, today: date) -> tuple[str, str]:
    if text in _NOTHING:
        return "", ""
    readings = _readings(_TIME.sub("", text), today)
    if not any(readings):
        raise Unreadable("is not a date")
    month_first, day_first = (_plausible(day, today) for day in readings)
    if not month_first and not day_first:
        raise Unreadable("cannot be the birth date of somebody aged 2 to 110")
    return month_first, day_first


def _readings(text: str, today: date) -> tuple[date | None, date | None]:
    if found := _YEAR_FIRST.fullmatch(text):
        day = _date(found[1], found[2], found[3], today)
    elif found := _YEAR_LAST.fullmatch(text):
        first, sign, second, year = found.groups()
        day_first = _date(year, second, first, today)
        # Where people write dots, the day comes first.
        return (day_first if sign == "." else _date(year, first, second, today)), (
            day_first
        )
    elif found := _DAY_MONTH.fullmatch(text):
        day = _date(found[3], _MONTHS.get(found[2], "0"), found[1], today)
    elif found := _MONTH_DAY.fullmatch(text):
        day = _date(found[3], _MONTHS.get(found[1], "0"), found[2], today)
    elif _EXCEL_DAYS.fullmatch(text):
        day = date(1899, 12, 30) + timedelta(days=int(text[:5]))
    elif found := _EIGHT.fullmatch(text):
        return _eight_digits(found[0], today)
    else:
        day = None
    return day, day


def _eight_digits(text: str, today: date) -> tuple[date | None, date | None]:
    if text.startswith(("19", "20")):
        day = _date(text[:4], text[4:6], text[6:], today)
        return day, day
    first, second, year = text[:2], text[2:4], text[4:]
    return _date(year, first, second, today), _date(year, second, first, today)


def _date(year: str, month: str, day: str, today: date) -> date | None:
    number = int(year)
    if len(year) == 2:
        number += 2000 if 2000 + number <= today.year else 1900
    try:
        return date(number, int(month), int(day))
    except ValueError:
        return None


def _plausible(day: date | None, today: date) -> str:
    if day is None:
        return ""
    years = (today - day).days / 365.25
    return day.isoformat() if 2 <= years <= 110 else ""


# What student systems export besides ISO 639-1.
_THREE_LETTERS = {
    "eng": "en", "spa": "es", "ara": "ar", "fra": "fr", "fre": "fr", "por": "pt",
    "pol": "pl", "vie": "vi", "zho": "zh", "chi": "zh", "kor": "ko", "rus": "ru",
    "ukr": "uk", "hat": "ht", "som": "so", "tgl": "tl", "urd": "ur", "hin": "hi",
    "deu": "de", "ger": "de", "ita": "it", "jpn": "ja",
}  # fmt: skip


def language_names(languages: Mapping[str, str]) -> dict[str, str]:
    """Every way to write one of the survey's languages -> its code."""
    names: dict[str, str] = {}
    for code, name in languages.items():
        known = LANG_INFO.get(code.casefold(), {})
        for text in (code, name, known.get("name", ""), known.get("name_local", "")):
            names.setdefault(str(text).casefold(), code)
    for three, two in _THREE_LETTERS.items():
        if two in names:
            names.setdefault(three, names[two])
    names.pop("", None)
    return names


def language_of(cell: str, names: Mapping[str, str]) -> str | None:
    """The survey's code; blank for a blank cell, None for another language."""
    text = text_of(cell).casefold()
    if text in _NOTHING:
        return ""
    return names.get(text) or names.get(re.split(r"[-_(;,/ ]", text)[0])

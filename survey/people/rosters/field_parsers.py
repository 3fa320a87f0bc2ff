"""Parse single cells of a roster, or raise `InvalidCell` with the reason.

Parsers accept every spelling that can only mean one thing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple

from django.conf.locale import LANG_INFO
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _

from survey.models import Role

LONGEST_TEXT = 200
LONGEST_ID = 128
LONGEST_CODE = 64
# The ID in the template's example row.
EXAMPLE_ID = "EXAMPLE"

# How people write that an optional cell is empty. Not used for names: there
# are people called Na and Null.
BLANK_WORDS = frozenset(
    {"", "n/a", "na", "none", "null", "nil", "-", "--", "#n/a", "unknown"}
)
# Of required cells, which are rejected. NA may be the code of a school, and the
# school of people who have left may be unknown.
_NO_CODE = BLANK_WORDS - {"na", "nil", "unknown"}
_NO_ID = BLANK_WORDS | {"tbd", "tba", "pending"}
_EXCEL_ERRORS = frozenset(
    {"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NUM!", "#NULL!"}
    | {"#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!", "#GETTING_DATA"}
)
# Zero-width space, byte order mark, direction marks and overrides. The
# joiners stay, which Persian and Indian names need.
_INVISIBLE = dict.fromkeys(
    [0x200B, 0x2060, 0xFEFF, 0x00AD, 0x200E, 0x200F]
    + [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)


T = TypeVar("T")
Options = TypeVarTuple("Options")


class InvalidCell(ValueError):
    """A cell cannot be parsed; says why, to be shown after its column's name."""


class MissingCell(InvalidCell):
    """A cell is blank, or says that there is no value."""


def cached_parser(
    size: int,
) -> Callable[[Callable[[str, *Options], T]], Callable[[str, *Options], T]]:
    """Cache a parser whose cells repeat from row to row."""

    def decorate(parse: Callable[[str, *Options], T]) -> Callable[[str, *Options], T]:
        cached = lru_cache(maxsize=size)(parse)

        @wraps(parse)
        def parse_cell(cell: str, *options: *Options) -> T:
            # Very long cells would fill the memory, and hardly ever repeat.
            if len(cell) > LONGEST_TEXT:
                return parse(cell, *options)
            return cached(cell, *options)

        return parse_cell

    return decorate


def parse_text(cell: str, longest: int = LONGEST_TEXT) -> str:
    """Return one line with single spaces and at most `longest` characters."""
    if not cell.isascii() or not cell.isprintable():
        cell = unicodedata.normalize("NFC", cell).translate(_INVISIBLE)
    text = " ".join(cell.split())
    if not text.isprintable() and any(
        unicodedata.category(symbol) in ("Cc", "Cs") for symbol in text
    ):
        raise InvalidCell(_("contains a control character"))
    if len(text) > longest:
        raise InvalidCell(
            _("is longer than %(longest)s characters") % {"longest": longest}
        )
    if text in _EXCEL_ERRORS:
        raise InvalidCell(_("is an Excel error, not a value"))
    return text


def plain_text(cell: str) -> str:
    """Return full-width signs and digits of other scripts as ASCII where there is one.

    For everything but names, which are stored as they are written.
    """
    if cell.isascii():
        return cell
    return "".join(
        str(unicodedata.decimal(symbol)) if symbol.isdecimal() else symbol
        for symbol in unicodedata.normalize("NFKC", cell)
    )


def has_letter_or_digit(text: str) -> bool:
    """Test for more than the dashes that stand for nothing, or below a header."""
    return text[:1].isalnum() or any(map(str.isalnum, text))


_WHOLE_AS_DECIMAL = re.compile(r"(\d+)\.0+")
_SHORTENED = re.compile(r"\d(?:[.,]\d+)?E\+?\d+", re.IGNORECASE)
# ="00123" and '00123 keep Excel from dropping the zeros. Some programs write
# '00123' for a text.
_GUARDED = re.compile(r"=\"([^\"]*)\"|'(\w[^']*)'|'(\w.*)")


def _parse_code(cell: str, longest: int) -> str:
    text = parse_text(plain_text(cell), longest)
    guarded = _GUARDED.fullmatch(text)
    if guarded:
        text = (guarded[guarded.lastindex or 0]).strip()
    whole = _WHOLE_AS_DECIMAL.fullmatch(text)
    text = whole[1] if whole else text
    if text.casefold() in _NO_CODE:
        raise MissingCell(_("is missing"))
    if not has_letter_or_digit(text):
        raise InvalidCell(_("has no letter or digit"))
    return text


# Lines at the end of a report or a page of it.
_NO_PERSON = re.compile(
    r"(?:grand |sub-?|report )?(?:totals?|count)\b.*|page:? \d+.*"
    r"|\(?\d[\d,]* (?:rows?|records?|students?|people)\b.*|end of (?:report|file)\b.*",
    re.IGNORECASE,
)


def parse_external_id(cell: str) -> str:
    text = _parse_code(cell, LONGEST_ID)
    if text == EXAMPLE_ID:
        raise InvalidCell(_("is the template's example: delete this row"))
    if text.casefold() in _NO_ID:
        raise InvalidCell(_("is no ID"))
    if _NO_PERSON.fullmatch(text):
        raise InvalidCell(_("is a line of a report, not a person: delete this row"))
    if _SHORTENED.fullmatch(text):
        raise InvalidCell(_("was shortened by Excel; format the column as text"))
    return refuse_changed_by_excel(text)


# Class 10-1, typed into Excel, is the first of October: 2026-10-01 in a workbook,
# 1-Oct in CSV, or Oct-32 for 10-32. An ID such as OCT-32 is none.
_MONTH = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_CHANGED_BY_EXCEL = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?"
    rf"|\d{{1,2}}-(?:{_MONTH}|{_MONTH.casefold()}|ene|abr|ago|dic)|(?:{_MONTH})-\d\d)"
    r"|(?P<thousands>\d{1,3}(?:,\d{3})+)|\d(?:[.,]\d+)?E\+\d+"
)


def refuse_changed_by_excel(text: str) -> str:
    """Return a code or class, unless Excel has made another text of it."""
    # Most have none of these signs, and a pattern costs more.
    if not ("-" in text or "," in text or "+" in text):
        return text
    changed = _CHANGED_BY_EXCEL.fullmatch(text)
    if not changed:
        return text
    if changed["date"]:
        reason = _(
            "was made a date by Excel; format the column as text and type it again"
        )
    elif changed["thousands"]:
        reason = _("is shown with thousands separators; format the column as text")
    else:
        reason = _("was shortened by Excel; format the column as text")
    raise InvalidCell(reason)


def parse_previous_id(cell: str) -> str:
    return parse_external_id(cell) if cell.strip() else ""


@cached_parser(4096)
def parse_place_code(cell: str) -> str:
    """Return the code or name of a district or school in lower case."""
    text = refuse_changed_by_excel(_parse_code(cell, LONGEST_CODE)).casefold()
    # Lower case can be longer.
    if len(text) > LONGEST_CODE:
        raise InvalidCell(
            _("is longer than %(longest_code)s characters")
            % {"longest_code": LONGEST_CODE}
        )
    return text


_ROLES = {
    Role.STUDENT: "student students pupil pupils learner stu s",
    Role.TEACHER: (
        "teacher teachers staff staffs faculty educator educators instructor tch t"
    ),
    Role.PARENT: "parent parents guardian guardians caregiver family families par p",
}
_ROLE_OF = {word: role for role, words in _ROLES.items() for word in words.split()}


# Roles for which there are no administrations.
_OTHER_ROLES = frozenset(
    {
        "administrator", "aide", "counselor", "districtadministrator", "guest",
        "itadministrator", "nurse", "other", "principal", "proctor", "relative",
        "siteadministrator", "systemadministrator", "volunteer",
    }
)  # fmt: skip


@cached_parser(256)
def parse_role(cell: str) -> str:
    """Return one of our roles, one for which there are no administrations, or ""."""
    text = parse_text(plain_text(cell)).casefold()
    if not text:
        return ""
    our_role = _ROLE_OF.get(text)
    if our_role is not None:
        return str(our_role)
    squeezed = re.sub(r"[\W_]", "", text)
    if squeezed not in _OTHER_ROLES:
        raise InvalidCell(_("must be student, teacher or parent"))
    return squeezed


ACTIVE, LEFT, LATER = "active", "left", "later"
# As student information systems write them, without spaces and punctuation. A word
# that could mean either, such as "suspended" or "on leave", is asked for.
_STATUS_WORDS = {
    ACTIVE: (
        "active a act enrolled currentlyenrolled current currentstudent activestudent"
        " activeenrolled enrolledactive present attending registered readmitted"
        " reenrolled employed activeemployee activo activa"
    ),
    LEFT: (
        "left tobedeleted deleted inactive i inact inactivestudent withdrawn withdrawal"
        " withdrew wd w exited exit exitedschool graduated graduate grad alumni alumnus"
        " transferred transferredout transferout droppedout dropout dropped"
        " noshow didnotenter dne deceased expelled terminated resigned retired former"
        " formerstudent moved movedaway unenrolled disenrolled notenrolled"
        " nolongerenrolled archived departed separated inactivo inactiva retirado"
    ),
    LATER: (
        "later preregistered preenrolled preregistration preenrollment future"
        " futureenrollment futurestudent futureenrolled"
    ),
}
_STATUS_OF = {
    word: status for status, words in _STATUS_WORDS.items() for word in words.split()
}


@cached_parser(256)
def parse_status(cell: str) -> str:
    """Return whether a person is there, has left, or comes later.

    A blank cell means active. An unknown status is never taken for it.
    """
    text = parse_text(plain_text(cell)).casefold()
    if not text:
        return ACTIVE
    status = _STATUS_OF.get(re.sub(r"[\W_]", "", text))
    if status is None:
        raise InvalidCell(_("is an unknown status: it could mean that the person left"))
    return status


def value_key(cell: str) -> str:
    """Return the form in which a layout's own values are looked up."""
    return " ".join(plain_text(cell).split()).casefold()


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
for _grade, _words in {
    "01": "first", "02": "second", "03": "third", "04": "fourth", "05": "fifth",
    "06": "sixth", "07": "seventh", "08": "eighth", "09": "ninth freshman",
    "10": "tenth sophomore", "11": "eleventh junior", "12": "twelfth senior",
}.items():  # fmt: skip
    _GRADES[_grade] += f" {_words}"
_GRADE_OF = {word: grade for grade, words in _GRADES.items() for word in words.split()}
_GRADE_NOISE = re.compile(r"\b(?:grade|gr|year)\b[.:]?|[\s_]|(?<=pre)-")


@cached_parser(4096)
def parse_grade(cell: str) -> str:
    """Return a CEDS code: IT PR PK TK KG 01…13 PS UG Other."""
    text = parse_text(plain_text(cell)).casefold()
    if text in BLANK_WORDS:
        return ""
    grade = _GRADE_OF.get(_GRADE_NOISE.sub("", text))
    if grade is None:
        raise InvalidCell(_("is not a grade (PK, KG, 1 to 12, …)"))
    return grade


@cached_parser(4096)
def parse_classroom(cell: str) -> str:
    text = parse_text(plain_text(cell), LONGEST_CODE)
    return "" if text.casefold() in BLANK_WORDS else refuse_changed_by_excel(text)


# Matches nearly all addresses, three times as fast as Django's validator,
# which decides about the others.
_PLAIN_EMAIL = re.compile(
    r"\w+(?:[.+-]\w+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}",
    re.ASCII | re.IGNORECASE,
)


def is_plain_email(cell: str) -> bool:
    return bool(_PLAIN_EMAIL.fullmatch(cell.strip()))


def parse_email(cell: str) -> str:
    text = parse_text(plain_text(cell), 254)
    if text.casefold() in BLANK_WORDS:
        return ""
    if _PLAIN_EMAIL.fullmatch(text):
        return text
    try:
        validate_email(text)
    except ValidationError as error:
        raise InvalidCell(_("is not an e-mail address")) from error
    return text


_NAME_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|2nd|3rd|4th|esq|md|phd)\.?", re.I)


def split_name(text: str) -> tuple[str, str]:
    """Return given and family name of "Ortiz, Ana Maria" or "Ana Maria Ortiz".

    "Jr." belongs to the family name wherever it stands.
    """
    family, *rest = (part.strip() for part in text.split(","))
    suffix = ""
    if rest and _NAME_SUFFIX.fullmatch(rest[0]):
        suffix = f" {rest.pop(0)}"
    if rest:
        return ", ".join(rest).strip(), f"{family}{suffix}"
    given, _, family = family.rpartition(" ")
    if given and _NAME_SUFFIX.fullmatch(family):
        suffix = f" {family}{suffix}"
        given, _, family = given.rpartition(" ")
    return (given, f"{family}{suffix}") if given else (f"{family}{suffix}", "")


# Student systems export these besides the two letters of ISO 639-1.
_THREE_LETTERS = {
    "eng": "en", "spa": "es", "ara": "ar", "fra": "fr", "fre": "fr", "por": "pt",
    "pol": "pl", "vie": "vi", "zho": "zh", "chi": "zh", "kor": "ko", "rus": "ru",
    "ukr": "uk", "hat": "ht", "som": "so", "tgl": "tl", "urd": "ur", "hin": "hi",
    "deu": "de", "ger": "de", "ita": "it", "jpn": "ja",
}  # fmt: skip


def language_names(languages: Mapping[str, str]) -> dict[str, str]:
    """Map every way to write one of the survey's languages to its code."""
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


def parse_language(cell: str, names: Mapping[str, str]) -> str | None:
    """Return the survey's code, blank for a blank cell, None if it is unknown."""
    text = parse_text(plain_text(cell)).casefold()
    if text in BLANK_WORDS:
        return ""
    return names.get(text) or names.get(re.split(r"[-_(;,/ ]", text)[0])

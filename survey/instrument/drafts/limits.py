"""The smallest and largest number that a question accepts.

They are written as its constraint, such as `. >= 0 and . <= 7`, with a message in each
language that respondents' pages have. A message of an author stays.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from survey.instrument.drafts.commands import (
    CommandRefused,
    languages_of,
    set_text,
    set_value,
    text_column,
)
from survey.instrument.drafts.workbook import DraftBook, Row
from survey.taking import messages

NUMBER = r"-?\d+(?:\.\d+)?"
LIMIT = re.compile(rf"\.\s*(>=|<=)\s*({NUMBER})")
SMALLEST, LARGEST = ">=", "<="


def limits_of(constraint: str) -> tuple[str, str] | None:
    """Return the smallest and largest number, "" for none; None for another rule."""
    limits: dict[str, str] = {}
    for part in (
        re.split(r"\s+and\s+", constraint.strip()) if constraint.strip() else ()
    ):
        match = LIMIT.fullmatch(part)
        if match is None or match[1] in limits:
            return None
        limits[match[1]] = match[2]
    return limits.get(SMALLEST, ""), limits.get(LARGEST, "")


def limits_of_row(book: DraftBook, row: Row) -> tuple[str, str] | None:
    return limits_of(book.sheet("survey").value(row, "constraint"))


def read_limit(book: DraftBook, row: Row, sign: str) -> str:
    smallest, largest = limits_of_row(book, row) or ("", "")
    return smallest if sign == SMALLEST else largest


def write_limit(book: DraftBook, row: Row, sign: str, text: str) -> None:
    """Write one of the limits; "" takes it away. Raises CommandRefused."""
    limits = limits_of_row(book, row)
    text = text.strip().replace("\N{MINUS SIGN}", "-")
    if limits is None:
        raise CommandRefused(_("This question has another rule for its answers."))
    if text and not re.fullmatch(NUMBER, text):
        raise CommandRefused(_("Write a number, such as 0 or 7.5."))
    smallest, largest = limits
    after = (text, largest) if sign == SMALLEST else (smallest, text)
    parts = [
        f". {known} {number}"
        for known, number in zip((SMALLEST, LARGEST), after, strict=True)
        if number
    ]
    set_value(book, "survey", row.key, field="constraint", text=" and ".join(parts))
    for language in languages_of(book):
        before = message_of(*limits, language.code)
        number = text_column(book, book.sheet("survey"), "constraint_message", language)
        if row.cells.get(number, "") == before:
            set_text(
                book,
                "survey",
                row.key,
                field="constraint_message",
                language=language,
                text=message_of(*after, language.code),
            )


def message_of(smallest: str, largest: str, code: str) -> str:
    """Return what people are told, or "" in a language that has no such words."""
    if not (smallest or largest):
        return ""
    key = "limits_both" if smallest and largest else "limits_smallest"
    key = key if smallest else "limits_largest"
    language = messages.language_for(code)
    words = messages.MESSAGES[language][key]
    is_known = language == code.lower() or language == messages.base_of(code)
    is_translated = language == messages.FALLBACK or words != messages.ENGLISH[key]
    if not (is_known and is_translated):
        return ""
    return words.replace("{low}", smallest).replace("{high}", largest)

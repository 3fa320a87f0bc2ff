"""What a check before publishing reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from survey.instrument.xlsform.draft import ItemDraft


class Severity(StrEnum):
    """A problem is wrong as it stands; a hint may be as the author wants it."""

    PROBLEM = "problem"
    HINT = "hint"


class Audience(StrEnum):
    """Who answers: this sets how hard texts may be, and how fast they are read."""

    STUDENTS = "students"
    ADULTS = "adults"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at; `kind` names the check, such as "double_negative".

    `item` and `row` are empty for the whole survey, `language` where it does not
    matter. A heading, a title or an option is reported at the first item that has it.
    """

    kind: str
    severity: Severity
    message: str
    item: str = ""
    row: int | None = None
    language: str = ""


def problem(
    kind: str, message: str, item: ItemDraft | None = None, language: str = ""
) -> Check:
    return _check(kind, Severity.PROBLEM, message, item, language)


def hint(
    kind: str, message: str, item: ItemDraft | None = None, language: str = ""
) -> Check:
    return _check(kind, Severity.HINT, message, item, language)


def _check(
    kind: str, severity: Severity, message: str, item: ItemDraft | None, language: str
) -> Check:
    if item is None:
        return Check(kind, severity, message, language=language)
    return Check(kind, severity, message, item.name, item.row.number, language)


def is_language(code: str, primary: str) -> bool:
    """Tell whether `es-MX` is `es`."""
    return code.partition("-")[0].lower() == primary

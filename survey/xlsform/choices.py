"""Read the choices sheet: option sets."""

from __future__ import annotations

from survey.xlsform.columns import SurveyRow
from survey.xlsform.draft import OptionDraft
from survey.xlsform.names import LONGEST_NAME, RESERVED
from survey.xlsform.problems import Findings

# A respondent reads every one of them, and each page that uses the set
# carries it: a list of 5,000 schools is a lookup, not a question.
MAX_OPTIONS = 1_000
LONGEST_VALUE = 64


def read_choices(
    rows: list[SurveyRow], findings: Findings
) -> dict[str, list[OptionDraft]]:
    sets: dict[str, list[OptionDraft]] = {}
    first_rows: dict[tuple[str, str], int] = {}
    for row in rows:
        name, value = row.get("list"), row.get("name")
        if not name:
            if row.values or row.texts:
                row.refuse(findings, "list", "the option belongs to no list", value)
            continue
        if row.media:
            row.refuse(findings, "media", "options cannot have pictures or sound")
        first = first_rows.setdefault((name, value), row.number)
        if name in RESERVED or len(name) > LONGEST_NAME:
            row.refuse(findings, "list", "a list cannot have this name")
            continue
        if not value:
            row.refuse(findings, "name", "the option has no value", name)
            continue
        if len(value) > LONGEST_VALUE:
            reason = f"an option's value is longer than {LONGEST_VALUE} characters"
            row.refuse(findings, "name", reason)
            continue
        if first != row.number:
            reason = f"the list {name!r} already has this value in row {first}"
            row.refuse(findings, "name", reason)
            continue
        label = row.text("label")
        if not label:
            reason = "the option has no label: its value is shown"
            row.warn(findings, "label", reason, value)
        for text in label.values():
            if "${" in text:
                reason = "an option's label cannot quote answers"
                row.refuse(findings, "label", reason, text)
        options = sets.setdefault(name, [])
        options.append(OptionDraft(value, label, row.free))
        if len(options) == MAX_OPTIONS + 1:
            reason = f"more than {MAX_OPTIONS:,} options in one list"
            row.refuse(findings, "list", reason)
    return sets


def check_spaces(
    name: str, options: list[OptionDraft], row: SurveyRow, findings: Findings
) -> None:
    """Refuse values with spaces, which separate several chosen values."""
    for option in options:
        if any(character.isspace() for character in option.value):
            row.refuse(
                findings,
                "type",
                f"the list {name!r} has a value with a space in it, which"
                " select_multiple cannot use",
                option.value,
            )

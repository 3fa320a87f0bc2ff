"""Read the choices sheet: option sets."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import OptionDraft
from survey.instrument.xlsform.names import LONGEST_NAME, RESERVED
from survey.instrument.xlsform.problems import Findings

# A respondent reads every one of them, and each page that uses the set
# carries it: a list of 5,000 schools is a lookup, not a question.
MAX_OPTIONS = 1_000
LONGEST_VALUE = 64


@dataclass
class Choices:
    """`shared` are columns with all values, between spaces, of repeated options."""

    sets: dict[str, list[OptionDraft]] = field(default_factory=dict)
    shared: dict[str, set[str]] = field(default_factory=dict)


def read_choices(
    rows: list[SurveyRow], findings: Findings, *, may_repeat: bool = False
) -> Choices:
    choices = Choices()
    sets = choices.sets
    first_rows: dict[tuple[str, str], int] = {}
    first_options: dict[tuple[str, str], OptionDraft] = {}
    repeated: list[tuple[OptionDraft, SurveyRow]] = []
    for row in rows:
        name, value = row.get("list"), row.get("name")
        if not name:
            if row.values or row.texts:
                row.refuse(findings, "list", _("the option belongs to no list"), value)
            continue
        if row.media:
            row.refuse(findings, "media", _("options cannot have pictures or sound"))
        first = first_rows.setdefault((name, value), row.number)
        if name in RESERVED or len(name) > LONGEST_NAME:
            row.refuse(findings, "list", _("a list cannot have this name"))
            continue
        if not value:
            row.refuse(findings, "name", _("the option has no value"), name)
            continue
        if len(value) > LONGEST_VALUE:
            reason = _(
                "an option's value is longer than %(longest_value)s characters"
            ) % {"longest_value": LONGEST_VALUE}
            row.refuse(findings, "name", reason)
            continue
        if first != row.number and may_repeat:
            repeated.append((first_options[name, value], row))
            continue
        if first != row.number:
            reason = _("the list %(name)s already has this value in row %(first)s") % {
                "name": f"{name!r}",
                "first": first,
            }
            row.refuse(findings, "name", reason)
            continue
        label = row.text("label")
        if not label:
            reason = _("the option has no label: its value is shown")
            row.warn(findings, "label", reason, value)
        options = sets.setdefault(name, [])
        options.append(OptionDraft(value, label, dict(row.free)))
        first_options[name, value] = options[-1]
        if len(options) == MAX_OPTIONS + 1:
            reason = _("more than %(max_options)s options in one list") % {
                "max_options": f"{MAX_OPTIONS:,}"
            }
            row.refuse(findings, "list", reason)
    merge_repeated(choices, rows, repeated, findings)
    return choices


def merge_repeated(
    choices: Choices,
    rows: list[SurveyRow],
    repeated: list[tuple[OptionDraft, SurveyRow]],
    findings: Findings,
) -> None:
    """Read an option that is there for several values of one column as one option.

    That column then has all its values, and a choice filter compares each.
    """
    column_of: dict[int, str] = {}
    for option, row in repeated:
        keys = option.attributes.keys() | row.free.keys()
        differing = {
            key for key in keys if option.attributes.get(key) != row.free.get(key)
        }
        column = column_of.get(id(option)) or min(differing, default="")
        values = option.attributes.get(column, "").split(), row.free.get(column, "")
        if option.label != row.text("label"):
            reason = _("the list has this value with another label")
        elif differing - {column}:
            reason = _("the list has this value, with other values in two columns")
        elif column and not (values[0] and values[1]):
            reason = _("the list has this value, with a blank column %(column)s")
        else:
            if column and values[1] not in values[0]:
                option.attributes[column] = " ".join((*values[0], values[1]))
                column_of[id(option)] = column
                choices.shared.setdefault(row.get("list"), set()).add(column)
            row.warn(findings, "name", _("repeated: read as one option"))
            continue
        row.refuse(findings, "name", reason % {"column": column})
    for row in rows:
        for column in sorted(choices.shared.get(row.get("list"), ())):
            if len(row.free.get(column, "").split()) > 1:
                reason = _("a space in a column by which repeated options differ")
                findings.refuse("choices", row.number, column, reason)


def check_spaces(
    name: str, options: list[OptionDraft], row: SurveyRow, findings: Findings
) -> None:
    """Refuse values with spaces, which separate several chosen values."""
    for option in options:
        if any(character.isspace() for character in option.value):
            row.refuse(
                findings,
                "type",
                _(
                    "the list %(name)s has a value with a space in it, which"
                    " select_multiple cannot use"
                )
                % {"name": f"{name!r}"},
                option.value,
            )

"""Read the choices sheet: option sets."""

from __future__ import annotations

from django.utils.translation import gettext as _

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
        for text in label.values():
            if "${" in text:
                reason = _("an option's label cannot quote answers")
                row.refuse(findings, "label", reason, text)
        options = sets.setdefault(name, [])
        options.append(OptionDraft(value, label, row.free))
        if len(options) == MAX_OPTIONS + 1:
            reason = _("more than %(max_options)s options in one list") % {
                "max_options": f"{MAX_OPTIONS:,}"
            }
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
                _(
                    "the list %(name)s has a value with a space in it, which"
                    " select_multiple cannot use"
                )
                % {"name": f"{name!r}"},
                option.value,
            )

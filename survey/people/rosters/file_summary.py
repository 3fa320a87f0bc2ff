"""Say what was read of a roster file: in the console, the command and JSON alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext_lazy

from survey.people.rosters.columns import FIELD_NAMES

if TYPE_CHECKING:
    from survey.people.rosters.report import RosterReport

ROLE_WORDS = {
    "student": pgettext_lazy("role", "student"),
    "teacher": pgettext_lazy("role", "teacher"),
    "parent": pgettext_lazy("role", "parent"),
}


def field_label(name: str) -> str:
    """Return what sentences call a field; a subgroup has its own name."""
    return _(FIELD_NAMES[name]) if name in FIELD_NAMES else name


def summarise_file(report: RosterReport) -> list[str]:
    """Return sentences about the format, the columns and the fate of all rows."""
    return [
        _("File: %(description)s.") % {"description": report.description},
        *_summarise_columns(report),
        _summarise_rows(report),
        *report.remarks,
    ]


def _summarise_columns(report: RosterReport) -> list[str]:
    columns = report.columns
    labels = {
        columns.header[index]: field_label(name)
        for name, index in columns.fields.items()
    }
    labels |= {columns.header[i]: _("subgroup") for i in columns.attributes.values()}
    used = ", ".join(f"{text} ({label})" for text, label in labels.items())
    sentences = [_("Columns used: %(columns)s.") % {"columns": used}]
    if columns.guessed:
        sentences.append(
            _("Headers read as misspelt: %(headers)s.")
            % {"headers": ", ".join(columns.guessed)}
        )
    unused = [
        f"{text} ({reason})" if (reason := columns.ignored.get(text)) else text
        for text in columns.dropped
    ]
    if unused:
        sentences.append(
            _("Columns not used, of which nothing is kept: %(columns)s.")
            % {"columns": ", ".join(unused)}
        )
    return sentences


def _summarise_rows(report: RosterReport) -> str:
    """Say what became of the rows, each of which is counted once."""
    read = report.added + report.changed + report.unchanged
    numbers = {
        _("read as people to invite"): read,
        _("rejected"): report.rejected,
        _("of people who have left"): report.left,
        _("of people who come later"): report.later,
    }
    for role, rows in sorted(report.other_roles.items()):
        words = ROLE_WORDS.get(role, role)
        numbers[_("left out, of the role %(role)s") % {"role": words}] = rows
    rest = max(report.rows - sum(numbers.values()), 0)
    if report.rejected and not read:
        numbers[_("not imported, because other rows were rejected")] = rest
    else:
        numbers[_("left out, as repeated or as the notes say")] = rest
    fates = ", ".join(f"{rows:,} {fate}" for fate, rows in numbers.items() if rows)
    rows_of_file = ngettext(
        "%(rows)s row below the headers", "%(rows)s rows below the headers", report.rows
    ) % {"rows": f"{report.rows:,}"}
    return f"{rows_of_file}: {fates}." if fates else f"{rows_of_file}."

"""Find the values of a roster's columns that a person has to explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from survey.models import Role
from survey.people.rosters.column_choices import ColumnSamples
from survey.people.rosters.field_parsers import language_names, value_key
from survey.people.rosters.layouts import RosterLayout, is_unknown_value, status_flags
from survey.people.rosters.presets import all_presets

# Stands for an empty meaning, since an empty choice is none.
BLANK = "blank"


@dataclass(frozen=True)
class ValueQuestion:
    """A value of the file, and the form's field that says what it means."""

    name: str
    field: str
    value: str


def meanings(languages: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return what the values of each field can mean, with the survey's languages."""
    blank = {BLANK: _("Leave blank")}
    return {
        "grade": _grades() | blank,
        "role": {
            Role.STUDENT.value: _("Student"),
            Role.TEACHER.value: _("Staff"),
            Role.PARENT.value: _("Parent"),
            "other": _("Another role: leave these rows out"),
        },
        "status": {"active": _("Active"), "left": _("Left: not invited")},
        "language": {**languages, **blank},
    }


def _grades() -> dict[str, str]:
    return {
        "IT": _("Infant or toddler"),
        "PR": _("Preschool"),
        "PK": _("Prekindergarten"),
        "TK": _("Transitional kindergarten"),
        "KG": _("Kindergarten"),
        **{
            f"{number:02}": _("Grade %(number)s") % {"number": number}
            for number in range(1, 14)
        },
        "PS": _("Postsecondary"),
        "UG": _("Ungraded"),
        "Other": _("Other"),
    }


def values_to_ask(
    name: str,
    header: str,
    *,
    samples: ColumnSamples,
    layout: RosterLayout,
    languages: Mapping[str, str],
) -> Sequence[str]:
    """Return the unknown values of a column that holds the field `name`.

    Of the column that a layout names, these are the values that its suggestion asks
    for, and those that somebody has explained. Of another column they are all that
    are unknown.
    """
    is_same = header == layout.fields.get(name)
    asked = samples.options.get(f"values:{name}", ())
    values = samples.values_of(header)
    if values is None:
        return asked if is_same else ()
    known = known_values(name, header, samples, layout)
    names = language_names(languages)
    unknown = [text for text in values if is_unknown_value(name, text, known, names)]
    if not is_same:
        return unknown
    explained = layout.values.get(name, {})
    return [text for text in unknown if text in asked or value_key(text) in explained]


def known_values(
    name: str, header: str, samples: ColumnSamples, layout: RosterLayout
) -> Mapping[str, str]:
    """Return what a preset or the header itself says about a column's values."""
    preset = all_presets().get(layout.preset)
    if preset and preset.fields_in(samples.header).get(name) == header:
        return preset.values.get(name, {})
    return status_flags(header).get(name, {}) if name == "status" else {}

"""Subgroups: the roster columns and values that are stored next to answers.

An administration declares them. Any other column or value could be a name.
As text, each line is a column and its values: "lunch: free, reduced, paid".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from survey.people.rosters.columns import LONGEST_HEADER, reason_not_a_subgroup, squeeze

Subgroups = Mapping[str, Sequence[str]]

MAX_COLUMNS = 30
# With more values, the column describes people rather than groups.
MAX_VALUES = 50
LONGEST_VALUE = 64
# Columns whose names are not words.
_LABELS = {"demographicRaceTwoOrMoreRaces": "Two or more races"}

_FLAG = "yes, no, Y, N, true, false, 1, 0"
_GENDER = "female, male, nonbinary, other, unspecified, F, M, X"
_RACE = (
    "American Indian or Alaska Native, Asian, Black or African American,"
    " Hispanic or Latino, Native Hawaiian or Other Pacific Islander, White,"
    " Two or more races"
)
# Grade and language are columns of their own. Races are spelt as in OneRoster's
# demographics.csv, or in the words of the census.
DEFAULT_LINES = f"""\
gender: {_GENDER}
sex: {_GENDER}
race: {_RACE}
ethnicity: Hispanic or Latino, Not Hispanic or Latino, {_FLAG}
race/ethnicity: {_RACE}
American Indian or Alaska Native: {_FLAG}
Asian: {_FLAG}
Black or African American: {_FLAG}
Native Hawaiian or Other Pacific Islander: {_FLAG}
White: {_FLAG}
demographicRaceTwoOrMoreRaces: {_FLAG}
Hispanic or Latino ethnicity: {_FLAG}
English learner: {_FLAG}
special education: {_FLAG}
Section 504: {_FLAG}
economically disadvantaged: {_FLAG}
lunch: free, reduced, paid, F, R, P, {_FLAG}
gifted: {_FLAG}
migrant: {_FLAG}
homeless: {_FLAG}
foster care: {_FLAG}
military connected: {_FLAG}
Title I: {_FLAG}
"""


def parse_subgroups(lines: Iterable[str]) -> dict[str, list[str]]:
    """Read declared subgroups. Raises ValidationError with every problem."""
    subgroups: dict[str, list[str]] = {}
    problems: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        column, _colon, values = (
            " ".join(part.split()) for part in line.partition(":")
        )
        texts = [value.strip() for value in values.split(",") if value.strip()]
        if any(squeeze(column) == squeeze(known) for known in subgroups):
            problems.append(_("'%(column)s' is there twice.") % {"column": column})
        problems += problems_of(column, texts)
        subgroups[column] = list(dict.fromkeys(texts))
    if len(subgroups) > MAX_COLUMNS:
        problems.append(
            _("Declare at most %(max_columns)s subgroup columns.")
            % {"max_columns": MAX_COLUMNS}
        )
    if problems:
        raise ValidationError({"subgroups": problems})
    return subgroups


def problems_of(column: str, values: Sequence[str]) -> list[str]:
    shown = column[:LONGEST_HEADER]
    if len(column) > LONGEST_HEADER:
        return [
            _("'%(shown)s…' is longer than %(longest_header)s characters.")
            % {"shown": shown, "longest_header": LONGEST_HEADER}
        ]
    if reason := reason_not_a_subgroup(column):
        return [
            _("'%(shown)s' can't be a subgroup: %(reason)s.")
            % {"shown": shown, "reason": reason}
        ]
    if not values:
        return [
            _(
                "List the values of '%(shown)s' after a colon, such as"
                " '%(shown)s: A, B'."
            )
            % {"shown": shown}
        ]
    if len(values) > MAX_VALUES:
        return [
            _(
                "'%(shown)s' has %(values)s values. Declare at most"
                " %(max_values)s: with more, single people could be"
                " recognized."
            )
            % {"shown": shown, "values": len(values), "max_values": MAX_VALUES}
        ]
    if any(len(value) > LONGEST_VALUE for value in values):
        return [
            _("A value of '%(shown)s' is longer than %(longest_value)s characters.")
            % {"shown": shown, "longest_value": LONGEST_VALUE}
        ]
    return []


def format_subgroups(subgroups: Subgroups) -> str:
    # PostgreSQL keeps no order of an object's names.
    return "\n".join(
        f"{column}: {', '.join(subgroups[column])}"
        for column in sorted(subgroups, key=str.casefold)
    )


def default_subgroups() -> dict[str, list[str]]:
    """Return the columns that most rosters have, by their standard names."""
    return parse_subgroups(DEFAULT_LINES.splitlines())


def subgroup_label(column: str) -> str:
    """Spell a column for people: in words, beginning with a capital letter."""
    if column in _LABELS:
        return _LABELS[column]
    if " " not in column and re.search(r"[a-z][A-Z]", column):
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column).split()
        column = " ".join(word if word.isupper() else word.lower() for word in words)
    return column[:1].upper() + column[1:]

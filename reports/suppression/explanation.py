"""Explain to readers which numbers of an administration are hidden, and why.

Every page that says so takes its sentences from here. They follow from the rules of
`results`, of sums of schools with a report, and of files without names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

# Everybody; users who see some schools beside the sums of schools with a report; users
# who see the responses of all schools in a place.
Reader = Literal["public", "school", "all"]

FEW_PEOPLE = gettext_lazy(
    "With few people, a number could show what somebody answered. A star (*), or a"
    " bound such as “under 5 %”, is shown instead."
)
ITEMS = gettext_lazy(
    "A question is hidden where fewer than %(minimum)s people answered it."
)
SUMS_OF_REPORTS = gettext_lazy(
    "The numbers of a district and of all schools are of the schools that have a"
    " report. For each question, they are of the schools that show it. A school has a"
    " report once enough people took part."
)
SMALL_SCHOOLS = gettext_lazy(
    "Schools where fewer than %(minimum)s people answered are part of their district’s"
    " numbers only together, if they have %(minimum)s people or more. Otherwise they"
    " are left out."
)
GROUPS = gettext_lazy(
    "If a group of a school is hidden, such as a grade, so is at least one more of its"
    " kind, because the school’s total would tell it."
)
OVERLAPPING_GROUPS = gettext_lazy(
    "Groups of different kinds are hidden if adding and subtracting them would show a"
    " few people."
)
GROUPS_OF_DISTRICTS = gettext_lazy(
    "A district’s numbers by group leave out schools that hide such a group, up to a"
    " fifth of the people. Otherwise none of its schools shows these groups."
)
NOTHING_ELSE = gettext_lazy(
    "Nothing is published by grade or another group, and no names or texts that people"
    " wrote. Files hide the same numbers as pages."
)


def hidden_figures(
    minimum: int, reader: Reader, *, has_reports: bool = True, has_groups: bool = True
) -> list[str]:
    """Return the sentences that explain what is hidden from a reader.

    `has_reports` tells whether larger places are sums of schools with a report, and
    `has_groups` whether people are counted by grade or a column of the roster.
    """
    is_public, sees_all, hides_few = reader == "public", reader == "all", minimum > 1
    sees_groups = has_groups and not is_public
    sentences = [
        (True, results_shown(minimum)),
        (hides_few, FEW_PEOPLE),
        (hides_few, ITEMS),
        (hides_few and sees_all, SMALL_SCHOOLS),
        (has_reports and not sees_all, SUMS_OF_REPORTS),
        (sees_groups, GROUPS),
        (sees_groups and hides_few, OVERLAPPING_GROUPS),
        (sees_groups and sees_all, GROUPS_OF_DISTRICTS),
        (hides_few and sees_all, files_without_names(minimum)),
        (is_public, NOTHING_ELSE),
    ]
    # Not with "%": a sentence about shares has that sign.
    return [
        str(sentence).replace("%(minimum)s", str(minimum))
        for applies, sentence in sentences
        if applies
    ]


def results_shown(minimum: int) -> str:
    """Say where results are shown, in a line that other pages have as well."""
    shown = ngettext(
        "Results are shown however few people answered.",
        "Results are shown where at least %(minimum)s people answered.",
        minimum,
    )
    if minimum == 1:
        return shown
    more = _("Some more are hidden, so that nobody’s answers can be calculated.")
    return f"{shown % {'minimum': minimum}} {more}"


def files_without_names(minimum: int) -> str:
    """Say how many people share the cells of a file."""
    return _(
        "In a file without names, at least %(minimum)s of the people who were counted"
        " share each combination of school, grade, language and subgroups."
    ) % {"minimum": minimum}


def repeating_columns(columns: Iterable[tuple[str, str]]) -> list[str]:
    """Say which columns no school shows, by the labels of each and of the repeated one.

    The second label is "" for a column that repeats several others together.
    """
    sentences = []
    for column, repeated in columns:
        if repeated:
            words = _(
                "“%(column)s” is not shown by school, because it repeats"
                " “%(repeated)s”: people could be calculated from both."
            )
        else:
            words = _(
                "“%(column)s” is not shown by school, because it repeats other"
                " columns: people could be calculated from all of them."
            )
        sentences.append(words % {"column": column, "repeated": repeated})
    return sentences

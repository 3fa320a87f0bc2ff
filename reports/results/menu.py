"""List the groups of an administration, whoever of them has answered."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from reports.results.counting import GRADE
from survey.database.replica.reports import reports_database
from survey.fieldwork.administrations import subgroup_label
from survey.models import Administration, CountedGroup, Respondent


def attribute_label(attribute: str) -> str:
    return _("Grade") if attribute == GRADE else subgroup_label(attribute)


def groups_of_roster(
    administration: Administration, attributes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return attribute and value of all groups on the roster. 2 statements.

    A menu of the groups that have answered would tell whether the only pupil of a
    group took part.
    """
    alias = reports_database()
    people = Respondent.objects.using(alias).filter(administration=administration)
    counted = CountedGroup.objects.using(alias).filter(administration=administration)
    groups = set()
    for rows in (people, counted):
        for grade, values in rows.values_list("grade", "attributes").distinct():
            for attribute in filter(None, attributes):
                is_grade = attribute == GRADE
                value = grade if is_grade else (values or {}).get(attribute)
                groups.add((attribute, str(value or "")))
    return sorted(groups)

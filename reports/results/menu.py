"""Name the attributes of groups, in the order of menus."""

from __future__ import annotations

from django.utils.translation import gettext as _

from reports.releases.counting import GRADE
from survey.fieldwork.administrations import subgroup_label
from survey.models import Administration
from survey.models.grades import grade_name


def value_label(attribute: str, value: str) -> str:
    """Return the name of an attribute's value; "" is that of people without one."""
    name = grade_name(value) if attribute == GRADE else value
    return name or _("not known")


def group_label(attribute: str, value: str) -> str:
    return f"{attribute_label(attribute)}: {value_label(attribute, value)}"


def attribute_label(attribute: str) -> str:
    return _("Grade") if attribute == GRADE else subgroup_label(attribute)


def roster_groups(administration: Administration) -> set[tuple[str, str]]:
    """Return attribute and value of all groups that were on the roster."""
    roll_up = getattr(administration, "results_roll_up", None)
    on_roster = roll_up.roster_groups if roll_up else []
    return {(attribute, value) for attribute, value in on_roster}


def known_attributes(administration: Administration) -> list[str]:
    """Return the attributes that are known of anybody, in the order of menus."""
    known = {attribute for attribute, value in roster_groups(administration) if value}
    order = {name: number for number, name in enumerate(administration.subgroups, 1)}
    return sorted(known, key=lambda attribute: (order.get(attribute, 0), attribute))

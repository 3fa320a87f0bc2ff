"""Name the attributes in the menu of groups."""

from __future__ import annotations

from django.utils.translation import gettext as _

from reports.releases.counting import GRADE
from survey.fieldwork.administrations import subgroup_label


def value_label(value: str) -> str:
    """Return the name of an attribute's value; "" is that of people without one."""
    return value or _("not known")


def group_label(attribute: str, value: str) -> str:
    return f"{attribute_label(attribute)}: {value_label(value)}"


def attribute_label(attribute: str) -> str:
    return _("Grade") if attribute == GRADE else subgroup_label(attribute)

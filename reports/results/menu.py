"""Name the attributes in the menu of groups."""

from __future__ import annotations

from django.utils.translation import gettext as _

from reports.releases.counting import GRADE
from survey.fieldwork.administrations import subgroup_label


def attribute_label(attribute: str) -> str:
    return _("Grade") if attribute == GRADE else subgroup_label(attribute)

"""Administrations: opening, changing, closing and reopening them.

All rules about what may be changed, and when, are in `checks`; pages and
commands only show the errors.
"""

from survey.fieldwork.administrations.changes import (
    change_administration,
    close_administration,
    open_administration,
    reopen_administration,
)
from survey.fieldwork.administrations.checks import (
    ChangeBlocked,
    ConfirmationRequired,
    DatabaseBusy,
    EditConflict,
    least_minimum_group,
)
from survey.fieldwork.administrations.plans import (
    COLUMNS,
    AdministrationPlan,
    format_moment,
    plan_of,
)
from survey.fieldwork.administrations.queries import (
    MAX_NAME_LENGTH,
    AdministrationNotFound,
    ProgressCounts,
    administrations_for,
    administrations_in,
    count_progress,
    get_administration,
    has_people,
    has_started,
    invited_people,
    may_manage,
    schools_listed,
    schools_of,
    schools_offered,
    surveys_to_offer,
)
from survey.fieldwork.administrations.subgroups import (
    Subgroups,
    default_subgroups,
    format_subgroups,
    parse_subgroups,
    subgroup_label,
)

__all__ = [
    "COLUMNS",
    "MAX_NAME_LENGTH",
    "AdministrationNotFound",
    "AdministrationPlan",
    "ChangeBlocked",
    "ConfirmationRequired",
    "DatabaseBusy",
    "EditConflict",
    "ProgressCounts",
    "Subgroups",
    "administrations_for",
    "administrations_in",
    "change_administration",
    "close_administration",
    "count_progress",
    "default_subgroups",
    "format_moment",
    "format_subgroups",
    "get_administration",
    "has_people",
    "has_started",
    "invited_people",
    "least_minimum_group",
    "may_manage",
    "open_administration",
    "parse_subgroups",
    "plan_of",
    "reopen_administration",
    "schools_listed",
    "schools_of",
    "schools_offered",
    "subgroup_label",
    "surveys_to_offer",
]

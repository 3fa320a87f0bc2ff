"""Administrations: found, opened, changed, closed and reopened, and by whom.

Whatever would harm one that is running is refused here, with a sentence for
the person; the pages and the commands only pass it on.
"""

from survey.administrations.changes import (
    change_administration,
    close_administration,
    open_administration,
    reopen_administration,
)
from survey.administrations.plans import (
    Plan,
    plan_of,
    said,
)
from survey.administrations.queries import (
    LONGEST_NAME,
    AdministrationNotFound,
    Standing,
    administration_called,
    administrations_for,
    may_manage,
    schools_offered,
    somebody_has_started,
    somebody_was_invited,
    standing,
    suggest_name,
    surveys_to_offer,
)
from survey.administrations.refusals import (
    Busy,
    ChangedMeanwhile,
    NeedsTyping,
    WouldHarm,
)

__all__ = [
    "LONGEST_NAME",
    "AdministrationNotFound",
    "Busy",
    "ChangedMeanwhile",
    "NeedsTyping",
    "Plan",
    "Standing",
    "WouldHarm",
    "administration_called",
    "administrations_for",
    "change_administration",
    "close_administration",
    "may_manage",
    "open_administration",
    "plan_of",
    "reopen_administration",
    "said",
    "schools_offered",
    "somebody_has_started",
    "somebody_was_invited",
    "standing",
    "suggest_name",
    "surveys_to_offer",
]

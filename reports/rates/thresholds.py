"""Response rate thresholds: how many have to finish before a school gets a report.

At least half of the students, and at least 10; at least half of the teachers,
and at least 8; parents, a fifth of the number of *students*. The state, districts
and schools can set other percentages (`accounts.place_settings`). Where anyone can take
part (a count), the number that the school supplied stands for the invited people.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.place_settings import DEFAULT_THRESHOLDS
from survey.models import Role

MINIMUM = {Role.STUDENT: 10, Role.TEACHER: 8, Role.PARENT: 0}
PERCENT = {Role(role): percent for role, percent in DEFAULT_THRESHOLDS.items()}


class ThresholdState(Enum):
    NOT_INVITED = "not invited"
    UNKNOWN = "unknown"
    TOO_FEW = "too few for a report"
    BELOW = "below"
    REACHED = "reached"


def share_of(role: str, whole: int, percent: int | None = None) -> int:
    """Return the required percentage of `whole` people, rounded up."""
    return -(-whole * (percent or PERCENT[Role(role)]) // 100)


def needed(
    role: str,
    eligible: int,
    students: int | None = None,
    *,
    is_count: bool = False,
    percent: int | None = None,
) -> int | None:
    """Return how many have to finish, or None if even everyone would be too few.

    For parents the share is of `students`. None means that this number is not
    known, and then there is no threshold. With a count, `eligible` is no limit
    for parents: there may be more answers than families. `percent` is what the school
    needs, if it is not the usual one.
    """
    whole = students if role == Role.PARENT else eligible
    if not whole:
        return None
    least = max(share_of(role, whole, percent), MINIMUM[Role(role)])
    is_possible = least <= eligible or (is_count and role == Role.PARENT)
    return least if is_possible else None


@dataclass(frozen=True, slots=True)
class ThresholdProgress:
    """The progress of one school toward its threshold."""

    role: str
    eligible: int
    finished: int
    students: int | None = None
    # Whether the school supplies a number, and has no roster.
    is_count: bool = False
    # None is the usual one.
    percent: int | None = None

    @property
    def needed(self) -> int | None:
        return needed(
            self.role,
            self.eligible,
            self.students,
            is_count=self.is_count,
            percent=self.percent,
        )

    @property
    def state(self) -> ThresholdState:
        least = self.needed
        if least is not None:
            reached = self.finished >= least
            return ThresholdState.REACHED if reached else ThresholdState.BELOW
        if not self.eligible:
            return ThresholdState.NOT_INVITED
        if self.role == Role.PARENT and not self.students:
            return ThresholdState.UNKNOWN
        return ThresholdState.TOO_FEW

    @property
    def missing(self) -> int:
        return max((self.needed or 0) - self.finished, 0)

    @property
    def words(self) -> str:
        """The state as a sentence for the rates pages and files."""
        match self.state:
            case ThresholdState.NOT_INVITED:
                return (
                    _("No count yet") if self.is_count else _("No one is invited yet")
                )
            case ThresholdState.UNKNOWN:
                if self.is_count:
                    return _("Threshold unknown: supply the number of students")
                return _(
                    "Threshold unknown: this season has no students at this school"
                )
            case ThresholdState.TOO_FEW:
                least = MINIMUM[Role(self.role)]
                if self.role == Role.PARENT:
                    least = share_of(self.role, self.students or 0, self.percent)
                return self._too_few(least)
            case ThresholdState.BELOW:
                return _("%(people)s to reach %(threshold)s") % {
                    "people": more_people(self.role, self.missing),
                    "threshold": self.share_words,
                }
            case ThresholdState.REACHED:
                return _("Threshold reached")

    def _too_few(self, least: int) -> str:
        if self.is_count:
            words = _(
                "Too few for a report: the count is %(eligible)s, and %(least)s have"
                " to finish"
            )
        else:
            words = ngettext(
                "Too few for a report: %(eligible)s %(people)s is invited, and"
                " %(least)s have to finish",
                "Too few for a report: %(eligible)s %(people)s are invited, and"
                " %(least)s have to finish",
                self.eligible,
            )
        return words % {
            "eligible": f"{self.eligible:,}",
            "people": noun(self.role, self.eligible),
            "least": f"{least:,}",
        }

    @property
    def share_words(self) -> str:
        percent = self.percent or PERCENT[Role(self.role)]
        if self.role == Role.PARENT:
            return _("%(percent)s %% of the %(students)s students") % {
                "percent": percent,
                "students": f"{self.students or 0:,}",
            }
        least = MINIMUM[Role(self.role)]
        if share_of(self.role, self.eligible, self.percent) < least:
            return _("%(least)s, the minimum for a report") % {"least": least}
        return f"{percent} %"


def thresholds_of_schools(
    role: str, percents: Collection[int], *, has_usual: bool
) -> str:
    """Say the threshold of many schools; `percents` are those that are not usual."""
    ends = {*percents, PERCENT[Role(role)]} if has_usual else set(percents)
    if not ends:
        return ""
    words = f"{min(ends)} %"
    if len(ends) > 1:
        words = _("%(least)s %% to %(most)s %%") % {
            "least": min(ends),
            "most": max(ends),
        }
    if role == Role.PARENT:
        return _("%(percent)s of the number of students, in each school") % {
            "percent": words
        }
    return _("%(percent)s in each school") % {"percent": words}


def noun(role: str, count: int) -> str:
    """Return "student", "teachers" and the like."""
    match Role(role):
        case Role.STUDENT:
            return ngettext("student", "students", count)
        case Role.TEACHER:
            return ngettext("teacher", "teachers", count)
        case Role.PARENT:
            return ngettext("parent", "parents", count)


def more_people(role: str, count: int) -> str:
    """Return "14 more students" and the like."""
    match Role(role):
        case Role.STUDENT:
            words = ngettext("%(n)s more student", "%(n)s more students", count)
        case Role.TEACHER:
            words = ngettext("%(n)s more teacher", "%(n)s more teachers", count)
        case Role.PARENT:
            words = ngettext("%(n)s more parent", "%(n)s more parents", count)
    return words % {"n": f"{count:,}"}

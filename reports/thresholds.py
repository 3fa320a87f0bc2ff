"""Response rate thresholds: how many have to finish before a school gets a report.

At least half of the students, and at least 10; at least half of the teachers,
and at least 8; parents, a fifth of the number of *students*. The state, districts
and schools can set other percentages (`accounts.place_settings`). Where anyone can take
part (a count), the number that the school supplied stands for the invited people.
Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

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
                return "No count yet" if self.is_count else "No one is invited yet"
            case ThresholdState.UNKNOWN:
                if self.is_count:
                    return "Threshold unknown: supply the number of students"
                return "Threshold unknown: this wave has no students at this school"
            case ThresholdState.TOO_FEW:
                least = MINIMUM[Role(self.role)]
                if self.role == Role.PARENT:
                    least = share_of(self.role, self.students or 0, self.percent)
                are = "is" if self.eligible == 1 else "are"
                if self.is_count:
                    return (
                        f"Too few for a report: the count is {self.eligible:,}, and"
                        f" {least:,} have to finish"
                    )
                return (
                    f"Too few for a report: {self.eligible:,}"
                    f" {noun(self.role, self.eligible)} {are} invited,"
                    f" and {least:,} have to finish"
                )
            case ThresholdState.BELOW:
                people = noun(self.role, self.missing)
                return f"{self.missing:,} more {people} to reach {self._threshold}"
            case ThresholdState.REACHED:
                return "Threshold reached"

    @property
    def _threshold(self) -> str:
        percent = self.percent or PERCENT[Role(self.role)]
        if self.role == Role.PARENT:
            return f"{percent} % of the {self.students or 0:,} students"
        least = MINIMUM[Role(self.role)]
        if share_of(self.role, self.eligible, self.percent) < least:
            return f"{least}, the minimum for a report"
        return f"{percent} %"


def noun(role: str, count: int) -> str:
    return role if count == 1 else f"{role}s"

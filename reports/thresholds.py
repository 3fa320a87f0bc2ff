"""When a school has a report: the rules of the trade, as pure functions.

At least half of the students, and at least 10; at least half of the teachers,
and at least 8; parents, a fifth of the number of *students*.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from survey.models import Role

AT_LEAST = {Role.STUDENT: 10, Role.TEACHER: 8, Role.PARENT: 0}
PERCENT = {Role.STUDENT: 50, Role.TEACHER: 50, Role.PARENT: 20}


class State(Enum):
    NOBODY = "nobody invited"
    UNKNOWN = "not known"
    TOO_FEW = "too few for a report"
    BELOW = "below"
    REACHED = "threshold reached"


def needed(role: str, eligible: int, students: int | None = None) -> int | None:
    """How many have to finish; None where all that are invited are too few.

    For parents `students` is the number that the share is of, and None where
    nobody knows it: then there is no threshold either.
    """
    whole = students if role == Role.PARENT else eligible
    if not whole:
        return None
    least = max(-(-whole * PERCENT[Role(role)] // 100), AT_LEAST[Role(role)])
    return least if least <= eligible else None


def state_of(
    role: str, *, eligible: int, finished: int, students: int | None = None
) -> State:
    least = needed(role, eligible, students)
    if least is not None:
        return State.REACHED if finished >= least else State.BELOW
    if not eligible:
        return State.NOBODY
    if role == Role.PARENT and not students:
        return State.UNKNOWN
    return State.TOO_FEW


@dataclass(frozen=True, slots=True)
class Standing:
    """One school's way to its report, and the sentence for it."""

    role: str
    eligible: int
    finished: int
    students: int | None = None

    @property
    def state(self) -> State:
        return state_of(
            self.role,
            eligible=self.eligible,
            finished=self.finished,
            students=self.students,
        )

    @property
    def missing(self) -> int:
        least = needed(self.role, self.eligible, self.students)
        return max((least or 0) - self.finished, 0)

    @property
    def words(self) -> str:
        return _WORDS[self.state](self)


def _reached(one: Standing) -> str:
    return "Threshold reached"


def _below(one: Standing) -> str:
    more = f"{one.missing:,} more {noun(one.role, one.missing)} to reach"
    return f"{more} {_goal(one)}"


def _goal(one: Standing) -> str:
    role = Role(one.role)
    if role == Role.PARENT:
        return f"{PERCENT[role]} % of the {one.students or 0:,} students"
    if -(-one.eligible * PERCENT[role] // 100) < AT_LEAST[role]:
        return f"{AT_LEAST[role]}, the least for a report"
    return f"{PERCENT[role]} %"


def _too_few(one: Standing) -> str:
    role = Role(one.role)
    least = AT_LEAST[role]
    if role == Role.PARENT:
        least = -(-(one.students or 0) * PERCENT[role] // 100)
    are = "is" if one.eligible == 1 else "are"
    return (
        f"Too few for a report: {one.eligible:,} {noun(role, one.eligible)} {are}"
        f" invited, and {least:,} have to finish"
    )


def _unknown(one: Standing) -> str:
    return "The threshold is not known: the wave has no students of this school"


def _nobody(one: Standing) -> str:
    return "Nobody is invited yet"


_WORDS = {
    State.REACHED: _reached,
    State.BELOW: _below,
    State.TOO_FEW: _too_few,
    State.UNKNOWN: _unknown,
    State.NOBODY: _nobody,
}


def noun(role: str, count: int) -> str:
    return role if count == 1 else f"{role}s"

"""Whose numbers are too few to be shown to whoever must not know who finished.

A rate is no answer. But one finished of one invited in grade 4 says who it
was, and a coordinator knows everybody on the roster. The rule:

* Who may see the responses of a school (SEE_RESPONSES) sees every number, and
  so does everybody where the administration lets coordinators see who has
  finished.
* For the others a school with fewer people invited than a report needs has
  `*` for what they did, and so has each grade of fewer than 10.
* Where what is hidden could be had by subtracting the other grades from the
  school's number, the smallest of the others is hidden too, until at least
  two grades and at least 10 people are hidden together.

How many are invited is never hidden: it stands on the roster. That nobody or
everybody of a larger group has finished is shown, for that is what the page
is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from survey.models import Role

LEAST_IN_A_GRADE = 10
LEAST_IN_A_SCHOOL: Mapping[str, int] = {
    Role.STUDENT: 10,
    Role.TEACHER: 8,
    Role.PARENT: 10,
}
HIDDEN = "*"


def hides_school(role: str, eligible: int) -> bool:
    return 0 < eligible < LEAST_IN_A_SCHOOL[role]


def hidden_grades(eligible: Sequence[int]) -> set[int]:
    """Positions of the grades to hide, given how many each has invited.

    The school's own number is taken to be shown.
    """
    sizes = {position: size for position, size in enumerate(eligible) if size}
    hidden = {position for position in sizes if sizes[position] < LEAST_IN_A_GRADE}
    others = sorted(set(sizes) - hidden, key=lambda one: (sizes[one], one))
    while hidden and others and not _is_safe([sizes[one] for one in hidden]):
        hidden.add(others.pop(0))
    return hidden


def _is_safe(hidden: Sequence[int]) -> bool:
    return len(hidden) > 1 and sum(hidden) >= LEAST_IN_A_GRADE

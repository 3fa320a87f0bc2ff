"""Decide which counts are too small to show, because they would identify people.

A response rate is not an answer. But "1 of 1 finished" in grade 4 says who it
was, and a coordinator knows everyone on the roster. The rule:

* People who may see the responses of a school (SEE_RESPONSES) see every
  number. So does everyone if the administration lets coordinators see who has
  finished.
* For all others, `*` replaces what was started and finished in a school with
  fewer invited people than a report needs, and in each grade of fewer than 10.
* For all others, the hours and days of the chart show nobody or at least 10
  people: "1 finished at 10" says who it was to everybody who was in the room.
  For the same reason they see the day of the last start without its time, and how
  many have finished today once there are 10.
* Where anyone can take part, the number of people is what the school supplied. A
  school without a number counts as small. Once as many people have started as
  a large school has, it is large, whatever its number says.
* People who join a school or grade after the opening never make it large enough:
  their number could be subtracted again. What is hidden at the opening stays so.
* If a hidden number could be calculated by subtracting the other grades from
  the school's number, the smallest other grade is hidden too, until at least
  two grades with at least 10 people together are hidden.

The number of invited people is never hidden: the roster shows it. "No one" and
"everyone" are shown for larger groups, because that is the purpose of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import TypeVar

from django.utils import timezone

from survey.models import Role

SMALLEST_GRADE = 10
SMALLEST_SCHOOL: Mapping[str, int] = {
    Role.STUDENT: 10,
    Role.TEACHER: 8,
    Role.PARENT: 10,
}
# In one hour of the chart, starting or finishing.
SMALLEST_HOUR = 10
# The start of a local hour, people who started in it, people who finished.
Hour = tuple[datetime, int, int]
# A local hour, or the Unix time at which it begins.
Moment = TypeVar("Moment", datetime, int)


def hides_school(role: str, eligible: int, at_opening: int = 0) -> bool:
    sizes = (eligible, at_opening)
    return eligible > 0 and any(0 < size < SMALLEST_SCHOOL[role] for size in sizes)


def hides_counted_school(
    role: str, started: int, eligible: int, at_opening: int = 0
) -> bool:
    """Return whether a school is small whose number was supplied, 0 for none."""
    if started >= SMALLEST_SCHOOL[role]:
        return False
    return not eligible or hides_school(role, eligible, at_opening)


def sizes_for_hiding(grades: Sequence[tuple[int, int]]) -> list[int]:
    """Return the sizes that `hidden_grades` has to look at.

    `grades` are the eligible people of each grade, and those at the opening. A
    grade that only came later has 0: it is large enough, and must not be hidden
    in place of another one.
    """
    if not any(at_opening for _, at_opening in grades):
        return [eligible for eligible, _ in grades]
    return [
        eligible if not at_opening and eligible < SMALLEST_GRADE else at_opening
        for eligible, at_opening in grades
    ]


def hidden_grades(eligible: Sequence[int]) -> set[int]:
    """Return the positions of the grades to hide.

    `eligible` are the invited people of each grade. The number of the whole
    school is assumed to be shown.
    """
    sizes = {position: size for position, size in enumerate(eligible) if size}
    hidden = {position for position in sizes if sizes[position] < SMALLEST_GRADE}
    visible = sorted(set(sizes) - hidden, key=lambda grade: (sizes[grade], grade))
    while hidden and visible:
        if len(hidden) > 1 and sum(sizes[grade] for grade in hidden) >= SMALLEST_GRADE:
            break
        hidden.add(visible.pop(0))
    return hidden


def today_to_show(finished_today: int | None, *, exact: bool) -> int | None:
    """Return how many finished today; None if too few, unless everything is seen."""
    if exact or (finished_today or 0) >= SMALLEST_HOUR:
        return finished_today
    return None


def last_start_to_show(last: datetime | None, *, exact: bool) -> datetime | None:
    """Return the last start; its day only, unless the user sees everything.

    The state's day, for readers in all zones: two days that two of them see would
    tell the hour of a start near midnight.
    """
    if last is None or exact:
        return last
    day = timezone.localdate(last, timezone.get_default_timezone())
    return timezone.make_aware(datetime.combine(day, time.min))


def join_small_hours(
    hours: Sequence[tuple[Moment, int, int]],
) -> list[tuple[Moment, int, int]]:
    """Move people to a later hour until they are at least SMALLEST_HOUR.

    The last ones join the last hour shown, because the total minus the shown
    hours would be their number. Hours without people are left out.
    """
    started = _joined([hour[1] for hour in hours])
    finished = _joined([hour[2] for hour in hours])
    joined = zip((hour[0] for hour in hours), started, finished, strict=True)
    return [hour for hour in joined if hour[1] or hour[2]]


def _joined(counts: Sequence[int]) -> list[int]:
    shown, waiting, last = [0] * len(counts), 0, None
    for position, count in enumerate(counts):
        waiting += count
        if waiting >= SMALLEST_HOUR:
            shown[position], waiting, last = waiting, 0, position
    if last is not None:
        shown[last] += waiting
    return shown

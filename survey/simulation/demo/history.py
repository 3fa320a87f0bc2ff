"""Choose when the people of the demo start: by class, in school hours.

A school takes the survey class by class, in one lesson; students who were away
follow on another day. Teachers answer before and after lessons, and parents in
the evening.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from functools import cache

from django.utils import timezone

from survey.models import Role
from survey.simulation.demo.answers import DemoPerson, seeded_random

# Starts of lessons, and times at which teachers are free.
LESSONS = (time(8, 20), time(9, 15), time(10, 20), time(11, 15), time(13, 5))
FREE_TIME = (time(7, 30), time(12, 20), time(15, 20), time(16, 10), time(19, 45))
EVENING = (time(18, 5), time(19, 10), time(20, 30), time(21, 15))
TIMES = {Role.STUDENT: LESSONS, Role.TEACHER: FREE_TIME, Role.PARENT: EVENING}
AWAY = 0.15
SATURDAY = 5


def start_time(person: DemoPerson, *, opens_at: datetime, until: datetime) -> datetime:
    """Choose a moment in the window, always the same for a person and window."""
    draw_alone = seeded_random("when", person.key)
    moments = possible_moments(Role(person.role), opens_at, until)
    if not moments:
        return opens_at + (until - opens_at) * draw_alone.random()
    together = person.role == Role.STUDENT and draw_alone.random() > AWAY
    by_class = seeded_random("class", person.school, str(person.grade))
    draw = by_class if together else draw_alone
    # Half of the people start within the first quarter.
    moment = moments[int(len(moments) * draw.random() ** 2)]
    return moment + timedelta(seconds=draw_alone.uniform(20, 240))


@cache
def possible_moments(
    role: Role, opens_at: datetime, until: datetime
) -> Sequence[datetime]:
    """Return when people of a role may start."""
    zone = timezone.get_current_timezone()
    first = timezone.localtime(opens_at).date()
    days = [first + timedelta(days=n) for n in range((until - opens_at).days + 2)]
    moments = [
        datetime.combine(day, at, tzinfo=zone)
        for day in days
        if day.weekday() < SATURDAY
        for at in TIMES[role]
    ]
    # One person can be some minutes later than the class.
    latest = until - timedelta(minutes=5)
    return [moment for moment in moments if opens_at <= moment <= latest]

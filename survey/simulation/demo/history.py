"""When made-up people begin: by class, in school hours, most of them early.

A school takes the survey class by class, in one lesson; whoever was away
follows on some other day. Teachers answer before and after lessons.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from random import Random

from django.utils import timezone

from survey.models import Role
from survey.simulation.demo.answers import Person, dice

# Lessons begin; teachers have time around them.
LESSONS = (time(8, 20), time(9, 15), time(10, 20), time(11, 15), time(13, 5))
FREE_TIME = (time(7, 30), time(12, 20), time(15, 20), time(16, 10), time(19, 45))
AWAY = 0.15
SATURDAY = 5


def began_at(person: Person, *, opens_at: datetime, until: datetime) -> datetime:
    """A moment in the window, the same for the same person and window."""
    own = dice("when", person.key)
    moments = _moments(person, opens_at, until)
    if not moments:
        return opens_at + (until - opens_at) * own.random()
    together = person.role == Role.STUDENT and own.random() > AWAY
    by_class = dice("class", person.school, str(person.grade))
    moment = _early(moments, by_class if together else own)
    return moment + timedelta(seconds=own.uniform(20, 240))


def _moments(person: Person, opens_at: datetime, until: datetime) -> list[datetime]:
    """The lessons of all school days between, first to last."""
    times = LESSONS if person.role == Role.STUDENT else FREE_TIME
    zone = timezone.get_current_timezone()
    first = timezone.localtime(opens_at).date()
    days = [first + timedelta(days=n) for n in range((until - opens_at).days + 2)]
    found = [
        datetime.combine(day, at, tzinfo=zone)
        for day in days
        if day.weekday() < SATURDAY
        for at in times
    ]
    # With room for those minutes by which one person is later than the class.
    return [one for one in found if opens_at <= one <= until - timedelta(minutes=5)]


def _early(moments: Sequence[datetime], draw: Random) -> datetime:
    """Half of them within the first quarter."""
    return moments[int(len(moments) * draw.random() ** 2)]

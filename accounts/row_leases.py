"""Leases on rows: one worker has a row at a time, and its attempt a number.

When a worker dies, its lease ends, and another one takes the row. All times are the
database's. By the workers' own clocks, one whose clock is a minute behind would seem
dead to the others, which would take over each of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class RowLease:
    """A lease on rows with `attempts` and a time, `field`.

    The time is when the lease ends. If it `shows_renewal`, it is when the lease was
    renewed, and null before the first attempt.
    """

    field: str
    duration: timedelta
    shows_renewal: bool = False

    @property
    def is_free(self) -> Q:
        free = Q(**{f"{self.field}__lte": _from_now(-self._offset)})
        return free | Q(**{self.field: None}) if self.shows_renewal else free

    def take(self, rows: QuerySet[M], **changes: object) -> bool:
        """Take a row, and count the attempt; return False if another worker has it.

        1 statement.
        """
        changes |= self.ends_in(self.duration)
        attempts = F("attempts") + 1
        return bool(rows.filter(self.is_free).update(attempts=attempts, **changes))

    def ends_in(self, delay: timedelta) -> dict[str, object]:
        """Return the change by which a row is free after a delay, and not before."""
        return {self.field: _from_now(delay - self._offset)}

    @property
    def _offset(self) -> timedelta:
        return self.duration if self.shows_renewal else timedelta(0)


def _from_now(delay: timedelta) -> Combinable:
    return Now() + delay if delay else Now()

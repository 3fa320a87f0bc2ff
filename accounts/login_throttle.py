"""Who guesses has to wait: longer after each failure, by account.

By account alone: a district office is one address, and an attacker has many.
Whoever waits is told how long, in the same words whether the account exists
or not. It is kept in the database, which every web server sees and without
which nobody logs in anyway: no cache that is away lets guesses through, or
keeps staff out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac

from accounts.models import FailedTries

LONGEST = timedelta(minutes=15)
# After a quiet day, nothing is held against anybody.
FORGOTTEN_AFTER = timedelta(days=1)
# Anybody may type addresses. A row is 100 bytes, and those with the fewest
# failures go first: who fills the table does not wash a real delay out of it.
MOST_KEPT = 200_000


class What(StrEnum):
    """They are counted apart: a right password must not make guesses at the
    second factor free, nor a mail that was asked for."""

    PASSWORD = "password"  # noqa: S105
    SECOND_FACTOR = "second factor"
    MAIL = "mail"


@dataclass(frozen=True, slots=True)
class Try:
    """Either it has to wait, or it may be made."""

    # How long until it may be made; zero: now.
    wait: timedelta
    # In a row, this one included.
    failures: int

    @property
    def next_wait(self) -> timedelta:
        """After this one, should it fail."""
        return wait_after(self.failures)


def wait_after(failures: int) -> timedelta:
    """1, 2, 4, 8 … seconds, and never more than a quarter of an hour."""
    if failures < 1:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(failures - 1, 20)), LONGEST)


def take(what: What, email: str) -> Try:
    """Before anything is checked; it counts as failed until `succeeded`.

    Taken under a lock: of a hundred guesses in the same moment, one is made.
    3 statements.
    """
    now = timezone.now()
    key = _key(what, email)
    with transaction.atomic():
        FailedTries.objects.bulk_create(
            [FailedTries(key=key, last_at=now)], ignore_conflicts=True
        )
        row = FailedTries.objects.select_for_update().get(pk=key)
        if now - row.last_at > FORGOTTEN_AFTER:
            row.failures = 0
        wait = _left(row, now)
        if not wait:
            row.failures += 1
            row.last_at = now
            row.save(update_fields=["failures", "last_at"])
    return Try(wait, row.failures)


def succeeded(what: What, email: str) -> None:
    FailedTries.objects.filter(pk=_key(what, email)).delete()


def forget_old() -> None:
    """For the time table: what is a day old, and the least of too many."""
    FailedTries.objects.filter(last_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()
    worst = FailedTries.objects.order_by("-failures", "-last_at")
    for first in worst[MOST_KEPT : MOST_KEPT + 1]:
        FailedTries.objects.filter(
            Q(failures__lt=first.failures)
            | Q(failures=first.failures, last_at__lte=first.last_at)
        ).delete()


def in_words(wait: timedelta) -> str:
    """Rounded up: "1 second", "40 seconds", "3 minutes"."""
    seconds = math.ceil(wait.total_seconds())
    if seconds > 90:
        return f"{math.ceil(seconds / 60)} minutes"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _left(row: FailedTries, now: datetime) -> timedelta:
    return max(row.last_at + wait_after(row.failures) - now, timedelta(0))


def _key(what: What, email: str) -> str:
    typed = email.strip().lower()
    return salted_hmac(
        "accounts.delays", f"{what}:{typed}", algorithm="sha256"
    ).hexdigest()

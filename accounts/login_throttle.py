"""Throttle failed logins per account, with growing delays.

Delays count per account and not per network address: a district office shares
one address, and an attacker has many. Devices in which the user has logged in
before are counted separately (`accounts.known_device`), so that guesses from
elsewhere don't keep the owner out. The message is the same whether or not
the account exists. Attempts are stored in the database, because without it
nobody can log in anyway, while an outage of a cache would either let guesses
through or keep staff out. All times are the database's: a failure that a host with
a clock an hour ahead had stored would keep its owner out for an hour elsewhere.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac
from django.utils.translation import ngettext

from accounts.models import FailedTries

LONGEST = timedelta(minutes=15)
# Hashing a password takes a third of a second, several times that on a busy host.
# A host that dies meanwhile leaves its attempt in progress.
LONGEST_CHECK = timedelta(seconds=5)
POLL_SECONDS = 0.1
# A day without attempts clears the record.
FORGOTTEN_AFTER = timedelta(days=1)
# Attackers can type any address. A row takes 100 bytes, and rows with the
# fewest failures are deleted first, so that filling the table does not clear
# an account under attack.
MOST_KEPT = 200_000


class Purpose(StrEnum):
    """What an attempt is for. Each purpose has its own count, so that a correct
    password does not clear the delay for guessing the second factor."""

    PASSWORD = "password"  # noqa: S105
    SECOND_FACTOR = "second factor"
    MAIL = "mail"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, which is allowed if `wait` is zero."""

    wait: timedelta
    # Consecutive failures, counting this attempt as one until it succeeds.
    failures: int
    # It is refused because of an attempt whose result is not known yet.
    awaits_check: bool = False

    @property
    def next_wait(self) -> timedelta:
        """Return the delay after this attempt if it fails."""
        return wait_after(self.failures)


def wait_after(failures: int) -> timedelta:
    """Return 1, 2, 4, 8 … seconds, and 15 minutes at most."""
    if failures < 1:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(failures - 1, 20)), LONGEST)


def start_attempt(purpose: Purpose, email: str, device: str = "") -> Attempt:
    """Register an attempt before checking it. 3 statements.

    It counts as failed until `succeeded` is called; `failed` says that it was
    checked. A row lock makes sure that of a hundred simultaneous guesses only one is
    allowed. The others wait for its result: a person who logs in twice at once, or
    clicks twice, types the right password in each.
    """
    key = _key(purpose, email, device)
    deadline = time.monotonic() + LONGEST_CHECK.total_seconds()
    # A request for an e-mail is not checked.
    attempt = _register(key, in_progress=purpose != Purpose.MAIL)
    while attempt.awaits_check and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        attempt = _register(key, in_progress=True)
    return attempt


def _register(key: str, *, in_progress: bool) -> Attempt:
    with transaction.atomic():
        row = None
        # Again if a login that succeeded deletes the row between the statements.
        while row is None:
            FailedTries.objects.bulk_create(
                [FailedTries(key=key, last_at=Now())], ignore_conflicts=True
            )
            rows = FailedTries.objects.select_for_update().annotate(now=Now())
            row = rows.filter(pk=key).first()
        now: datetime = row.now
        if now - row.last_at > FORGOTTEN_AFTER:
            row.failures = 0
        wait = max(row.last_at + wait_after(row.failures) - now, timedelta(0))
        if wait:
            is_recent = now - row.last_at < LONGEST_CHECK
            return Attempt(wait, row.failures, row.in_progress and is_recent)
        row.failures += 1
        row.last_at = now
        row.in_progress = in_progress
        row.save(update_fields=["failures", "last_at", "in_progress"])
    return Attempt(wait, row.failures)


def failed(purpose: Purpose, email: str, device: str = "") -> None:
    """Refuse the attempts that wait for the result of this one. 1 statement."""
    row = FailedTries.objects.filter(pk=_key(purpose, email, device))
    row.update(in_progress=False)


def succeeded(purpose: Purpose, email: str, device: str = "") -> None:
    FailedTries.objects.filter(pk=_key(purpose, email, device)).delete()


def forget_old() -> None:
    """Delete rows that are a day old, and the least important of too many."""
    FailedTries.objects.filter(last_at__lt=Now() - FORGOTTEN_AFTER).delete()
    worst = FailedTries.objects.order_by("-failures", "-last_at")
    for first in worst[MOST_KEPT : MOST_KEPT + 1]:
        FailedTries.objects.filter(
            Q(failures__lt=first.failures)
            | Q(failures=first.failures, last_at__lte=first.last_at)
        ).delete()


def in_words(wait: timedelta) -> str:
    """Return a rounded-up delay, such as "40 seconds" or "3 minutes"."""
    seconds = math.ceil(wait.total_seconds())
    if seconds > 90:
        minutes = math.ceil(seconds / 60)
        return ngettext("%(n)d minute", "%(n)d minutes", minutes) % {"n": minutes}
    return ngettext("%(n)d second", "%(n)d seconds", seconds) % {"n": seconds}


def _key(purpose: Purpose, email: str, device: str = "") -> str:
    # Hashed, because people type passwords and other private things here.
    text = f"{purpose}:{email.strip().lower()}{device and f':{device}'}"
    return salted_hmac("accounts.delays", text, algorithm="sha256").hexdigest()

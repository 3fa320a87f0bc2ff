"""Mails: put down with what they are about, written and sent by a worker.

::

    post("role added", to=user.email, role="analyst", place="Lincoln")

The row is part of the transaction that it tells of, and outlives a broker or
a mail server that is away: the time table looks for letters that nobody sent.
The text is `templates/accounts/letters/role_added.txt`, whose first line is
the subject. A mail goes out at least once, and twice only where a worker died
between sending it and saying so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from kombu.exceptions import OperationalError

from accounts.models import Letter

log = logging.getLogger(__name__)

# Whoever has begun to send one has so long before somebody else does.
IN_HAND = timedelta(minutes=2)
# Each time twice as long: the last of these a day and a half after the first.
MOST_ATTEMPTS = 10

# What a letter says besides what was put down; None: it is not sent.
Facts = dict[str, Any]
WRITERS: dict[str, Callable[[Letter], Facts | None]] = {}


def writes(
    kind: str,
) -> Callable[[Callable[[Letter], Facts | None]], Callable[[Letter], Facts | None]]:
    """For letters with a proof in them, which is made only when they are sent."""

    def register(
        writer: Callable[[Letter], Facts | None],
    ) -> Callable[[Letter], Facts | None]:
        WRITERS[kind] = writer
        return writer

    return register


def post(kind: str, *, to: str, **facts: object) -> None:
    """1 statement, the same for every address. `facts` go into JSON."""
    letter = Letter.objects.create(kind=kind, to=to, facts=facts)
    transaction.on_commit(lambda: _wake(letter.pk))


def link(route: str, **query: str) -> str:
    """To a page of this installation, for a mail: never by a request's Host."""
    address = f"{settings.PUBLIC_ADDRESS}{reverse(route)}"
    return f"{address}?{urlencode(query)}" if query else address


def send(pk: int) -> None:
    """Send a letter that is due, unless somebody else does. Never raises: the
    next letter is no worse for it."""
    now = timezone.now()
    mine = Letter.objects.filter(pk=pk)
    if not mine.filter(due_at__lte=now).update(
        due_at=now + IN_HAND, attempts=F("attempts") + 1
    ):
        return
    letter = mine.get()
    try:
        _send(letter)
    except (OSError, SMTPException) as error:
        # Without the traceback, which has the address in it.
        log.warning("letter %s waits: %s", pk, type(error).__name__)
        _later(letter)
    except Exception:
        log.exception("letter %s cannot be written", pk)
        _later(letter)
    else:
        mine.delete()


def send_waiting() -> None:
    """For the time table."""
    due = Letter.objects.filter(due_at__lte=timezone.now()).order_by("due_at", "pk")
    for pk in list(due.values_list("pk", flat=True)[:500]):
        send(pk)


def _later(letter: Letter) -> None:
    if letter.attempts >= MOST_ATTEMPTS:
        log.error("letter %s is given up", letter.pk)
        letter.delete()
        return
    letter.due_at = timezone.now() + timedelta(minutes=2**letter.attempts)
    letter.save(update_fields=["due_at"])


def _send(letter: Letter) -> None:
    facts: Facts | None = {**letter.facts, "site": settings.PUBLIC_ADDRESS}
    if letter.kind in WRITERS:
        more = WRITERS[letter.kind](letter)
        facts = None if more is None else {**(facts or {}), **more}
    if facts is None:
        return
    name = letter.kind.replace(" ", "_")
    text = render_to_string(f"accounts/letters/{name}.txt", facts)
    subject, _, body = text.strip().partition("\n")
    EmailMessage(subject.strip(), body.strip() + "\n", to=[letter.to]).send()


def _wake(pk: int) -> None:
    from accounts.tasks import send_letter

    # In the embedded installation one process looks at the table instead.
    if settings.JOBS_BY_MESSAGE:
        try:
            send_letter.delay(pk)
        except (OSError, OperationalError):
            log.warning("letter %s waits: the message broker is away", pk)

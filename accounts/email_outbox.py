"""Store e-mails in the transaction they report on; send them from a worker.

::

    post("role added", to=user.email, role="analyst", place="Lincoln")

A stored e-mail (`Letter`) survives an outage of the message broker or of the
mail server: a periodic task sends what is overdue. Its text is the template
`templates/accounts/letters/role_added.txt`, whose first line is the subject.
Each e-mail is sent at least once, and twice only if a worker dies between
sending it and deleting its row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from smtplib import SMTPException

from celery import current_app, signature
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.http import urlencode
from kombu.exceptions import OperationalError

from accounts.language import language_of
from accounts.models import Letter, User
from accounts.retry_delays import RetryDelays
from accounts.row_leases import RowLease

log = logging.getLogger(__name__)

# While one worker sends a letter, others leave it alone for this long.
LEASE = RowLease("due_at", duration=timedelta(minutes=2))
# The last attempt is seventeen hours after the first.
DELAYS = RetryDelays(first=timedelta(minutes=2), attempts=10)

# Values for the template besides the stored ones. None cancels the letter.
Facts = dict[str, object]
WRITERS: dict[str, Callable[[Letter], Facts | None]] = {}


def writes(
    kind: str,
) -> Callable[[Callable[[Letter], Facts | None]], Callable[[Letter], Facts | None]]:
    """Register a function that adds values when a letter of this kind is sent.

    Links that prove something are made there, so that none is ever stored.
    """

    def register(
        writer: Callable[[Letter], Facts | None],
    ) -> Callable[[Letter], Facts | None]:
        WRITERS[kind] = writer
        return writer

    return register


def post(kind: str, *, to: str, **facts: object) -> None:
    """Store an e-mail and wake a worker at the commit. 1 statement.

    The work is the same for every address. `facts` must fit into JSON.
    """
    letter = Letter.objects.create(kind=kind, to=to, facts=facts, due_at=Now())
    transaction.on_commit(lambda: _wake_worker(letter.pk))


def link(route: str, **query: str) -> str:
    """Return an absolute link to a page, never built from a request's Host."""
    address = f"{settings.PUBLIC_ADDRESS}{reverse(route)}"
    return f"{address}?{urlencode(query)}" if query else address


def send(pk: int) -> None:
    """Send one letter if it is due and no other worker is sending it.

    Never raises, so that one broken letter does not keep back the others.
    """
    letters = Letter.objects.filter(pk=pk)
    if not LEASE.take(letters):
        return
    letter = letters.get()
    recipient = User.objects.filter(email=letter.to.lower()).first()
    try:
        with translation.override(language_of(recipient)):
            _render_and_send(letter)
    except (OSError, SMTPException) as error:
        # Without the traceback, which contains the address.
        log.warning("letter %s is delayed: %s", pk, type(error).__name__)
        _postpone(letter)
    except Exception as error:
        # An error of django-anymail, which pools that send nothing do not load: its
        # text has the address too.
        if type(error).__module__.startswith("anymail."):
            log.warning("letter %s is delayed: %s", pk, type(error).__name__)
        else:
            log.exception("letter %s cannot be rendered", pk)
        _postpone(letter)
    else:
        letters.delete()


def _render_and_send(letter: Letter) -> None:
    facts: Facts = {**letter.facts, "site": settings.PUBLIC_ADDRESS}
    if letter.kind in WRITERS:
        added = WRITERS[letter.kind](letter)
        if added is None:
            return
        facts |= added
    name = letter.kind.replace(" ", "_")
    text = render_to_string(f"accounts/letters/{name}.txt", facts)
    subject, _, body = text.strip().partition("\n")
    EmailMessage(subject.strip(), body.strip() + "\n", to=[letter.to]).send()


def send_waiting() -> None:
    """Send all letters that are due, at most 500 at a time."""
    due = Letter.objects.filter(LEASE.is_free).order_by("due_at", "pk")
    for pk in list(due.values_list("pk", flat=True)[:500]):
        send(pk)


def _postpone(letter: Letter) -> None:
    attempt = Letter.objects.filter(pk=letter.pk, attempts=letter.attempts)
    if delay := DELAYS.after(letter.attempts):
        attempt.update(**LEASE.ends_in(delay))
    elif attempt.delete()[0]:
        log.error("letter %s is given up", letter.pk)


def _wake_worker(pk: int) -> None:
    # Without a message broker, one background process polls the table.
    if settings.JOBS_BY_MESSAGE:
        try:
            # By name, because the task's module imports this one.
            signature("accounts.tasks.send_letter", (pk,), app=current_app).delay()
        except (OSError, OperationalError):
            log.warning("letter %s is delayed: no message broker", pk)

"""Store e-mails in the transaction they report on; send them from a worker.

::

    queue_email("role added", to=user.email, role="analyst", place="Lincoln")

A `QueuedEmail` survives an outage of the message broker or of the mail server: a
periodic task sends what is overdue. Its text is the template
`templates/accounts/emails/role_added.txt`, whose first line is the subject.
Each e-mail is sent at least once, and twice only if a worker dies between
sending it and deleting its row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from smtplib import SMTPException

from celery import current_app, signature
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from django.utils.http import urlencode
from kombu.exceptions import OperationalError

from accounts.language import language_of
from accounts.models import QueuedEmail, User
from accounts.place_settings import CONTACT, own_values
from accounts.retry_delays import RetryDelays
from accounts.row_leases import RowLease
from settings.monitoring import stores  # noqa: TID251

log = logging.getLogger(__name__)

# While one worker sends an e-mail, others leave it alone for this long.
LEASE = RowLease("due_at", duration=timedelta(minutes=2))
# The last attempt is seventeen hours after the first.
DELAYS = RetryDelays(first=timedelta(minutes=2), attempts=10)

# Values for the template besides the stored ones. None cancels the e-mail.
Facts = dict[str, object]
Writer = Callable[[QueuedEmail], Facts | None]
WRITERS: dict[str, Writer] = {}


def writes(kind: str) -> Callable[[Writer], Writer]:
    """Register a function that adds values when an e-mail of this kind is sent.

    Links that prove something are made there, so that none is ever stored.
    """

    def register(writer: Writer) -> Writer:
        WRITERS[kind] = writer
        return writer

    return register


def queue_email(kind: str, *, to: str, **facts: object) -> None:
    """Store an e-mail and wake a worker at the commit. 1 statement.

    The work is the same for every address. `facts` must fit into JSON.
    """
    email = QueuedEmail.objects.create(kind=kind, to=to, facts=facts)
    transaction.on_commit(lambda: _wake("accounts.tasks.send_staff_email", email.pk))


def queue_emails(kind: str, facts_by_address: Mapping[str, Facts]) -> None:
    """Store an e-mail for each address, and wake a worker at the commit. 1 statement.

    The values must fit into JSON.
    """
    QueuedEmail.objects.bulk_create(
        [
            QueuedEmail(kind=kind, to=to, facts=facts)
            for to, facts in facts_by_address.items()
        ]
    )
    transaction.on_commit(lambda: _wake("accounts.tasks.send_staff_emails"))


def _wake(task: str, *arguments: object) -> None:
    """Send a task, unless one background process polls the table."""
    if settings.JOBS_BY_MESSAGE:
        try:
            # By name, because the task's module imports this one.
            with stores.timed(stores.RABBITMQ):
                signature(task, app=current_app).delay(*arguments)
        except (OSError, OperationalError):
            log.warning("e-mails are delayed: no message broker")


def link(route: str, **query: str) -> str:
    """Return an absolute link to a page, never built from a request's Host."""
    address = f"{settings.PUBLIC_ADDRESS}{reverse(route)}"
    return f"{address}?{urlencode(query)}" if query else address


def send(pk: int) -> None:
    """Send one e-mail if it is due and no other worker is sending it.

    Never raises, so that one broken e-mail does not keep back the others.
    """
    rows = QueuedEmail.objects.filter(pk=pk)
    if not LEASE.take(rows):
        return
    email = rows.get()
    recipient = User.objects.filter(email=email.to.lower()).first()
    try:
        with translation.override(language_of(recipient)):
            _render_and_send(email)
    except Exception as error:
        # Errors of django-anymail, which pools that send nothing do not load.
        is_of_provider = type(error).__module__.startswith("anymail.")
        if isinstance(error, OSError | SMTPException) or is_of_provider:
            # Without the traceback and the text, which contain the address.
            log.warning("e-mail %s is delayed: %s", pk, type(error).__name__)
        else:
            log.exception("e-mail %s cannot be rendered", pk)
        attempt = rows.filter(attempts=email.attempts)
        if delay := DELAYS.after(email.attempts):
            attempt.update(**LEASE.ends_in(delay))
        elif attempt.delete()[0]:
            log.error("e-mail %s is given up", pk)
    else:
        rows.delete()


def _render_and_send(email: QueuedEmail) -> None:
    facts: Facts = {
        **email.facts,
        "site": settings.PUBLIC_ADDRESS,
        # Read by the templates for staff only.
        "signature": SimpleLazyObject(_signature),
    }
    if email.kind in WRITERS:
        added = WRITERS[email.kind](email)
        if added is None:
            return
        facts |= added
    name = email.kind.replace(" ", "_")
    text = render_to_string(f"accounts/emails/{name}.txt", facts)
    subject, _, body = text.strip().partition("\n")
    EmailMessage(subject.strip(), body.strip() + "\n", to=[email.to]).send()


def _signature() -> list[str]:
    """Return the name of the state, and whom staff ask there. 1 statement."""
    names = ("name", *CONTACT)
    values = own_values(None, *names)
    return [str(values[name]) for name in names if values[name]]


def send_waiting() -> None:
    """Send all e-mails that are due, at most 500 at a time."""
    due = QueuedEmail.objects.filter(LEASE.is_free).order_by("due_at", "pk")
    for pk in list(due.values_list("pk", flat=True)[:500]):
        send(pk)

"""Send the e-mails that are due: a job per schedule and minute.

::

    claim e-mail 1 | send it | record it, claim e-mail 2 | send it | ...

Recording and claiming are one transaction, so a worker that dies leaves one
claimed row at most. Nobody knows whether that e-mail was sent; it is sent
again, and counted (`EmailDelivery.repeated`).
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.retry_delays import RetryDelays
from survey.fieldwork.emails.claims import (
    THANKS_FOR,
    Claim,
    Recipient,
    cancel_retries,
    candidates,
    claim,
    retry_abandoned_claims,
)
from survey.fieldwork.emails.delivery import (
    ERROR,
    UNCONFIRMED,
    Mailer,
    Outcome,
    ServerProblem,
)
from survey.fieldwork.emails.messages import Texts, texts_of, write_message
from survey.models import EmailDelivery, EmailSchedule, EmailStep, Job
from survey.work import survey_day
from survey.work.jobs import EMAILS, Progress, job, start

log = logging.getLogger(__name__)

State = EmailDelivery.State
Kind = EmailStep.Kind

# Seconds. Then other schedules have their turn at the worker.
SLICE = 50
# After all people of a step, before it looks for new ones and those to try again.
REST = timedelta(minutes=5)
# The last attempt is an hour and a half after the first.
DELAYS = RetryDelays(first=timedelta(minutes=3), attempts=6)
# Lost connections in a row, each of which may take `EMAIL_TIMEOUT`.
MOST_LOST = 3
# Failures in a row after which the schedule is paused: the mail server has a reason
# that concerns all e-mails, and every further failure is a person not reached.
MOST_FAILURES = 20
PAUSED = gettext_noop(
    "The mail server refused the last %(count)s e-mails. Ask your"
    " engineers what it says about them."
)


def pause_reason(schedule: EmailSchedule) -> str:
    """Return why the system itself paused it, in the language of the page."""
    values = {"count": MOST_FAILURES}
    is_usual = schedule.pause_reason == PAUSED % values
    return _(PAUSED) % values if is_usual else schedule.pause_reason


def is_urgent() -> Q:
    """Steps that are sent now: on a survey day only invitations, which have codes."""
    return Q(kind=Kind.INVITATION) | survey_day.is_off()


def start_due() -> None:
    """Start a job for each schedule with e-mails that may be due."""
    now = timezone.now()
    is_open = Q(administration__closes_at__gt=now)
    thanks = EmailStep.objects.filter(schedule=OuterRef("pk"), kind=Kind.THANKS)
    awake = EmailStep.objects.filter(
        Q(rests_until=None) | Q(rests_until__lte=now),
        is_urgent(),
        schedule=OuterRef("pk"),
    )
    unfinished = Job.objects.filter(
        kind=send_emails.name, subject_id=OuterRef("pk"), ended_at=None
    )
    due = EmailSchedule.objects.filter(
        is_open | Exists(thanks),
        Exists(awake),
        ~Exists(unfinished),
        confirmed_at__isnull=False,
        paused_at=None,
        administration__opens_at__lte=now,
        administration__closes_at__gt=now - THANKS_FOR,
    )
    for schedule in due.select_related("confirmed_by"):
        start_sending(schedule)


def start_sending(schedule: EmailSchedule) -> Job:
    """Start the next slice. There would be one row a minute: the old ones go."""
    Job.objects.filter(
        kind=send_emails.name, subject_id=schedule.pk, state=Job.State.DONE
    ).delete()
    return start(send_emails, subject_id=schedule.pk, by=schedule.confirmed_by)


@job("emails.send", queue=EMAILS, stoppable=False)
def send_emails(job: Job, progress: Progress) -> None:
    """Send what is due, up to the rate of this minute, for SLICE seconds at most."""
    schedules = EmailSchedule.objects.select_related(
        "administration__published__survey"
    )
    schedule = schedules.get(pk=job.subject_id or 0)
    retry_abandoned_claims(schedule)
    cancel_retries(schedule)
    progress.begin_step(_("Sending e-mails"))
    Sender(schedule, job, progress).run()


class Budget:
    """The e-mails that a schedule may still send in this minute of the clock."""

    def __init__(self, schedule: EmailSchedule) -> None:
        self._schedule = schedule
        self._minute: datetime | None = None
        self._left = 0

    def is_spent(self) -> bool:
        """1 statement a minute."""
        minute = timezone.now().replace(second=0, microsecond=0)
        if minute != self._minute:
            self._minute = minute
            claimed = EmailDelivery.objects.filter(
                step__schedule=self._schedule, claimed_at__gte=minute
            )
            self._left = self._schedule.rate_per_minute - claimed.count()
        return self._left <= 0

    def spend(self) -> None:
        self._left -= 1


class Sender:
    """One worker's run over the steps of a schedule."""

    def __init__(self, schedule: EmailSchedule, job: Job, progress: Progress) -> None:
        self.schedule = schedule
        self.job = job
        self.progress = progress
        self.budget = Budget(schedule)
        self.mailer = Mailer()
        self.ends_at = time.monotonic() + SLICE
        # The claimed e-mail that is not recorded yet, and what became of it.
        self.unrecorded: tuple[Claim, Outcome] | None = None
        self.lost = 0
        self.problem = ServerProblem.NONE

    def run(self) -> None:
        now = timezone.now()
        steps = self.schedule.steps.filter(
            Q(rests_until=None) | Q(rests_until__lte=now), is_urgent()
        )
        try:
            for step in steps.order_by("kind", "days"):
                if not self.send_step(step):
                    break
        finally:
            self.record()
            self.mailer.close()
        EmailSchedule.objects.filter(pk=self.schedule.pk).update(
            trouble=self.problem.value
        )

    def send_step(self, step: EmailStep) -> bool:
        """Send a step to the people after its position; False to stop here."""
        texts = texts_of(step, self.schedule.administration)
        row = EmailStep.objects.filter(pk=step.pk)
        position = step.position
        for person in candidates(step):
            if self.must_stop():
                row.update(position=position)
                return False
            self.send_to(person, step, texts)
            position = person.pk
            self.progress.advance()
        row.update(position=0, rests_until=timezone.now() + REST)
        return True

    def must_stop(self) -> bool:
        if self.problem is ServerProblem.REFUSED or self.lost >= MOST_LOST:
            return True
        if time.monotonic() > self.ends_at or self.budget.is_spent():
            return True
        self.problem = self.mailer.open()
        return self.problem is not ServerProblem.NONE

    def send_to(self, person: Recipient, step: EmailStep, texts: Texts) -> None:
        with transaction.atomic():
            self.write_outcome()
            claimed = claim(step, person, self.job)
        self.unrecorded = None
        if claimed is None:
            return
        self.budget.spend()
        # Until an outcome is known, it is that nobody knows it.
        self.unrecorded = claimed, UNCONFIRMED
        try:
            message = write_message(texts, step, person, claimed.pk)
        except Exception:
            log.exception("e-mail %s cannot be written", claimed.pk)
            outcome = ERROR
        else:
            outcome = self.mailer.send(message)
        self.unrecorded = claimed, outcome
        self.problem = outcome.problem
        self.lost = self.lost + 1 if outcome.problem is ServerProblem.LOST else 0
        if outcome.state is not State.SENT:
            self.record()
            pause_after_failures(self.schedule, step)

    def record(self) -> None:
        self.write_outcome()
        self.unrecorded = None

    def write_outcome(self) -> None:
        """Write what became of the last e-mail, unless another worker took over."""
        if self.unrecorded is None:
            return
        claimed, outcome = self.unrecorded
        now = timezone.now()
        delay = DELAYS.after(claimed.attempts) if outcome.is_retried else None
        EmailDelivery.objects.filter(
            pk=claimed.pk,
            state=State.CLAIMED,
            job_id=self.job.pk,
            job_attempt=self.job.attempts,
        ).update(
            state=outcome.state,
            reason=outcome.reason,
            provider_id=outcome.provider_id,
            recorded_at=now,
            retry_at=delay and now + delay,
        )


def pause_after_failures(schedule: EmailSchedule, step: EmailStep) -> None:
    """Pause a schedule whose latest e-mails have all failed. 1 statement.

    Those that are tried again don't count.
    """
    latest = EmailDelivery.objects.filter(step=step, retry_at=None).order_by(
        "-claimed_at", "-pk"
    )
    states = list(latest.values_list("state", flat=True)[:MOST_FAILURES])
    if len(states) < MOST_FAILURES or {*states} - {State.FAILED, State.BOUNCED}:
        return
    EmailSchedule.objects.filter(pk=schedule.pk, paused_at=None).update(
        paused_at=timezone.now(), pause_reason=PAUSED % {"count": MOST_FAILURES}
    )

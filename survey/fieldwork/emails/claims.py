"""Choose the people of a step, and claim one e-mail at a time in the ledger.

Both use the same conditions, and the claim checks them again in the statement
that writes the row: whoever has finished, was withdrawn or has opted out by
then gets nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from survey.fieldwork.emails.shared_addresses import (
    SharedAddress,
    find_shared_addresses,
)
from survey.fieldwork.emails.suppression import digest_of
from survey.models import (
    EmailDelivery,
    EmailSchedule,
    EmailStep,
    Job,
    Respondent,
    SuppressedAddress,
)

# People looked at in one statement.
BATCH = 500
# Between two e-mails to one person: those who are invited late don't get a reminder
# on the same day.
SPACING = timedelta(hours=20)
# The thanks are not sent later than this after the closing.
THANKS_FOR = timedelta(days=14)


class Claim(NamedTuple):
    """A row of the ledger, claimed by this worker."""

    pk: int
    attempts: int


class Recipient(NamedTuple):
    """A person whom a step is due for, as the roster is now."""

    pk: int
    issue: int
    code_key_version: int
    language: str
    address: str
    name: str
    school: str
    # Of the school's district; empty: the state's.
    time_zone: str = ""
    shared_address: SharedAddress | None = None


_TABLES = """
JOIN survey_identity i ON i.respondent_id = r.id
JOIN survey_administration a ON a.id = r.administration_id
JOIN survey_emailschedule m ON m.administration_id = a.id
JOIN survey_emailstep s ON s.schedule_id = m.id
"""
# A reminder counts from the person's own invitation, which may have come late. The
# thanks go to everyone who was invited: only to those who finished, they would tell
# the readers of a school's mailboxes who that is. The subqueries are looked up for
# each person: as EXISTS they became joins, which without fresh statistics read all
# of today's e-mails for every person.
_CONDITIONS = """
    AND s.id = %(step)s
    AND i.email <> ''
    AND r.withdrawn_at IS NULL
    AND (s.kind = 'thanks' OR r.completed_at IS NULL)
    AND m.confirmed_at IS NOT NULL AND m.paused_at IS NULL
    AND a.opens_at <= %(now)s
    AND ((s.kind <> 'thanks' AND a.closes_at > %(now)s)
         OR (s.kind = 'thanks' AND a.closes_at <= %(now)s
             AND a.closes_at > %(thanks_after)s))
    AND (s.kind = 'invitation' OR (
        SELECT max(d.recorded_at) FROM survey_emaildelivery d
        JOIN survey_emailstep t ON t.id = d.step_id
        WHERE t.schedule_id = m.id AND t.kind = 'invitation'
          AND d.respondent_id = r.id AND d.state = 'sent') <= %(invited_before)s)
    AND coalesce((
        SELECT max(d.claimed_at) FROM survey_emaildelivery d
        JOIN survey_emailstep t ON t.id = d.step_id
        WHERE t.schedule_id = m.id AND t.id <> s.id
          AND d.respondent_id = r.id) <= %(quiet_since)s, TRUE)
"""
# So many people are looked at, and not so many found: else a statement would read
# all people of an administration in which nearly all have their e-mail.
_PAGE = """
SELECT id FROM survey_respondent
WHERE administration_id = %(administration)s AND id > %(after)s
ORDER BY id LIMIT %(batch)s
"""
_CANDIDATES = f"""
WITH page AS MATERIALIZED ({_PAGE})
SELECT page.id, r.id, r.issue, r.code_key_version, r.language, i.email, i.given_name,
       c.name, e.time_zone
FROM page
LEFT JOIN (survey_respondent r {_TABLES}
    JOIN accounts_school c ON c.id = r.school_id
    JOIN accounts_district e ON e.id = c.district_id)
ON r.id = page.id {_CONDITIONS}
    AND NOT EXISTS (
        SELECT 1 FROM survey_emaildelivery d
        WHERE d.step_id = s.id AND d.respondent_id = r.id
          AND (d.retry_at IS NULL OR d.retry_at > %(now)s))
ORDER BY page.id
"""  # noqa: S608
# The job's attempt must still be the current one: a worker that was suspended, and
# whose job another one has taken over, claims nothing more.
_CLAIM = f"""
INSERT INTO survey_emaildelivery (
    step_id, respondent_id, state, reason, address_digest, attempts, repeated,
    claimed_at, job_id, job_attempt)
SELECT s.id, r.id, 'claimed', '', %(digest)s, 1, %(no)s, %(now)s, j.id, j.attempts
FROM survey_respondent r
{_TABLES}
JOIN survey_job j ON j.id = %(job)s
WHERE r.id = %(respondent)s AND i.email = %(address)s
    AND j.attempts = %(attempt)s AND j.state = 'running'
    {_CONDITIONS}
    AND NOT EXISTS (
        SELECT 1 FROM survey_suppressedaddress x WHERE x.digest = %(digest)s)
ON CONFLICT (step_id, respondent_id) DO UPDATE SET
    state = 'claimed', reason = '', address_digest = excluded.address_digest,
    attempts = survey_emaildelivery.attempts + 1, recorded_at = NULL,
    retry_at = NULL, claimed_at = excluded.claimed_at,
    job_id = excluded.job_id, job_attempt = excluded.job_attempt
    WHERE survey_emaildelivery.retry_at <= excluded.claimed_at
RETURNING id, attempts
"""  # noqa: S608


def candidates(step: EmailStep) -> Iterator[Recipient]:
    """Yield the people whom a step is due for, after its position, in batches.

    1 statement for each batch, and 1 more for shared addresses if anybody is in it.
    """
    after, count = step.position, BATCH
    administration_id = step.schedule.administration_id
    page = {"administration": administration_id, "batch": BATCH}
    while count == BATCH:
        with connection.cursor() as cursor:
            cursor.execute(_CANDIDATES, {**_moments(step), **page, "after": after})
            rows = cursor.fetchall()
        people = [Recipient(*row[1:]) for row in rows if row[1] is not None]
        if people:
            addresses = [person.address for person in people]
            shared = find_shared_addresses(administration_id, addresses)
            for person in people:
                yield person._replace(shared_address=shared.get(person.pk))
        count = len(rows)
        after = rows[-1][0] if rows else after


def claim(step: EmailStep, person: Recipient, job: Job) -> Claim | None:
    """Claim the e-mail of one step to one person. 1 statement.

    Returns None if the person is to get nothing (any more), or if another worker
    has claimed it.
    """
    values = {
        **_moments(step),
        "respondent": person.pk,
        "address": person.address,
        "digest": digest_of(person.address),
        "job": job.pk,
        "attempt": job.attempts,
        "no": False,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        row = cursor.fetchone()
    return Claim(*row) if row else None


def _moments(step: EmailStep) -> dict[str, Any]:
    now = timezone.now()
    moments: dict[str, datetime] = {
        "now": now,
        "invited_before": now - timedelta(days=step.days),
        "quiet_since": now - SPACING,
        "thanks_after": now - THANKS_FOR,
    }
    adapt = connection.ops.adapt_datetimefield_value
    return {"step": step.pk, **{name: adapt(at) for name, at in moments.items()}}


def retry_abandoned_claims(schedule: EmailSchedule) -> int:
    """Let the e-mails be sent again that a dead worker was sending; count them.

    At most one for each worker that died: it claims the next e-mail in the
    transaction that records the one before. They may arrive twice.
    """
    running = Job.objects.filter(
        pk=OuterRef("job_id"), attempts=OuterRef("job_attempt"), state=Job.State.RUNNING
    )
    abandoned = EmailDelivery.objects.filter(
        ~Exists(running), step__schedule=schedule, state=EmailDelivery.State.CLAIMED
    )
    return abandoned.update(
        state=EmailDelivery.State.FAILED,
        reason=EmailDelivery.Reason.ABANDONED,
        repeated=True,
        retry_at=timezone.now(),
    )


def cancel_retries(schedule: EmailSchedule) -> int:
    """Cancel what would be tried again for people who are to get nothing any more."""
    administration = schedule.administration
    waiting = EmailDelivery.objects.filter(
        step__schedule=schedule, retry_at__isnull=False
    )
    people = Respondent.objects.filter(administration=administration)
    over = _is_among(people.exclude(withdrawn_at=None)) | Q(
        Exists(SuppressedAddress.objects.filter(pk=OuterRef("address_digest")))
    )
    finished = _is_among(people.exclude(completed_at=None))
    over |= finished & ~Q(step__kind=EmailStep.Kind.THANKS)
    if timezone.now() >= administration.closes_at:
        over |= ~Q(step__kind=EmailStep.Kind.THANKS)
    return waiting.filter(over).update(
        state=EmailDelivery.State.CANCELLED, retry_at=None
    )


def _is_among(people: QuerySet[Respondent]) -> Q:
    """Return whether the person of an e-mail is one of these."""
    if settings.IS_DISTRIBUTED:
        # A Citus cluster looks up nobody row by row, and reads them once instead.
        return Q(respondent__in=people.values("pk"))
    return Q(Exists(people.filter(pk=OuterRef("respondent"))))

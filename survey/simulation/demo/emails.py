"""Plan e-mails to the demo's teachers."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from accounts.models import User
from survey.fieldwork.emails.schedules import confirm, plan_emails
from survey.models import Administration, EmailSchedule

TEACHERS = "demo-teachers"
STATE = "state@groundswell.example"


@transaction.atomic
def plan_teachers_emails() -> None:
    """Plan an invitation, a reminder and thanks; send them as files when embedded.

    Elsewhere nobody gets e-mails before a user confirms them.
    """
    administration = Administration.objects.filter(name=TEACHERS).first()
    by = User.objects.filter(email=STATE).first()
    if administration is None or by is None:
        return
    if EmailSchedule.objects.filter(administration=administration).exists():
        return
    schedule = plan_emails(
        administration=administration,
        reminder_days=[3],
        thanks=True,
        rate_per_minute=600,
        by=by,
    )
    if settings.EMBEDDED and administration.state != Administration.State.CLOSED:
        confirm(schedule=schedule, by=by)

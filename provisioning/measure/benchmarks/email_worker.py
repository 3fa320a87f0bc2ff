"""Send the e-mails of a rehearsal as a worker does, and print what became of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import Membership, User
from survey.fieldwork.administrations import get_administration
from survey.fieldwork.emails import schedules, sending
from survey.models import Administration, EmailDelivery, EmailSchedule, EmailStep
from survey.models.email_schedule import MAX_RATE
from survey.simulation.load_survey import is_rehearsal
from survey.work import jobs

ADDRESSES = """
UPDATE survey_identity SET email = 'p' || respondent_id || '@mail.example'
WHERE administration_id = %s
"""


def send_emails(*, administration: str, port: int) -> dict[str, float]:
    rehearsal = get_administration(administration)
    assert is_rehearsal(rehearsal)  # noqa: S101
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    schedule = plan(rehearsal)
    memory: list[int] = []
    over = threading.Event()
    threading.Thread(target=watch, args=(memory, over), daemon=True).start()
    began, cpu = time.monotonic(), time.process_time()
    while run_slice(schedule):
        pass
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    over.set()
    early = max(memory[: max(1, len(memory) // 10)])
    return {
        **count(schedule),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "memory_mb": max(memory),
        "memory_growth_mb": max(memory) - early,
    }


def plan(administration: Administration) -> EmailSchedule:
    with connection.cursor() as cursor:
        cursor.execute(ADDRESSES, [administration.pk])
        cursor.execute("ANALYZE")
    user, _ = User.objects.get_or_create(email="state@groundswell.example")
    Membership.objects.get_or_create(user=user, role=Membership.Role.STATE)
    schedule = schedules.plan_emails(
        administration=administration,
        reminder_days=[],
        thanks=False,
        rate_per_minute=MAX_RATE,
        by=user,
    )
    people = str(schedules.count_recipients(schedule))
    schedules.confirm(schedule=schedule, typed=people, by=user)
    return schedule


def run_slice(schedule: EmailSchedule) -> bool:
    """Run one job; return whether there is more. Retries are due at once."""
    job = sending.start_sending(schedule)
    jobs.run(job.pk)
    waiting = EmailDelivery.objects.filter(retry_at__isnull=False)
    is_resting = not EmailStep.objects.filter(rests_until=None).exists()
    if is_resting and not waiting.exists():
        return False
    if is_resting:
        waiting.update(retry_at=timezone.now())
        EmailStep.objects.update(rests_until=None)
    return True


def watch(memory: list[int], over: threading.Event) -> None:
    status = Path("/proc/self/status")
    while True:
        for line in status.read_text().splitlines():
            if line.startswith("VmRSS:"):
                memory.append(int(line.split()[1]) // 1024)
        if over.wait(0.5):
            return


def count(schedule: EmailSchedule) -> dict[str, int]:
    rows = EmailDelivery.objects.filter(step__schedule=schedule)
    failed = rows.filter(state="failed")
    unconfirmed = failed.filter(reason="unconfirmed").count()
    return {
        "people": schedules.count_recipients(schedule),
        "sent": rows.filter(state="sent").count(),
        "bounced": rows.filter(state="bounced").count(),
        "failed": failed.count(),
        "unconfirmed": unconfirmed,
        # The mail server of this measurement has received all unconfirmed ones.
        "failed_unreceived": failed.count() - unconfirmed,
        "tried_again": rows.filter(attempts__gt=1).count(),
    }

"""A schedule of e-mails to three people of Lincoln, one of each language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from settings.tests.patience import patience
from survey.fieldwork.emails import schedules, sending
from survey.models import Job, PublishedSurvey, Respondent
from survey.tests.conftest import THREE_LANGUAGES, publish_items
from survey.tests.emails.smtp_server import SmtpServer
from survey.tests.people import invite
from survey.work import jobs


@pytest.fixture
def publish(db: None) -> Callable[..., PublishedSurvey]:
    return partial(publish_items, languages=THREE_LANGUAGES)


@pytest.fixture
def people(administration, staff) -> list[Respondent]:
    """Return Maya, Ana and Noor, in the order of their keys; Leo has no address."""
    cast = [
        ("1", "Maya Robinson", "maya@example.org", "en"),
        ("2", "Ana López", "ana@example.org", "es-MX"),
        ("3", "Noor Haddad", "noor@example.org", "ar"),
    ]
    people = [
        invite(administration, staff.lincoln, pk, name, email, language=language)
        for pk, name, email, language in cast
    ]
    invite(administration, staff.lincoln, "4", "Leo Sand")
    return people


@pytest.fixture
def shown_completion(administration) -> None:
    """Show who has finished: then login cards and e-mails have names."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])


@pytest.fixture
def plan(administration, staff):
    """Return a function that plans the e-mails of the administration."""

    def plan(**changes):
        options = {"reminder_days": [3], "thanks": True, "rate_per_minute": 6000}
        return schedules.plan_emails(
            administration=administration, by=staff.state, **{**options, **changes}
        )

    return plan


@pytest.fixture
def confirmed(plan, people, staff):
    """Return a confirmed schedule."""
    schedule = plan()
    schedules.confirm(schedule=schedule, by=staff.state)
    schedule.refresh_from_db()
    return schedule


@pytest.fixture
def send():
    """Return a function that runs one slice, as if its steps had not rested."""

    def send(schedule) -> Job:
        schedule.steps.update(rests_until=None, position=0)
        job = sending.start_sending(schedule)
        jobs.run(job.pk)
        return Job.objects.get(pk=job.pk)

    return send


@pytest.fixture
def by_hand(settings):
    """Send no messages: the test runs the jobs itself."""
    settings.JOBS_BY_MESSAGE = False


@pytest.fixture
def smtp(settings) -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_TIMEOUT = patience(2)
        yield server

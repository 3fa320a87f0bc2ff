"""The engineers' first page: health, queues, roster syncs, backups and versions."""

from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import District, Membership, User
from accounts.tests.logging_in import log_in
from settings.monitoring import dependency_checks, engineers
from settings.monitoring.answers import Answer
from survey.models import BackupRun, Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def engineer(client):
    user = User.objects.create_superuser("engineer@example.org", "calm-harbour-42")
    return log_in(client, user)


def add_job(kind: str, state: str, **values: object) -> Job:
    ended = timezone.now() if state in ("failed", "done") else None
    return Job.objects.create(kind=kind, state=state, ended_at=ended, **values)


def test_the_page_says_how_everything_is_doing(engineer):
    now = timezone.now()
    add_job("roster.check", "waiting", created_at=now - timedelta(hours=3))
    add_job("roster.apply", "running", heartbeat_at=now)
    # The worker of this one has died.
    add_job("roster.apply", "running", heartbeat_at=now - timedelta(hours=1))
    add_job("roster.check", "failed")
    add_job("roster.check", "done")
    ended = now - timedelta(days=2)
    for ok, moment in ((True, ended), (False, now)):
        BackupRun.objects.create(
            kind="backup", ok=ok, started_at=moment, ended_at=moment, details={}
        )

    page = engineer.get("/engineers/")
    queues = {queue.name: queue for queue in page.context["queues"]}
    busy = [queue for queue in queues.values() if queue.running or queue.waiting]
    assert sum(queue.waiting for queue in busy) == 2
    assert sum(queue.running for queue in busy) == 1
    assert sum(queue.failed for queue in queues.values()) == 1
    assert max(queue.oldest for queue in busy if queue.oldest) < now
    assert "3\xa0hours" in page.text
    assert page.context["backups"] == [
        ("Last backup", ended, now),
        ("Last restore drill", None, None),
    ]
    assert "None was recorded on this server" in page.text
    names = [name for name, _ in page.context["versions"]]
    assert names[:2] == ["Groundswell", "Django"] and names[-1] == "Python"
    assert "Site administration" not in page.text


def test_the_tables_of_the_admin_are_one_link_away(engineer):
    assert 'href="/engineers/tables/"' in engineer.get("/engineers/").text
    tables = engineer.get("/engineers/tables/").text
    assert "Administrations" in tables and "/engineers/accounts/user/" in tables


def test_the_page_leads_nowhere_that_an_engineer_may_not_open(engineer):
    """Engineers without a role have neither the console's home page nor its search."""
    page = engineer.get("/engineers/").text
    addresses = set(re.findall(r'<(?:a|form)[^>]* (?:href|action)="(/[^"#]*)"', page))
    assert {"/engineers/", "/engineers/tables/", "/console/me/"} <= addresses
    closed = {at for at in addresses if engineer.get(at).status_code in (403, 404)}
    assert not closed


def test_without_backups_and_jobs_the_page_says_so(engineer):
    page = engineer.get("/engineers/")
    assert page.text.count("None was recorded on this server") == 2
    assert {queue.waiting for queue in page.context["queues"]} == {0}
    assert "None yet" in page.text


def test_servers_that_are_down_are_named_with_the_consequence(engineer, monkeypatch):
    def silent() -> Answer:
        time.sleep(30)
        raise AssertionError

    monkeypatch.setattr(dependency_checks, "check_redis", silent)
    monkeypatch.setattr(
        dependency_checks, "check_rabbitmq", lambda: Answer(False, "OSError")
    )
    monkeypatch.setattr(dependency_checks, "TOTAL_TIMEOUT", 0.2)
    began = time.monotonic()
    page = engineer.get("/engineers/")
    assert time.monotonic() - began < 5
    assert "Redis is down: new logins wait." in page.text
    assert "RabbitMQ is down: rosters, exports and roll-ups wait" in page.text
    assert "checks failed: Redis for sessions, RabbitMQ." in page.text
    states = {check.name: check.state for check in page.context["checks"]}
    assert states["Redis for sessions"] == states["RabbitMQ"] == "down"
    assert states["Celery workers"] == "unknown"


def test_dashboards_are_linked_where_the_installation_has_them(engineer, settings):
    assert "Grafana" not in engineer.get("/engineers/").text
    settings.DASHBOARDS_URL = "https://grafana.example/d/groundswell"
    assert 'href="https://grafana.example/d/groundswell"' in (
        engineer.get("/engineers/").text
    )


def test_the_version_is_that_of_the_installation(settings, monkeypatch):
    settings.VERSION, settings.COMMIT = "1.2.3", "abc123"
    assert engineers.installed_version() == "1.2.3 (abc123)"
    settings.COMMIT = "unknown"
    monkeypatch.setattr(engineers, "_commit", lambda: "")
    assert engineers.installed_version() == "1.2.3"


def test_the_page_names_nobody_and_takes_the_same_queries(
    engineer, django_assert_num_queries
):
    dana = User.objects.create_user("dana@riverside.example", first_name="Dana")
    riverside = District.objects.create(code="riverside", name="Riverside")
    engineer.get("/engineers/")
    for rows in (1, 3):
        for _ in range(rows):
            add_job("roster.check", "waiting", by=dana)
        with django_assert_num_queries(8):
            page = engineer.get("/engineers/")
        for name in (dana.email, dana.first_name, riverside.name):
            assert name not in page.text


def test_others_are_not_admitted(client):
    dana = User.objects.create_user("dana@riverside.example")
    riverside = District.objects.create(code="riverside", name="Riverside")
    Membership.objects.create(user=dana, role="district", district=riverside)
    assert log_in(client, dana).get("/engineers/").status_code == 404

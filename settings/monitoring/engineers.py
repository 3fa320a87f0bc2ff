"""Show engineers how this installation is doing; Django's admin is behind it.

The page has figures and times only: no person, no school, and no address of a server.
"""

from __future__ import annotations

import platform
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import django
from django.conf import settings
from django.contrib import admin
from django.db import connection
from django.db.models import Count, Max, Min, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from settings.monitoring.answers import TIMEOUT, Answer
from settings.monitoring.dependency_checks import ask_dependencies
from settings.monitoring.health import CONSEQUENCES

# Failed jobs and scans of so many days are counted.
RECENT = timedelta(days=7)
# A job whose worker has been silent for longer waits for another one.
SILENT_AFTER = timedelta(seconds=30)
NAMES = {
    "primary": "Database, primary",
    "durability": "Pages are on disk when they are saved",
    "replica": "Database, replica",
    "memcached": "Memcached",
    "redis": "Redis for sessions",
    "messages": "Redis for message platforms",
    "rabbitmq": "RabbitMQ",
    "worker": "Celery workers",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One server and what its outage means."""

    name: str
    answer: Answer
    consequence: str

    @property
    def state(self) -> str:
        return {True: "works", False: "down", None: "unknown"}[self.answer.ok]

    @property
    def badge(self) -> str:
        return {True: "good", False: "bad", None: ""}[self.answer.ok]


@dataclass(frozen=True, slots=True)
class Queue:
    """The jobs of one queue."""

    name: str
    waiting: int
    running: int
    failed: int
    # When the oldest job that waits was created.
    oldest: datetime | None


@require_safe
def engineers_home(request: HttpRequest, **_context: object) -> HttpResponse:
    """Show health, queues, syncs, backups and versions.

    6 statements, and a second at most.
    """
    checks = read_checks()
    context = {
        "checks": checks,
        "down": [check.name for check in checks if check.answer.ok is False],
        "queues": read_queues(),
        "feeds": read_feeds(),
        "backups": read_backup_runs(),
        "versions": read_versions(),
        "recent_days": RECENT.days,
        "dashboards": settings.DASHBOARDS_URL,
    }
    return render(request, "engineers/home.html", context)


def put_home_before(site: admin.AdminSite) -> Callable[..., HttpResponse]:
    """Make the page a site's first one, and return the list of tables that it was.

    To be called before the site's URLs are read.
    """
    tables = site.index
    site.index = engineers_home  # type: ignore[method-assign, assignment]
    return partial(tables, extra_context={"title": "Tables"})


def read_checks() -> list[Check]:
    """Ask all servers at once. Each answers within a second, or counts as down."""
    return [
        Check(NAMES[name], answer, CONSEQUENCES.get(name, "") if failed else "")
        for name, answer in ask_dependencies().items()
        for failed in [answer.ok is False]
    ]


def read_queues() -> list[Queue]:
    """Count jobs by queue, without those that were done. 2 statements."""
    # Imported late: the models are not ready when the URLs are read.
    from survey.models import Job
    from survey.work.job_kinds import JOB_KINDS
    from survey.work.jobs import POOLS

    now = timezone.now()
    runs = Q(state=Job.State.RUNNING, heartbeat_at__gt=now - SILENT_AFTER)
    unfinished = (
        Job.objects.filter(ended_at=None)
        .order_by()
        .values_list("kind")
        .annotate(
            running=Count("pk", filter=runs),
            waiting=Count("pk", filter=~runs | Q(heartbeat_at=None)),
            oldest=Min("created_at", filter=Q(state=Job.State.WAITING)),
        )
    )
    failed = (
        Job.objects.filter(state=Job.State.FAILED, ended_at__gt=now - RECENT)
        .order_by()
        .values_list("kind")
        .annotate(Count("pk"))
    )
    queue_of = {kind.name: kind.queue for kind in JOB_KINDS.values()}
    waiting: Counter[str] = Counter()
    running: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    oldest: dict[str, datetime] = {}
    for kind, runs_now, waits, since in unfinished:
        queue = queue_of.get(kind, kind)
        running[queue] += runs_now
        waiting[queue] += waits
        if since:
            oldest[queue] = min(since, oldest.get(queue, since))
    for kind, number in failed:
        failures[queue_of.get(kind, kind)] += number
    known = [queue for pool in POOLS for queue in pool]
    unlisted = {*waiting, *running, *failures}.difference(known)
    return [
        Queue(name, waiting[name], running[name], failures[name], oldest.get(name))
        for name in [*dict.fromkeys(known), *sorted(unlisted)]
    ]


def read_feeds() -> dict[str, Any]:
    """Count roster syncs and their scans. 2 statements."""
    from survey.models import FeedScan, RosterFeed

    State = FeedScan.State
    feeds = RosterFeed.objects.filter(removed_at=None)
    scans = FeedScan.objects.filter(feed__removed_at=None)
    recent = Q(ended_at__gt=timezone.now() - RECENT)
    return feeds.aggregate(
        active=Count("pk", filter=Q(is_paused=False)),
        paused=Count("pk", filter=Q(is_paused=True)),
        failing=Count("pk", filter=Q(failures_in_a_row__gt=0)),
    ) | scans.aggregate(
        last=Max("ended_at"),
        held=Count("pk", filter=Q(state=State.HELD)),
        unfinished=Count("pk", filter=Q(state__in=FeedScan.UNFINISHED)),
        failed=Count("pk", filter=Q(state=State.FAILED) & recent),
    )


def read_backup_runs() -> list[tuple[str, datetime | None, datetime | None]]:
    """Return kinds of runs, and when the last one succeeded and failed, or None.

    Restore points, which only a cluster has, are left out where there are none. The
    hosts of the database write the rows. One statement.
    """
    from survey.models import BackupRun

    Kind = BackupRun.Kind
    names = {
        Kind.BACKUP: "Last backup",
        Kind.DRILL: "Last restore drill",
        Kind.POINT: "Last restore point of the cluster",
    }
    ended = BackupRun.objects.aggregate(
        **{
            f"{kind}_{ok}": Max("ended_at", filter=Q(kind=kind, ok=ok))
            for kind in names
            for ok in (True, False)
        }
    )
    return [
        (name, ended[f"{kind}_True"], ended[f"{kind}_False"])
        for kind, name in names.items()
        if kind != Kind.POINT or ended[f"{kind}_True"]
    ]


def read_versions() -> list[tuple[str, str]]:
    """Return what runs here. No statement."""
    database = ("SQLite", sqlite3.sqlite_version)
    if connection.vendor == "postgresql":
        # As the connection has it, such as 160004.
        major, minor = divmod(connection.pg_version, 10_000)  # type: ignore[attr-defined]
        database = ("PostgreSQL", f"{major}.{minor}")
    return [
        ("Groundswell", installed_version()),
        ("Django", django.get_version()),
        database,
        ("Python", platform.python_version()),
    ]


def installed_version() -> str:
    """Return the version, and the commit of the installation or of the checkout."""
    named = settings.COMMIT if settings.COMMIT != "unknown" else ""
    commit = named or _commit()
    return f"{settings.VERSION} ({commit})" if commit else settings.VERSION


@cache
def _commit() -> str:
    """Ask git, once in each process; blank where this is no checkout."""
    command = ["git", "-C", str(settings.BASE_DIR), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=TIMEOUT, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""

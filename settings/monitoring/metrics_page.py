"""GET /metrics: what the processes counted, and what the servers report.

Figures of PostgreSQL, Memcached, Redis, RabbitMQ and the sockets are read when
Prometheus scrapes. The hit rate of nginx's cache is missing, because only
nginx's access log knows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from settings.monitoring.answers import Sample
from settings.monitoring.dependency_checks import statistics
from settings.monitoring.health import is_monitoring
from settings.monitoring.metrics import is_whole, registry


def metrics(request: HttpRequest) -> HttpResponse:
    """Serve the metrics to nginx's monitoring port. All other requests get a 404."""
    if not is_monitoring(request):
        return HttpResponseNotFound()
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def exposition() -> bytes:
    """Return all metrics in Prometheus's text format."""
    combined = CollectorRegistry()
    if settings.METRICS_FOLDER:
        # Unreadable files are left out, and cost only their own counts.
        paths = Path(settings.METRICS_FOLDER).glob("*.db")
        files = [str(path) for path in paths if is_whole(path)]
        combined.register(FixedCollector(MultiProcessCollector.merge(files)))
    else:
        combined.register(FixedCollector(registry.collect()))
    combined.register(FixedCollector(families_of(statistics())))
    return generate_latest(combined)


class FixedCollector:
    """Register metrics that were collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self.families = list(families)

    def collect(self) -> list[Metric]:
        return self.families


# Name -> labels and HELP of the figures that are read at the scrape. Servers that
# are down have no sample but `groundswell_up`.
SERVER_METRICS: dict[str, tuple[tuple[str, ...], str]] = {
    "up": (
        ("dependency",),
        "1 if it answered within half a second, otherwise 0. Absent: not configured"
        " here. Only primary at 0 stops saving; /readyz explains the others.",
    ),
    "replica_lag_seconds": (
        (),
        "Age of the newest transaction that the replica has applied, or 0 if it has"
        " all. Reports are older by this much.",
    ),
    "replica_lag_bytes": (
        (),
        "Log written by the primary and not yet applied by the replica: the loss if"
        " the primary were gone for good.",
    ),
    "commits_total": (
        (),
        "Transactions committed in this database, reads among them. Commits per"
        " fsync = rate of this / rate of groundswell_wal_syncs_total; about 3 at 8"
        " writers. With many reads on the primary compare groundswell_page_saves.",
    ),
    "wal_syncs_total": (
        (),
        "Flushes of the primary's log to disk. As many as commits: no group commit,"
        " because writers come one at a time.",
    ),
    "clock_offset_seconds": (
        (),
        "This host's clock less the primary's. Some seconds: chrony does not run on one"
        " of them; docs/decisions/0077-which-clock-decides.md says what a wrong clock"
        " does.",
    ),
    "disk_bytes": (
        (),
        "Size of the disk with uploaded and finished files; on one machine usually that"
        " of the database too. Hosts of a database need an exporter of their own.",
    ),
    "disk_free_bytes": (
        (),
        "What is free of it. At 0 exports and rosters fail, and on one machine saving.",
    ),
    "conntrack_entries": (
        (),
        "Connections that the kernel of this host tracks for the firewall, also those"
        " of the last two minutes.",
    ),
    "conntrack_limit": (
        (),
        "At this limit the kernel drops new connections, without a word: nobody new"
        " gets in. Absent: nothing is tracked here.",
    ),
    "certificate_timestamp_seconds": (
        (),
        "When the certificate that nginx serves ends. In less than two weeks: it was"
        " not renewed, or nginx was not reloaded since. Absent: no TLS here.",
    ),
    "backup_timestamp_seconds": (
        (),
        "When the last backup that succeeded ended. Two days ago: none is made; see"
        " provisioning/stack logs backup.",
    ),
    "backup_certificate_timestamp_seconds": (
        (),
        "When the first certificate of pgBackRest's servers ends, as of the last"
        " backup. In less than a month: no playbook has renewed it, or the"
        " repository's host was not given its new one; see"
        " docs/guides/backups.md.",
    ),
    "drill_timestamp_seconds": (
        (),
        "When the last restore drill ended, whatever it found. Nine days ago: it does"
        " not run.",
    ),
    "drill_ok": (
        (),
        "1 if the last drill restored a database with the recorded rows and checksums,"
        " otherwise 0: do not rely on the backups until it is 1.",
    ),
    "restore_point_timestamp_seconds": (
        (),
        "When the last point was made to which all nodes of a cluster can be restored;"
        " 0 if none was. An hour ago: none is made; see provisioning/stack logs"
        " restore_points. Absent: the database is no cluster.",
    ),
    "log_archived_timestamp_seconds": (
        (),
        "When the primary's log was last archived. Minutes ago while pages are saved:"
        " the repository is away, and what follows can't be restored if the primary is"
        " lost.",
    ),
    "log_archive_failures_total": (
        (),
        "Files of the log that could not be archived, and are tried again.",
    ),
    "cache_hits_total": ((), "Reads that Memcached answered, since its start."),
    "cache_misses_total": (
        (),
        "Reads that Memcached could not answer. Many after a start of workers is"
        " normal: each keeps what it found.",
    ),
    "cache_hit_ratio": (
        (),
        "Hits / reads since Memcached's start; for now instead of ever, take the"
        " rates of the two counters.",
    ),
    "sessions": (
        (),
        "Keys in Redis, which holds only sessions: people in a survey, or finished"
        " in the last ten minutes, up to four hours after they left.",
    ),
    "redis_memory_bytes": ((), "Memory that Redis uses."),
    "redis_memory_limit_bytes": (
        (),
        "At this limit Redis refuses new logins. Existing sessions continue.",
    ),
    "messages_memory_bytes": ((), "Memory that the Redis of message platforms uses."),
    "messages_memory_limit_bytes": (
        (),
        "At this limit it drops people, who are then read from the database.",
    ),
    "messages_drift": (
        (),
        "People for whom the last nightly check found something else in Redis than in"
        " the database. They were repaired; more than 0 is a defect.",
    ),
    "messages_checked_timestamp_seconds": (
        (),
        "When that check ended. Two days ago: it does not run.",
    ),
    "queue_messages": (
        ("queue",),
        "Tasks waiting in RabbitMQ. Growing: too few workers, or none.",
    ),
    "queue_consumers": (
        ("queue",),
        "Celery workers that listen. 0: rosters, exports and roll-ups wait.",
    ),
    "jobs_waiting": (
        ("queue",),
        "Jobs that no worker runs yet, or whose worker died. confirmed, long and scans"
        " have the same workers, in this order. Scans wait in their window.",
    ),
    "jobs_held": (
        ("queue",),
        "Jobs that wait for the end of a survey day; jobs_waiting lacks them.",
    ),
    "jobs_running": (("queue",), "Jobs that a worker runs."),
    "survey_day_ends_timestamp_seconds": (
        (),
        "When the survey day ends that is on; 0 without one.",
    ),
    "workers_idle": (
        ("pool",),
        "Workers of downloads, and of scans (with confirmed and long), that have no"
        " job. 0 outside of scan windows for long: too few, or jobs that hang.",
    ),
    "pool_clients_active": (("pool",), "Clients of pgbouncer that have a server."),
    "pool_clients_waiting": (
        ("pool",),
        "Clients that wait for one of pgbouncer's servers. More than 0 for long:"
        " the pool is too small, or PostgreSQL is slow.",
    ),
    "pool_wait_seconds": (
        ("pool",),
        "How long the first of them has waited. At 4 seconds it is refused.",
    ),
    "pool_servers_active": (("pool",), "PostgreSQL connections in use."),
    "pool_servers_idle": (("pool",), "Idle PostgreSQL connections."),
    "listen_queue": (
        ("socket",),
        "Requests that no worker has accepted yet. Near groundswell_listen_backlog"
        " nginx answers 503 with Retry-After: the limit is reached.",
    ),
    "listen_backlog": (("socket",), "Maximum number of requests that may wait there."),
}


def families_of(samples: Iterable[Sample]) -> list[Metric]:
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for name, value, labels in samples:
        label_names, text = SERVER_METRICS[name]
        if name not in families:
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            families[name] = kind(f"groundswell_{name}", text, labels=label_names)
        families[name].add_metric(labels, value)
    return list(families.values())

"""What Prometheus is told; each metric's HELP says what it means on call.

Counters and histograms are written where the request runs, 1 to 3 µs each.
What PostgreSQL, Memcached, Redis, RabbitMQ and the sockets know is asked at
the scrape. Not here: how often nginx's cache answered, which only its access
log tells.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
from collections.abc import Hashable, Iterable
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import IO, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.utils.crypto import constant_time_compare
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    values,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

log = logging.getLogger(__name__)

HOT_VIEWS = frozenset(
    (
        "survey_login",
        "survey_display",
        "survey_change_page",
        "survey_content",
        "survey_complete",
    )
)
SAVE_OUTCOMES = {
    200: "saved",
    401: "session_over",
    409: "conflict",
    422: "invalid",
    500: "failed",
    503: "unavailable",
}
# What a view may say more exactly, as `response.outcome`.
FINER_OUTCOMES = frozenset(
    ("retried", "superseded", "finished", "withdrawn", "closed", "reissued")
    + ("uncertain", "resumed")
)
LOGIN_OUTCOMES = {
    200: "admitted",
    302: "admitted",
    403: "forbidden",
    422: "refused",
    500: "failed",
    503: "unavailable",
}


# Name in ASKED, value, values of its labels.
Sample = tuple[str, float, tuple[str, ...]]


# Many processes, one answer

# Of a process's counters, and of its histograms: room for all labels that
# there can be.
FILE_SIZE = 1 << 17


class Slot:
    """A number that no other living process has, for this process's files.

    By number and not by pid: workers come and go all day, and each would
    leave its files behind. A lock gives the number free when its process
    ends, however it ends, and the next one counts on in the same files. So
    nothing has to be told of a worker's end, nor cleaned at a start.
    """

    def __init__(self) -> None:
        self._taking = Lock()
        self.number = -1
        self._held: IO[str] | None = None

    def take(self, folder: Path) -> None:
        """Raises OSError where files cannot be made."""
        with self._taking:
            if self._held is not None:
                return
            folder.mkdir(parents=True, exist_ok=True)
            self._held, self.number = _lowest_free(folder)

    def forget(self) -> None:
        """Gives it free; in a fork, its parent still has it."""
        if self._held is not None:
            self._held.close()
        self._taking, self.number, self._held = Lock(), -1, None


def _lowest_free(folder: Path) -> tuple[IO[str], int]:
    number = 0
    while True:
        lock = (folder / f"{number}.lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for kind in ("counter", "histogram"):
                _prepare(folder / f"{kind}_{number}.db")
            return lock, number
        except OSError as error:
            lock.close()
            if not isinstance(error, BlockingIOError):
                raise
        number += 1


def _prepare(path: Path) -> None:
    if not _is_whole(path):
        log.warning("a file of counts was torn, and is begun anew")
        path.unlink(missing_ok=True)
    _reserve(path)


def _is_whole(path: Path) -> bool:
    """False for what a power loss left of a file: half of it, or zeros."""
    try:
        with path.open("rb") as file:
            used = int.from_bytes(file.read(4), sys.byteorder, signed=True)
        if used and not 8 <= used <= path.stat().st_size:
            return False
        for key, *numbers in MmapedDict.read_all_values_from_file(str(path)):
            _, _, labels, _ = json.loads(key)
            if not (isinstance(labels, dict) and all(map(isfinite, numbers))):
                return False
        return True
    except FileNotFoundError:
        return True
    except Exception:
        return False


def _reserve(path: Path) -> None:
    # On a full disk, writing to a page of a mapped file that the disk has no
    # room for ends the process. Here it is an error, and nothing is counted.
    with path.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, FILE_SIZE)


slot = Slot()
values.ValueClass = (
    values.MultiProcessValue(lambda: slot.number)
    if settings.METRICS_FOLDER
    else values.MutexValue
)

registry = CollectorRegistry()
seconds_of = Histogram(
    "groundswell_request_seconds",
    "How long the application worked on a request, by view. The service level"
    " is 0.25 at p99; time in the queue before it is not in here:"
    " groundswell_listen_queue shows that.",
    ["view", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15),
    registry=registry,
)
saves = Counter(
    "groundswell_page_saves",
    "Page saves by outcome. saved: on disk. retried: was on disk before."
    " superseded: a newer tab or device wrote. conflict: superseded, finished,"
    " withdrawn or closed. session_over: the browser asks for the code again."
    " unavailable: no database; the browser keeps the page and comes again."
    " failed: a defect, look into the log. Nothing but saved and retried is"
    " called saved on anybody's screen.",
    ["outcome"],
    registry=registry,
)
logins = Counter(
    "groundswell_logins",
    "Codes typed, by outcome. Many refused at once: a wrong stack of cards, or"
    " somebody guessing. forbidden: no CSRF cookie, so a browser without cookies"
    " or another site.",
    ["outcome"],
    registry=registry,
)
errors = Counter(
    "groundswell_errors",
    "Answers of 500 and above by view. 503 is kept and tried again by the"
    " browser; each 500 has a line with its stack in the log.",
    ["view", "status"],
    registry=registry,
)


class _Nowhere:
    def inc(self) -> None:
        pass

    def observe(self, seconds: float) -> None:
        pass


NOWHERE = _Nowhere()


class Children(dict[Any, Any]):
    """A metric's children by labels, each looked up once in a process."""

    def __init__(self, metric: Counter | Histogram) -> None:
        self.metric = metric

    def __missing__(self, labels: Hashable) -> Any:
        child = self[labels] = self._child(
            labels if isinstance(labels, tuple) else (labels,)
        )
        return child

    def _child(self, labels: tuple[Any, ...]) -> Any:
        try:
            if settings.METRICS_FOLDER:
                slot.take(Path(settings.METRICS_FOLDER))
            return self.metric.labels(*labels)
        except Exception:
            # A page that is being saved is worth more than its count.
            log.exception("not counted")
            return NOWHERE


_seconds, _saves = Children(seconds_of), Children(saves)
_logins, _errors = Children(logins), Children(errors)


def _begin_anew() -> None:
    """A child of this process must not write into its parent's files."""
    slot.forget()
    for children in (_seconds, _saves, _logins, _errors):
        children.clear()


os.register_at_fork(after_in_child=_begin_anew)


def observed(
    view: str, seconds: float, status: int, *, method: str = "POST", outcome: str = ""
) -> None:
    """Count one request; `view` is its URL's name, `seconds` as measured.

    `outcome` says more than the status can: one of FINER_OUTCOMES.
    """
    if view not in HOT_VIEWS:
        view = "other"
    if method not in ("GET", "POST"):
        method = "other"
    _seconds[view, method].observe(seconds)
    if view == "survey_change_page":
        finer = outcome in FINER_OUTCOMES
        _saves[outcome if finer else SAVE_OUTCOMES.get(status, "refused")].inc()
    elif view == "survey_login" and method == "POST":
        _logins[LOGIN_OUTCOMES.get(status, "refused")].inc()
    if status >= 500:
        _errors[view, status].inc()


# The page

MONITORING_HEADER = "X-Groundswell-Monitoring"
NEAR = frozenset(("", "127.0.0.1", "::1"))


def metrics(request: HttpRequest) -> HttpResponse:
    """GET /metrics: only through nginx's monitoring port.

    That port alone adds the key to what it passes on; a request that came by
    another way is told that there is nothing here.
    """
    if not _is_from_the_monitoring_port(request):
        return HttpResponseNotFound()
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


def _is_from_the_monitoring_port(request: HttpRequest) -> bool:
    key = settings.MONITORING_KEY
    given = request.headers.get(MONITORING_HEADER, "")
    # A peer on a unix socket has no address.
    near = request.META.get("REMOTE_ADDR", "") in NEAR
    return bool(key) and near and constant_time_compare(given, key)


def exposition() -> bytes:
    # Here and not above: every pool counts, one is scraped.
    from settings.monitoring.dependency_checks import statistics

    together = CollectorRegistry()
    if settings.METRICS_FOLDER:
        together.register(_Families(_counted(Path(settings.METRICS_FOLDER))))
    else:
        together.register(_Families(list(registry.collect())))
    together.register(_Families(_asked(statistics())))
    return generate_latest(together)


def _counted(folder: Path) -> list[Metric]:
    """What all processes counted; a file that cannot be read costs its part."""
    files = [str(path) for path in folder.glob("*.db") if _is_whole(path)]
    return list(MultiProcessCollector.merge(files))


class _Families:
    def __init__(self, families: list[Metric]) -> None:
        self.families = families

    def collect(self) -> list[Metric]:
        return self.families


# Name -> labels and HELP of what is asked at the scrape. A server that is
# away has no samples but its `groundswell_up`.
ASKED: dict[str, tuple[tuple[str, ...], str]] = {
    "up": (
        ("dependency",),
        "1 when it answered within half a second, 0 when not. Absent: not set up"
        " here. Only primary at 0 stops saving; /readyz says what the others cost.",
    ),
    "replica_lag_seconds": (
        (),
        "Age of the newest transaction that the replica has applied, 0 when it has"
        " everything. Reports are older by this much.",
    ),
    "replica_lag_bytes": (
        (),
        "Log that the primary has written and the replica has not applied: what"
        " losing the primary for good would cost now.",
    ),
    "commits_total": (
        (),
        "Transactions committed in this database, reads among them. Commits per"
        " fsync = rate of this / rate of groundswell_wal_syncs_total; about 3 at 8"
        " writers. With many reads on the primary compare groundswell_page_saves.",
    ),
    "wal_syncs_total": (
        (),
        "Times the primary brought its log to disk. As many as commits: no group"
        " commit, because writers come one at a time.",
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
        "Keys in Redis, which holds sessions only: people in a survey or finished"
        " within ten minutes, up to four hours after they went.",
    ),
    "redis_memory_bytes": ((), "Memory that Redis uses."),
    "redis_memory_limit_bytes": (
        (),
        "Redis refuses new logins at this; those in use are not ended.",
    ),
    "queue_messages": (
        ("queue",),
        "Tasks that wait in RabbitMQ. Growing: too few workers, or none.",
    ),
    "queue_consumers": (
        ("queue",),
        "Celery workers that listen. 0: rosters, exports and roll-ups wait.",
    ),
    "pool_clients_active": (("pool",), "Clients of pgbouncer that have a server."),
    "pool_clients_waiting": (
        ("pool",),
        "Clients that wait for one of pgbouncer's servers. More than 0 for long:"
        " the pool is too small, or PostgreSQL is slow.",
    ),
    "pool_wait_seconds": (
        ("pool",),
        "How long the first of them has waited; at 4 it is sent away.",
    ),
    "pool_servers_active": (("pool",), "PostgreSQL connections at work."),
    "pool_servers_idle": (("pool",), "PostgreSQL connections at rest."),
    "listen_queue": (
        ("socket",),
        "Requests that no worker has taken yet. Near groundswell_listen_backlog"
        " nginx answers 503 with Retry-After: the knee.",
    ),
    "listen_backlog": (("socket",), "Most requests that may wait there."),
}


def _asked(samples: Iterable[Sample]) -> list[Metric]:
    families: dict[str, Metric] = {}
    for name, value, labels in samples:
        names, text = ASKED[name]
        if name not in families:
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            families[name] = kind(f"groundswell_{name}", text, labels=names)
        families[name].add_metric(labels, value)  # type: ignore[attr-defined]
    return list(families.values())

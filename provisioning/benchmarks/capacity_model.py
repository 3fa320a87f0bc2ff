"""From one measured machine to the servers of a day: the capacity sheet.

Every number comes from a formula that says its units, out of a benchmark of
this machine (`provisioning/bench`) and what the day is to be. Half of each
machine stays free: classes start together, and a server may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioning.load.respondent import (
    COMPLETE,
    CONTENT,
    DISPLAY,
    LOGIN,
    REQUESTS_PER_VISIT,
    SAVE,
)

HEADROOM = 0.5
SCHOOL_HOURS = 7
ITEMS = 5
# A session lives four hours; measured with its key, about 1 KB.
SESSION_HOURS = 4
SESSION_BYTES = 1100
# Answer, key, and what PostgreSQL adds to a row.
ROW_BYTES = 130
# Three surveys (students, teachers, parents) in three languages, with copies.
CONTENT_COPIES = 9
CONTENT_BYTES = 8192
WORKER_MB = 90
# A commit's flush on the disks that one should have, in ms; it holds a
# connection without using a processor.
FLUSH_MS = 1.0
# JMeter 5.6 with cookies, assertions and a connection a thread; jmeter/run
# prints the split on the machine at hand.
JMETER_PER_CORE = 600
# One thread each, whatever the machine.
SINGLE_THREADED = 1.0
# For console, reports, tasks, migrations and replicas, beside the taking pool.
OTHER_CONNECTIONS = 40
MASTERS = 2


@dataclass(frozen=True, slots=True)
class Day:
    takers_per_hour: float
    pages: int
    think_seconds: float

    @property
    def starts_per_s(self) -> float:
        return self.takers_per_hour / 3600


@dataclass(frozen=True, slots=True)
class Machines:
    """What the servers of the fleet have."""

    web_cores: int = 8
    database_cores: int = 16


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor µs of a request of the mix in each tier, as benchmarked."""

    gunicorn: float
    nginx: float
    pgbouncer: float
    postgresql: float
    redis: float
    memcached: float
    wal_bytes_per_save: float

    @classmethod
    def of(cls, bench: Mapping[str, Any]) -> Cost:
        used = bench["cpu_us_per_request"]
        return cls(
            gunicorn=used.get("gunicorn taking", 0.0),
            nginx=used.get("nginx", 0.0),
            pgbouncer=used.get("pgbouncer", 0.0),
            postgresql=used.get("PostgreSQL", 0.0),
            redis=used.get("Redis", 0.0),
            memcached=used.get("Memcached", 0.0),
            wal_bytes_per_save=bench["saves"].get("wal_bytes_per_save") or 0.0,
        )


def whole(value: float) -> int:
    """Rounded up; what is too much by a rounding error only, is not."""
    return math.ceil(round(value, 6))


# Requests


def requests_of_a_person(pages: int) -> dict[str, int]:
    """As the load engine asks them: half are saves, from six pages on."""
    return {
        LOGIN: 2,
        DISPLAY: 1,
        CONTENT: max(0, pages - REQUESTS_PER_VISIT),
        SAVE: pages,
        COMPLETE: 3,
    }


def requests_per_s(day: Day) -> dict[str, float]:
    return {
        view: day.starts_per_s * count
        for view, count in requests_of_a_person(day.pages).items()
    }


def people_at_once(day: Day) -> float:
    """By Little's law: who starts in a second, times how long they stay."""
    return day.starts_per_s * day.pages * day.think_seconds


# Processors


def cores_used(per_second: float, us_each: float) -> float:
    """Processor seconds in each second."""
    return per_second * us_each / 1e6


def servers_for(cores: float, cores_of_one: int) -> int:
    return max(1, whole(cores / (cores_of_one * HEADROOM)))


def busy(per_second: float, seconds_each: float) -> float:
    """How many are at work at any moment, by Little's law."""
    return per_second * seconds_each


def service_seconds(cost: Cost) -> float:
    """How long a worker holds a request while nothing is queued."""
    waited = cost.pgbouncer + cost.postgresql + cost.redis + cost.memcached
    return (cost.gunicorn + waited) / 1e6 + FLUSH_MS / 1000


def statement_seconds(cost: Cost) -> float:
    """How long a statement holds a connection to PostgreSQL."""
    return cost.postgresql / 1e6 + FLUSH_MS / 1000


def workers_for(python_per_s: float, cost: Cost, cores: int) -> int:
    """On all web servers together; never fewer than keep their cores busy."""
    return max(whole(busy(python_per_s, service_seconds(cost)) / HEADROOM), 2 * cores)


def pool_for(python_per_s: float, cost: Cost, servers: int, cores_of_one: int) -> int:
    """Connections of one web server's taking pool; at least one for each core."""
    together = busy(python_per_s, statement_seconds(cost)) / HEADROOM
    return max(cores_of_one, whole(together / servers))


# Memory and disk


def sessions_mb(day: Day) -> float:
    hours = min(SESSION_HOURS, SCHOOL_HOURS)
    return day.takers_per_hour * hours * SESSION_BYTES / 1e6


def content_mb(pages: int) -> float:
    return (pages + 1) * CONTENT_COPIES * CONTENT_BYTES / 1e6


def rows_per_day(day: Day) -> float:
    return day.takers_per_hour * SCHOOL_HOURS * day.pages * ITEMS


def rows_gb_per_day(day: Day) -> float:
    return rows_per_day(day) * ROW_BYTES / 1e9


def wal_gb_per_day(day: Day, cost: Cost) -> float:
    saves = day.takers_per_hour * SCHOOL_HOURS * day.pages
    return saves * cost.wal_bytes_per_save / 1e9


def load_servers_for(per_second: float, cores_of_one: int) -> int:
    return max(1, whole(per_second / (JMETER_PER_CORE * cores_of_one)))


# The sheet


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Sheet:
    day: Day
    machines: Machines
    lines: list[Line]
    # What carries the load -> how often the load fits into it, headroom and all.
    multiples: dict[str, float]

    def value(self, name: str) -> float:
        return next(line.value for line in self.lines if line.name == name)

    @property
    def first_to_run_out(self) -> tuple[str, float]:
        name = min(self.multiples, key=lambda one: self.multiples[one])
        return name, self.multiples[name]


def sheet_for(day: Day, machines: Machines, cost: Cost) -> Sheet:
    by_view = requests_per_s(day)
    total = sum(by_view.values())
    # Content comes from nginx's cache.
    python = total - by_view[CONTENT]
    web = cores_used(total, cost.gunicorn + cost.nginx + cost.pgbouncer)
    database = cores_used(total, cost.postgresql)
    servers = servers_for(web, machines.web_cores)
    # Of the mix a request of Python costs more than one of the mix's average.
    share = python / total
    cost_of_python = _per_python_request(cost, share)
    workers = whole(
        workers_for(python, cost_of_python, servers * machines.web_cores) / servers
    )
    pool = pool_for(python, cost_of_python, servers, machines.web_cores)
    connections = servers * pool + OTHER_CONNECTIONS
    sessions = sessions_mb(day)
    lines = [
        *(Line(f"{view} requests", rate, "per s") for view, rate in by_view.items()),
        Line("requests", total, "per s"),
        Line("people at once", people_at_once(day), ""),
        Line("web processors used", web, "cores"),
        Line("primary processors used", database, "cores"),
        Line("Redis processor used", cores_used(total, cost.redis), "cores"),
        Line("web servers", servers, f"of {machines.web_cores} cores"),
        Line("gunicorn workers", workers, "on each web server"),
        Line("gunicorn memory", workers * WORKER_MB, "MB on each web server"),
        Line("taking pool", pool, "connections on each web server"),
        Line("database connections", connections, "on the primary"),
        Line("Redis sessions", sessions, "MB"),
        Line("nginx content", content_mb(day.pages), "MB on each web server"),
        Line("response rows", rows_gb_per_day(day), "GB a day"),
        Line("write-ahead log", wal_gb_per_day(day, cost), "GB a day"),
        Line(
            "JMeter servers",
            load_servers_for(total, machines.web_cores),
            f"of {machines.web_cores} cores",
        ),
    ]
    multiples = {
        "web processors": _fits(servers * machines.web_cores, web),
        "primary processors": _fits(machines.database_cores, database),
        "gunicorn workers": _fits(
            servers * workers, busy(python, service_seconds(cost_of_python))
        ),
        "taking pools": _fits(
            servers * pool, busy(python, statement_seconds(cost_of_python))
        ),
        "pgbouncer (one thread each)": _fits(
            servers * SINGLE_THREADED, cores_used(total, cost.pgbouncer)
        ),
        "Redis (one thread)": _fits(SINGLE_THREADED, cores_used(total, cost.redis)),
    }
    return Sheet(day, machines, lines, multiples)


def _per_python_request(cost: Cost, share: float) -> Cost:
    """The mix's average has content in it, which only nginx works for."""
    return Cost(
        gunicorn=cost.gunicorn / share,
        nginx=cost.nginx,
        pgbouncer=cost.pgbouncer / share,
        postgresql=cost.postgresql / share,
        redis=cost.redis / share,
        memcached=cost.memcached / share,
        wal_bytes_per_save=cost.wal_bytes_per_save,
    )


def _fits(there_is: float, used: float) -> float:
    return there_is / used if used else math.inf


def inventory_of(sheet: Sheet) -> dict[str, Any]:
    """Variables of provisioning/ansible, by their names there."""
    workers = whole(sheet.value("gunicorn workers") / MASTERS)
    pool = int(sheet.value("taking pool"))
    connections = int(sheet.value("database connections"))
    # Room for a second wave, and for the renderers of a mended template.
    sessions = max(64, whole(2 * sheet.value("Redis sessions")))
    content = max(512, whole(4 * sheet.value("nginx content")))
    return {
        "taking_workers": workers,
        "pool_sizes": {
            "taking": pool,
            "taking_replica": max(4, pool // 2),
            "console": 6,
            "console_replica": 6,
            "worker": 4,
            "worker_replica": 2,
            "reports": 3,
            "reports_replica": 3,
            "groundswell": 4,
        },
        # Each worker keeps a connection to each alias.
        "max_client_conn": max(500, 2 * workers * MASTERS + 200),
        "max_connections": max(100, whole(connections / 50) * 50),
        "redis_maxmemory": f"{sessions}mb",
        "content_cache_size": f"{content}m",
    }

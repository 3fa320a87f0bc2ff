"""Compute the servers that a survey day needs from one measured machine.

Every number comes from a formula with its units, out of a benchmark of this
machine (`provisioning/bench`) and the expected day. Half of each machine stays
free: classes start together, and a server may be missing.
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
# A commit's flush on a good disk, in ms; it holds a connection without using
# a processor.
FLUSH_MS = 1.0
# JMeter 5.6 with cookies, assertions and a connection a thread; jmeter/run
# prints the split on the machine at hand.
JMETER_PER_CORE = 600
# One thread each, whatever the machine.
SINGLE_THREADED = 1.0
# For console, reports, tasks, migrations and replicas, without the taking pool.
OTHER_CONNECTIONS = 40
MASTERS = 2


@dataclass(frozen=True, slots=True)
class SurveyDay:
    takers_per_hour: float
    pages: int
    think_seconds: float

    @property
    def starts_per_s(self) -> float:
        return self.takers_per_hour / 3600


@dataclass(frozen=True, slots=True)
class Machines:
    web_cores: int = 8
    database_cores: int = 16


@dataclass(frozen=True, slots=True)
class RequestCost:
    """Processor µs of an average request of the mix, in each server."""

    gunicorn: float
    nginx: float
    pgbouncer: float
    postgresql: float
    redis: float
    memcached: float
    wal_bytes_per_save: float

    @classmethod
    def of(cls, bench: Mapping[str, Any]) -> RequestCost:
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

    def of_python_request(self, share: float) -> RequestCost:
        """Divide by Python's share of the requests; nginx alone serves content."""
        return RequestCost(
            gunicorn=self.gunicorn / share,
            nginx=self.nginx,
            pgbouncer=self.pgbouncer / share,
            postgresql=self.postgresql / share,
            redis=self.redis / share,
            memcached=self.memcached / share,
            wal_bytes_per_save=self.wal_bytes_per_save,
        )


def round_up(value: float) -> int:
    """Round up, except where the excess is only a rounding error."""
    return math.ceil(round(value, 6))


# Requests


def requests_of_a_person(pages: int) -> dict[str, int]:
    """Count requests as the load engine sends them: half are saves, from six pages."""
    return {
        LOGIN: 2,
        DISPLAY: 1,
        CONTENT: max(0, pages - REQUESTS_PER_VISIT),
        SAVE: pages,
        COMPLETE: 3,
    }


def requests_per_s(day: SurveyDay) -> dict[str, float]:
    return {
        view: day.starts_per_s * count
        for view, count in requests_of_a_person(day.pages).items()
    }


def people_at_once(day: SurveyDay) -> float:
    """Little's law: people who start in a second, times the seconds of their stay."""
    return day.starts_per_s * day.pages * day.think_seconds


# Processors


def cores_used(per_second: float, us_each: float) -> float:
    """Return processor seconds in each second."""
    return per_second * us_each / 1e6


def servers_for(cores: float, cores_of_server: int) -> int:
    return max(1, round_up(cores / (cores_of_server * HEADROOM)))


def busy_at_once(per_second: float, seconds_each: float) -> float:
    """Little's law: how many workers, or connections, are in use at any moment."""
    return per_second * seconds_each


def service_seconds(cost: RequestCost) -> float:
    """Return how long a worker holds a request while nothing is queued."""
    waited = cost.pgbouncer + cost.postgresql + cost.redis + cost.memcached
    return (cost.gunicorn + waited) / 1e6 + FLUSH_MS / 1000


def statement_seconds(cost: RequestCost) -> float:
    """Return how long a statement holds a connection to PostgreSQL."""
    return cost.postgresql / 1e6 + FLUSH_MS / 1000


def workers_for(python_per_s: float, cost: RequestCost, cores: int) -> int:
    """Return workers of all web servers: at least two for each of their cores."""
    at_once = busy_at_once(python_per_s, service_seconds(cost))
    return max(round_up(at_once / HEADROOM), 2 * cores)


def pool_for(
    python_per_s: float, cost: RequestCost, servers: int, cores_of_server: int
) -> int:
    """Return connections of a web server's taking pool: at least one for each core."""
    at_once = busy_at_once(python_per_s, statement_seconds(cost)) / HEADROOM
    return max(cores_of_server, round_up(at_once / servers))


# Memory and disk


def sessions_mb(day: SurveyDay) -> float:
    hours = min(SESSION_HOURS, SCHOOL_HOURS)
    return day.takers_per_hour * hours * SESSION_BYTES / 1e6


def content_mb(pages: int) -> float:
    return (pages + 1) * CONTENT_COPIES * CONTENT_BYTES / 1e6


def rows_per_day(day: SurveyDay) -> float:
    return day.takers_per_hour * SCHOOL_HOURS * day.pages * ITEMS


def rows_gb_per_day(day: SurveyDay) -> float:
    return rows_per_day(day) * ROW_BYTES / 1e9


def wal_gb_per_day(day: SurveyDay, cost: RequestCost) -> float:
    saves = day.takers_per_hour * SCHOOL_HOURS * day.pages
    return saves * cost.wal_bytes_per_save / 1e9


def load_servers_for(per_second: float, cores_of_server: int) -> int:
    return max(1, round_up(per_second / (JMETER_PER_CORE * cores_of_server)))


# The sheet


@dataclass(frozen=True, slots=True)
class Need:
    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class CapacitySheet:
    day: SurveyDay
    needs: list[Need]
    # How many times the load fits into each resource, with nothing left free.
    multiples: dict[str, float]

    def value(self, name: str) -> float:
        return next(need.value for need in self.needs if need.name == name)

    @property
    def first_to_run_out(self) -> tuple[str, float]:
        return min(self.multiples.items(), key=lambda item: item[1])


def capacity_sheet(
    day: SurveyDay, machines: Machines, cost: RequestCost
) -> CapacitySheet:
    cores = machines.web_cores
    by_view = requests_per_s(day)
    total = sum(by_view.values())
    # Content comes from nginx's cache.
    python = total - by_view[CONTENT]
    web = cores_used(total, cost.gunicorn + cost.nginx + cost.pgbouncer)
    database = cores_used(total, cost.postgresql)
    servers = servers_for(web, cores)
    python_cost = cost.of_python_request(python / total)
    workers = round_up(workers_for(python, python_cost, servers * cores) / servers)
    pool = pool_for(python, python_cost, servers, cores)
    connections = servers * pool + OTHER_CONNECTIONS
    each_web = "on each web server"
    needs = [
        *(Need(f"{view} requests", rate, "per s") for view, rate in by_view.items()),
        Need("requests", total, "per s"),
        Need("people at once", people_at_once(day), ""),
        Need("web processors used", web, "cores"),
        Need("primary processors used", database, "cores"),
        Need("Redis processor used", cores_used(total, cost.redis), "cores"),
        Need("web servers", servers, f"of {cores} cores"),
        Need("gunicorn workers", workers, each_web),
        Need("gunicorn memory", workers * WORKER_MB, f"MB {each_web}"),
        Need("taking pool", pool, f"connections {each_web}"),
        Need("database connections", connections, "on the primary"),
        Need("Redis sessions", sessions_mb(day), "MB"),
        Need("nginx content", content_mb(day.pages), f"MB {each_web}"),
        Need("response rows", rows_gb_per_day(day), "GB a day"),
        Need("write-ahead log", wal_gb_per_day(day, cost), "GB a day"),
        Need("JMeter servers", load_servers_for(total, cores), f"of {cores} cores"),
    ]
    resources = {
        "web processors": (servers * cores, web),
        "primary processors": (machines.database_cores, database),
        "gunicorn workers": (
            servers * workers,
            busy_at_once(python, service_seconds(python_cost)),
        ),
        "taking pools": (
            servers * pool,
            busy_at_once(python, statement_seconds(python_cost)),
        ),
        "pgbouncer (one thread each)": (
            servers * SINGLE_THREADED,
            cores_used(total, cost.pgbouncer),
        ),
        "Redis (one thread)": (SINGLE_THREADED, cores_used(total, cost.redis)),
    }
    multiples = {
        name: available / used if used else math.inf
        for name, (available, used) in resources.items()
    }
    return CapacitySheet(day, needs, multiples)


def inventory_of(sheet: CapacitySheet) -> dict[str, int | str | dict[str, int]]:
    """Return variables of provisioning/ansible, by their names there."""
    workers = round_up(sheet.value("gunicorn workers") / MASTERS)
    pool = int(sheet.value("taking pool"))
    connections = int(sheet.value("database connections"))
    # Room for a second wave, and for two versions of a template.
    sessions = max(64, round_up(2 * sheet.value("Redis sessions")))
    content = max(512, round_up(4 * sheet.value("nginx content")))
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
        "max_connections": max(100, round_up(connections / 50) * 50),
        "redis_maxmemory": f"{sessions}mb",
        "content_cache_size": f"{content}m",
    }

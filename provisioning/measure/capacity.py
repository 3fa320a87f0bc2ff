"""Compute from the latest provisioning/bench what a survey day needs.

Requests, web servers, workers, pools, connections, memory, load servers, and which of
them runs out first. Without a target, two examples: Chicago (8,000 takers an hour) and
Illinois (50,000). `--responses` is a target in million answers a day, `--requests` in
requests a second; beyond one primary, the nodes of a Citus cluster follow from the
latest provisioning/run cluster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from provisioning.commands import (
    ROOT,
    Refusal,
    caller_path,
    command_parser,
    positive_integer,
    positive_number,
    write_csv,
)
from provisioning.measure.load.respondent import (
    COMPLETE,
    CONTENT,
    DISPLAY,
    LOGIN,
    REQUESTS_PER_VISIT,
    SAVE,
)

LATEST = ROOT / ".bench" / "latest.json"
KEPT = ROOT / "provisioning" / "measured" / "bench.json"
CLUSTER = ROOT / "provisioning" / "measured" / "cluster.json"
# Classes start together, and a server may be missing.
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
# A commit's flush on a good disk; it holds a connection without using a
# processor.
FLUSH_SECONDS = 0.001
# Of the replica's processor time, what the process takes that replays the log, alone;
# docs/decisions/0205-peers-growth-and-limits.md says how it was measured.
REPLAY_SHARE = 0.06
# JMeter 5.6 with cookies, assertions and a connection a thread; jmeter/run
# prints the split on the machine at hand.
JMETER_PER_CORE = 600
# For console, reports, tasks, migrations and replicas, without the taking pool.
OTHER_CONNECTIONS = 40
MASTERS = 2


class SurveyDay(NamedTuple):
    takers_per_hour: float
    pages: int
    think_seconds: float


# Fields of `RequestCost`, and the server that each is of.
SERVERS = {
    "gunicorn": "gunicorn taking",
    "nginx": "nginx",
    "pgbouncer": "pgbouncer",
    "postgresql": "PostgreSQL",
    "replica": "replica",
    "redis": "Redis",
    "memcached": "Memcached",
}


class Machines(NamedTuple):
    web_cores: int = 8
    database_cores: int = 16


class ClusterCost(NamedTuple):
    """Processor time of a save on a cluster, as a multiple of that on one primary."""

    coordinator: float
    workers: float

    @classmethod
    def of(cls, measured: Mapping[str, Any]) -> ClusterCost:
        single = measured["cpu_us_per_save_of_one_primary"]
        nodes = dict(measured["cpu_us_per_save"])
        return cls(nodes.pop("coordinator") / single, sum(nodes.values()) / single)

    def database_servers(
        self, processors: float, cores: int, replay: float = 0.0
    ) -> tuple[int, int]:
        """Return coordinators and workers for what one primary needs so many of.

        One primary, and no workers, where it is enough, and one process of its replica
        can replay its log. Each worker has a replica, which replays its part.
        """
        usable = cores * HEADROOM
        if processors <= usable and replay <= HEADROOM:
            return 1, 0
        coordinators, workers = (
            round_up(processors * factor / usable) for factor in self
        )
        return coordinators, max(2, workers, round_up(replay / HEADROOM))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCost:
    """Processor µs of an average request of the mix, in each server."""

    gunicorn: float = 0.0
    nginx: float = 0.0
    pgbouncer: float = 0.0
    postgresql: float = 0.0
    replica: float = 0.0
    redis: float = 0.0
    memcached: float = 0.0
    wal_bytes_per_save: float = 0.0

    @classmethod
    def of(cls, bench: Mapping[str, Any]) -> RequestCost:
        used = bench["cpu_us_per_request"]
        costs = {name: used.get(server, 0.0) for name, server in SERVERS.items()}
        saves = bench["saves"]
        return cls(**costs, wal_bytes_per_save=saves.get("wal_bytes_per_save") or 0.0)

    @property
    def in_python(self) -> float:
        """Return the µs for which a worker is held, without queues and flushes."""
        waited = self.pgbouncer + self.postgresql + self.redis + self.memcached
        return self.gunicorn + waited


class CapacitySheet(NamedTuple):
    day: SurveyDay
    # Name -> value and unit.
    needs: dict[str, tuple[float, str]]
    # How many times the load fits into each resource, with nothing left free.
    multiples: dict[str, float]

    def value(self, name: str) -> float:
        return self.needs[name][0]

    def rows(self) -> Iterator[tuple[str, float, str]]:
        for name, (value, unit) in self.needs.items():
            yield name, round(value, 3), unit
        for resource, multiple in self.multiples.items():
            yield f"{resource} fit", round(multiple, 2), "times"

    @property
    def first_to_run_out(self) -> tuple[str, float]:
        return min(self.multiples.items(), key=lambda item: item[1])


def round_up(value: float) -> int:
    """Round up, except where the excess is only a rounding error."""
    return math.ceil(round(value, 6))


def requests_of_a_person(pages: int) -> dict[str, int]:
    """Count requests as the load engine sends them: half are saves, from six pages."""
    content = max(0, pages - REQUESTS_PER_VISIT)
    return {LOGIN: 2, DISPLAY: 1, CONTENT: content, SAVE: pages, COMPLETE: 3}


def capacity_sheet(
    day: SurveyDay, machines: Machines, cost: RequestCost
) -> CapacitySheet:
    cores, starts_per_s = machines.web_cores, day.takers_per_hour / 3600
    requests = {
        view: starts_per_s * count
        for view, count in requests_of_a_person(day.pages).items()
    }
    total = sum(requests.values())
    # Processor seconds in each second.
    web = total * (cost.gunicorn + cost.nginx + cost.pgbouncer) / 1e6
    database, redis = total * cost.postgresql / 1e6, total * cost.redis / 1e6
    replay = total * cost.replica * REPLAY_SHARE / 1e6
    # nginx serves content from its cache; the others hold a worker and a
    # connection, and wait for a flush. By Little's law so many are in use at any
    # moment.
    flushing = (total - requests[CONTENT]) * FLUSH_SECONDS
    busy_workers = total * cost.in_python / 1e6 + flushing
    connections = database + flushing
    servers = max(1, round_up(web / (cores * HEADROOM)))
    # At least two workers and one connection for each core.
    workers = max(round_up(busy_workers / HEADROOM), 2 * servers * cores)
    workers = round_up(workers / servers)
    pool = max(cores, round_up(connections / HEADROOM / servers))
    saves_a_day = day.takers_per_hour * SCHOOL_HOURS * day.pages
    sessions = day.takers_per_hour * min(SESSION_HOURS, SCHOOL_HOURS) * SESSION_BYTES
    content = (day.pages + 1) * CONTENT_COPIES * CONTENT_BYTES
    jmeter = max(1, round_up(total / (JMETER_PER_CORE * cores)))
    each_web, of_cores = "on each web server", f"of {cores} cores"
    needs = {
        **{f"{name} requests": (each, "per s") for name, each in requests.items()},
        "requests": (total, "per s"),
        "people at once": (starts_per_s * day.pages * day.think_seconds, ""),
        "web processors used": (web, "cores"),
        "primary processors used": (database, "cores"),
        "replica's replay": (replay, "cores, of one"),
        "Redis processor used": (redis, "cores"),
        "web servers": (servers, of_cores),
        "gunicorn workers": (workers, each_web),
        "gunicorn memory": (workers * WORKER_MB, f"MB {each_web}"),
        "taking pool": (pool, f"connections {each_web}"),
        "database connections": (servers * pool + OTHER_CONNECTIONS, "on the primary"),
        "Redis sessions": (sessions / 1e6, "MB"),
        "nginx content": (content / 1e6, f"MB {each_web}"),
        "response rows": (saves_a_day * ITEMS * ROW_BYTES / 1e9, "GB a day"),
        "write-ahead log": (saves_a_day * cost.wal_bytes_per_save / 1e9, "GB a day"),
        "JMeter servers": (jmeter, of_cores),
    }
    # What there is, and what is used of it.
    resources = {
        "web processors": (servers * cores, web),
        "primary processors": (machines.database_cores, database),
        "replica's replay (one process)": (1, replay),
        "gunicorn workers": (servers * workers, busy_workers),
        "taking pools": (servers * pool, connections),
        "pgbouncer (one thread each)": (servers, total * cost.pgbouncer / 1e6),
        "Redis (one thread)": (1, redis),
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
    pools = {"taking": pool, "taking_replica": max(4, pool // 2)}
    pools |= {"console": 6, "console_replica": 6, "worker": 12, "worker_replica": 2}
    pools |= {"reports": 3, "reports_replica": 3, "groundswell": 4}
    return {
        "taking_workers": workers,
        "pool_sizes": pools,
        # Each worker keeps a connection to each alias.
        "max_client_conn": max(500, 2 * workers * MASTERS + 200),
        "max_connections": max(100, round_up(connections / 50) * 50),
        "redis_maxmemory": f"{sessions}mb",
        "content_cache_size": f"{content}m",
    }


# Illinois: 4.5 million requests an hour by 50,000 people are 90 each.
EXAMPLES = {
    "Chicago": SurveyDay(takers_per_hour=8_000, pages=45, think_seconds=20),
    "Illinois": SurveyDay(takers_per_hour=50_000, pages=45, think_seconds=20),
}


def day_of(million_responses: float, pages: int, think_seconds: float) -> SurveyDay:
    """Return a school day with so many answers, the same number in each hour."""
    takers = million_responses * 1e6 / (SCHOOL_HOURS * pages * ITEMS)
    return SurveyDay(takers, pages, think_seconds)


def day_at(requests_per_s: float, pages: int, think_seconds: float) -> SurveyDay:
    """Return a day with so many requests a second in its busiest hour."""
    of_a_person = sum(requests_of_a_person(pages).values())
    return SurveyDay(requests_per_s * 3600 / of_a_person, pages, think_seconds)


def people_an_hour(cores: int | None = None, pages: int = 45) -> tuple[int, int]:
    """Return how many people start in an hour on one machine, and its cores.

    All servers share its processors; half of them stays free.
    """
    cores = cores or len(os.sched_getaffinity(0))
    cost = RequestCost.of(read_benchmark(KEPT))
    used = cost.in_python + cost.nginx
    requests = sum(requests_of_a_person(pages).values())
    people = cores * HEADROOM * 3600 / (requests * used / 1e6)
    return int(people // 100 * 100), cores


def main() -> int:
    options = parse_options()
    source = options.bench or (LATEST if LATEST.exists() else KEPT)
    bench = read_benchmark(source)
    machines = Machines(options.web_cores, options.database_cores)
    days = EXAMPLES
    if takers := options.takers_per_hour:
        day = SurveyDay(takers, options.pages, options.think)
        days = {f"{takers:,.0f} takers an hour": day}
    if options.responses:
        days = {
            f"{million:,.0f} million responses a day": day_of(
                million, options.pages, options.think
            )
            for million in options.responses
        }
    if options.requests:
        days = {
            f"{rate:,.0f} requests a second": day_at(rate, options.pages, options.think)
            for rate in options.requests
        }
    cost = RequestCost.of(bench)
    sheets = {name: capacity_sheet(day, machines, cost) for name, day in days.items()}
    if options.inventory:
        for name, sheet in sheets.items():
            print("\n".join(inventory_lines(name, sheet)))
        return 0
    machine = bench["machine"]
    print(
        f"From {source}: revision {machine['revision']} on {machine['cpu']},"
        f" {machine['cores']} cores"
    )
    for name, sheet in sheets.items():
        print_sheet(name, sheet)
    if options.responses or options.requests:
        print_database_servers(sheets, machines)
    if options.csv:
        rows = [(name, *row) for name, sheet in sheets.items() for row in sheet.rows()]
        write_csv(options.csv, [("target", "what", "value", "unit"), *rows])
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        __doc__, epilog=f"{1 - HEADROOM:.0%} of every server is left free."
    )
    add, up_to_1000 = parser.add_argument, partial(positive_integer, most=1000)
    add("--takers-per-hour", type=positive_number, help="starts in the busiest hour")
    add("--pages", type=up_to_1000, default=45, help="of the survey (45)")
    add("--think", type=positive_number, default=20.0, help="seconds on a page (20)")
    add(
        "--responses",
        type=positive_number,
        nargs="+",
        default=[],
        metavar="MILLION",
        help="answers a day, such as 10 100 1000",
    )
    add(
        "--requests",
        type=positive_number,
        nargs="+",
        default=[],
        metavar="RATE",
        help="requests a second, such as 5000 20000 100000",
    )
    add("--web-cores", type=up_to_1000, default=8, help="of a web server (8)")
    add("--database-cores", type=up_to_1000, default=16, help="of the primary (16)")
    add("--bench", type=caller_path, help="instead of .bench/latest.json")
    add("--csv", type=caller_path, help="write the sheet there as well")
    add("--inventory", action="store_true", help="print the variables for Ansible")
    options = parser.parse_args(arguments)
    if options.inventory and not options.takers_per_hour:
        parser.error("--inventory needs --takers-per-hour")
    return options


def read_benchmark(path: Path) -> dict[str, Any]:
    try:
        bench: dict[str, Any] = json.loads(path.read_text())
        RequestCost.of(bench)
    except FileNotFoundError:
        raise Refusal(
            "There is no measurement yet; make one: provisioning/bench"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise Refusal(f"{path} is no complete result of provisioning/bench") from None
    return bench


def print_sheet(name: str, sheet: CapacitySheet) -> None:
    day = sheet.day
    print(
        f"\n{name}: {day.takers_per_hour:,.0f} takers an hour, {day.pages} pages,"
        f" {day.think_seconds:g} s on each"
    )
    for name, (value, unit) in sheet.needs.items():
        print(f"  {name:<30}{with_digits(value):>12} {unit}")
    print("  How often this load fits, with nothing left free:")
    for resource, multiple in sorted(sheet.multiples.items(), key=lambda item: item[1]):
        print(f"  {resource:<30}{multiple:>12.1f} times")
    resource, multiple = sheet.first_to_run_out
    print(f"  Runs out first: {resource}, at {multiple:.1f} times this load")


def print_database_servers(
    sheets: Mapping[str, CapacitySheet], machines: Machines
) -> None:
    """Print how many database servers each day needs, of as many cores."""
    cost = ClusterCost.of(json.loads(CLUSTER.read_text()))
    print(
        f"\nDatabase servers of {machines.database_cores} cores. On a cluster a save"
        f" takes {cost.coordinator:.1f} times the processor time of one primary on the"
        f" coordinator, and {cost.workers:.1f} times on a worker"
    )
    for name, sheet in sheets.items():
        processors = sheet.value("primary processors used")
        first, workers = cost.database_servers(
            processors, machines.database_cores, sheet.value("replica's replay")
        )
        servers = f"{first} coordinators and {workers} workers"
        rows = sheet.value("response rows")
        print(
            f"  {name:<36}{servers if workers else 'one primary'},"
            f" {with_digits(processors)} cores on one primary,"
            f" {with_digits(rows)} GB a day"
        )
        fits = machines.database_cores * HEADROOM / processors
    print(f"  The last of them fits {fits:.1f} times on the processors of one primary")


def with_digits(value: float) -> str:
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def inventory_lines(name: str, sheet: CapacitySheet) -> list[str]:
    lines = [f"# {name}: {sheet.value('web servers'):.0f} web servers"]
    for variable, value in inventory_of(sheet).items():
        if isinstance(value, dict):
            lines.append(f"{variable}:")
            lines += [f"  {key}: {each}" for key, each in value.items()]
        else:
            lines.append(f"{variable}: {value}")
    return lines

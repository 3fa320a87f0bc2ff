"""Time page saves over HTTP, one after another, on SQLite and on PostgreSQL.

Each run has two baselines: an address that the same server answers without a database,
and a flush of the same disk. Ratios to those travel between machines; milliseconds do
not.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from itertools import islice

from provisioning.commands import (
    ROOT,
    command_parser,
    positive_integer,
    print_table,
    step,
)
from provisioning.measure.benchmarks.machine import processor
from provisioning.measure.benchmarks.stack import (
    Application,
    private_application,
    sqlite_application,
)
from provisioning.measure.benchmarks.timed_requests import (
    fetch_requests,
    figures_of,
    log_in,
    send_requests,
    served,
)

WARM_UP = 50
# As many items as the longest page of the demonstration's survey of students.
SIZE = ("--pages=1", "--items=7")


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument(
        "--count", type=positive_integer, default=1000, help="saves on each (1000)"
    )
    count = parser.parse_args().count
    with sqlite_application() as application:
        rows = _time_saves(application, "SQLite", count)
    with private_application() as application:
        rows += _time_saves(application, "PostgreSQL", count)
    rows.append(("disk", "flush of 8 KiB", *figures_of(time_flushes(count))))
    print(f"\n{processor()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print_table(("", "milliseconds", "median", "p95", "max"), rows)
    return 0


def _time_saves(
    application: Application, database: str, count: int
) -> list[tuple[str, ...]]:
    application.collect_static()
    with step("Inviting a student"):
        details, codes = application.open_rehearsal("--respondents=1", *SIZE)
    rows: list[tuple[str, ...]] = []
    with served(application) as target, step(f"Saving {count} pages"):
        [saves] = log_in(details, codes, target)
        # The cheapest reply through the same servers: what a save costs beyond it.
        missing = fetch_requests(target, "/content/none/none/none/1/", status=404)
        for name, requests in (("page save", saves), ("empty answer", missing)):
            # The first requests fill caches and prepare the statement.
            for number in (WARM_UP, count):
                replies = send_requests(target, [islice(requests, number)])
            times = [reply.milliseconds for reply in replies]
            rows.append((database, name, *figures_of(times)))
    return rows


def time_flushes(count: int) -> list[float]:
    times = []
    with tempfile.TemporaryFile(dir=ROOT, buffering=0) as file:
        for _ in range(count):
            file.seek(0)
            file.write(os.urandom(8192))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return times

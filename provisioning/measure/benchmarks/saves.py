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
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from itertools import islice

from provisioning.commands import ROOT, command_parser, print_table, step
from provisioning.measure.benchmarks.machine import processor
from provisioning.measure.benchmarks.stack import (
    Application,
    private_application,
    sqlite_application,
)
from provisioning.measure.benchmarks.timed_requests import (
    SIZE,
    fetch_requests,
    figures_of,
    log_in,
    send_requests,
    served,
)

WARM_UP = 50
DATABASES: Mapping[str, Callable[[], AbstractContextManager[Application]]] = {
    "SQLite": sqlite_application,
    "PostgreSQL": private_application,
}


def main() -> int:
    options = command_parser(__doc__, count=(1000, "saves on each")).parse_args()
    rows: list[tuple[str, ...]] = []
    for database, start in DATABASES.items():
        with start() as application:
            application.collect_static()
            with step("Inviting a student"):
                details, codes = application.open_rehearsal("--respondents=1", *SIZE)
            with served(application) as target, step(f"Saving {options.count} pages"):
                [saves] = log_in(details, codes, target)
                # The cheapest reply through the same servers.
                missing = fetch_requests(target, "/content/none/none/none/1/", status=404)
                for name, requests in (("page save", saves), ("empty answer", missing)):
                    # The first requests fill caches and prepare the statement.
                    for number in (WARM_UP, options.count):
                        replies = send_requests(target, [islice(requests, number)])
                    times = [reply.milliseconds for reply in replies]
                    rows.append((database, name, *figures_of(times)))
    flushes = figures_of(time_flushes(options.count))
    rows.append(("disk", "flush of 8 KiB", *flushes))
    print(f"\n{processor()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print_table(("", "milliseconds", "median", "p95", "max"), rows)
    return 0


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

"""Find the best commit_delay for this machine.

Saves pages with pgbench on a private PostgreSQL, with more and more clients and longer
and longer delays before a flush. The best delay is kept in provisioning/measured and
set in provisioning/ansible.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from provisioning.commands import (
    Refusal,
    command_parser,
    output_of,
    print_table,
    step,
    write_csv,
)
from provisioning.measure.benchmarks.meter import Counters, processor
from provisioning.measure.benchmarks.stack import private_application
from provisioning.measure.benchmarks.statement import pgbench, save_script

CLIENTS = (1, 8, 16, 32, 64)
DELAYS = (0, 200, 1000, 4000)
SIBLINGS = 5
# The taking pool's size at pgbouncer: the most transactions at once.
POOL = 12
SIZE = ("--respondents=20000", "--pages=45", "--items=5")
# How much faster a delay has to be: it costs time on quiet days.
CLEARLY = 1.05


class DelayResult(NamedTuple):
    clients: int
    commit_delay_us: int
    per_second: float
    p95_ms: float
    commits_per_fsync: float


def main() -> int:
    options = parse_options()
    print(f"{processor()}, {os.cpu_count()} cores, commit_siblings {SIBLINGS}")
    rows = []
    with private_application() as application:
        kind = output_of(
            ["stat", "--file-system", "--format=%T", application.run],
            failing="The file system has no name",
        ).strip()
        if kind in ("tmpfs", "ramfs"):
            raise Refusal(f"{application.run} is in memory: a flush is free there")
        with step("Inviting people"):
            rehearsal, _ = application.open_rehearsal(*SIZE)
        script = save_script(application, rehearsal)
        partition = f"survey_response_{rehearsal['administration_id']}"
        for clients in CLIENTS:
            for delay in DELAYS:
                with step(f"{clients} clients, {delay} µs"):
                    # Each cell fills the same empty partition, after the same
                    # checkpoint.
                    application.sql(
                        f"ALTER SYSTEM SET commit_delay = {delay};\n"
                        f"ALTER SYSTEM SET commit_siblings = {SIBLINGS};\n"
                        "SELECT pg_reload_conf();\n"
                        f"TRUNCATE {partition};\nCHECKPOINT;"
                    )
                    before = Counters.now(application)
                    speed, p95 = pgbench(
                        application,
                        script,
                        clients=clients,
                        seconds=options.seconds,
                        logged=True,
                    )
                    counted = Counters.now(application).since(before)
                share = round(counted.commits / max(1, counted.flushes), 2)
                rows.append(DelayResult(clients, delay, speed, p95, share))
    print()
    print_table(
        ("clients", "delay µs", "tx/s", "p95 ms", "tx/fsync"),
        [
            (*row[:2], f"{row.per_second:,.0f}", f"{row[3]:.2f}", f"{row[4]:.2f}")
            for row in rows
        ],
    )
    if options.csv:
        write_csv(options.csv, [DelayResult._fields, *rows])
    delay, clients = best_delay(rows, options.pool)
    print(
        f"commit_delay = {delay} for a pool of {options.pool} connections"
        f" (read at {clients} clients)"
    )
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        __doc__, seconds=(8, "for each of 20 cells"), pool=(POOL, "connections")
    )
    parser.add_argument("--csv", type=Path, help="write the table there as well")
    return parser.parse_args(arguments)


def best_delay(rows: Sequence[DelayResult], pool: int) -> tuple[int, int]:
    """Return the delay for a pool of this size, and the clients it was read at.

    Clients above the pool's size wait in pgbouncer, so the nearest measured
    number counts. No delay, unless another one is clearly faster.
    """
    measured = sorted({row.clients for row in rows})
    clients = min(measured, key=lambda count: abs(count - pool))
    speeds = {
        row.commit_delay_us: row.per_second for row in rows if row.clients == clients
    }
    fastest = max(speeds, key=lambda delay: speeds[delay])
    clear = speeds[fastest] >= CLEARLY * speeds[0]
    return (fastest if clear else 0), clients

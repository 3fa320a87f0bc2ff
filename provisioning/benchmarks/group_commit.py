"""`provisioning/group_commit`: find the best commit_delay for this machine."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from provisioning.benchmarks import statement
from provisioning.benchmarks.machine import processor
from provisioning.commands import (
    ROOT,
    Refusal,
    output_of,
    print_table,
    run_command,
    step,
)
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    manage,
    prepare_environment,
)
from provisioning.installation.servers import private_servers
from provisioning.postgresql import DATABASE, run_sql

CLIENTS = (1, 8, 16, 32, 64)
DELAYS = (0, 200, 1000, 4000)
SIBLINGS = 5
# The taking pool's size at pgbouncer: the most transactions at once.
POOL = 12
PEOPLE, PAGES, ITEMS = 20_000, 45, 5
# How much faster a delay has to be: it costs time on quiet days.
CLEARLY = 1.05


@dataclass(frozen=True, slots=True)
class DelayResult:
    clients: int
    commit_delay_us: int
    per_second: float
    p95_ms: float
    commits_per_fsync: float


def main() -> int:
    options = parse_options()
    prepare_environment(PRODUCTION, STACK)
    print(f"{processor()}, {os.cpu_count()} cores, commit_siblings {SIBLINGS}")
    with private_servers() as folder:
        _refuse_memory(folder)
        with step("Making people"):
            pages = _prepare(folder)
        rows = []
        with tempfile.TemporaryDirectory() as scratch:
            script = Path(scratch) / "save.sql"
            script.write_text(statement.save_script(PYTHON, ROOT, pages))
            partition = f"survey_response_{pages.administration}"
            for clients in CLIENTS:
                for delay in DELAYS:
                    with step(f"{clients} clients, {delay} µs"):
                        result = _measure(
                            folder, script, partition, clients, delay, options.seconds
                        )
                    rows.append(result)
    print()
    print_table(
        ("clients", "delay µs", "tx/s", "p95 ms", "tx/fsync"),
        [
            (
                row.clients,
                row.commit_delay_us,
                f"{row.per_second:,.0f}",
                f"{row.p95_ms:.2f}",
                f"{row.commits_per_fsync:.2f}",
            )
            for row in rows
        ],
    )
    if options.csv:
        write_csv(options.csv, rows)
    delay, clients = best_delay(rows, options.pool)
    print(
        f"commit_delay = {delay} for a pool of {options.pool} connections"
        f" (read at {clients} clients)"
    )
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/group_commit",
        description="Saves pages by the product's own statement (pgbench) on a private"
        " PostgreSQL with the stack's settings, with more and more clients and longer"
        " and longer delays before a flush, and names the best commit_delay for the"
        " pool that pgbouncer keeps. It is kept in provisioning/measured and set in"
        " provisioning/ansible.",
    )
    parser.add_argument(
        "--seconds", type=int, default=8, help="for each of the 20 cells (8)"
    )
    parser.add_argument(
        "--pool", type=int, default=POOL, help=f"connections of the pool ({POOL})"
    )
    parser.add_argument("--csv", type=Path, help="write the table there as well")
    options = parser.parse_args(arguments)
    if options.seconds < 1 or options.pool < 1:
        parser.error("--seconds and --pool are at least 1")
    return options


def _refuse_memory(folder: Path) -> None:
    """Refuse a folder in memory, where a flush costs nothing."""
    kind = output_of(
        ["stat", "--file-system", "--format=%T", folder],
        failing="The file system has no name",
    ).strip()
    if kind in ("tmpfs", "ramfs"):
        raise Refusal(f"{folder} is in memory ({kind}): a flush costs nothing there")


def _prepare(folder: Path) -> statement.SavedPages:
    """Open a rehearsal in the private database."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
        "GROUNDSWELL_TEST_SERVERS": str(folder),
        "GROUNDSWELL_TEST_DATABASE": DATABASE,
    }
    manage("migrate", "--verbosity=0", environment=environment)
    size = [f"--respondents={PEOPLE}", f"--pages={PAGES}", f"--items={ITEMS}"]
    details = json.loads(
        manage("open_rehearsal", "--json", *size, environment=environment)
    )
    [[first, last]] = run_sql(
        "SELECT min(id), max(id) FROM survey_respondent", run=folder
    )
    return statement.SavedPages(
        administration=details["administration_id"],
        first_respondent=int(first),
        last_respondent=int(last),
        first_items=[page["items"][0]["id"] for page in details["pages"]],
        items=ITEMS,
    )


def _measure(
    folder: Path, script: Path, partition: str, clients: int, delay: int, seconds: int
) -> DelayResult:
    # Each cell fills the same empty partition, after the same checkpoint.
    run_sql(
        f"ALTER SYSTEM SET commit_delay = {delay};\n"
        f"ALTER SYSTEM SET commit_siblings = {SIBLINGS};\n"
        "SELECT pg_reload_conf();\n"
        f"TRUNCATE {partition};\n"
        "CHECKPOINT;",
        run=folder,
    )
    before = _counters(folder)
    rate = statement.pgbench(
        script,
        host=folder,
        port=5432,
        database=DATABASE,
        user="postgres",
        clients=clients,
        seconds=seconds,
        log=script.parent,
    )
    commits, flushes = (
        after - earlier
        for after, earlier in zip(_counters(folder), before, strict=True)
    )
    return DelayResult(
        clients=clients,
        commit_delay_us=delay,
        per_second=round(rate.per_second, 1),
        p95_ms=round(rate.p95_ms or 0.0, 2),
        commits_per_fsync=round(commits / max(1, flushes), 2),
    )


def _counters(folder: Path) -> tuple[int, int]:
    """Return PostgreSQL's counts of commits and of flushes."""
    [[commits, flushes]] = run_sql(
        "SELECT d.xact_commit, w.wal_sync FROM pg_stat_database d"
        " CROSS JOIN pg_stat_wal w WHERE d.datname = current_database()",
        run=folder,
    )
    return int(commits), int(flushes)


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


def write_csv(path: Path, rows: Sequence[DelayResult]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(DelayResult)])
        writer.writerows(astuple(row) for row in rows)


if __name__ == "__main__":
    sys.exit(run_command("provisioning/group_commit", main))

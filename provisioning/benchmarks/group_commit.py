"""`provisioning/group_commit`: which commit_delay this machine wants."""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from provisioning.benchmarks import statement
from provisioning.benchmarks.machine import processor
from provisioning.commands import ROOT, Refusal, output_of, reason, run_command, step
from provisioning.environment import PRODUCTION, PYTHON, STACK, prepare_environment
from provisioning.installation.servers import private_servers

CLIENTS = (1, 8, 16, 32, 64)
DELAYS = (0, 200, 1000, 4000)
SIBLINGS = 5
# The taking pool's size at pgbouncer: so many transactions are ever open at once.
POOL = 12
PEOPLE, PAGES, ITEMS = 20_000, 45, 5
# A delay has to win clearly: what it gains here, it costs on quiet days.
CLEARLY = 1.05


@dataclass(frozen=True, slots=True)
class Measured:
    clients: int
    commit_delay_us: int
    per_second: float
    p95_ms: float
    commits_per_fsync: float


def main() -> int:
    options = _arguments()
    prepare_environment(PRODUCTION, STACK)
    print(f"{processor()}, {os.cpu_count()} cores, commit_siblings {SIBLINGS}")
    with private_servers() as folder:
        _refuse_memory(folder)
        with step("Making people"):
            people = _prepare(folder)
        rows = _measure(folder, people, options.seconds)
    _print(rows)
    if options.csv:
        _write(options.csv, rows)
    print(_verdict(rows, options.pool))
    return 0


def _arguments() -> argparse.Namespace:
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
    options = parser.parse_args()
    if options.seconds < 1 or options.pool < 1:
        parser.error("--seconds and --pool are at least 1")
    return options


def _refuse_memory(folder: Path) -> None:
    """A flush that never reaches a disk would say nothing about delays."""
    kind = output_of(
        ["stat", "--file-system", "--format=%T", folder],
        failing="The file system has no name",
    ).strip()
    if kind in ("tmpfs", "ramfs"):
        raise Refusal(f"{folder} is in memory ({kind}): a flush costs nothing there")


def _prepare(folder: Path) -> statement.People:
    """A rehearsal in the private database, by the product's own command."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
        "GROUNDSWELL_TEST_SERVERS": str(folder),
        "GROUNDSWELL_TEST_DATABASE": "groundswell",
    }
    manage = [PYTHON, ROOT / "manage.py"]
    output_of(
        [*manage, "migrate", "--verbosity=0"], failing="migrate failed", env=environment
    )
    sizes = [f"--respondents={PEOPLE}", f"--pages={PAGES}", f"--items={ITEMS}"]
    described = json.loads(
        output_of(
            [*manage, "open_rehearsal", "--json", *sizes],
            failing="open_rehearsal failed",
            env=environment,
        )
    )
    first, last = _sql(folder, "SELECT min(id), max(id) FROM survey_respondent")
    return statement.People(
        administration=described["administration_id"],
        first=int(first),
        last=int(last),
        pages=[page["items"][0]["id"] for page in described["pages"]],
        items=ITEMS,
    )


def _measure(folder: Path, people: statement.People, seconds: int) -> list[Measured]:
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch) / "save.sql"
        script.write_text(statement.save_script(PYTHON, ROOT, people))
        for clients in CLIENTS:
            for delay in DELAYS:
                with step(f"{clients} clients, {delay} µs"):
                    rows.append(_cell(folder, script, people, clients, delay, seconds))
    return rows


def _cell(
    folder: Path,
    script: Path,
    people: statement.People,
    clients: int,
    delay: int,
    seconds: int,
) -> Measured:
    _sql(folder, f"ALTER SYSTEM SET commit_delay = {delay}")
    _sql(folder, f"ALTER SYSTEM SET commit_siblings = {SIBLINGS}")
    _sql(folder, "SELECT pg_reload_conf()")
    # Each cell fills the same empty partition, after the same checkpoint.
    _sql(folder, f"TRUNCATE survey_response_{people.administration}")
    _sql(folder, "CHECKPOINT")
    before = _counters(folder)
    rate = statement.pgbench(
        script,
        host=folder,
        port=5432,
        database="groundswell",
        user="postgres",
        clients=clients,
        seconds=seconds,
        log=script.parent,
    )
    commits, flushes = (
        after - earlier
        for after, earlier in zip(_counters(folder), before, strict=True)
    )
    return Measured(
        clients=clients,
        commit_delay_us=delay,
        per_second=round(rate.per_second, 1),
        p95_ms=round(rate.p95_ms or 0.0, 2),
        commits_per_fsync=round(commits / max(1, flushes), 2),
    )


def _counters(folder: Path) -> tuple[int, int]:
    commits, flushes = _sql(
        folder,
        "SELECT d.xact_commit, w.wal_sync FROM pg_stat_database d"
        " CROSS JOIN pg_stat_wal w WHERE d.datname = 'groundswell'",
    )
    return int(commits), int(flushes)


def _sql(folder: Path, text: str) -> list[str]:
    done = subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only"]
        + [f"--host={folder}", "--port=5432", "--username=postgres"]
        + ["--dbname=groundswell", f"--command={text}"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Refusal(f"PostgreSQL refuses: {reason(done.stderr)}")
    return done.stdout.strip().split("|")


# What it says


def best_delay(rows: list[Measured], pool: int) -> tuple[int, int]:
    """The delay for a pool of this size, and the number of clients it was read at.

    Clients beyond the pool wait in pgbouncer, so that the nearest measured
    number counts. No delay, unless another is clearly faster.
    """
    measured = sorted({row.clients for row in rows})
    clients = min(measured, key=lambda one: abs(one - pool))
    speeds = {
        row.commit_delay_us: row.per_second for row in rows if row.clients == clients
    }
    fastest = max(speeds, key=lambda delay: speeds[delay])
    clear = speeds[fastest] >= CLEARLY * speeds[0]
    return (fastest if clear else 0), clients


def _verdict(rows: list[Measured], pool: int) -> str:
    delay, clients = best_delay(rows, pool)
    return (
        f"commit_delay = {delay} for a pool of {pool} connections"
        f" (read at {clients} clients)"
    )


def _print(rows: list[Measured]) -> None:
    print(f"\n{'clients':>8}{'delay µs':>10}{'tx/s':>10}{'p95 ms':>9}{'tx/fsync':>10}")
    for row in rows:
        print(
            f"{row.clients:>8}{row.commit_delay_us:>10}{row.per_second:>10,.0f}"
            f"{row.p95_ms:>9.2f}{row.commits_per_fsync:>10.2f}"
        )


def _write(path: Path, rows: list[Measured]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Measured)])
        writer.writerows(astuple(row) for row in rows)


if __name__ == "__main__":
    sys.exit(run_command("provisioning/group_commit", main))

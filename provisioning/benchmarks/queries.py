"""`provisioning/queries`: what the database servers are asked during a survey."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, output_of, run_command, step
from provisioning.environment import PYTHON, install_packages
from provisioning.installation.home import environment_of, stack_home
from provisioning.installation.packages import postgresql_programs, program
from provisioning.load.crowd import Crowd, Turn
from provisioning.load.engine import Engine
from provisioning.load.respondent import RehearsalSurvey, Respondent, visit_requests
from provisioning.load.tally import Tally
from provisioning.load.target import refuse_real_respondents, target_of

NAME = "queries"
DATABASE = "groundswell"
SETTING = "log_min_duration_statement"
# Who takes the survey at the same time: a statement's time is its own, not
# what it waits for a processor.
TOGETHER = 4
WIDTH = 96

STATEMENTS = """
SELECT coalesce(json_agg(found), '[]') FROM (
    SELECT r.rolname AS role, s.query, s.calls, s.rows, s.total_exec_time AS total
    FROM pg_stat_statements s
    JOIN pg_database d ON d.oid = s.dbid
    JOIN pg_roles r ON r.oid = s.userid
    WHERE d.datname = current_database() AND r.rolname <> 'postgres'
) found
"""
# What somebody set by hand stands in a file of its own, and goes back there.
SET_BY_HAND = f"""
SELECT coalesce(json_agg(setting), '[]') FROM pg_file_settings
WHERE name = '{SETTING}' AND sourcefile LIKE '%postgresql.auto.conf'
"""  # noqa: S608
LOG = """
SELECT json_build_object('path', pg_current_logfile(),
    'prefix', current_setting('log_line_prefix'),
    'size', (pg_stat_file(pg_current_logfile())).size)
"""


def main() -> int:
    options = _arguments()
    home = stack_home()
    environment = environment_of(home, "manage")
    servers = _servers(home)
    if not options.anyway:
        _refuse_real_people(servers[0])
    if not program("pgbadger"):
        install_packages(["pgbadger"])
    with step(f"Inviting {options.respondents} people"):
        plan, codes = _rehearse(environment, options.respondents)
    print("\nBefore, since the statements were last forgotten")
    _print_top(servers, options.top)
    with _everything_logged(servers) as logs:
        for server in servers:
            server.ask("SELECT '0' FROM pg_stat_statements_reset()")
        with step(f"{len(codes)} people take {len(plan.pages)} pages each"):
            tally = _take(_address(home), plan, codes)
    print("\nAfter: this run alone")
    calls = _print_top(servers, options.top)
    for server, log in zip(servers, logs, strict=True):
        _print_report(server, log, home)
    return _verdict(tally, len(codes), calls)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/queries",
        description="Lets made-up people take a whole survey on the running stack"
        " (provisioning/stack up), and shows which statements ran on the primary and"
        " on the replica: by pg_stat_statements, before and after, and by pgbadger"
        " from a log of every statement. What pg_stat_statements has counted so far"
        " is printed and forgotten; the servers' logging is put back at the end.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--respondents", type=_count, default=20, metavar="N", help="instead of 20"
    )
    parser.add_argument(
        "--top", type=_count, default=8, metavar="N", help="statements in each table"
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="although real people may answer now, whose answers the servers' logs"
        " would hold",
    )
    return parser.parse_args()


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 10000")
    return int(text)


# The servers


@dataclass(frozen=True)
class Server:
    name: str
    folder: Path
    port: int

    def ask(self, statement: str) -> Any:
        """The one JSON value that the superuser is told, past pgbouncer."""
        told = output_of(
            [
                str(postgresql_programs() / "psql"),
                "--no-psqlrc",
                "--quiet",
                "--no-align",
            ]
            + ["--tuples-only", "-v", "ON_ERROR_STOP=1", f"--host={self.folder}"]
            + [f"--port={self.port}", "--username=postgres", f"--dbname={DATABASE}"]
            + [f"--command={statement}"],
            failing=f"The {self.name} refuses",
        )
        return json.loads(told) if told.strip() else None


def _servers(home: Path) -> list[Server]:
    run = home / "run"
    known = [Server("primary", run, 5432), Server("replica", run, 5433)]
    running = [server for server in known if _accepts(server)]
    if not running or running[0].name != "primary":
        raise Refusal("The primary is not running; start it with provisioning/stack up")
    return running


def _accepts(server: Server) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(server.folder / f".s.PGSQL.{server.port}")) == 0


def _refuse_real_people(primary: Server) -> None:
    # The driver writes values into its statements, so the log has them too.
    refuse_real_respondents(
        primary.ask,
        consequence="every statement would be logged with its values; --anyway does"
        " it nevertheless",
    )


@dataclass(frozen=True)
class Log:
    """The part of a server's log that was written from here on."""

    path: Path
    prefix: str
    size: int

    @classmethod
    def of(cls, server: Server) -> Log:
        told = server.ask(LOG)
        if told["path"] is None:
            raise Refusal(f"The {server.name} keeps no log of its own")
        return cls(Path(told["path"]), told["prefix"], told["size"])

    def copy_to(self, path: Path) -> None:
        with self.path.open("rb") as written:
            # At midnight the next file begins, and this one says no more.
            written.seek(self.size)
            path.write_bytes(written.read())


@contextmanager
def _everything_logged(servers: Sequence[Server]) -> Iterator[list[Log]]:
    """Inside, each statement is logged; what was set before comes back."""
    with ExitStack() as stack:
        logs = []
        for server in servers:
            by_hand = server.ask(SET_BY_HAND)
            stack.callback(_set, server, by_hand[0] if by_hand else None)
            logs.append(Log.of(server))
            _set(server, "0")
        # Replicated, so the primary's is the replica's as well.
        stack.callback(_log_taking, servers[0], "-1")
        _log_taking(servers[0], "0")
        yield logs


def _log_taking(primary: Server, value: str) -> None:
    """A role's settings count from its next connection, so the old ones end."""
    primary.ask(f"ALTER ROLE taking SET {SETTING} = '{value}'")
    primary.ask(
        "SELECT to_json(count(pg_terminate_backend(pid))) FROM pg_stat_activity"
        " WHERE usename = 'taking'"
    )


def _set(server: Server, value: str | None) -> None:
    change = f"RESET {SETTING}" if value is None else f"SET {SETTING} = '{value}'"
    server.ask(f"ALTER SYSTEM {change}")
    server.ask("SELECT '0' FROM pg_reload_conf()")


# The people


def _rehearse(
    environment: dict[str, str], count: int
) -> tuple[RehearsalSurvey, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        codes = Path(folder) / "codes"
        described = output_of(
            [str(PYTHON), "manage.py", "open_rehearsal", f"--name={NAME}", "--json"]
            + ["--respondents", str(count), "--unstarted", f"--codes={codes}"],
            failing="manage.py open_rehearsal failed",
            env={**os.environ, **environment},
        )
        return RehearsalSurvey.of(json.loads(described)), codes.read_text().split()


def _address(home: Path) -> str:
    return json.loads((home / "etc" / "stack.json").read_text())["address"]


def _take(address: str, plan: RehearsalSurvey, codes: Sequence[str]) -> Tally:
    target = target_of(address)
    people = [Respondent(code, plan, target) for code in codes]
    engine = Engine(target)
    with contextlib.closing(engine):
        crowd = Crowd(
            engine, (Turn(person, visit_requests(person)) for person in people)
        )
        return crowd.run_all(together=TOGETHER)


# The tables


def _print_top(servers: Sequence[Server], most: int) -> dict[str, int]:
    """Both tables of each server; how many statements each was sent."""
    calls = {}
    for server in servers:
        found = server.ask(STATEMENTS)
        calls[server.name] = sum(one["calls"] for one in found)
        print(f"\n{server.name}: {calls[server.name]:,} statements")
        for key, title in (("calls", "by calls"), ("total", "by time")):
            _print_table(title, sorted(found, key=lambda one: -one[key])[:most])
    return calls


def _print_table(title: str, statements: Sequence[dict[str, Any]]) -> None:
    if statements:
        print(f"  {title:<10}{'calls':>9}{'mean ms':>10}{'total ms':>10}  statement")
    for one in statements:
        mean = one["total"] / one["calls"]
        figures = f"{one['calls']:>9,}{mean:>10.3f}{one['total']:>10.1f}"
        print(f"  {one['role'][:9]:<10}{figures}  {_short(one['query'])}")


def _short(query: str) -> str:
    return re.sub(r"\s+", " ", query).strip()[:WIDTH]


# pgbadger


def _print_report(server: Server, log: Log, home: Path) -> None:
    report = home / "log" / f"queries-{server.name}.html"
    with tempfile.TemporaryDirectory() as folder:
        part, text = Path(folder) / "postgresql.log", Path(folder) / "report.txt"
        log.copy_to(part)
        for path in (report, text):
            output_of(
                [program("pgbadger"), "--quiet", "--format=stderr", "--anonymize"]
                + [f"--prefix={log.prefix}", f"--dbname={DATABASE}", "--jobs=1"]
                + ["--exclude-appname=psql", f"--title={server.name}"]
                + [f"--outfile={path}", str(part)],
                failing="pgbadger can't read the log",
            )
        print(f"\npgbadger on the {server.name} (whole report: {report})")
        print(_essentials(text.read_text(errors="replace")))


def _essentials(report: str) -> str:
    """How many statements of which kinds, and which of them come most often."""
    sections = dict(
        re.findall(r"^- ([^-\n]+?) -+\n(.*?)(?=^- |\Z)", report, re.M | re.S)
    )
    counted = re.findall(
        r"^(Number of (?:unique normalized )?queries|Total query duration): (.+)$",
        sections.get("Overall statistics", ""),
        re.M,
    )
    kinds = re.findall(
        r"^([A-Z ]+): ([1-9]\d*) ", sections.get("Queries by type", ""), re.M
    )
    lines = [f"{name}: {value}" for name, value in counted]
    lines.append(", ".join(f"{count} {kind}" for kind, count in kinds))
    for name in ("Most frequent queries (N)", "Queries that took up the most time (N)"):
        lines.append(name.removesuffix(" (N)"))
        ranked = re.findall(r"^\d+\) .+$", sections.get(name, ""), re.M)
        lines += [f"  {_short(line)}" for line in ranked[:5]]
    return "\n".join(f"  {line}" for line in lines if line)


def _verdict(tally: Tally, people: int, calls: dict[str, int]) -> int:
    each = ", ".join(
        f"{count / people:.1f} on the {name}" for name, count in calls.items()
    )
    print(
        f"\n{tally.answered():,} requests of {people} people; statements each: {each}"
    )
    if tally.failed():
        print(f"{tally.failed():,} requests failed: {tally.failures_by_name()}")
    return 1 if tally.failed() else 0


if __name__ == "__main__":
    sys.exit(run_command("provisioning/queries", main))

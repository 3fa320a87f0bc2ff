"""Let made-up people take a whole survey, and show the statements that PostgreSQL ran.

On the primary and the replica of the running stack (provisioning/stack up): by
pg_stat_statements, before and after, and by pgbadger from a log of every statement.
What pg_stat_statements has counted so far is printed and forgotten; the servers'
logging is put back at the end.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from provisioning.commands import (
    Refusal,
    command_parser,
    output_of,
    print_table,
    step,
)
from provisioning.installation.environment import install_packages, path_of_program
from provisioning.installation.postgresql import DATABASE, accepts, run_sql
from provisioning.measure.benchmarks.stack import Stack, running_stack, sql_file
from provisioning.measure.load.crowd import send
from provisioning.measure.load.respondent import (
    RehearsalSurvey,
    Respondent,
    visit_requests,
)
from provisioning.measure.load.target import refuse_real_respondents

SETTING = "log_min_duration_statement"
# So few people at the same time that statements do not wait for a processor.
TOGETHER = 4
WIDTH = 96

# A value that was set by hand is in a file of its own, and goes back there.
SET_BY_HAND = f"""
SELECT coalesce(json_agg(setting), '[]') FROM pg_file_settings
WHERE name = '{SETTING}' AND sourcefile LIKE '%postgresql.auto.conf'
"""  # noqa: S608
LOG = """
SELECT json_build_array(pg_current_logfile(), current_setting('log_line_prefix'),
    (pg_stat_file(pg_current_logfile())).size)
"""


def main() -> int:
    parser = command_parser(
        __doc__,
        respondents=(20, "who take the survey"),
        top=(8, "statements in each table"),
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="although real people may answer now, and their answers would be in"
        " the servers' logs",
    )
    options = parser.parse_args()
    stack = running_stack()
    servers = running_servers(stack.run)
    if not options.anyway:
        # The driver writes values into its statements, so the log has them too.
        refuse_real_respondents(
            servers[0].ask,
            consequence="every statement would be logged with its values; --anyway"
            " does it nevertheless",
        )
    if not path_of_program("pgbadger"):
        install_packages(["pgbadger"])
    with step(f"Inviting {options.respondents} people"):
        details, codes = stack.open_rehearsal(
            *("--name=queries", "--unstarted", f"--respondents={options.respondents}")
        )
    survey = RehearsalSurvey.of(details)
    print("\nBefore, since the statements were last reset")
    print_statements(servers, options.top)
    people = [Respondent(code, survey, stack.target) for code in codes]
    with everything_logged(servers) as logs:
        for server in servers:
            server.ask("SELECT '0' FROM pg_stat_statements_reset()")
        with step(f"{len(codes)} people take {len(survey.pages)} pages each"):
            visits = map(visit_requests, people)
            tally = send(stack.target, visits, together=TOGETHER).tally
    print("\nAfter: this run alone")
    calls = print_statements(servers, options.top)
    for server, log in zip(servers, logs, strict=True):
        _print_report(server, log, stack)
    each = ", ".join(
        f"{count / len(codes):.1f} on the {name}" for name, count in calls.items()
    )
    print(
        f"\n{tally.answered():,} requests of {len(codes)} people; statements each:"
        f" {each}"
    )
    if tally.failed():
        print(f"{tally.failed():,} requests failed: {tally.failures_by_name()}")
    return 1 if tally.failed() else 0


# The servers


class Server(NamedTuple):
    name: str
    run: Path
    port: int

    def ask(self, statement: str) -> Any:
        """Return the one JSON value of a statement, as superuser, past pgbouncer."""
        rows = run_sql(
            statement,
            run=self.run,
            port=self.port,
            database=DATABASE,
            failing=f"The {self.name} refuses",
        )
        return json.loads("\n".join("\t".join(row) for row in rows)) if rows else None

    def set(self, value: str | None) -> None:
        """Set the limit above which statements are logged; None resets it."""
        change = f"RESET {SETTING}" if value is None else f"SET {SETTING} = '{value}'"
        self.ask(f"ALTER SYSTEM {change}")
        self.ask("SELECT '0' FROM pg_reload_conf()")


def running_servers(run: Path) -> list[Server]:
    servers = (Server("primary", run, 5432), Server("replica", run, 5433))
    running = [server for server in servers if accepts(run, server.port)]
    if not running or running[0].name != "primary":
        raise Refusal("The primary is not running; start it with provisioning/stack up")
    return running


class ServerLog(NamedTuple):
    path: str
    prefix: str
    size: int


@contextmanager
def everything_logged(servers: Sequence[Server]) -> Iterator[list[ServerLog]]:
    """Log each statement inside, and restore the servers' settings afterwards."""
    primary = servers[0]

    def log_taking(value: str) -> None:
        # A role's settings count from its next connection, so end the others.
        primary.ask(f"ALTER ROLE taking SET {SETTING} = '{value}'")
        primary.ask(
            "SELECT to_json(count(pg_terminate_backend(pid))) FROM pg_stat_activity"
            " WHERE usename = 'taking'"
        )

    with ExitStack() as stack:
        logs = []
        for server in servers:
            by_hand = server.ask(SET_BY_HAND)
            stack.callback(server.set, by_hand[0] if by_hand else None)
            log = ServerLog(*server.ask(LOG))
            if log.path is None:
                raise Refusal(f"The {server.name} keeps no log of its own")
            logs.append(log)
            server.set("0")
        # Replicated: the primary's roles are the replica's as well.
        stack.callback(log_taking, "-1")
        log_taking("0")
        yield logs


# The tables


def print_statements(servers: Sequence[Server], most: int) -> dict[str, int]:
    """Print each server's top statements; return how many each was sent."""
    calls = {}
    for server in servers:
        statements = server.ask(sql_file("statements"))
        calls[server.name] = sum(each["calls"] for each in statements)
        print(f"\n{server.name}: {calls[server.name]:,} statements")
        for key, title in (("calls", "by calls"), ("total", "by time")):
            header = (f"  {title}", "calls", "mean ms", "total ms", "statement")
            top = sorted(statements, key=lambda each: -each[key])[:most]
            rows = [
                (
                    f"  {each['role']}",
                    f"{each['calls']:,}",
                    f"{each['total'] / each['calls']:.3f}",
                    f"{each['total']:.1f}",
                    shortened(each["query"]),
                )
                for each in top
            ]
            if rows:
                print_table(header, rows)
    return calls


def shortened(query: str) -> str:
    return " ".join(query.split())[:WIDTH]


def _print_report(server: Server, log: ServerLog, stack: Stack) -> None:
    """Run pgbadger on the server's log, keep its report and print the essentials."""
    report = stack.folder / "log" / f"queries-{server.name}.html"
    with tempfile.TemporaryDirectory() as scratch:
        part, text = Path(scratch) / "postgresql.log", Path(scratch) / "report.txt"
        # What was written since; a run over midnight loses the next file.
        with open(log.path, "rb") as whole:
            whole.seek(log.size)
            part.write_bytes(whole.read())
        for path in (report, text):
            output_of(
                [path_of_program("pgbadger"), "--quiet", "--format=stderr"]
                + ["--anonymize", f"--prefix={log.prefix}", f"--dbname={DATABASE}"]
                + ["--jobs=1", "--exclude-appname=psql", f"--title={server.name}"]
                + [f"--outfile={path}", str(part)],
                failing="pgbadger can't read the log",
            )
        print(f"\npgbadger on the {server.name} (whole report: {report})")
        print(essentials_of(text.read_text(errors="replace")))


def essentials_of(report: str) -> str:
    """Return the numbers and kinds of statements, and the most frequent ones."""
    sections = dict(
        re.findall(r"^- ([^-\n]+?) -+\n(.*?)(?=^- |\Z)", report, re.M | re.S)
    )

    def matches(section: str, pattern: str) -> list[Any]:
        return re.findall(f"^{pattern}", sections.get(section, ""), re.M)

    counted = r"(Number of (?:unique normalized )?queries|Total query duration): (.+)$"
    kinds = matches("Queries by type", r"([A-Z ]+): ([1-9]\d*) ")
    lines = [": ".join(each) for each in matches("Overall statistics", counted)]
    lines.append(", ".join(f"{count} {kind}" for kind, count in kinds))
    for name in ("Most frequent queries", "Queries that took up the most time"):
        ranked = matches(f"{name} (N)", r"\d+\) .+$")
        lines += [name, *(f"  {shortened(line)}" for line in ranked[:5])]
    return "\n".join(f"  {line}" for line in lines if line)

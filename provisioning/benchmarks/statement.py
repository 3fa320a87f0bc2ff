"""Run the product's own save statement with pgbench: the database's limit."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import Refusal, output_of, reason
from provisioning.percentiles import percentile
from provisioning.postgresql import postgresql_programs

# Runs where the application is installed; prints the statement for so many
# rows, with parameters left open.
PRINT_STATEMENT = """
import json, sys
from survey.taking.storage import EVERY_REVISION, ON_CONFLICT, POSTGRESQL
count = int(sys.argv[1])
rows = ", ".join(["(%s::bigint, %s::text, %s::text)"] + ["(%s, %s, %s)"] * (count - 1))
text = POSTGRESQL.format(rows=rows, on_conflict=ON_CONFLICT)
print(json.dumps([text, EVERY_REVISION]))
"""


@dataclass(frozen=True, slots=True)
class SavedPages:
    """The respondents and items that the script saves pages of, by ids."""

    administration: int
    first_respondent: int
    last_respondent: int
    # The first item of each page; the others follow it.
    first_items: Sequence[int]
    items: int


def save_script(python: Path, checkout: Path, pages: SavedPages) -> str:
    """Return a pgbench script that saves a random page of a random person."""
    statement, everything = json.loads(
        output_of(
            [python, "-c", PRINT_STATEMENT, str(pages.items)],
            failing="The save statement can't be read",
            env={**os.environ, "PYTHONPATH": str(checkout)},
        )
    )
    values = [":person", str(pages.administration), "1", str(pages.administration)]
    values.append(":revision")
    for item in range(pages.items):
        values += [f":item + {item}", "'a'", f"(:answer + {item}) % 5 + 1"]
    values += [str(everything), "0"]
    return "\n".join(
        [
            f"\\set person random({pages.first_respondent}, {pages.last_respondent})",
            f"\\set page random(0, {len(pages.first_items) - 1})",
            f"\\set item {pages.first_items[0]} + :page * {distance(pages)}",
            "\\set answer random(0, 4)",
            # Any rising number: a person's page is rarely drawn twice.
            "\\set revision 1000000000000000 + random(0, 700000000000000)",
            " ".join(fill_in(statement, values).split()) + ";",
        ]
    )


def distance(pages: SavedPages) -> int:
    """Return how far apart the first items of pages are; refuse several distances."""
    first = pages.first_items
    distances = {
        after - before for before, after in zip(first, first[1:], strict=False)
    }
    if len(distances) > 1:
        raise Refusal("The items of this survey have no regular ids")
    return distances.pop() if distances else pages.items


def fill_in(statement: str, values: Sequence[str]) -> str:
    waiting = list(values)
    filled = re.sub("%s", lambda _: waiting.pop(0), statement)
    if waiting:
        raise Refusal("The save statement has changed its parameters")
    # A calculated text is no literal, so that it has to be cast.
    return re.sub(r"\((:answer \+ \d+)\) % 5 \+ 1", r"((\1) % 5 + 1)::text", filled)


@dataclass(frozen=True, slots=True)
class PgbenchRate:
    per_second: float
    average_ms: float
    # From pgbench's own log, where one was asked for.
    p95_ms: float | None = None


def pgbench(
    script: Path,
    *,
    host: Path,
    port: int,
    database: str,
    user: str,
    clients: int,
    seconds: float,
    log: Path | None = None,
) -> PgbenchRate:
    """Run a script; raise Refusal if it, or one of its statements, fails.

    In the folder `log`, pgbench writes its transactions, for the percentile.
    """
    done = subprocess.run(
        [str(postgresql_programs() / "pgbench"), "--no-vacuum", f"--host={host}"]
        + [f"--port={port}", f"--username={user}", f"--client={clients}"]
        + ["--protocol=simple", f"--jobs={min(2, clients)}", f"--file={script}"]
        + [f"--time={max(1, round(seconds))}"]
        + (["--log", f"--log-prefix={log / 'pgbench'}"] if log else [])
        + [database],
        capture_output=True,
        text=True,
    )
    rate = re.search(r"tps = ([\d.]+)", done.stdout)
    average = re.search(r"latency average = ([\d.]+) ms", done.stdout)
    if done.returncode or not rate or not average:
        raise Refusal(f"pgbench fails: {reason(done.stderr or done.stdout)}")
    p95 = p95_of_logs(log) if log else None
    return PgbenchRate(float(rate[1]), float(average[1]), p95)


def p95_of_logs(folder: Path) -> float | None:
    """Return the 95th percentile in ms from pgbench's logs, and delete them."""
    times: list[int] = []
    for path in folder.glob("pgbench.*"):
        with path.open() as file:
            # client, transaction, µs, script, and when.
            times += [int(line.split(maxsplit=3)[2]) for line in file]
        path.unlink()
    return percentile(times, 95) / 1000 if times else None

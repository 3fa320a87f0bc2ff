"""Run the product's own save statement with pgbench: the database's limit."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from provisioning.commands import Refusal, reason
from provisioning.installation.postgresql import DATABASE, postgresql_programs
from provisioning.measure.benchmarks.stack import Application

# pgbouncer's port, and the taking pool's database and user there.
PGBOUNCER, POOL = 6432, ("taking", "taking")

# Above those of the browsers that saved before: a save with a lower one fails.
REVISION = "((extract(epoch FROM now()) + 120) * 1000000)::bigint"


def save_script(application: Application, rehearsal: Mapping[str, Any]) -> str:
    """Return a pgbench script that saves a random page of a random person.

    `rehearsal` is its description by open_rehearsal.
    """
    administration = rehearsal["administration_id"]
    pages = [[item["id"] for item in page["items"]] for page in rehearsal["pages"]]
    [[first, last]] = application.sql(
        "SELECT min(id), max(id) FROM survey_respondent WHERE completed_at IS NULL"  # noqa: S608
        f" AND administration_id = {administration}"
    )
    count = len(pages[0])
    statement = application.call(
        "measure.benchmarks.statement.save_statement", count=count
    )
    values = [":person", str(administration), "1", str(administration), REVISION]
    for item in range(count):
        values += [f":item + {item}", "'a'", f"(:answer + {item}) % 5 + 1"]
    values += ["'{}'", "true"]
    return "\n".join(
        [
            f"\\set person random({first}, {last})",
            f"\\set page random(0, {len(pages) - 1})",
            f"\\set item {pages[0][0]} + :page * {distance(pages)}",
            "\\set answer random(0, 4)",
            " ".join(fill_in(statement, values).split()) + ";",
        ]
    )


def save_statement(*, count: int) -> str:
    """Return the statement for so many rows, with open parameters. Runs in Django."""
    from survey.taking.storage import ON_CONFLICT, POSTGRESQL

    first = "(%s::bigint, %s::text, %s::text)"
    rows = ", ".join([first] + ["(%s, %s, %s)"] * (count - 1))
    return POSTGRESQL.format(rows=rows, on_conflict=ON_CONFLICT)


def distance(pages: Sequence[Sequence[int]]) -> int:
    """Return how far apart the first items of pages are; refuse several distances."""
    first = [items[0] for items in pages]
    distances = {
        after - before for before, after in zip(first, first[1:], strict=False)
    }
    if len(distances) > 1:
        raise Refusal("The items of this survey have no regular ids")
    return distances.pop() if distances else len(pages[0])


def fill_in(statement: str, values: Sequence[str]) -> str:
    waiting = list(values)
    filled = re.sub("%s", lambda _: waiting.pop(0), statement)
    if waiting:
        raise Refusal("The save statement has changed its parameters")
    # A calculated text is no literal, so that it has to be cast.
    return re.sub(r"\((:answer \+ \d+)\) % 5 \+ 1", r"((\1) % 5 + 1)::text", filled)


def pgbench(
    application: Application,
    script: str,
    *,
    clients: int,
    seconds: float,
    port: int,
    password: str,
) -> float:
    """Return transactions a second. Raises Refusal.

    `password` is the taking role's, for pgbouncer's port.
    """
    database, user = POOL if port == PGBOUNCER else (DATABASE, "postgres")
    # pgbench reads the script from its standard input.
    done = subprocess.run(
        [f"{postgresql_programs()}/pgbench", "--no-vacuum", "--protocol=simple"]
        + [f"--host={application.run}", f"--port={port}", f"--username={user}"]
        + [f"--client={clients}", f"--jobs={min(2, clients)}"]
        + [f"--time={max(1, round(seconds))}", "--file=-", database],
        env={**os.environ, "PGPASSWORD": password},
        input=script,
        capture_output=True,
        text=True,
    )
    rate = re.search(r"tps = ([\d.]+)", done.stdout)
    if done.returncode or not rate:
        raise Refusal(f"pgbench fails: {reason(done.stderr or done.stdout)}")
    return round(float(rate[1]), 1)

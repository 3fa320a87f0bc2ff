"""The product's own save statement, for pgbench: what the database alone can do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import Refusal, output_of, reason

# Run where the application is installed; prints the text that it would send,
# with a number of rows, and nothing filled in.
ASK = """
import json, sys
from survey.taking.storage import EVERY_REVISION, ON_CONFLICT, POSTGRESQL
count = int(sys.argv[1])
rows = ", ".join(["(%s::bigint, %s::text, %s::text)"] + ["(%s, %s, %s)"] * (count - 1))
text = POSTGRESQL.format(rows=rows, on_conflict=ON_CONFLICT)
print(json.dumps([text, EVERY_REVISION]))
"""


@dataclass(frozen=True, slots=True)
class People:
    """Whose pages are saved: ids of respondents and of each page's items."""

    administration: int
    first: int
    last: int
    # The first item of each page; the others follow it.
    pages: Sequence[int]
    items: int


def save_script(python: Path, checkout: Path, people: People) -> str:
    """A pgbench script: one save of a random page of a random person."""
    text, everything = json.loads(
        output_of(
            [python, "-c", ASK, str(people.items)],
            failing="The save statement can't be read",
            env={**os.environ, "PYTHONPATH": str(checkout)},
        )
    )
    values = [":person", str(people.administration), "1", str(people.administration)]
    values.append(":revision")
    for item in range(people.items):
        values += [f":item + {item}", "'a'", f"(:answer + {item}) % 5 + 1"]
    values += [str(everything), "0"]
    return "\n".join(
        [
            f"\\set person random({people.first}, {people.last})",
            f"\\set page random(0, {len(people.pages) - 1})",
            f"\\set item {people.pages[0]} + :page * {_step(people)}",
            "\\set answer random(0, 4)",
            # Anything that rises: pages of one person are rarely drawn twice.
            "\\set revision 1000000000000000 + random(0, 700000000000000)",
            " ".join(_filled(text, values).split()) + ";",
        ]
    )


def _step(people: People) -> int:
    steps = {
        after - before
        for before, after in zip(people.pages, people.pages[1:], strict=False)
    }
    if len(steps) > 1:
        raise Refusal("The items of this survey have no regular ids")
    return steps.pop() if steps else people.items


def _filled(text: str, values: Sequence[str]) -> str:
    waiting = list(values)
    filled = re.sub("%s", lambda _: waiting.pop(0), text)
    if waiting:
        raise Refusal("The save statement has changed its parameters")
    # A calculated text is no literal: what stands for one is cast where needed.
    return re.sub(r"\((:answer \+ \d+)\) % 5 \+ 1", r"((\1) % 5 + 1)::text", filled)


@dataclass(frozen=True, slots=True)
class Rate:
    per_second: float
    average_ms: float
    # From pgbench's own log, where it was asked for.
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
    as_user: str | None = None,
) -> Rate:
    """Raises Refusal where it fails, or where a statement does."""
    program = program_of("pgbench")
    logging = ["--log", f"--log-prefix={log / 'pgbench'}"] if log else []
    done = subprocess.run(
        [program, "--no-vacuum", f"--host={host}", f"--port={port}"]
        + [f"--username={user}", f"--client={clients}", "--protocol=simple"]
        + [f"--jobs={min(2, clients)}", f"--time={max(1, round(seconds))}"]
        + [f"--file={script}", *logging, database],
        capture_output=True,
        text=True,
    )
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    average = re.search(r"latency average = ([\d.]+) ms", done.stdout)
    if done.returncode or not found or not average:
        raise Refusal(f"pgbench fails: {reason(done.stderr or done.stdout)}")
    p95 = _p95(log) if log else None
    return Rate(float(found[1]), float(average[1]), p95)


def program_of(name: str) -> str:
    """PostgreSQL's own programs lie where nobody's PATH looks."""
    folders = [str(one) for one in Path("/usr/lib/postgresql").glob("*/bin")]
    path = os.pathsep.join([*sorted(folders, reverse=True), os.environ["PATH"]])
    found = shutil.which(name, path=path)
    if not found:
        raise Refusal(f"{name} is missing: apt-get install postgresql-15")
    return found


def _p95(folder: Path) -> float | None:
    """In ms, of all transactions in pgbench's logs, which it deletes."""
    times: list[int] = []
    for path in folder.glob("pgbench.*"):
        with path.open() as file:
            # client, transaction, µs, script, and when.
            times += [int(line.split(maxsplit=3)[2]) for line in file]
        path.unlink()
    times.sort()
    return times[int(len(times) * 0.95)] / 1000 if times else None

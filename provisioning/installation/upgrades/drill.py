"""Upgrade the database of a stack, and compare all that it holds.

Starts a stack on the old version with made-up answers, an index whose collation has
another version, and a sequence, a role and grants of their own; rehearses the upgrade
on a copy, upgrades, and compares all tables, sequences, roles, grants and extensions.
The stack has to serve and its backups have to go on. A negative control deletes an
answer afterwards, which has to be noticed. Where only one version is installed, root
runs it in a folder with Debian 13 and both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    command_parser,
    conclude,
    output_of,
    scratch_folder,
    step,
)
from provisioning.installation.backups.records import count_tables, differences
from provisioning.installation.debian_roots import prepared_root, run_inside
from provisioning.installation.postgresql import installed_versions, run_sql
from provisioning.installation.temporary_stack import temporary_stack
from provisioning.measure.benchmarks.answered_survey import answer_items
from provisioning.measure.benchmarks.stack import running_stack

PEOPLE, ITEMS, PAGES = 2_000, 20, 4
# ICU's collation with the version of a system before this one: its index is sorted
# as this system sorts, so the drill sees only that it is rebuilt.
OLDER_COLLATION = """
CREATE TABLE drill_name (name text COLLATE "und-x-icu" PRIMARY KEY);
INSERT INTO drill_name SELECT 'name ' || n FROM generate_series(1, 1000) n;
UPDATE pg_collation SET collversion = '1.1' WHERE collname = 'und-x-icu';
CREATE SEQUENCE drill_sequence START 41;
SELECT nextval('drill_sequence');
CREATE ROLE drill_reader LOGIN PASSWORD 'drill' CONNECTION LIMIT 3;
ALTER ROLE drill_reader SET work_mem = '3MB';
GRANT SELECT ON drill_name TO drill_reader WITH GRANT OPTION;
GRANT reports TO drill_reader;
"""
REBUILT = "groundswell drill_name_pkey"
FILE_OF_INDEX = "SELECT pg_relation_filenode('drill_name_pkey')"
EXTENSIONS = "SELECT extname, extversion FROM pg_extension ORDER BY 1"
LOSE_AN_ANSWER = """
DELETE FROM survey_response WHERE ctid = (SELECT ctid FROM survey_response LIMIT 1)
"""
# What an upgrade changes on purpose: a record of its backup.
CHANGED = "survey_backuprun "


def main() -> int:
    options = parser().parse_args()
    if {options.old, options.to} <= {*installed_versions()}:
        return drill(options)
    if os.geteuid() != 0:
        raise Refusal(
            f"PostgreSQL {options.old} or {options.to} is missing; install both, or run"
            " this as root, who makes a folder with them"
        )
    with prepared_root("trixie", versions=[options.old]) as root:
        command = ["provisioning/run", "drill_postgresql_upgrade", *sys.argv[1:]]
        return run_inside(root, command, alone=True).returncode


def parser() -> argparse.ArgumentParser:
    parser = command_parser(__doc__, people=(PEOPLE, f"who answer {ITEMS} items each"))
    add = parser.add_argument
    add("--old", type=int, default=15, help="from this version (15)")
    add("--to", type=int, default=17, help="to this version (17)")
    add("--port", type=int, default=8480, help="the first of six ports (8480)")
    add("--link", action="store_true", help="link files, as the stack's option does")
    add("--keep", action="store_true", help="keep the stack")
    return parser


def drill(options: argparse.Namespace) -> int:
    began = time.monotonic()
    with filled_stack(options) as folder:
        run = folder / "run"
        with step("Recording all rows"):
            before, [[file]] = count_tables(run), run_sql(FILE_OF_INDEX, run=run)
        flags = ["--link"] if options.link else []
        rehearsal = upgrade(folder, options.to, "--rehearse", *flags)
        # All is compared before the new version serves; then rows, while it does.
        upgraded = upgrade(folder, options.to, "--compare", *flags)
        with step("Comparing all rows again"):
            sentences = upgraded["differences"] + changed(before, count_tables(run))
        [[version]] = run_sql("SHOW server_version", run=run)
        [[rebuilt]] = run_sql(FILE_OF_INDEX, run=run)
        extensions = dict(run_sql(EXTENSIONS, run=run))
        run_sql(LOSE_AN_ANSWER, run=run)
        lost = changed(before, count_tables(run))
    figures = {
        "tables": upgraded["tables"],
        "rows": upgraded["rows"],
        "differences": sentences,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "version": version.split()[0],
        "rehearsal": rehearsal,
        "upgrade": upgraded,
        "extensions": extensions,
        "noticed_in_control": [each for each in lost if each not in sentences],
    }
    return conclude(figures, shortcomings(figures, options.to, moved=file != rebuilt))


@contextlib.contextmanager
def filled_stack(options: argparse.Namespace) -> Iterator[Path]:
    with scratch_folder(keep=options.keep) as place:
        # Nothing begins by itself: what it writes would be a difference.
        settings = (f"postgresql_version={options.old}", "beats=no")
        with temporary_stack(
            place, *settings, port=options.port, keep=options.keep
        ) as folder:
            stack = running_stack(folder=folder)
            shape = (f"--pages={PAGES}", f"--items={ITEMS // PAGES}")
            schools = max(1, options.people // 100)
            answer_items(
                stack, "--respondents=8", *shape, people=options.people, schools=schools
            )
            stack.sql(OLDER_COLLATION)
            yield folder


def upgrade(folder: Path, to: int, *flags: str) -> dict[str, Any]:
    """Run the command as a person would, and return its figures."""
    name = "Rehearsing the upgrade" if "--rehearse" in flags else "Upgrading"
    with step(name):
        printed = output_of(
            [
                ROOT / "provisioning" / "stack",
                "upgrade_postgresql",
                f"--to={to}",
                *flags,
            ],
            failing=f"{name} failed",
            env={**os.environ, "GROUNDSWELL_STACK": str(folder)},
        )
    [line] = [line for line in printed.splitlines() if line.startswith('{"from"')]
    figures: dict[str, Any] = json.loads(line)
    return figures


def changed(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    return [each for each in differences(before, after) if not each.startswith(CHANGED)]


def shortcomings(figures: dict[str, Any], to: int, *, moved: bool) -> list[str]:
    wrong = list(figures["differences"])
    if not figures["version"].startswith(f"{to}."):
        wrong.append(f"PostgreSQL {figures['version']} runs")
    if not moved or REBUILT not in figures["upgrade"]["reindexed"]:
        wrong.append("The index of a changed collation was not rebuilt")
    if len(figures["noticed_in_control"]) != 1:
        wrong.append("The control's lost answer was not noticed")
    return wrong

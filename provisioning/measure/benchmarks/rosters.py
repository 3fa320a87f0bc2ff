"""Upload a made-up roster into a private PostgreSQL, and measure speed and memory.

By the jobs that the console starts: first into an empty administration, and then as it
is a year after. Prints rows a second and the worker's memory. With --excel, the same
roster is uploaded as an .xlsx file, of at most 1,048,575 people.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, command_parser, print_table, step
from provisioning.measure.benchmarks.machine import processor
from provisioning.measure.benchmarks.stack import Application, private_application

# What the console promises for a state.
RATE, MEGABYTES = 10_000, 400
# Below the header of an Excel sheet.
MOST_ROWS = 2**20 - 1

# One roster through both of its jobs, in a process of its own, as a worker
# does it; prints what it took.
WORK = """
import json, resource, sys, time
import django
django.setup()
from django.core.files import File
from accounts.models import Membership, User
from survey import tasks
from survey.work import jobs
from survey.models import Administration
from survey.people.rosters import uploads
jobs.wake = lambda *_: None
user, _ = User.objects.get_or_create(email="measuring@groundswell.example")
Membership.objects.get_or_create(user=user, role="state")
with open(sys.argv[1], "rb") as file:
    upload = uploads.receive(
        administration=Administration.objects.get(), complete_for="schools",
        file=File(file, sys.argv[1].rpartition("/")[2]), by=user,
    )
seconds = {}
for name in ("check", "apply"):
    start = time.perf_counter()
    jobs.run(uploads.latest_job(upload).pk)
    seconds[name] = time.perf_counter() - start
    upload.refresh_from_db()
    if upload.state != "checked":
        break
    number = str(upload.withdrawn)
    uploads.confirm(upload, by=user, seen=number, typed=number)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({
    "state": upload.state, "message": upload.message, "report": upload.report,
    "seconds": seconds, "peak_mb": peak,
}))
"""


# Writes the rows of a CSV file as texts of a sheet.
SPREADSHEET = """
import csv, sys
import xlsxwriter
with xlsxwriter.Workbook(sys.argv[2], {"constant_memory": True}) as workbook:
    sheet = workbook.add_worksheet("Roster")
    with open(sys.argv[1], encoding="utf-8-sig", newline="") as file:
        for number, cells in enumerate(csv.reader(file)):
            for column, cell in enumerate(cells):
                sheet.write_string(number, column, cell)
"""


# The JSON that WORK prints.
UploadResult = dict[str, Any]


def main() -> int:
    options = parse_options()
    print(f"{processor()}, {os.cpu_count()} cores")
    results: dict[str, tuple[int, UploadResult]] = {}
    with private_application() as application, tempfile.TemporaryDirectory() as scratch:
        application.open_rehearsal("--respondents=1")
        path = Path(scratch) / "roster.csv"
        for name, changed in (("first", 0.0), ("a year after", options.changed)):
            with step(f"Writing {options.rows:,} people, {name}"), path.open("wb") as f:
                subprocess.run(
                    [application.python, application.checkout / "manage.py"]
                    + ["make_roster", f"--rows={options.rows}", f"--changed={changed}"],
                    stdout=f,
                    env=application.environment,
                    check=True,
                )
            file = path
            if options.excel:
                with step("Writing it as a spreadsheet"):
                    file = path.with_suffix(".xlsx")
                    application.run_python(
                        *("-c", SPREADSHEET, path, file),
                        failing="The spreadsheet was not written",
                    )
            with step("Checking and applying"):
                results[name] = file.stat().st_size, _upload(application, file)
    held = print_results(results)
    if options.excel:
        # The promise is that of a state's file, which no sheet can hold.
        return 0
    verdict = "kept" if held else "not kept"
    print(f"At least {RATE:,} rows a second in at most {MEGABYTES} MB: {verdict}")
    return 0 if held else 1


def parse_options() -> argparse.Namespace:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--rows", type=int, default=2_000_000, help="people in the file (2,000,000)")
    add("--changed", type=float, default=1, help="percent that differ a year after (1)")
    add("--excel", action="store_true", help="as .xlsx instead of .csv")
    options = parser.parse_args()
    if options.excel and options.rows > MOST_ROWS:
        parser.error(f"a sheet has at most {MOST_ROWS:,} people")
    if options.rows < 1 or not 0 < options.changed <= 100:
        parser.error("--rows is at least 1, and --changed above 0 and up to 100")
    return options


def _upload(application: Application, path: Path) -> UploadResult:
    output = application.run_python(
        "-c", WORK, path, failing="The roster was not applied"
    )
    result: UploadResult = json.loads(output.splitlines()[-1])
    if result["state"] != "applied":
        raise Refusal(f"The roster is {result['state']}: {result['message']}")
    return result


def rows_per_second(result: UploadResult) -> float:
    """Return the rate of the slower job: each reads the whole file."""
    rows: int = result["report"]["rows"]
    return rows / max(result["seconds"].values())


def print_results(results: Mapping[str, tuple[int, UploadResult]]) -> bool:
    rows = []
    names = ("added", "changed", "moved", "withdrawn", "unchanged", "rejected")
    for name, (size, result) in results.items():
        report, seconds = result["report"], result["seconds"]
        rows.append(
            (
                name,
                f"{size / 1e6:.0f}",
                f"{seconds['check']:.1f}",
                f"{seconds['apply']:.1f}",
                f"{rows_per_second(result):,.0f}",
                result["peak_mb"],
                ", ".join(f"{report[it]:,} {it}" for it in names if report[it]),
            )
        )
    print_table(("", "MB", "check s", "apply s", "rows/s", "peak MB", ""), rows)
    return all(
        rows_per_second(result) >= RATE and result["peak_mb"] <= MEGABYTES
        for _, result in results.values()
    )

"""Upload a made-up roster into a private PostgreSQL, and measure speed and memory.

By the jobs that the console starts: first into an empty administration, and then as it
is a year after. Prints rows a second and the worker's memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, command_parser, print_table, step
from provisioning.measure.benchmarks.meter import processor
from provisioning.measure.benchmarks.stack import private_application

# What the console promises for a state.
RATE, MEGABYTES = 10_000, 400

# What `roster_upload.upload` returns.
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
            with step("Checking and applying"):
                result = application.call(
                    "measure.benchmarks.roster_upload.upload", path=str(path)
                )
            if result["state"] != "applied":
                raise Refusal(f"The roster is {result['state']}: {result['message']}")
            results[name] = path.stat().st_size, result
    held = print_results(results)
    verdict = "kept" if held else "not kept"
    print(f"At least {RATE:,} rows a second in at most {MEGABYTES} MB: {verdict}")
    return 0 if held else 1


def parse_options() -> argparse.Namespace:
    parser = command_parser(
        __doc__,
        rows=(2_000_000, "people in the file"),
        changed=(1.0, "percent that differ a year after"),
    )
    options = parser.parse_args()
    if options.changed > 100:
        parser.error("--changed is at most 100")
    return options


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

"""`provisioning/rosters`: how fast a roster comes in, and in how much memory."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from provisioning.benchmarks.machine import processor
from provisioning.commands import ROOT, Refusal, output_of, run_command, step
from provisioning.environment import PRODUCTION, PYTHON, STACK, prepare_environment
from provisioning.installation.servers import private_servers

ROWS = 2_000_000
CHANGED = 1
# What the console promises for a state.
RATE, MEGABYTES = 10_000, 400

# One roster through both of its jobs, in a process of its own, as a worker
# does it; prints what it took.
WORK = """
import json, resource, sys, time
import django
django.setup()
from django.core.files import File
from accounts.models import Membership, User
from survey import jobs, tasks
from survey.models import Administration
from survey.rosters import uploads
jobs.wake = lambda *_: None
user, made = User.objects.get_or_create(email="measuring@groundswell.example")
if made:
    Membership.objects.create(user=user, role="state")
with open(sys.argv[1], "rb") as file:
    upload = uploads.receive(
        administration=Administration.objects.get(), complete_for="schools",
        file=File(file, "roster.csv"), by=user,
    )
seconds = {}
def timed(name):
    start = time.perf_counter()
    jobs.run(uploads.latest_job(upload).pk)
    seconds[name] = time.perf_counter() - start
    upload.refresh_from_db()
timed("check")
if upload.state == "checked":
    number = str(upload.withdrawn)
    uploads.confirm(upload, by=user, seen=number, typed=number)
    timed("apply")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({
    "state": upload.state, "message": upload.message, "report": upload.report,
    "seconds": seconds, "peak_mb": peak,
}))
"""


def main() -> int:
    options = _arguments()
    prepare_environment(PRODUCTION, STACK)
    print(f"{processor()}, {os.cpu_count()} cores")
    with private_servers() as servers, tempfile.TemporaryDirectory() as scratch:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.browser_test_server",
            "GROUNDSWELL_TEST_SERVERS": str(servers),
            "GROUNDSWELL_TEST_DATABASE": "groundswell",
            "GROUNDSWELL_FILES": f"{scratch}/files",
        }
        with step("Preparing"):
            _manage(environment, "migrate", "--verbosity=0")
            _manage(environment, "open_rehearsal", "--respondents=1", "--json")
        rows = []
        for name, changed in (("first", 0.0), ("a year after", options.changed)):
            file = Path(scratch) / "roster.csv"
            with step(f"Writing {options.rows:,} people, {name}"):
                _make(environment, file, options.rows, changed)
            with step("Checking and applying"):
                rows.append((name, file.stat().st_size, _work(environment, file)))
    return _print(rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/rosters",
        description="Brings a made-up roster into a private PostgreSQL, first into an"
        " empty administration and then as it is a year after, by the jobs that the"
        " console starts; prints rows a second and the worker's memory.",
    )
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"people in the file ({ROWS:,})"
    )
    parser.add_argument(
        "--changed",
        type=float,
        default=CHANGED,
        help=f"percent that differ a year after ({CHANGED})",
    )
    options = parser.parse_args()
    if options.rows < 1 or not 0 < options.changed <= 100:
        parser.error("--rows is at least 1, and --changed above 0 and up to 100")
    return options


def _manage(environment: dict[str, str], *arguments: str) -> str:
    return output_of(
        [PYTHON, ROOT / "manage.py", *arguments],
        failing=f"manage.py {arguments[0]} failed",
        env=environment,
    )


def _make(environment: dict[str, str], path: Path, rows: int, changed: float) -> None:
    with path.open("wb") as file:
        subprocess.run(
            [str(PYTHON), f"{ROOT}/manage.py", "make_roster"]
            + [f"--rows={rows}", f"--changed={changed}"],
            stdout=file,
            env=environment,
            check=True,
        )


def _work(environment: dict[str, str], path: Path) -> dict[str, Any]:
    said = output_of(
        [PYTHON, "-c", WORK, path],
        failing="The roster did not come in",
        env={**environment, "PYTHONPATH": str(ROOT)},
    )
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    if found["state"] != "applied":
        raise Refusal(f"The roster is {found['state']}: {found['message']}")
    return found


def _print(rows: list[tuple[str, int, dict[str, Any]]]) -> int:
    print(f"{'':14}{'MB':>6}{'check s':>9}{'apply s':>9}{'rows/s':>9}{'peak MB':>9}")
    kept = True
    for name, size, one in rows:
        report, seconds = one["report"], one["seconds"]
        # The slower of the two: each reads the whole file.
        rate = report["rows"] / max(seconds.values())
        kept = kept and rate >= RATE and one["peak_mb"] <= MEGABYTES
        print(
            f"{name:14}{size / 1e6:6.0f}{seconds['check']:9.1f}"
            f"{seconds['apply']:9.1f}{rate:9,.0f}{one['peak_mb']:9}"
        )
        names = ("added", "changed", "moved", "withdrawn", "unchanged", "rejected")
        counts = ", ".join(f"{report[one]:,} {one}" for one in names if report[one])
        print(f"{'':14}{counts}")
    verdict = "kept" if kept else "not kept"
    print(f"At least {RATE:,} rows a second in at most {MEGABYTES} MB: {verdict}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(run_command("provisioning/rosters", main))

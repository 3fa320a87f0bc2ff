"""`provisioning/pages`: time each page of the console, as each role.

Runs on a data folder of its own with the demonstration, after some work was
done there; follows every link from the first page, in one process and without
a network.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from provisioning.benchmarks.page_walk import PageTime
from provisioning.commands import ROOT, Refusal, print_table, run_command, step
from provisioning.environment import PRODUCTION, PYTHON, manage, prepare_environment

# Milliseconds, at the median, with the demonstration's data.
BOUND = 100.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="provisioning/pages",
        description="Follows every link of the console as each role of the"
        " demonstration, times each page, and ends with 1 if one is slower than"
        " the bound at the median, or answers with an error.",
    )
    parser.add_argument("--times", type=int, default=7, help="of each page")
    parser.add_argument("--bound", type=float, default=BOUND, help="in milliseconds")
    options = parser.parse_args()
    prepare_environment(PRODUCTION)
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.embedded",
            "GROUNDSWELL_DATA": str(folder),
            "GROUNDSWELL_STATIC_ROOT": str(Path(folder) / "static"),
            "GROUNDSWELL_SECOND_FACTOR": "off",
        }
        with step("Preparing the demonstration"):
            manage("migrate", "--verbosity=0", environment=environment)
            quiet = ("--no-input", "--verbosity=0")
            manage("collectstatic", *quiet, environment=environment)
            manage("compress", "--verbosity=0", environment=environment)
            demo = manage("load_demo", "--json", environment=environment)
        with step("Walking through the console"):
            walk = subprocess.run(
                [PYTHON, "-m", "provisioning.benchmarks.page_walk", str(options.times)],
                cwd=ROOT,
                env=environment,
                input=demo,
                capture_output=True,
                text=True,
            )
    if walk.returncode:
        raise Refusal(f"The walk ended early: {walk.stderr.strip()[-2000:]}")
    pages: list[PageTime] = json.loads(walk.stdout.splitlines()[-1])
    print_pages(pages, options.bound)
    return 1 if any(is_bad(page, options.bound) for page in pages) else 0


def is_bad(page: PageTime, bound: float) -> bool:
    return page["status"] >= 400 or page["median"] > bound


def print_pages(pages: Sequence[PageTime], bound: float) -> None:
    """Print errors first, then the slowest pages."""

    def errors_then_slowest(page: PageTime) -> tuple[bool, float]:
        return page["status"] < 400, -page["median"]

    print_table(
        ("  route", "role", "ms", "statements", "KB", ""),
        [
            (
                f"{'!' if is_bad(page, bound) else ' '} {page['route']}",
                page["role"],
                f"{page['median']:.1f}",
                page["statements"],
                f"{page['bytes'] / 1000:.1f}",
                f"{page['status']} at {page['path']}" if page["status"] >= 400 else "",
            )
            for page in sorted(pages, key=errors_then_slowest)
        ],
    )
    bad = sum(is_bad(page, bound) for page in pages)
    print(f"\n{len(pages)} pages, {bad} over {bound:g} ms or with an error")


if __name__ == "__main__":
    sys.exit(run_command("provisioning/pages", main))

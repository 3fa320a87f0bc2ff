"""`provisioning/pages`: time each page of the console, as each role.

Runs on a data folder of its own with the demonstration, after some work was
done there; follows every link from the first page, in one process and without
a network.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from provisioning.benchmarks.stack import sqlite_application
from provisioning.commands import print_table, run_command, step

if TYPE_CHECKING:
    from provisioning.benchmarks.page_walk import PageTime

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
    with sqlite_application(GROUNDSWELL_SECOND_FACTOR="off") as application:
        application.collect_static()
        with step("Loading the demonstration"):
            demo = application.manage("load_demo", "--json")
        with step("Walking through the console"):
            output = application.run_python(
                *("-m", "provisioning.benchmarks.page_walk", str(options.times)),
                failing="The walk ended early",
                data=demo,
            )
    pages: list[PageTime] = json.loads(output.splitlines()[-1])
    print_pages(pages, options.bound)
    return 1 if any(is_bad(page, options.bound) for page in pages) else 0


def is_bad(page: PageTime, bound: float) -> bool:
    return page["status"] >= 400 or page["median"] > bound


def print_pages(pages: Sequence[PageTime], bound: float) -> None:
    """Print errors first, then the slowest pages."""
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
            for page in sorted(
                pages, key=lambda it: (it["status"] < 400, -it["median"])
            )
        ],
    )
    bad = sum(is_bad(page, bound) for page in pages)
    print(f"\n{len(pages)} pages, {bad} over {bound:g} ms or with an error")


if __name__ == "__main__":
    sys.exit(run_command("provisioning/pages", main))

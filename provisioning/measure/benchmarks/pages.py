"""Time each page of the console, as each role of the demonstration.

Runs on a data folder of its own, after some work was done there; follows every link
from the first page, in one process and without a network. Ends with 1 if a page is
slower than the bound at the median, or answers with an error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from provisioning.commands import command_parser, print_table, step
from provisioning.measure.benchmarks.stack import sqlite_application


class PageTime(NamedTuple):
    route: str
    role: str
    path: str
    status: int
    # In milliseconds.
    median: float
    statements: int
    bytes: int

    def is_bad(self, bound: float) -> bool:
        return self.status >= 400 or self.median > bound


def main() -> int:
    options = command_parser(
        __doc__,
        times=(7, "that each page is opened"),
        bound=(100.0, "in milliseconds, with the demonstration's data"),
    ).parse_args()
    with sqlite_application(GROUNDSWELL_SECOND_FACTOR="off") as application:
        application.collect_static()
        with step("Loading the demonstration"):
            demo = json.loads(application.manage("load_demo", "--json"))
        with step("Walking through the console"):
            pages = application.call(
                "measure.benchmarks.page_walk.walk", demo=demo, times=options.times
            )
    return int(print_pages([PageTime(*page) for page in pages], options.bound) > 0)


def print_pages(pages: Sequence[PageTime], bound: float) -> int:
    """Print errors first, then the slowest pages; return how many are bad."""
    print_table(
        ("  route", "role", "ms", "statements", "KB", ""),
        [
            (
                f"{'!' if page.is_bad(bound) else ' '} {page.route}",
                page.role,
                f"{page.median:.1f}",
                page.statements,
                f"{page.bytes / 1000:.1f}",
                f"{page.status} at {page.path}" if page.status >= 400 else "",
            )
            for page in sorted(
                pages, key=lambda page: (page.status < 400, -page.median)
            )
        ],
    )
    bad = sum(page.is_bad(bound) for page in pages)
    print(f"\n{len(pages)} pages, {bad} over {bound:g} ms or with an error")
    return bad

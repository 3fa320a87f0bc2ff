"""Time each page of the console, as each role of the demonstration.

Runs on a data folder of its own, after some work was done there; follows every link
from the first page, in one process and without a network. Ends with 1 if a page is
slower than the bound at the median, or answers with an error.
"""

from __future__ import annotations

import subprocess

from provisioning.commands import ROOT, command_parser, step
from provisioning.measure.benchmarks.stack import sqlite_application

# Milliseconds, at the median, with the demonstration's data.
BOUND = 100.0


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument("--times", type=int, default=7, help="of each page")
    parser.add_argument("--bound", type=float, default=BOUND, help="in milliseconds")
    options = parser.parse_args()
    with sqlite_application(GROUNDSWELL_SECOND_FACTOR="off") as application:
        application.collect_static()
        with step("Loading the demonstration"):
            demo = application.manage("load_demo", "--json")
        print("Walking through the console", flush=True)
        # Prints the table; an error's text goes to the terminal.
        return subprocess.run(
            [str(application.python), "-m", "provisioning.measure.benchmarks.page_walk"]
            + [str(options.times), str(options.bound)],
            cwd=ROOT,
            env=application.environment,
            input=demo,
            text=True,
        ).returncode

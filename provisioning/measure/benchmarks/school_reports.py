"""Time a ZIP with the reports of all schools: `measure_school_reports`.

Runs on private servers with a replica: made-up people who have answered 60 items of 15
measures, and the job that makes the file.
"""

from __future__ import annotations

import argparse
import json

from provisioning.commands import command_parser, positive_integer, print_table, step
from provisioning.measure.benchmarks.answered_survey import (
    CLOSE,
    REPLICA_PORT,
    answer_survey,
)
from provisioning.measure.benchmarks.stack import private_application

MOST_SECONDS_EACH, MOST_MEGABYTES = 2.5, 600
SCHOOLS = 4000


def main() -> int:
    options = parse_options()
    with private_application(GROUNDSWELL_TEST_REPLICA=REPLICA_PORT) as application:
        answer_survey(
            application,
            people=options.people * options.schools,
            schools=options.schools,
            items=options.items,
            measures=options.measures,
        )
        application.sql(CLOSE)
        application.manage("roll_up_rates")
        application.manage("roll_up_results", "measured")
        application.manage("score_administration", "measured")
        with step("Making the reports"):
            figures = application.call(
                "measure.benchmarks.report_archive.make", language="en"
            )
    each_seconds = figures["seconds"] / max(1, figures["reports"])
    figures["seconds_each"] = round(each_seconds, 2)
    print_table(
        ("reports", "s", "s each", "statements", "job", "PDF process", "file"),
        [
            (
                f"{figures['reports']:,}",
                f"{figures['seconds']:,}",
                f"{each_seconds:.2f}",
                f"{figures['statements']:,}",
                f"{figures['memory_mb']} MB",
                f"{figures['memory_of_pdf_mb']} MB",
                f"{figures['size_mb']} MB",
            )
        ],
    )
    figures["hours_for_4000"] = round(each_seconds * SCHOOLS / 3600, 2)
    print(json.dumps(figures))
    most = max(figures["memory_mb"], figures["memory_of_pdf_mb"])
    return int(each_seconds > MOST_SECONDS_EACH or most > MOST_MEGABYTES)


def parse_options() -> argparse.Namespace:
    parser = command_parser(
        "Times a ZIP file with the reports of all schools. Ends with 1 if a"
        f" report takes more than {MOST_SECONDS_EACH} s, or a process more than"
        f" {MOST_MEGABYTES} MB."
    )
    add, number = parser.add_argument, positive_integer
    add("--schools", type=number, default=SCHOOLS)
    add("--people", type=number, default=40, help="in each school")
    add("--items", type=number, default=60, help="a multiple of 5")
    add("--measures", type=number, default=15, help="with equally many items")
    return parser.parse_args()

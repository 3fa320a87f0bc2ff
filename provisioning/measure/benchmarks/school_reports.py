"""Time a ZIP with the reports of all schools: `measure_school_reports`.

Runs on private servers with a replica: made-up people who have answered 60 items of 15
measures, and the job that makes the file. Ends with 1 if a report takes longer than it
may, or a process more memory.
"""

from __future__ import annotations

from provisioning.commands import command_parser, conclude, missed, print_figures, step
from provisioning.measure.benchmarks.answered_survey import (
    CLOSE,
    REPLICA_PORT,
    answer_survey,
)
from provisioning.measure.benchmarks.stack import private_application

MOST = {"seconds_each": 2.5, "memory_mb": 600, "memory_of_pdf_mb": 600}
SCHOOLS = 4000


def main() -> int:
    options = command_parser(
        __doc__,
        schools=(SCHOOLS, "with a report"),
        people=(40, "in each school"),
        items=(60, "a multiple of 5"),
        measures=(15, "with equally many items"),
    ).parse_args()
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
    seconds = figures["seconds"] / max(1, figures["reports"])
    figures["seconds_each"] = round(seconds, 2)
    figures["hours_for_4000"] = round(seconds * SCHOOLS / 3600, 2)
    print_figures(figures)
    return conclude(figures, missed(figures, least={}, most=MOST))

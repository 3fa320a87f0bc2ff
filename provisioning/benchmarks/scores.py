"""`provisioning/measure_scores`: time the calculation of scores.

Runs on private servers with a replica: made-up people in 4,000 schools who have
answered 60 items of 15 measures, with grades and two subgroups.
"""

from __future__ import annotations

import argparse
import json
import sys

from provisioning.benchmarks.results import ITEMS_ON_A_PAGE, REPLICA_PORT
from provisioning.benchmarks.stack import private_application, sql_file
from provisioning.commands import positive_integer, print_table, run_command, step

MOST_SECONDS, MOST_MEGABYTES = 180, 1536
# Takes the items of a measure in the order of the survey, and reverses the last.
ADD_MEASURES = """
import sys
import django; django.setup()
from survey.administrations import get_administration
from survey.models import SurveyMeasures
survey = get_administration("measured").published.survey
names = list(survey.items.filter(kind="select_one").order_by("position")
             .values_list("name", flat=True))
size = int(sys.argv[1])
measures = [
    {"name": f"m{n}", "label": {}, "description": {}, "essential": f"e{n // 3}",
     "direction": "positive", "missing": [],
     "items": [{"name": name, "reversed": name == names[n * size + size - 1]}
               for name in names[n * size:][:size]]}
    for n in range(len(names) // size)
]
essentials = [{"name": name, "label": {}, "description": {}}
              for name in sorted({measure["essential"] for measure in measures})]
content = {"essentials": essentials, "measures": measures}
SurveyMeasures.objects.create(survey=survey, content=content)
"""
CLOSE = (
    "UPDATE survey_administration SET closes_at = now() - interval '1 hour'"
    " WHERE name = 'measured'"
)


def main() -> int:
    options = parse_options()
    people, schools, items = options.people, options.schools, options.items
    with private_application(GROUNDSWELL_TEST_REPLICA=REPLICA_PORT) as application:
        with step(f"Inviting {people:,} people"):
            pages = items // ITEMS_ON_A_PAGE
            details, _ = application.open_rehearsal(
                "--respondents=1", f"--pages={pages}", f"--items={ITEMS_ON_A_PAGE}"
            )
            each = people // schools
            application.sql(sql_file("invite_people", schools=schools, each=each))
        with step(f"Answering {items} items"):
            keys = [item["id"] for page in details["pages"] for item in page["items"]]
            listed = ",".join(map(str, keys))
            application.sql(sql_file("answer_items", items=listed, half=items // 2))
        size = str(items // options.measures)
        # Measures are frozen when a survey is published.
        application.sql("ALTER TABLE survey_surveymeasures DISABLE TRIGGER USER")
        application.run_python(
            "-c", ADD_MEASURES, size, failing="The measures were not added"
        )
        application.sql(CLOSE)
        printed = application.manage("score_administration", "measured", "--json")
    figures = json.loads(printed)
    print_table(
        ("people", "measures", "rows", "reading, s", "all, s", "memory"),
        [
            (
                *(f"{figures[key]:,}" for key in ("people", "measures", "rows")),
                *(f"{figures[key]:.1f}" for key in ("reading", "seconds")),
                f"{figures['memory_mb']:,} MB",
            )
        ],
    )
    print(json.dumps(figures))
    return int(
        figures["seconds"] > MOST_SECONDS or figures["memory_mb"] > MOST_MEGABYTES
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/measure_scores",
        description="Times the calculation of scores. Ends with 1 if it takes more than"
        f" {MOST_SECONDS} s or {MOST_MEGABYTES} MB.",
    )
    add, number = parser.add_argument, positive_integer
    add("--people", type=number, default=2_000_000)
    add("--schools", type=number, default=4000)
    add("--items", type=number, default=60, help="a multiple of 5")
    add("--measures", type=number, default=15, help="with equally many items")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_command("provisioning/measure_scores", main))

"""`provisioning/measure_results`: time the roll-up of item distributions.

Runs on private servers with a replica: made-up people in 4,000 schools who have
answered 60 items, with grades and two subgroups. Times a roll-up of everything, one
with nothing new, one after a few saves, and those of a closed administration; then
reading one distribution, which is what a page does.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from provisioning.benchmarks.stack import Application, private_application, sql_file
from provisioning.commands import positive_integer, print_table, run_command, step

REPLICA_PORT = "5433"
ITEMS_ON_A_PAGE = 5
MOST_SECONDS, MOST_MILLISECONDS = 60, 100
# Prints the median milliseconds in which a school's distributions are read, with those
# of its district and the state to compare.
READ = """
import django; django.setup()
import statistics, time
from reports.models import GroupResults
from reports.results.reading import distributions
from survey.administrations import get_administration
one = get_administration("measured")
schools = GroupResults.objects.filter(administration=one, level="school", attribute="")
districts = GroupResults.objects.filter(administration=one, level="district")
district = districts.first().place_id
times = []
for school in schools.values_list("place_id", flat=True)[:200]:
    start = time.perf_counter()
    for place in (("school", school), ("district", district), ("state", 0)):
        assert distributions(one, *place)
    times.append((time.perf_counter() - start) * 1000)
print(statistics.median(times))
"""


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
            answers = sql_file("answer_items", items=listed, half=items // 2)
            application.sql(answers)
        figures = _time_roll_ups(application)
        milliseconds = float(
            application.run_python("-c", READ, failing="Reading failed").strip()
        )
    first = figures["everything"]
    summary = {
        "people": first["people"],
        "responses": first["people"] * items,
        "seconds": round(first["seconds"], 1),
        "memory_mb": first["memory_mb"],
        "page_ms": round(milliseconds, 1),
    }
    print(json.dumps(summary))
    return int(first["seconds"] > MOST_SECONDS or milliseconds > MOST_MILLISECONDS)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/measure_results",
        description="Times the roll-up of item distributions, and reading them. Ends"
        f" with 1 if it takes more than {MOST_SECONDS} s, or reading more than"
        f" {MOST_MILLISECONDS} ms.",
    )
    add, number = parser.add_argument, positive_integer
    add("--people", type=number, default=2_000_000)
    add("--schools", type=number, default=4000)
    add("--items", type=number, default=60, help="a multiple of 5")
    return parser.parse_args()


def _time_roll_ups(application: Application) -> dict[str, dict[str, Any]]:
    runs = (
        ("everything", "", ()),
        ("nothing new", "", ()),
        ("20 people saved", sql_file("save_answers", count=20), ()),
        ("everything again", "", ("--again",)),
        (
            "closed, nothing new",
            "UPDATE survey_administration SET closes_at = now() - interval '2 hours'"
            " WHERE name = 'measured'",
            (),
        ),
        ("closed, once more", "", ()),
    )
    found, rows = {}, []
    for name, statements, options in runs:
        if statements:
            application.sql(statements)
        printed = application.manage("roll_up_results", "measured", "--json", *options)
        figures = found[name] = json.loads(printed)
        times = [f"{figures[key]:.2f}" for key in ("reading", "counting", "seconds")]
        numbers = [f"{figures[key]:,}" for key in ("schools", "rows_changed")]
        rows.append((name, *times, *numbers, f"{figures['memory_mb']:,} MB"))
    columns = ("roll-up, s", "reading", "counting", "all", "schools", "rows", "memory")
    print_table(columns, rows)
    return found


if __name__ == "__main__":
    sys.exit(run_command("provisioning/measure_results", main))

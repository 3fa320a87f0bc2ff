"""`provisioning/measure_results`: time the roll-up of answers, scores and their pages.

Runs on private servers with a replica: made-up people in 4,000 schools who have
answered 60 items of 15 measures, with grades and two subgroups. Times a roll-up of
everything, one with nothing new, one after a few saves, and those of a closed
administration; the calculation of scores; the pages over HTTP; and saves of 20,000
other people's pages with and without a roll-up or a calculation, in turns.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from provisioning.commands import command_parser, positive_integer, print_table, step
from provisioning.measure.benchmarks.answered_survey import (
    CLOSE,
    REPLICA_PORT,
    add_earlier_wave,
    answer_survey,
    measured_ids,
)
from provisioning.measure.benchmarks.rates import time_pages
from provisioning.measure.benchmarks.saves import SIZE
from provisioning.measure.benchmarks.saves_beside import save_beside
from provisioning.measure.benchmarks.stack import (
    Application,
    private_application,
    sql_file,
)
from provisioning.measure.benchmarks.timed_requests import log_in, send_requests, served
from provisioning.measure.load.crowd import Person
from provisioning.measure.load.target import Target

MOST_SECONDS, MOST_MILLISECONDS = 60, 60
MOST_SECONDS_OF_SCORES, MOST_MEGABYTES_OF_SCORES = 180, 1536
MOST_SAVES_LOST = 2
ROLL_UP, SCORE = "roll_up_results", "score_administration"
NAMES = {ROLL_UP: "roll-up", SCORE: "calculation"}
CHANGES = "scores/changes/?compare="
# That of the worker with such jobs: `scan_nice` of roles/worker.
NICE = 10


def main() -> int:
    options = parse_options()
    with private_application(GROUNDSWELL_TEST_REPLICA=REPLICA_PORT) as application:
        application.collect_static()
        answer_survey(
            application,
            people=options.people,
            schools=options.schools,
            items=options.items,
            measures=options.measures,
        )
        first = _time_roll_ups(application)["everything"]
        # They decide which schools have a report, and so count in larger places.
        application.manage("roll_up_rates")
        scores = _time_scores(application)
        earlier = add_earlier_wave(application)
        details, codes = application.open_rehearsal(
            "--name=saves", f"--respondents={options.students}", *SIZE
        )
        with served(application, "--workers=2") as target:
            pages = _time_pages(application, target, earlier)
            with step(f"Saving the first pages of {options.students:,} people"):
                students = log_in(details, codes, target)
                each = math.ceil(options.students / len(students))
                send_requests(target, [islice(saves, each) for saves in students])
            lost = _most_saves_lost(
                *(application, target, students, options.rounds),
                {ROLL_UP: first["seconds"], SCORE: scores["seconds"]},
            )
    milliseconds = statistics.median(pages.values())
    summary = {
        "people": first["people"],
        "responses": first["people"] * options.items,
        "seconds": round(first["seconds"], 1),
        "memory_mb": first["memory_mb"],
        "scores_seconds": round(scores["seconds"], 1),
        "scores_memory_mb": scores["memory_mb"],
        "page_ms": round(milliseconds, 1),
        "changes_page_ms": round(
            next(time for path, time in pages.items() if CHANGES in path), 1
        ),
        "saves_lost_percent": round(lost, 1),
    }
    print(json.dumps(summary))
    return int(
        first["seconds"] > MOST_SECONDS
        or scores["seconds"] > MOST_SECONDS_OF_SCORES
        or scores["memory_mb"] > MOST_MEGABYTES_OF_SCORES
        or milliseconds > MOST_MILLISECONDS
        or lost > MOST_SAVES_LOST
    )


def parse_options() -> argparse.Namespace:
    parser = command_parser(
        "Times the roll-up of item distributions, the calculation of"
        " scores, and their pages. Ends with 1 if the roll-up takes more than"
        f" {MOST_SECONDS} s, the scores more than {MOST_SECONDS_OF_SCORES} s or"
        f" {MOST_MEGABYTES_OF_SCORES} MB, the median page more than"
        f" {MOST_MILLISECONDS} ms, or if more than {MOST_SAVES_LOST} %% of page saves"
        " are lost to the roll-up or to the scores."
    )
    add, number = parser.add_argument, positive_integer
    add("--people", type=number, default=2_000_000)
    add("--schools", type=number, default=4000)
    add("--items", type=number, default=60, help="a multiple of 5")
    add("--measures", type=number, default=15, help="with equally many items")
    add("--rounds", type=number, default=2, help="of saves, each way")
    # As many as answer at a time if 50,000 start in an hour and take 24 minutes. The
    # replica's snapshot keeps old versions of rows: with 64 people who save a page
    # every 0.1 s, each save would soon pass hundreds of them.
    add("--students", type=number, default=20_000, help="saving in turns")
    return parser.parse_args()


def _time_roll_ups(application: Application) -> dict[str, dict[str, Any]]:
    runs = (
        ("everything", "", ()),
        ("nothing new", "", ()),
        ("20 people saved", sql_file("save_answers", count=20), ()),
        ("everything again", "", ("--again",)),
        ("closed, nothing new", CLOSE, ()),
        ("closed, once more", "", ()),
    )
    name_times, rows = {}, []
    for name, statements, options in runs:
        if statements:
            application.sql(statements)
        printed = application.manage(ROLL_UP, "measured", "--json", *options)
        figures = name_times[name] = json.loads(printed)
        times = [f"{figures[key]:.2f}" for key in ("reading", "counting", "seconds")]
        numbers = [f"{figures[key]:,}" for key in ("schools", "rows_changed")]
        rows.append((name, *times, *numbers, f"{figures['memory_mb']:,} MB"))
    columns = ("roll-up, s", "reading", "counting", "all", "schools", "rows", "memory")
    print_table(columns, rows)
    return name_times


def _again(application: Application, command: str) -> dict[str, float]:
    printed = application.manage(command, "measured", "--json", "--again", nice=NICE)
    figures: dict[str, float] = json.loads(printed)
    return figures


def _most_saves_lost(
    application: Application,
    target: Target,
    students: Sequence[Person],
    rounds: int,
    seconds_alone: Mapping[str, float],
) -> float:
    """Measure saves beside each command; return the larger share lost, in percent."""

    def seconds_of(command: str) -> float:
        return _again(application, command)["seconds"]

    results = [
        save_beside(
            partial(seconds_of, command),
            name=NAMES[command],
            target=target,
            students=students,
            rounds=rounds,
            # As long as the command runs, beside the saves.
            seconds=max(10, 2 * seconds),
        )
        for command, seconds in seconds_alone.items()
    ]
    return max(each.lost_percent for each in results)


def _time_scores(application: Application) -> dict[str, float]:
    figures = _again(application, SCORE)
    keys = ("people", "measures", "rows")
    print_table(
        ("scores of people", "measures", "rows", "reading, s", "all, s", "memory"),
        [
            (
                *(f"{figures[key]:,}" for key in keys),
                *(f"{figures[key]:.1f}" for key in ("reading", "seconds")),
                f"{figures['memory_mb']:,} MB",
            )
        ],
    )
    return figures


def _time_pages(
    application: Application, target: Target, earlier: int
) -> dict[str, float]:
    district, school, administration = measured_ids(application)
    results = f"/console/results/{administration}/"
    pages = ("", f"?district={district}", f"?school={school}", "?group=grade%3A07")
    scores = ("scores/", "scores/?sort=score-m0", "scores/rates/", "scores/quality/")
    school_pages = (f"schools/{school}/", f"{CHANGES}{earlier}")
    paths = [results + page for page in (*pages, *scores, *school_pages)]
    times = time_pages(application, target, ["/console/results/", *paths])
    # The first preview adds up all schools, and the others find the sums.
    preview = results + "publish/preview/"
    chosen = ("", "?q=school", f"?district={district}", f"?school={school}")
    first = time_pages(application, target, [preview], times=1)
    previews = [results + "publish/", *(preview + place for place in chosen)]
    times |= time_pages(application, target, previews)
    return times | {"first preview": first[preview]}

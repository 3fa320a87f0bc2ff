"""`provisioning/measure_results`: time the roll-up of answers, scores and their pages.

Runs on private servers with a replica: made-up people in 4,000 schools who have
answered 60 items of 15 measures, with grades and two subgroups. Times a roll-up of
everything, one with nothing new, one after a few saves, and those of a closed
administration; the calculation of scores; the pages over HTTP; and saves of 20,000
other people's pages with and without a roll-up or a calculation, in turns. Ends with 1
if one of them takes longer than it may, or takes too many page saves away.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from provisioning.commands import command_parser, conclude, missed, print_table, step
from provisioning.measure.benchmarks.answered_survey import (
    CLOSE,
    REPLICA_PORT,
    add_earlier_wave,
    answer_survey,
    measured_ids,
)
from provisioning.measure.benchmarks.stack import (
    Application,
    private_application,
    sql_file,
)
from provisioning.measure.benchmarks.timed_requests import (
    SIZE,
    SavesBeside,
    log_in,
    save_beside,
    send_requests,
    served,
    time_pages,
)
from provisioning.measure.load.crowd import Person
from provisioning.measure.load.target import Target

MOST = {
    "seconds": 60,
    "scores_seconds": 180,
    "scores_memory_mb": 1536,
    # Of the median page.
    "page_ms": 60,
    "saves_lost_percent": 2,
}
ROLL_UP, SCORE = "roll_up_results", "score_administration"
NAMES = {ROLL_UP: "roll-up", SCORE: "calculation"}
CHANGES = "scores/changes/?compare="
# That of the worker with such jobs: `scan_nice` of roles/worker.
NICE = 10


def main() -> int:
    options = command_parser(
        __doc__,
        people=(2_000_000, "who have answered"),
        schools=(4000, "with equally many people"),
        items=(60, "a multiple of 5"),
        measures=(15, "with equally many items"),
        rounds=(2, "of saves, each way"),
        # As many as answer at a time if 50,000 start in an hour and take 24 minutes.
        # The replica's snapshot keeps old versions of rows: with 64 people who save a
        # page every 0.1 s, each save would soon pass hundreds of them.
        students=(20_000, "who save in turns"),
    ).parse_args()
    with private_application(GROUNDSWELL_TEST_REPLICA=REPLICA_PORT) as application:
        application.collect_static()
        answer_survey(
            application,
            people=options.people,
            schools=options.schools,
            items=options.items,
            measures=options.measures,
        )
        rolled = _time_roll_ups(application)
        # They decide which schools have a report, and so count in larger places.
        application.manage("roll_up_rates")
        scored = _time_scores(application)
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
            alone = {ROLL_UP: rolled["seconds"], SCORE: scored["seconds"]}
            beside = _saves_beside(application, target, students, alone, options.rounds)
    [changes] = [time for path, time in pages.items() if CHANGES in path]
    figures = {
        "people": rolled["people"],
        "responses": rolled["people"] * options.items,
        "seconds": round(rolled["seconds"], 1),
        "memory_mb": rolled["memory_mb"],
        "scores_seconds": round(scored["seconds"], 1),
        "scores_memory_mb": scored["memory_mb"],
        "page_ms": round(statistics.median(pages.values()), 1),
        "changes_page_ms": round(changes, 1),
        "saves_lost_percent": round(max(each.lost_percent for each in beside), 1),
    }
    return conclude(figures, missed(figures, least={}, most=MOST))


def _saves_beside(
    application: Application,
    target: Target,
    students: Sequence[Person],
    alone: Mapping[str, float],
    rounds: int,
) -> list[SavesBeside]:
    """Time page saves while each command runs; `alone` are its seconds without them."""
    return [
        save_beside(
            partial(_seconds_again, application, command),
            name=NAMES[command],
            target=target,
            students=students,
            rounds=rounds,
            # As long as the command runs, beside the saves.
            seconds=max(10, 2 * seconds),
        )
        for command, seconds in alone.items()
    ]


def _time_roll_ups(application: Application) -> dict[str, Any]:
    """Print what roll-ups take; return the figures of the first, of everything."""
    runs = (
        ("everything", "", ()),
        ("nothing new", "", ()),
        ("20 people saved", sql_file("save_answers", count=20), ()),
        ("everything again", "", ("--again",)),
        ("closed, nothing new", CLOSE, ()),
        ("closed, once more", "", ()),
    )
    every, rows = [], []
    for name, statements, options in runs:
        if statements:
            application.sql(statements)
        printed = application.manage(ROLL_UP, "measured", "--json", *options)
        figures: dict[str, Any] = json.loads(printed)
        every.append(figures)
        times = [f"{figures[key]:.2f}" for key in ("reading", "counting", "seconds")]
        numbers = [f"{figures[key]:,}" for key in ("schools", "rows_changed")]
        rows.append((name, *times, *numbers, f"{figures['memory_mb']:,} MB"))
    columns = ("roll-up, s", "reading", "counting", "all", "schools", "rows", "memory")
    print_table(columns, rows)
    return every[0]


def _again(application: Application, command: str) -> dict[str, float]:
    printed = application.manage(command, "measured", "--json", "--again", nice=NICE)
    figures: dict[str, float] = json.loads(printed)
    return figures


def _seconds_again(application: Application, command: str) -> float:
    return _again(application, command)["seconds"]


def _time_scores(application: Application) -> dict[str, float]:
    figures = _again(application, SCORE)
    numbers = [f"{figures[key]:,}" for key in ("people", "measures", "rows")]
    times = [f"{figures[key]:.1f}" for key in ("reading", "seconds")]
    print_table(
        ("scores of people", "measures", "rows", "reading, s", "all, s", "memory"),
        [(*numbers, *times, f"{figures['memory_mb']:,} MB")],
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

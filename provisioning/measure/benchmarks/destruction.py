"""Destroy the answers of an administration while other people save their pages.

Runs on private servers with a replica. Made-up people have answered a survey whose
period of retention is over. Its answers are destroyed by the product's own job, with
digest, record and certificate. Pages of another administration are saved at a steady
rate before, meanwhile and afterwards. Ends with one line of JSON, and with 1 if a save
failed or took over a second, or if the 99th percentile more than doubled meanwhile.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, command_parser, conclude, print_table, step
from provisioning.measure.benchmarks import growth
from provisioning.measure.benchmarks.answered_survey import REPLICA_PORT, answer_items
from provisioning.measure.benchmarks.meter import processor
from provisioning.measure.benchmarks.stack import private_application
from provisioning.measure.benchmarks.timed_requests import log_in, served
from provisioning.measure.load.crowd import Person, send
from provisioning.measure.load.respondent import get_request
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import Target

PAGES, ITEMS = 40, 5
# One person in ten stops after half of the items.
ANSWERED = 0.95
PEOPLE_OF_A_SCHOOL = 500
PHASES = BEFORE, DURING, AFTER = "before", "during", "after"
# Seconds of saves that are counted together: a phase is some of them.
ROUND = 5.0
TIMES_SLOWER, LONGEST_MS = 2.0, 1000.0
# Seconds in which the server starts at most.
START = 300.0
# Where private servers have their data.
DATA = Path("/tmp")  # noqa: S108

# Sends saves for a round.
Saves = Callable[[], Tally]


def main() -> int:
    options = command_parser(
        __doc__,
        responses=(1_000_000, "that are destroyed, about"),
        rate=(100.0, "page saves a second"),
        seconds=(30.0, "of saves before, and as many afterwards"),
        students=(200, "who save in turns"),
    ).parse_args()
    growth.check_disk(DATA, options.responses)
    people = math.ceil(options.responses / (PAGES * ITEMS * ANSWERED))
    with private_application(GROUNDSWELL_TEST_REPLICA=REPLICA_PORT) as application:
        application.collect_static()
        details, codes = answer_items(
            application,
            f"--respondents={options.students}",
            f"--pages={PAGES}",
            f"--items={ITEMS}",
            people=people,
            schools=math.ceil(people / PEOPLE_OF_A_SCHOOL),
        )
        with step("Ordering the destruction"):
            job = application.call("measure.benchmarks.destroyed_round.order")
        with served(application, "--workers=2") as target:
            # On a busy machine, workers start longer than a browser waits.
            first = iter([get_request(target, "/", 200)])
            send(target, [first], timeout=START).tally.refuse_failures()
            students = log_in(details, codes, target)
            saved, destroyed = save_throughout(
                saves_of(target, students, options.rate),
                lambda: application.call(
                    "measure.benchmarks.destroyed_round.destroy", job=job
                ),
                rounds=math.ceil(options.seconds / ROUND),
            )
    if destroyed["state"] != "done":
        raise Refusal(f"The answers were not destroyed: {destroyed['message']}")
    figures = figures_of(saved)
    return conclude(
        {
            "cpu": processor(),
            "responses": destroyed["rows"],
            "seconds": destroyed["seconds"],
            "certified": destroyed["certified"],
            "saves_per_s": options.rate,
            "saves": figures,
        },
        shortcomings(figures),
    )


def saves_of(target: Target, students: Sequence[Person], rate: float) -> Saves:
    """Return a function that sends saves at a rate, whenever the replies come."""
    seeds = count()
    # A pause here would count as the server's.
    gc.freeze()
    gc.disable()

    def saves() -> Tally:
        sent = send(target, students, rate=rate, seconds=ROUND, seed=next(seeds))
        return sent.tally

    return saves


def save_throughout(
    saves: Saves, destroy: Callable[[], dict[str, Any]], *, rounds: int
) -> tuple[dict[str, Tally], dict[str, Any]]:
    """Return the saves of each phase, and what `destroy` returns.

    Those of `during` begin with its process, and end in the round in which it ends.
    """
    saved = {phase: Tally(began=math.inf) for phase in PHASES}
    # A warm-up, not counted: the first saves of people are of new rows.
    for _ in range(rounds):
        saves()
    for _ in range(rounds):
        saved[BEFORE].merge(saves())
    with ThreadPoolExecutor(1) as pool:
        destroying = pool.submit(destroy)
        while not destroying.done():
            saved[DURING].merge(saves())
    for _ in range(rounds):
        saved[AFTER].merge(saves())
    return saved, destroying.result()


def figures_of(saved: Mapping[str, Tally]) -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = {
        phase: {
            "count": tally.answered(),
            "failed": tally.failed(),
            **tally.percentiles(),
        }
        for phase, tally in saved.items()
    }
    for phase, tally in saved.items():
        if not tally.answered():
            raise Refusal(f"No save was answered {phase}: {tally.failures_by_name()}")
    columns = ("count", "failed", "p50", "p95", "p99", "max")
    print_table(
        ("saves, ms", *columns),
        [(phase, *(each[key] for key in columns)) for phase, each in figures.items()],
    )
    return figures


def shortcomings(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    missed = []
    for phase, each in figures.items():
        if each["failed"]:
            missed.append(f"{each['failed']} saves failed {phase}")
        if each["max"] > LONGEST_MS:
            missed.append(f"a save {phase} took {each['max']:.0f} ms")
    before, during = figures[BEFORE]["p99"], figures[DURING]["p99"]
    if during > TIMES_SLOWER * before:
        missed.append(f"the 99th percentile rose from {before:.1f} to {during:.1f} ms")
    return missed

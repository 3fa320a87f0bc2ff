"""Climb by jmeter/run, with more arrivals in each step, until a level is missed.

The levels are those of jmeter/slo.json. Each step's result stays in
.jmeter/ladder-<time>/. The last line is one JSON object; the exit status is 1 when not
even the first step held.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

from provisioning.commands import Refusal, print_table
from provisioning.measure.jmeter.options import (
    check_target,
    positive_number,
    run_parser,
)
from provisioning.measure.jmeter.run import RESULTS, run
from provisioning.measure.jmeter.shapes import (
    SERVED,
    SHAPES,
    mean_visit,
    requests_per_person,
)


def main() -> int:
    parser = run_parser(__doc__)
    add = parser.add_argument
    add("--users", type=positive_number, default=500, help="of the first step; 500")
    add("--factor", type=_factor, default=1.5, help="from step to step; 1.5")
    add("--steps", type=int, default=12, help="at most; 12")
    options = parser.parse_args()
    check_target(options)
    if SHAPES[options.shape].is_spike:
        raise Refusal(f"{options.shape} has one peak: the ladder climbs with others")
    if options.remote:
        raise Refusal("A load server serves one run: the ladder climbs from here only")
    name = time.strftime("ladder-%Y%m%d-%H%M%S")
    folder = (options.output or RESULTS / name).absolute()
    steps: list[dict[str, Any]] = []
    users = options.users
    while len(steps) < options.steps and all(step["held"] for step in steps):
        number = len(steps) + 1
        options.rate = rate_of(options, users)
        print(f"\nStep {number}: {users:.0f} people at a time,", end="")
        print(f" {options.rate:.0f} requests/s")
        result = run(options, folder / f"step-{number}")
        steps.append({"users": round(users), **result})
        users *= options.factor
    print()
    print_steps(steps)
    print(f"Each step's dashboard is in {folder}")
    last_good = next((step for step in reversed(steps) if step["held"]), None)
    if last_good:
        print(
            f"The last good step: {last_good['users']:,} people at a time,"
            f" {last_good['rate_achieved']:.0f} requests/s"
        )
    print(json.dumps({"last_good": last_good, "steps": steps}), flush=True)
    return 0 if last_good else 1


def _factor(text: str) -> float:
    number = positive_number(text)
    if number < 1.05:
        raise argparse.ArgumentTypeError(f"{text} does not climb: at least 1.05")
    return number


def rate_of(options: argparse.Namespace, users: float) -> float:
    """Return the requests a second of so many people at a time."""
    shape = SHAPES[options.shape]
    made_up = options.survey_pages or shape.pages
    pages = mean_visit(options.pages)[0] if options.pages else float(made_up)
    stay = (options.think or shape.think) * pages + SERVED
    if options.shape == "bell":
        stay = options.duration
    return users * requests_per_person(pages) / stay


def print_steps(steps: Sequence[dict[str, Any]]) -> None:
    rows = []
    for step in steps:
        save = step["samplers"].get("survey_change_page")
        row = [f"{step['users']:,}", f"{step['rate_asked']:.0f}"]
        row += [
            f"{step['rate_achieved']:.0f}",
            f"{save['p99_ms']:.0f}" if save else "-",
        ]
        rows.append([*row, "held" if step["held"] else f"missed {step['missed'][0]}"])
    print_table(("people", "asked/s", "held/s", "save p99", "verdict"), rows)

"""`jmeter/ladder`: run with more and more people, until a level is missed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from provisioning.commands import Refusal, print_table, run_command
from provisioning.jmeter.options import (
    add_arguments,
    caller_path,
    check_target,
    positive_number,
)
from provisioning.jmeter.run import RESULTS, run
from provisioning.jmeter.shapes import (
    DEFAULT_THINK,
    SERVED,
    mean_pages,
    read_properties,
    requests_per_person,
)

STEEPNESS = 1.5
MOST_STEPS = 12


def main() -> int:
    options = parse_options()
    check_target(options)
    if options.remote:
        raise Refusal("A load server serves one run: the ladder climbs from here only")
    name = time.strftime("ladder-%Y%m%d-%H%M%S")
    folder = (options.output or RESULTS / name).absolute()
    steps: list[dict[str, Any]] = []
    users = options.users
    while len(steps) < options.steps and all(step["held"] for step in steps):
        output = folder / f"step-{len(steps) + 1}"
        rate = rate_of(options, users)
        print(
            f"\nStep {len(steps) + 1}: {users:.0f} people at a time,"
            f" {rate:.0f} requests/s"
        )
        changes = {"rate": rate, "output": output}
        run(argparse.Namespace(**{**vars(options), **changes}))
        result = json.loads((output / "result.json").read_text())
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


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="jmeter/ladder",
        description="Climbs by jmeter/run: from as many arrivals as keep 500 people"
        " busy at a time, half as many more in each step, until a level of"
        " jmeter/slo.json is missed. Each step's result stays in"
        " .jmeter/ladder-<time>/. The last line is one JSON object; the exit status is"
        " 1 when not even the first step held.",
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--users", type=positive_number, default=500, help="of the first step; 500")
    add("--factor", type=_factor, default=STEEPNESS, help="from step to step; 1.5")
    add("--steps", type=int, default=MOST_STEPS, help="at most; 12")
    add("--output", type=caller_path, help="a new folder for the results")
    return parser.parse_args()


def _factor(text: str) -> float:
    number = positive_number(text)
    if number < 1.05:
        raise argparse.ArgumentTypeError(f"{text} does not climb: at least 1.05")
    return number


def rate_of(options: argparse.Namespace, users: float) -> float:
    """Return the requests a second of so many people at a time."""
    pages = float(options.survey_pages)
    if options.pages:
        pages = mean_pages(read_properties(options.pages))
    stay = (options.think or DEFAULT_THINK) * pages + SERVED
    if options.shape == "bell":
        stay = options.duration
    return users * requests_per_person(pages) / stay


def print_steps(steps: Sequence[dict[str, Any]]) -> None:
    print_table(
        ("people", "asked/s", "held/s", "save p99", "verdict"),
        [
            (
                f"{step['users']:,}",
                f"{step['rate_asked']:.0f}",
                f"{step['rate_achieved']:.0f}",
                f"{step['samplers']['survey_change_page']['p99_ms']:.0f}"
                if "survey_change_page" in step["samplers"]
                else "-",
                "held" if step["held"] else f"missed {step['missed'][0]}",
            )
            for step in steps
        ],
    )


if __name__ == "__main__":
    sys.exit(run_command("jmeter/ladder", main))

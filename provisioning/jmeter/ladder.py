"""`jmeter/ladder`: more and more people, until a level is missed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, run_command
from provisioning.jmeter.arguments import add_arguments, called_path, positive
from provisioning.jmeter.run import RESULTS, run
from provisioning.jmeter.shapes import (
    DEFAULT_THINK,
    SERVED,
    mean_pages,
    read_properties,
    requests_per_person,
)
from provisioning.jmeter.target import check_target

STEEPNESS = 1.5
MOST_STEPS = 12


def main() -> int:
    options = _arguments()
    check_target(options)
    if options.remote:
        raise Refusal("A load server serves one run: the ladder climbs from here only")
    folder = (
        options.output or RESULTS / time.strftime("ladder-%Y%m%d-%H%M%S")
    ).absolute()
    steps: list[dict[str, Any]] = []
    users = options.users
    while len(steps) < options.steps:
        steps.append(_climb(options, folder, len(steps) + 1, users))
        if not steps[-1]["held"]:
            break
        users *= options.factor
    return _report(folder, steps)


def _arguments() -> argparse.Namespace:
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
    add("--users", type=positive, default=500, help="of the first step; 500")
    add("--factor", type=_factor, default=STEEPNESS, help="from step to step; 1.5")
    add("--steps", type=int, default=MOST_STEPS, help="at most; 12")
    add("--output", type=called_path, help="a new folder for the results")
    return parser.parse_args()


def _factor(text: str) -> float:
    number = positive(text)
    if number < 1.05:
        raise argparse.ArgumentTypeError(f"{text} does not climb: at least 1.05")
    return number


def _climb(
    options: argparse.Namespace, folder: Path, number: int, users: float
) -> dict[str, Any]:
    output = folder / f"step-{number}"
    rate = rate_of(options, users)
    print(f"\nStep {number}: {users:.0f} people at a time, {rate:.0f} requests/s")
    step = argparse.Namespace(**{**vars(options), "rate": rate, "output": output})
    run(step)
    result: dict[str, Any] = json.loads((output / "result.json").read_text())
    return {"users": round(users), **result}


def rate_of(options: argparse.Namespace, users: float) -> float:
    """Requests a second of so many people who are busy with the survey."""
    pages = float(options.survey_pages)
    if options.pages:
        pages = mean_pages(read_properties(options.pages))
    life = (options.think or DEFAULT_THINK) * pages + SERVED
    if options.shape == "bell":
        life = options.duration
    return users * requests_per_person(pages) / life


def _report(folder: Path, steps: list[dict[str, Any]]) -> int:
    print(f"\n{'people':>8}{'asked/s':>10}{'held/s':>10}{'save p99':>10}  verdict")
    for step in steps:
        save = (
            step["samplers"].get("survey_change_page", {}).get("p99_ms", float("nan"))
        )
        verdict = "held" if step["held"] else f"missed {step['missed'][0]}"
        print(
            f"{step['users']:>8,}{step['rate_asked']:>10.0f}{step['rate_achieved']:>10.0f}"
            f"{save:>10.0f}  {verdict}"
        )
    good = [step for step in steps if step["held"]]
    last = good[-1] if good else None
    print(f"Each step's dashboard is in {folder}")
    if last:
        print(
            f"The last good step: {last['users']:,} people at a time,"
            f" {last['rate_achieved']:.0f} requests/s"
        )
    print(json.dumps({"last_good": last, "steps": steps}), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(run_command("jmeter/ladder", main))

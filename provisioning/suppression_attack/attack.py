"""`provisioning/attack_suppression`: recover hidden results from what is published.

The last line is JSON. Exits 1 if a hidden number was recovered or has fewer than
three candidates, if no number or no mean is recovered without protection, or if more
is hidden than 1.5 times the optimum of small cases.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter

from provisioning.benchmarks.stack import sqlite_application
from provisioning.commands import ROOT, Refusal, positive_integer, run_command, step
from provisioning.environment import PRODUCTION, PYTHON, prepare_environment

MOST_OF_OPTIMUM = 1.5
DEMO_ADMINISTRATIONS = ("demo-last-students", "demo-last-teachers")


def main() -> int:
    options = parse_options()
    prepare_environment(PRODUCTION)
    began = time.monotonic()
    with step(f"Attacking {options.count} hierarchies"):
        found = attack(options.seed, options.count)
    figures = {
        **{
            name: found[name]
            for name in (
                "hierarchies",
                "attacked",
                "recovered",
                "narrowed_below_3",
                "implied_by_totals",
                "recovered_unprotected",
            )
        },
        "hidden_share": share(found, "hidden", "cells"),
        "small_groups_share": share(found, "primary", "cells"),
        "hidden_groups_share": share(found, "hidden_groups", "groups"),
        "people_left_out_share": share(found, "people_left_out", "people"),
        "small_hierarchies": found["small_hierarchies"],
        "share_of_optimum": share(found, "small_hidden", "small_optimum"),
        "milliseconds_per_decision": round(
            found["milliseconds_deciding"] / found["hierarchies"]
        ),
    }
    demo = attack_demo()
    figures |= {f"demo_{name}": number for name, number in demo.items()}
    figures["seconds"] = round(time.monotonic() - began, 1)
    figures["passed"] = (
        figures["recovered"] == figures["narrowed_below_3"] == 0
        and demo["recovered"] == demo["narrowed_below_3"] == 0
        and min(figures["recovered_unprotected"], demo["recovered_unprotected"]) > 0
        and found["means_recovered_unprotected"] > 0
        and figures["share_of_optimum"] <= MOST_OF_OPTIMUM
    )
    print(json.dumps(figures))
    return 0 if figures["passed"] else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/attack_suppression",
        description="Invents results of states, districts, schools, grades and"
        " subgroups, hides small numbers as reports/suppression decides, and tries to"
        " bound every hidden number by linear and integer programs over everything"
        " that is published: numbers of people, answers, and means of measures."
        " Then does the same where only the small groups"
        " themselves are hidden, and compares small cases with the fewest cells that"
        " have to be hidden. Attacks the demonstration's results as well. Exits 1"
        " if a number was recovered, has fewer than three"
        f" candidates, or more than {MOST_OF_OPTIMUM} times the optimum is hidden.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--count", type=positive_integer, default=1000, help="hierarchies (1000)"
    )
    parser.add_argument("--seed", type=positive_integer, default=1, help="(1)")
    return parser.parse_args()


def attack(seed: int, count: int) -> Counter[str]:
    """Return the figures of all hierarchies, by one process for each processor."""
    processes = max(1, min(os.cpu_count() or 1, count))
    workers = [
        subprocess.Popen(
            [
                *(PYTHON, "-m", "provisioning.suppression_attack.worker"),
                *map(str, (seed, first, processes, count)),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            # One thread each: HiGHS and the linear algebra would start more.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        for first in range(processes)
    ]
    found: Counter[str] = Counter()
    try:
        for worker in workers:
            output, _ = worker.communicate()
            if worker.returncode:
                raise Refusal("A worker failed; its error is above")
            # HiGHS may print warnings before.
            found.update(json.loads(output.splitlines()[-1]))
    finally:
        for worker in workers:
            worker.kill()
    return found


def attack_demo() -> dict[str, int]:
    """Return the figures of the demonstration's closed administrations."""
    with sqlite_application(OMP_NUM_THREADS="1") as application:
        with step("Counting the demonstration's results"):
            application.manage("load_demo", "--json")
            for name in DEMO_ADMINISTRATIONS:
                application.manage("roll_up_results", name)
        with step("Attacking the demonstration's results"):
            output = application.run_python(
                "-m",
                "provisioning.suppression_attack.demo",
                failing="The attack on the demonstration failed",
            )
    found: dict[str, int] = json.loads(output.splitlines()[-1])
    return found


def share(found: Counter[str], part: str, whole: str) -> float:
    return round(found[part] / found[whole], 4) if found[whole] else 0.0


if __name__ == "__main__":
    sys.exit(run_command("attack_suppression", main))

"""`provisioning/attack_suppression`: recover hidden results from what is published.

The last line is JSON. Exits 1 if a hidden number was recovered or has fewer than
three candidates, if no number or no mean is recovered without protection, or if more
is hidden than 1.5 times the optimum of small cases.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from provisioning.benchmarks.stack import Application, sqlite_application
from provisioning.commands import ROOT, Refusal, positive_integer, run_command, step
from provisioning.environment import PRODUCTION, PYTHON, prepare_environment

MOST_OF_OPTIMUM = 1.5
DEMO_ADMINISTRATIONS = ("demo-last-students", "demo-last-teachers")


READERS = ("public", "coordinator")
WAVES = (
    *("waves_attacked", "waves_recovered", "waves_narrowed_below_3"),
    *("waves_recovered_unprotected", "waves_narrowed_below_3_unprotected"),
)


def main() -> int:
    options = parse_options()
    prepare_environment(PRODUCTION)
    began = time.monotonic()
    with sqlite_application(
        # One thread each: HiGHS and the linear algebra would start more.
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
    ) as application:
        with step(f"Attacking {options.count} hierarchies"):
            found = attack(application, options.seed, options.count)
        demo = attack_demo(application)
    figures = summary(found, demo)
    figures["seconds"] = round(time.monotonic() - began, 1)
    figures["passed"] = has_passed(figures)
    print(json.dumps(figures))
    return 0 if figures["passed"] else 1


def summary(found: Counter[str], demo: dict[str, int]) -> dict[str, float]:
    """Return what the last line says."""
    figures: dict[str, float] = {
        **{
            name: found[name]
            for name in (
                *("hierarchies", "schools", "schools_without_report"),
                *("attacked", "recovered", "narrowed_below_3", "implied_by_totals"),
                *("shown_differently", "recovered_unprotected"),
                "means_recovered_unprotected",
            )
        },
        "hidden_share": share(found, "hidden", "cells"),
        "small_groups_share": share(found, "primary", "cells"),
        "hidden_groups_share": share(found, "hidden_groups", "groups"),
        "people_left_out_share": share(found, "people_left_out", "people"),
        "pairs_of_waves": found["pairs_of_waves"],
        **{name: found[name] for name in WAVES},
        "later_wave_hidden_share": share(found, "waves_hidden", "waves_cells"),
        "later_wave_hidden_share_unprotected": share(
            *(found, "waves_hidden_unprotected", "waves_cells_unprotected")
        ),
        "small_hierarchies": found["small_hierarchies"],
        "share_of_optimum": share(found, "small_hidden", "small_optimum"),
        "milliseconds_per_decision": round(
            found["milliseconds_deciding"] / found["hierarchies"]
        ),
    }
    for reader in READERS:
        for name in ("attacked", "implied", "recovered_unprotected"):
            figures[f"{reader}_{name}"] = found[f"{reader}_{name}"]
    return figures | {f"demo_{name}": number for name, number in demo.items()}


def has_passed(figures: dict[str, float]) -> bool:
    nothing = (
        *("recovered", "narrowed_below_3", "shown_differently"),
        *("waves_recovered", "waves_narrowed_below_3"),
        *("demo_recovered", "demo_narrowed_below_3", "demo_shown_differently"),
    )
    something = (
        *("recovered_unprotected", "means_recovered_unprotected"),
        "demo_recovered_unprotected",
        *(f"{reader}_recovered_unprotected" for reader in READERS),
    )
    return (
        not any(figures[name] for name in nothing)
        and all(figures[name] for name in something)
        and figures["share_of_optimum"] <= MOST_OF_OPTIMUM
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/attack_suppression",
        description="Invents results of states, districts, schools, grades and"
        " subgroups, hides small numbers as reports/suppression decides, and tries to"
        " bound every hidden number by linear and integer programs over everything"
        " that is published: numbers of people, answers, and means of measures;"
        " also as the public and coordinators, from their own pages and rates; and"
        " from two waves, as somebody who knows that nobody changed an answer."
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


def attack(application: Application, seed: int, count: int) -> Counter[str]:
    """Return the figures of all hierarchies, by one process for each processor."""
    processes = max(1, min(os.cpu_count() or 1, count))
    data = application.environment["GROUNDSWELL_DATA"]
    found: Counter[str] = Counter()
    # Each process stores what it attacks in a database of its own.
    with tempfile.TemporaryDirectory(dir=Path(data).parent) as folder:
        workers = []
        for first in range(processes):
            own = f"{folder}/{first}"
            shutil.copytree(data, own)
            workers.append(
                subprocess.Popen(
                    [
                        *(PYTHON, "-m", "provisioning.suppression_attack.worker"),
                        *map(str, (seed, first, processes, count)),
                    ],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**application.environment, "GROUNDSWELL_DATA": own},
                )
            )
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
                worker.wait()
    return found


def attack_demo(application: Application) -> dict[str, int]:
    """Return the figures of the demonstration's closed administrations."""
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

"""`provisioning/attack_suppression`: recover hidden results from all that roles get.

The last line is JSON. Exits 1 if a figure of few people was recovered or narrowed, if
an attack that has once succeeded does so again or fails without protection, or if
schools lose too much to hiding.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, command_parser, positive_integer, step
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    prepare_environment,
)
from provisioning.measure.benchmarks.stack import Application, sqlite_application

MOST_LOST = 0.05
QUICK, USUAL = 2, 14


def main() -> int:
    options = parse_options()
    prepare_environment(PRODUCTION)
    count = options.count or (QUICK if options.quick else USUAL)
    began = time.monotonic()
    with (
        sqlite_application(
            # One thread each: HiGHS and the linear algebra would start more.
            OMP_NUM_THREADS="1",
            OPENBLAS_NUM_THREADS="1",
            # Readers log in without an app.
            GROUNDSWELL_SECOND_FACTOR="no",
        ) as application,
        step(f"Attacking {count} states"),
    ):
        schools = 4 if options.quick else 5
        counts, leaks = attack(
            application, options.seed, count, options.explain, schools
        )
    for leak in leaks:
        print(leak)
    figures = summary(counts)
    figures |= {"seed": options.seed, "count": count}
    figures["seconds"] = round(time.monotonic() - began, 1)
    figures["passed"] = has_passed(figures)
    print(json.dumps(figures))
    return 0 if figures["passed"] else 1


def summary(counts: Counter[str]) -> dict[str, Any]:
    """Return what the last line says. Keys of `counts` are "kind name|figure"."""
    parts: dict[str, dict[str, dict[str, int]]] = {}
    for key, number in counts.items():
        kind, _, rest = key.partition(" ")
        name, _, figure = rest.partition("|")
        if figure:
            parts.setdefault(kind, {}).setdefault(name, {})[figure] = number
    roles = parts.get("role", {})
    return {
        "recovered": sum(part["recovered"] for part in roles.values()),
        "narrowed": sum(part["narrowed"] for part in roles.values()),
        "roles": roles,
        "histories": dict(sorted(parts.get("history", {}).items())),
        "lost_measures": {
            name: round(part.get("lost", 0) / part["all"], 4)
            for name, part in parts.get("lost", {}).items()
        },
        # Shown figures, of those that any rule with this minimum could show.
        "share_of_optimum": {
            name: round(
                (part["all"] - part.get("lost", 0))
                / (part["all"] - part.get("needed", 0)),
                4,
            )
            for name, part in parts.get("lost", {}).items()
        },
        "recovered_unprotected": counts["recovered_unprotected"],
        "attacked": counts["attacked"],
        "unexplained": counts["unexplained"],
    }


def has_passed(figures: dict[str, Any]) -> bool:
    return bool(
        figures["recovered"] == figures["narrowed"] == 0
        and figures["recovered_unprotected"]
        and figures["histories"]
        and any(part.get("group_scores") for part in figures["roles"].values())
        and all(
            part["protected"] == 0 < part["unprotected"]
            for part in figures["histories"].values()
        )
        and all(share <= MOST_LOST for share in figures["lost_measures"].values())
    )


def parse_options() -> argparse.Namespace:
    parser = command_parser(
        "Invents states with small schools and overlapping groups, lets the"
        " product release and publish their results, and reads everything with figures"
        " as the public, a coordinator, an analyst, a district's and the state's staff:"
        " pages, files, response rates, and exports without names by all filters; also"
        " of two releases, two waves and two owners. Bounds how few people answered, by"
        " linear equations and integer programs, and adds up scores of groups. Plays"
        " attacks that have once succeeded, with the product's protection and without."
        " Exits 1 if a figure of fewer people than the minimum is known or has fewer"
        " than three candidates, or"
        f" if schools lose more than {MOST_LOST:.0%} of their figures."
    )
    parser.add_argument(
        "--count", type=positive_integer, help=f"states ({USUAL}; --quick: {QUICK})"
    )
    parser.add_argument("--seed", type=positive_integer, default=1, help="(1)")
    parser.add_argument("--quick", action="store_true", help="for every change")
    parser.add_argument(
        "--explain",
        type=positive_integer,
        default=0,
        help="print so many leaks of each role and state, and how they are calculated",
    )
    return parser.parse_args()


def attack(
    application: Application, seed: int, count: int, explain: int, schools: int
) -> tuple[Counter[str], list[str]]:
    """Return the figures of all states and histories, and leaks, by two processes."""
    processes = max(1, min(os.cpu_count() or 1, 2))
    data = application.environment["GROUNDSWELL_DATA"]
    counts: Counter[str] = Counter()
    leaks: list[str] = []
    # Each process stores what it attacks in a database of its own.
    with tempfile.TemporaryDirectory(dir=Path(data).parent) as folder:
        workers = []
        for first in range(processes):
            copy = f"{folder}/{first}"
            shutil.copytree(data, copy)
            arguments = (seed, first, processes, count, explain, schools)
            workers.append(
                subprocess.Popen(
                    [
                        *(PYTHON, "-W", "ignore"),
                        *("-m", "provisioning.prove.suppression_attack.worker"),
                        *map(str, arguments),
                    ],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={
                        **application.environment,
                        "GROUNDSWELL_DATA": copy,
                        "GROUNDSWELL_FILES": f"{copy}/files",
                    },
                )
            )
        try:
            for worker in workers:
                output, _ = worker.communicate()
                if worker.returncode:
                    raise Refusal("A worker failed; its error is above")
                # HiGHS may print warnings before.
                result = json.loads(output.splitlines()[-1])
                counts.update(result["found"])
                leaks += result["leaks"]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    return counts, leaks

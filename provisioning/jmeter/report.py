"""What came out: a table for people, one line of JSON for programs."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal
from provisioning.jmeter.levels import arrivals, figures, judge, rate_between, table
from provisioning.jmeter.shapes import Load


def report(
    output: Path,
    options: argparse.Namespace,
    load: Load,
    levels: dict[str, Any],
    began: float,
    spent: dict[str, float],
    elapsed: float,
) -> bool:
    written = output / "dashboard" / "statistics.json"
    if not written.exists():
        raise Refusal(f"JMeter wrote no dashboard; its log is {output / 'jmeter.log'}")
    statistics = json.loads(written.read_text())
    with (output / "results.csv").open(newline="") as results:
        came = arrivals(results)
    if options.remote and came:
        # They begin some time after they were told to.
        began = came[0] / 1000
    with (output / "results.csv").open(newline="") as results:
        answered = rate_between(
            results,
            begins=(began + load.begins) * 1000,
            ends=(began + load.ends) * 1000,
        )
    achieved = answered / load.duration
    drawn = load.drawn(moment / 1000 - began for moment in came)
    verdict = judge(
        statistics,
        rate=achieved / drawn if drawn else 0,
        # Each of the three parts of the schedule draws a whole number.
        people=min(1, (len(came) + 3) / load.people),
        levels=levels,
    )
    missed = [str(one) for one in verdict if not one.held]
    print(f"\n{table(statistics, verdict)}\n")
    print(
        f"{load.rate:g} requests a second were asked for; {len(came):,} of"
        f" {load.people:,} people came, who bring {drawn:.1f}; answered well:"
        f" {achieved:.1f}"
    )
    cores = {name: seconds / elapsed for name, seconds in spent.items()}
    shares = ", ".join(f"{name} {share:.2f}" for name, share in cores.items())
    print(f"Of {os.cpu_count()} cores: {shares or 'next to nothing'}.")
    print(f"Dashboard: {output / 'dashboard' / 'index.html'}")
    for one in missed:
        print(f"Missed: {one}")
    result = {
        "shape": load.shape,
        "rate_asked": load.rate,
        "rate_drawn": round(drawn, 1),
        "rate_achieved": round(achieved, 1),
        "seconds": load.duration,
        "people": load.people,
        "users": load.users,
        "samplers": figures(statistics),
        "cores_used": {name: round(share, 2) for name, share in cores.items()},
        "missed": missed,
        "held": not missed,
        "output": str(output),
    }
    (output / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result), flush=True)
    return not missed

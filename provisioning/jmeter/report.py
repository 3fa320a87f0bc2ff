"""Report a run: a table for people, and one line of JSON for programs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable
from pathlib import Path

from provisioning.commands import Refusal, print_table
from provisioning.jmeter.jmeter_process import JmeterRun
from provisioning.jmeter.service_levels import (
    PERCENTILES,
    SAMPLERS,
    ServiceLevels,
    Statistics,
    judge,
    table_rows,
)
from provisioning.jmeter.shapes import Load

HEADER = ("", "requests", "errors %", "p50 ms", "p95 ms", "p99 ms", "max ms")


def report(
    output: Path, load: Load, levels: ServiceLevels, run: JmeterRun, *, remote: bool
) -> bool:
    """Print and keep the result; return whether every level was held."""
    path = output / "dashboard" / "statistics.json"
    if not path.exists():
        raise Refusal(f"JMeter wrote no dashboard; its log is {output / 'jmeter.log'}")
    statistics: Statistics = json.loads(path.read_text())
    with (output / "results.csv").open(newline="") as results:
        arrived = arrivals(results)
    # Load servers start some time after they were told to.
    began = arrived[0] / 1000 if remote and arrived else run.began
    begins, ends = (began + load.begins) * 1000, (began + load.ends) * 1000
    with (output / "results.csv").open(newline="") as results:
        achieved = answered_between(results, begins, ends) / load.duration
    drawn = load.drawn(moment / 1000 - began for moment in arrived)
    judgements = judge(
        statistics,
        rate=achieved / drawn if drawn else 0,
        # Each of the three parts of the schedule draws a whole number.
        people=min(1, (len(arrived) + 3) / load.people),
        levels=levels,
    )
    missed = [str(each) for each in judgements if not each.held]
    print()
    print_table(HEADER, table_rows(statistics, judgements))
    print(
        f"\n{load.rate:g} requests a second were asked for; {len(arrived):,} of"
        f" {load.people:,} people arrived, who bring {drawn:.1f}; answered well:"
        f" {achieved:.1f}"
    )
    cores = {name: seconds / run.elapsed for name, seconds in run.cpu.items()}
    shares = ", ".join(f"{name} {share:.2f}" for name, share in cores.items())
    print(f"Of {os.cpu_count()} cores: {shares or 'next to nothing'}.")
    print(f"Dashboard: {output / 'dashboard' / 'index.html'}")
    for judgement in missed:
        print(f"Missed: {judgement}")
    result = {
        "shape": load.shape,
        "rate_asked": load.rate,
        "rate_drawn": round(drawn, 1),
        "rate_achieved": round(achieved, 1),
        "seconds": load.duration,
        "people": load.people,
        "users": load.users,
        "samplers": sampler_figures(statistics),
        "cores_used": {name: round(share, 2) for name, share in cores.items()},
        "missed": missed,
        "held": not missed,
        "output": str(output),
    }
    (output / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result), flush=True)
    return not missed


def answered_between(results: Iterable[str], begins: float, ends: float) -> int:
    """Count requests answered well between two moments (ms since 1970)."""
    return sum(
        row["success"] == "true"
        and begins <= int(row["timeStamp"]) + int(row["elapsed"]) < ends
        for row in csv.DictReader(results)
    )


def arrivals(results: Iterable[str]) -> list[int]:
    """Return the moments (ms since 1970) of each person's first request, in order."""
    first: dict[str, int] = {}
    for row in csv.DictReader(results):
        moment = int(row["timeStamp"])
        first[row["threadName"]] = min(first.get(row["threadName"], moment), moment)
    return sorted(first.values())


def sampler_figures(statistics: Statistics) -> dict[str, dict[str, float]]:
    return {
        sampler: {
            "requests": row["sampleCount"],
            "errors": row["errorCount"],
            "max_ms": row["maxResTime"],
            **{name: round(row[key], 1) for name, key in PERCENTILES.items()},
        }
        for sampler, row in statistics.items()
        if sampler in SAMPLERS
    }

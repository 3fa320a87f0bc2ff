"""Whether a run held its service levels: `statistics.json` against `slo.json`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal

SAMPLERS = (
    "survey_login",
    "survey_display",
    "survey_change_page",
    "survey_content",
    "survey_complete",
)
# As jmeter/run has the dashboard compute them.
PERCENTILES = {
    "p50_ms": "pct1ResTime",
    "p95_ms": "pct2ResTime",
    "p99_ms": "pct3ResTime",
}


@dataclass(frozen=True, slots=True)
class Level:
    """One line of the verdict."""

    sampler: str
    measure: str
    measured: float | None
    allowed: float
    held: bool

    def __str__(self) -> str:
        if self.measured is None:
            return f"{self.sampler}: no request at all"
        return f"{self.sampler} {self.measure}: {self.measured:g}, not {self.allowed:g}"


def read_levels(path: Path, shape: str) -> dict[str, Any]:
    """The levels of one shape; refuses a file that lacks what is judged."""
    try:
        levels: dict[str, Any] = json.loads(path.read_text())[shape]
        given = {"error_percent", "rate_percent"} <= levels.keys()
        known = set(SAMPLERS) == levels["samplers"].keys()
        used = {one for each in levels["samplers"].values() for one in each}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refusal(f"{path} has no levels for the shape {shape}") from None
    if not given or not known or not used <= PERCENTILES.keys():
        raise Refusal(
            f"{path} needs, for the shape {shape}, error_percent, rate_percent, and"
            f" {', '.join(PERCENTILES)} of each of {', '.join(SAMPLERS)}"
        )
    return levels


def judge(
    statistics: Mapping[str, Any],
    *,
    rate: float,
    people: float,
    levels: Mapping[str, Any],
) -> list[Level]:
    """Every level, held or missed.

    `rate` is the share of the drawn requests that were answered well in time,
    `people` the share of the planned people who came.
    """
    least = levels["rate_percent"]
    verdict = [
        Level("all", name, round(100 * share, 1), least, round(100 * share, 1) >= least)
        for name, share in (("rate_percent", rate), ("people_percent", people))
    ]
    for sampler in SAMPLERS:
        measured = statistics.get(sampler)
        if measured is None:
            verdict.append(Level(sampler, "requests", None, 1, False))
            continue
        most = {"error_percent": levels["error_percent"], **levels["samplers"][sampler]}
        for measure, allowed in most.items():
            value = round(float(measured[_column(measure)]), 3)
            verdict.append(Level(sampler, measure, value, allowed, value <= allowed))
    return verdict


def _column(measure: str) -> str:
    return "errorPct" if measure == "error_percent" else PERCENTILES[measure]


def rate_between(results: Iterable[str], *, begins: float, ends: float) -> int:
    """How many requests were answered well between two moments (ms, epoch)."""
    return sum(
        row["success"] == "true"
        and begins <= int(row["timeStamp"]) + int(row["elapsed"]) < ends
        for row in csv.DictReader(results)
    )


def arrivals(results: Iterable[str]) -> list[int]:
    """When each person sent the first request (ms, epoch), in order."""
    first: dict[str, int] = {}
    for row in csv.DictReader(results):
        moment = int(row["timeStamp"])
        first[row["threadName"]] = min(first.get(row["threadName"], moment), moment)
    return sorted(first.values())


def table(statistics: Mapping[str, Any], verdict: Iterable[Level]) -> str:
    """One line for each view; a figure that missed its level is marked."""
    missed = {(one.sampler, one.measure) for one in verdict if not one.held}
    head = ("requests", "errors %", "p50 ms", "p95 ms", "p99 ms", "max ms")
    lines = [f"{'':<20}" + "".join(f"{one:>11}" for one in head)]
    for sampler in (*SAMPLERS, "Total"):
        of = statistics.get(sampler)
        if of is None:
            lines.append(f"{sampler:<20}{'none *':>11}")
            continue
        cells = [f"{of['sampleCount']:,}"]
        for measure in ("error_percent", *PERCENTILES):
            mark = "*" if (sampler, measure) in missed else ""
            cells.append(f"{of[_column(measure)]:.4g}{mark}")
        cells.append(f"{of['maxResTime']:.4g}")
        lines.append(f"{sampler:<20}" + "".join(f"{cell:>11}" for cell in cells))
    return "\n".join(lines)


def figures(statistics: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """For the JSON line."""
    return {
        sampler: {
            "requests": of["sampleCount"],
            "errors": of["errorCount"],
            "max_ms": of["maxResTime"],
            **{name: round(of[key], 1) for name, key in PERCENTILES.items()},
        }
        for sampler, of in statistics.items()
        if sampler in SAMPLERS
    }

"""Judge a run's `statistics.json` by the service levels of `slo.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from provisioning.commands import Refusal

SAMPLERS = (
    "survey_login",
    "survey_display",
    "survey_change_page",
    "survey_content",
    "survey_complete",
)
# Columns of the dashboard, as jmeter/run configures it.
PERCENTILES = {
    "p50_ms": "pct1ResTime",
    "p95_ms": "pct2ResTime",
    "p99_ms": "pct3ResTime",
}
ERROR_COLUMN = "errorPct"

# Columns of a sampler by their names.
Statistics = Mapping[str, Mapping[str, float]]


class ServiceLevels(TypedDict):
    error_percent: float
    rate_percent: float
    # Bounds by sampler and percentile.
    samplers: dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Judgement:
    sampler: str
    measure: str
    measured: float | None
    allowed: float
    held: bool

    def __str__(self) -> str:
        if self.measured is None:
            return f"{self.sampler}: no request at all"
        return f"{self.sampler} {self.measure}: {self.measured:g}, not {self.allowed:g}"


def read_levels(path: Path, shape: str) -> ServiceLevels:
    """Return the levels of one shape; refuse a file where one is missing."""
    try:
        levels: ServiceLevels = json.loads(path.read_text())[shape]
        complete = {"error_percent", "rate_percent"} <= levels.keys()
        complete &= set(SAMPLERS) == levels["samplers"].keys()
        used = {name for bounds in levels["samplers"].values() for name in bounds}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Refusal(f"{path} has no levels for the shape {shape}") from None
    if not complete or not used <= PERCENTILES.keys():
        raise Refusal(
            f"{path} needs, for the shape {shape}, error_percent, rate_percent, and"
            f" {', '.join(PERCENTILES)} of each of {', '.join(SAMPLERS)}"
        )
    return levels


def judge(
    statistics: Statistics, *, rate: float, people: float, levels: ServiceLevels
) -> list[Judgement]:
    """Compare every figure with its level.

    `rate` is the share of the expected requests that were answered well in
    time, `people` the share of the planned people who arrived.
    """
    least = levels["rate_percent"]
    judgements = []
    for name, share in (("rate_percent", rate), ("people_percent", people)):
        percent = round(100 * share, 1)
        judgements.append(Judgement("all", name, percent, least, percent >= least))
    for sampler in SAMPLERS:
        row = statistics.get(sampler)
        if row is None:
            judgements.append(Judgement(sampler, "requests", None, 1, False))
            continue
        most = {"error_percent": levels["error_percent"], **levels["samplers"][sampler]}
        for measure, allowed in most.items():
            value = round(float(row[PERCENTILES.get(measure, ERROR_COLUMN)]), 3)
            held = value <= allowed
            judgements.append(Judgement(sampler, measure, value, allowed, held))
    return judgements


def table_rows(
    statistics: Statistics, judgements: Iterable[Judgement]
) -> list[list[str]]:
    """Return a row for each view; figures that missed their level have a star."""
    missed = {(each.sampler, each.measure) for each in judgements if not each.held}
    rows = []
    for sampler in (*SAMPLERS, "Total"):
        row = statistics.get(sampler)
        if row is None:
            rows.append([sampler, "none *", "", "", "", "", ""])
            continue
        cells = [sampler, f"{row['sampleCount']:,}"]
        for measure in ("error_percent", *PERCENTILES):
            star = "*" if (sampler, measure) in missed else ""
            value = row[PERCENTILES.get(measure, ERROR_COLUMN)]
            cells.append(f"{value:.4g}{star}")
        rows.append([*cells, f"{row['maxResTime']:.4g}"])
    return rows

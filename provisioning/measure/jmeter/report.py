"""Judge a run by the service levels of `slo.json`, and report it.

A table for people, and one line of JSON for programs.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, print_table
from provisioning.measure.jmeter.jmeter_process import JmeterRun
from provisioning.measure.jmeter.shapes import SHAPES, Load
from provisioning.measure.load.respondent import VIEWS
from provisioning.measure.load.tally import percentile_of

HEADER = ("", "requests", "errors %", "p50 ms", "p95 ms", "p99 ms", "max ms")
# Columns of the dashboard, as jmeter/run configures it.
PERCENTILES = {
    "p50_ms": "pct1ResTime",
    "p95_ms": "pct2ResTime",
    "p99_ms": "pct3ResTime",
}
# In the address of content and of a page save; the outline, page 0, is no page.
PAGE = re.compile(r"/(?:take/pages|content/.+)/([1-9]\d*)/$")
COLUMNS = {"error_percent": "errorPct", **PERCENTILES}

# Of a shape in slo.json: error_percent, rate_percent, and bounds by sampler and
# percentile.
Levels = dict[str, Any]
# Columns of a sampler, which is named as the view it requests.
Statistics = Mapping[str, Mapping[str, float]]
# Of fewer requests, the 95th percentile is the slowest one.
LEAST = 20

Figures = dict[str, dict[str, str | float]]


class Slowest:
    def __init__(self) -> None:
        # "view", "page" or "survey" -> its name -> seconds.
        self._seconds: dict[str, defaultdict[str, Counter[float]]] = {
            kind: defaultdict(Counter) for kind in ("view", "page", "survey")
        }

    def add(
        self, seconds: float, *, view: str, survey: str = "", page: int = 0
    ) -> None:
        names = {
            "view": view,
            "page": f"page {page} of {survey}" if page and survey else "",
            "survey": survey,
        }
        for kind, name in names.items():
            if name:
                self._seconds[kind][name][round(seconds, 4)] += 1

    def figures(self) -> Figures:
        """Return the slowest of each kind; nothing where all have too few requests."""
        slowest: Figures = {}
        for kind, names in self._seconds.items():
            enough = [
                (percentile_of(seconds, 95), name, seconds.total())
                for name, seconds in names.items()
                if seconds.total() >= LEAST
            ]
            if enough:
                p95, name, requests = max(enough)
                p95_ms = round(p95 * 1000, 1)
                slowest[kind] = {"name": name, "p95_ms": p95_ms, "requests": requests}
        return slowest


def sentence_of(figures: Figures) -> str:
    parts = [
        f"{kind} {str(each['name']).removeprefix('page ')}"
        f" (p95 {each['p95_ms']:g} ms of {each['requests']:,})"
        for kind, each in figures.items()
    ]
    return f"Slowest, of those with {LEAST} requests: {', '.join(parts) or 'none'}."


def read_levels(path: Path, shape: str) -> Levels:
    """Return the levels of one shape; refuse a file where one is missing."""
    views = SHAPES[shape].views if shape in SHAPES else VIEWS
    try:
        levels: Levels = json.loads(path.read_text())[shape]
        used = {name for bounds in levels["samplers"].values() for name in bounds}
        is_complete = (
            {"error_percent", "rate_percent"} <= levels.keys()
            and set(views) == levels["samplers"].keys()
            and used <= PERCENTILES.keys()
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        is_complete = False
    if is_complete:
        return levels
    raise Refusal(
        f"{path} needs, for the shape {shape}, error_percent, rate_percent, and"
        f" {', '.join(PERCENTILES)} of each of {', '.join(views)}"
    )


def report(
    output: Path, load: Load, levels: Levels, run: JmeterRun, *, remote: bool
) -> dict[str, Any]:
    path = output / "dashboard" / "statistics.json"
    if not path.exists():
        raise Refusal(f"JMeter wrote no dashboard; its log is {output / 'jmeter.log'}")
    statistics: Statistics = json.loads(path.read_text())
    surveys = read_surveys(output / "run.properties")
    with (output / "results.csv").open(newline="") as results:
        arrived, answered, slowest = read_results(results, surveys)
    # Load servers start some time after they were told to.
    began = arrived[0] if remote and arrived else run.began
    begins, ends = began + load.begins, began + load.ends
    achieved = sum(begins <= moment < ends for moment in answered) / load.duration
    drawn = load.drawn(moment - began for moment in arrived)
    missed = missed_levels(
        statistics,
        rate=achieved / drawn if drawn else 0,
        # Each of the three parts of the schedule draws a whole number.
        people=min(1, (len(arrived) + 3) / load.people),
        levels=levels,
    )
    return conclude(
        output,
        statistics,
        missed,
        levels=levels,
        slowest=slowest,
        cores=run.cores,
        sentences=[
            f"{load.rate:g} requests a second were asked for; {len(arrived):,} of"
            f" {load.people:,} people arrived, who bring {drawn:.1f}; answered well:"
            f" {achieved:.1f}",
            f"Dashboard: {output / 'dashboard' / 'index.html'}",
        ],
        result={
            "shape": load.shape,
            "rate_asked": load.rate,
            "rate_drawn": round(drawn, 1),
            "rate_achieved": round(achieved, 1),
            "seconds": load.duration,
            "people": load.people,
            "users": load.users,
        },
    )


def conclude(
    output: Path,
    statistics: Statistics,
    missed: Mapping[tuple[str, str], str],
    *,
    levels: Levels,
    slowest: Slowest,
    cores: Mapping[str, float],
    sentences: Iterable[str],
    result: Mapping[str, Any],
) -> dict[str, Any]:
    shares = ", ".join(f"{name} {share:.2f}" for name, share in cores.items())
    figures = slowest.figures()
    print()
    print_table(HEADER, table_rows(statistics, missed, levels["samplers"]))
    print()
    for sentence in (
        *sentences,
        sentence_of(figures),
        f"Of {os.cpu_count()} cores: {shares or 'next to nothing'}.",
        *(f"Missed: {sentence}" for sentence in missed.values()),
    ):
        print(sentence)
    whole = {
        **result,
        "samplers": sampler_figures(statistics),
        "slowest": figures,
        "cores_used": {name: round(share, 2) for name, share in cores.items()},
        "missed": list(missed.values()),
        "held": not missed,
        "output": str(output),
    }
    (output / "result.json").write_text(json.dumps(whole, indent=2) + "\n")
    print(json.dumps(whole), flush=True)
    return whole


def read_surveys(path: Path) -> dict[str, str]:
    pairs = re.findall(r"(?m)^take\.(\d+)\.survey=(.+)$", path.read_text("ascii"))
    return dict(pairs)


def read_results(
    results: Iterable[str], surveys: Mapping[str, str]
) -> tuple[list[float], list[float], Slowest]:
    """Return when people came, when requests were answered well, and what was slow.

    Moments are in seconds since 1970. A person comes with the first request.
    """
    came: dict[str, float] = {}
    answered = []
    slowest = Slowest()
    for row in csv.DictReader(results):
        person, moment = row["threadName"], int(row["timeStamp"]) / 1000
        seconds = int(row["elapsed"]) / 1000
        # A message platform is nobody who takes part.
        is_person = "platform " not in person
        if is_person:
            came[person] = min(came.get(person, moment), moment)
        if is_person and row["success"] == "true":
            answered.append(moment + seconds)
        page = PAGE.search(row["URL"])
        slowest.add(
            seconds,
            view=row["label"],
            survey=surveys.get(row["take"], ""),
            page=int(page[1]) if page else 0,
        )
    return sorted(came.values()), answered, slowest


def missed_levels(
    statistics: Statistics, *, rate: float, people: float, levels: Levels
) -> dict[tuple[str, str], str]:
    """Return a sentence for each view and measure that missed its level.

    `rate` is the share of the expected requests that were answered well in
    time, `people` the share of the planned people who arrived.
    """
    least, missed = levels["rate_percent"], {}
    for measure, share in (("rate_percent", rate), ("people_percent", people)):
        percent = round(100 * share, 1)
        if percent < least:
            missed["all", measure] = f"all {measure}: {percent:g}, not {least:g}"
    for view, percentiles in levels["samplers"].items():
        row = statistics.get(view)
        if row is None:
            missed[view, "requests"] = f"{view}: no request at all"
            continue
        bounds = {"error_percent": levels["error_percent"], **percentiles}
        for measure, most in bounds.items():
            value = round(row[COLUMNS[measure]], 3)
            if value > most:
                missed[view, measure] = f"{view} {measure}: {value:g}, not {most:g}"
    return missed


def table_rows(
    statistics: Statistics, missed: Container[tuple[str, str]], views: Iterable[str]
) -> list[list[str]]:
    """Return a row for each view; figures that missed their level have a star."""
    rows = []
    for view in (*views, "Total"):
        row = statistics.get(view)
        if row is None:
            rows.append([view, "none *", "", "", "", "", ""])
            continue
        measures = [
            f"{row[column]:.4g}{'*' if (view, measure) in missed else ''}"
            for measure, column in COLUMNS.items()
        ]
        count, longest = f"{row['sampleCount']:,}", f"{row['maxResTime']:.4g}"
        rows.append([view, count, *measures, longest])
    return rows


def sampler_figures(statistics: Statistics) -> dict[str, dict[str, float]]:
    return {
        view: {
            "requests": row["sampleCount"],
            "errors": row["errorCount"],
            "max_ms": row["maxResTime"],
            **{name: round(row[key], 1) for name, key in PERCENTILES.items()},
        }
        for view, row in statistics.items()
        if view != "Total"
    }

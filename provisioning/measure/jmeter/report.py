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
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
MEASURES = ("error_percent", *PERCENTILES)
# In the address of content and of a page save; the outline, page 0, is no page.
PAGE = re.compile(r"/(?:take/pages|content/.+)/([1-9]\d*)/$")

# Of a shape in slo.json: error_percent, rate_percent, and bounds by sampler and
# percentile.
Levels = dict[str, Any]
# Measures of each sampler, which is named as the view it requests, and of all.
Statistics = Mapping[str, Mapping[str, float]]
# Of fewer requests, the 95th percentile is the slowest one.
LEAST = 20

Figures = dict[str, dict[str, str | float]]


class Samples:
    """The requests of a run: their times by view, page and survey, and errors."""

    def __init__(self) -> None:
        # "view", "page" or "survey" -> its name -> seconds.
        self._seconds: dict[str, defaultdict[str, Counter[float]]] = {
            kind: defaultdict(Counter) for kind in ("view", "page", "survey")
        }
        self._errors: Counter[str] = Counter()

    def add(
        self,
        seconds: float,
        *,
        view: str,
        survey: str = "",
        page: int = 0,
        failed: bool = False,
    ) -> None:
        self._errors[view] += failed
        names = {
            "view": view,
            "page": f"page {page} of {survey}" if page and survey else "",
            "survey": survey,
        }
        for kind, name in names.items():
            if name:
                self._seconds[kind][name][round(seconds, 5)] += 1

    def statistics(self) -> Statistics:
        """Return the measures of each view, and of all together as `Total`."""
        views = dict(self._seconds["view"])
        errors = {**self._errors, "Total": self._errors.total()}
        views["Total"] = sum(views.values(), Counter())
        return {
            view: {
                "requests": (count := seconds.total()),
                "errors": errors[view],
                "error_percent": 100 * errors[view] / max(1, count),
                "max_ms": round(1000 * percentile_of(seconds, 100), 1),
                **{
                    name: round(1000 * percentile_of(seconds, percent), 1)
                    for name, percent in PERCENTILES.items()
                },
            }
            for view, seconds in views.items()
        }

    def slowest(self) -> Figures:
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
    dashboard = output / "dashboard" / "index.html"
    if not dashboard.exists():
        raise Refusal(f"JMeter wrote no dashboard; its log is {output / 'jmeter.log'}")
    surveys = read_surveys(output / "run.properties")
    with (output / "results.csv").open(newline="") as results:
        arrived, answered, samples = read_results(results, surveys)
    # Load servers start some time after they were told to.
    began = arrived[0] if remote and arrived else run.began
    begins, ends = began + load.begins, began + load.ends
    achieved = sum(begins <= moment < ends for moment in answered) / load.duration
    drawn = load.drawn(moment - began for moment in arrived)
    return conclude(
        output,
        samples,
        # Each of the three parts of the schedule draws a whole number.
        people=min(1, (len(arrived) + 3) / load.people),
        rate=achieved / drawn if drawn else 0,
        levels=levels,
        cores=run.cores,
        sentences=[
            f"{load.rate:g} requests a second were asked for; {len(arrived):,} of"
            f" {load.people:,} people arrived, who bring {drawn:.1f}; answered well:"
            f" {achieved:.1f}",
            f"Dashboard: {dashboard}",
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
    samples: Samples,
    *,
    rate: float,
    people: float,
    levels: Levels,
    cores: Mapping[str, float],
    sentences: Iterable[str],
    result: Mapping[str, Any],
) -> dict[str, Any]:
    """Judge a run, print it, and write and return its result; see `missed_levels`."""
    statistics, slowest = samples.statistics(), samples.slowest()
    missed = missed_levels(statistics, rate=rate, people=people, levels=levels)
    shares = ", ".join(f"{name} {share:.2f}" for name, share in cores.items())
    print()
    print_table(HEADER, table_rows(statistics, missed, levels["samplers"]))
    print()
    for sentence in (
        *sentences,
        sentence_of(slowest),
        f"Of {os.cpu_count()} cores: {shares or 'next to nothing'}.",
        *(f"Missed: {sentence}" for sentence in missed.values()),
    ):
        print(sentence)
    whole = {
        **result,
        "samplers": {view: statistics[view] for view in statistics if view != "Total"},
        "slowest": slowest,
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
) -> tuple[list[float], list[float], Samples]:
    """Return when people came, when requests were answered well, and what was slow.

    Moments are in seconds since 1970. A person comes with the first request.
    """
    came: dict[str, float] = {}
    answered = []
    samples = Samples()
    for row in csv.DictReader(results):
        person, moment = row["threadName"], int(row["timeStamp"]) / 1000
        seconds = int(row["elapsed"]) / 1000
        # A message platform is nobody who takes part.
        is_person = "platform " not in person
        is_answered_well = row["success"] == "true"
        if is_person:
            came[person] = min(came.get(person, moment), moment)
        if is_person and is_answered_well:
            answered.append(moment + seconds)
        page = PAGE.search(row["URL"])
        samples.add(
            seconds,
            view=row["label"],
            survey=surveys.get(row["take"], ""),
            page=int(page[1]) if page else 0,
            failed=not is_answered_well,
        )
    return sorted(came.values()), answered, samples


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
            value = round(row[measure], 3)
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
            f"{row[measure]:.4g}{'*' if (view, measure) in missed else ''}"
            for measure in MEASURES
        ]
        rows.append([view, f"{row['requests']:,}", *measures, f"{row['max_ms']:.4g}"])
    return rows

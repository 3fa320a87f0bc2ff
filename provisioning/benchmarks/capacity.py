"""Compute from the latest provisioning/bench what a survey day needs.

Requests, web servers, workers, pools, connections, memory, load servers, and which of
them runs out first. Without a target, two examples: Chicago (8,000 takers an hour) and
Illinois (50,000).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from provisioning.benchmarks.capacity_model import (
    HEADROOM,
    CapacitySheet,
    Machines,
    RequestCost,
    SurveyDay,
    capacity_sheet,
    inventory_of,
)
from provisioning.commands import (
    ROOT,
    Refusal,
    positive_integer,
    positive_number,
    write_csv,
)

LATEST = ROOT / ".bench" / "latest.json"
KEPT = ROOT / "provisioning" / "measured" / "bench.json"
# Illinois: 4.5 million requests an hour by 50,000 people are 90 each.
EXAMPLES = {
    "Chicago": SurveyDay(takers_per_hour=8_000, pages=45, think_seconds=20),
    "Illinois": SurveyDay(takers_per_hour=50_000, pages=45, think_seconds=20),
}


def main() -> int:
    options = parse_options()
    source = options.bench or (LATEST if LATEST.exists() else KEPT)
    bench = read_benchmark(source)
    machines = Machines(options.web_cores, options.database_cores)
    days = EXAMPLES
    if takers := options.takers_per_hour:
        day = SurveyDay(takers, options.pages, options.think)
        days = {f"{takers:,.0f} takers an hour": day}
    cost = RequestCost.of(bench)
    sheets = {name: capacity_sheet(day, machines, cost) for name, day in days.items()}
    if options.inventory:
        for name, sheet in sheets.items():
            print("\n".join(inventory_lines(name, sheet)))
        return 0
    machine = bench["machine"]
    print(
        f"From {source}: revision {machine['revision']} on {machine['cpu']},"
        f" {machine['cores']} cores"
    )
    for name, sheet in sheets.items():
        print_sheet(name, sheet)
    if options.csv:
        rows = [(name, *row) for name, sheet in sheets.items() for row in sheet.rows()]
        write_csv(options.csv, [("target", "what", "value", "unit"), *rows])
    return 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/capacity",
        description=__doc__,
        epilog=f"{1 - HEADROOM:.0%}% of every server is left free.",
    )
    add, up_to_1000 = parser.add_argument, partial(positive_integer, most=1000)
    add("--takers-per-hour", type=positive_number, help="starts in the busiest hour")
    add("--pages", type=up_to_1000, default=45, help="of the survey (45)")
    add("--think", type=positive_number, default=20.0, help="seconds on a page (20)")
    add("--web-cores", type=up_to_1000, default=8, help="of a web server (8)")
    add("--database-cores", type=up_to_1000, default=16, help="of the primary (16)")
    add("--bench", type=Path, help="instead of .bench/latest.json")
    add("--csv", type=Path, help="write the sheet there as well")
    add("--inventory", action="store_true", help="print the variables for Ansible")
    options = parser.parse_args(arguments)
    if options.inventory and not options.takers_per_hour:
        parser.error("--inventory needs --takers-per-hour")
    return options


def read_benchmark(path: Path) -> dict[str, Any]:
    try:
        bench: dict[str, Any] = json.loads(path.read_text())
        RequestCost.of(bench)
    except FileNotFoundError:
        raise Refusal(
            "There is no measurement yet; make one: provisioning/bench"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise Refusal(f"{path} is no complete result of provisioning/bench") from None
    return bench


def print_sheet(name: str, sheet: CapacitySheet) -> None:
    day = sheet.day
    print(
        f"\n{name}: {day.takers_per_hour:,.0f} takers an hour, {day.pages} pages,"
        f" {day.think_seconds:g} s on each"
    )
    for need in sheet.needs:
        print(f"  {need.name:<30}{with_digits(need.value):>12} {need.unit}")
    print("  How often this load fits, with nothing left free:")
    for resource, multiple in sorted(sheet.multiples.items(), key=lambda item: item[1]):
        print(f"  {resource:<30}{multiple:>12.1f} times")
    resource, multiple = sheet.first_to_run_out
    print(f"  Runs out first: {resource}, at {multiple:.1f} times this load")


def with_digits(value: float) -> str:
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def inventory_lines(name: str, sheet: CapacitySheet) -> list[str]:
    lines = [f"# {name}: {sheet.value('web servers'):.0f} web servers"]
    for variable, value in inventory_of(sheet).items():
        if isinstance(value, dict):
            lines.append(f"{variable}:")
            lines += [f"  {key}: {each}" for key, each in value.items()]
        else:
            lines.append(f"{variable}: {value}")
    return lines

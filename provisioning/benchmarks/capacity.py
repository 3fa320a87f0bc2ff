"""`provisioning/capacity`: the servers that a day to come needs."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from provisioning.benchmarks.capacity_model import (
    HEADROOM,
    Cost,
    Day,
    Machines,
    Sheet,
    inventory_of,
    sheet_for,
)
from provisioning.commands import ROOT, Refusal, run_command

LATEST = ROOT / ".bench" / "latest.json"
KEPT = ROOT / "provisioning" / "measured" / "bench.json"
# Illinois: 4.5 million requests an hour by 50,000 people are 90 each.
EXAMPLES = {
    "Chicago": Day(takers_per_hour=8_000, pages=45, think_seconds=20),
    "Illinois": Day(takers_per_hour=50_000, pages=45, think_seconds=20),
}


def main() -> int:
    options = _arguments()
    source = options.bench or (LATEST if LATEST.exists() else KEPT)
    bench = _read(source)
    machines = Machines(options.web_cores, options.database_cores)
    days = _days(options)
    sheets = {
        name: sheet_for(day, machines, Cost.of(bench)) for name, day in days.items()
    }
    if options.inventory:
        _print_inventory(sheets)
        return 0
    here = bench["machine"]
    print(
        f"From {source}: revision {here['revision']} on {here['cpu']},"
        f" {here['cores']} cores"
    )
    for name, sheet in sheets.items():
        _print(name, sheet)
    if options.csv:
        _write(options.csv, sheets)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/capacity",
        description="Computes from the latest provisioning/bench what a day takes:"
        " requests, web servers, workers, pools, connections, memory, load servers,"
        " and which of them runs out first. Without a target, two examples: Chicago"
        " (8,000 takers an hour) and Illinois (50,000).",
        epilog=f"{1 - HEADROOM:.0%}% of every server is left free.",
    )
    add = parser.add_argument
    add("--takers-per-hour", type=_positive, help="who start in the busiest hour")
    add("--pages", type=_whole, default=45, help="of the survey (45)")
    add("--think", type=_positive, default=20.0, help="seconds on a page (20)")
    add("--web-cores", type=_whole, default=8, help="of a web server (8)")
    add("--database-cores", type=_whole, default=16, help="of the primary (16)")
    add("--bench", type=Path, help="instead of .bench/latest.json")
    add("--csv", type=Path, help="write the sheet there as well")
    add("--inventory", action="store_true", help="print the variables for Ansible")
    options = parser.parse_args()
    if options.inventory and not options.takers_per_hour:
        parser.error("--inventory needs --takers-per-hour")
    return options


def _positive(text: str) -> float:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def _whole(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 1000")
    return int(text)


def _read(path: Path) -> dict[str, Any]:
    try:
        bench = json.loads(path.read_text())
        Cost.of(bench)
    except FileNotFoundError:
        raise Refusal(
            "There is no measurement yet; make one: provisioning/bench"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise Refusal(f"{path} is no complete result of provisioning/bench") from None
    return bench


def _days(options: argparse.Namespace) -> dict[str, Day]:
    if not options.takers_per_hour:
        return EXAMPLES
    day = Day(options.takers_per_hour, options.pages, options.think)
    return {f"{options.takers_per_hour:,.0f} takers an hour": day}


def _print(name: str, sheet: Sheet) -> None:
    day = sheet.day
    print(
        f"\n{name}: {day.takers_per_hour:,.0f} takers an hour, {day.pages} pages,"
        f" {day.think_seconds:g} s on each"
    )
    for line in sheet.lines:
        print(f"  {line.name:<30}{_shown(line.value):>12} {line.unit}")
    print("  How often this load fits, with nothing left free:")
    for what, multiple in sorted(sheet.multiples.items(), key=lambda one: one[1]):
        print(f"  {what:<30}{multiple:>12.1f} times")
    what, multiple = sheet.first_to_run_out
    print(f"  Runs out first: {what}, at {multiple:.1f} times this load")


def _shown(value: float) -> str:
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def _write(path: Path, sheets: dict[str, Sheet]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["target", "what", "value", "unit"])
        for name, sheet in sheets.items():
            for line in sheet.lines:
                writer.writerow([name, line.name, round(line.value, 3), line.unit])
            for what, multiple in sheet.multiples.items():
                writer.writerow([name, f"{what} fit", round(multiple, 2), "times"])


def _print_inventory(sheets: dict[str, Sheet]) -> None:
    for name, sheet in sheets.items():
        print(f"# {name}: {sheet.value('web servers'):.0f} web servers")
        for variable, value in inventory_of(sheet).items():
            if isinstance(value, dict):
                print(f"{variable}:")
                for key, each in value.items():
                    print(f"  {key}: {each}")
            else:
                print(f"{variable}: {value}")


if __name__ == "__main__":
    sys.exit(run_command("provisioning/capacity", main))

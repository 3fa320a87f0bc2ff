"""`provisioning/bench`: what the stack that runs here can do, and its limits."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from provisioning.benchmarks import compare_revisions, machine
from provisioning.benchmarks.capacity_model import WORKER_MB
from provisioning.benchmarks.phases import (
    P99_LIMIT_MS,
    Size,
    find_knee,
    limits,
    mix,
    offer,
    print_step,
    rehearsing,
    save_as_fast_as_possible,
    with_enough_people,
)
from provisioning.benchmarks.soak import (
    LONGEST_START,
    MOST_GROWTH_MB,
    people_for,
    soak,
    start_of_a_worker,
    start_shortcomings,
)
from provisioning.benchmarks.stack import Stack, running_stack
from provisioning.commands import ROOT, Refusal, run_command

KEPT = ROOT / ".bench"
QUICK = Size(
    respondents=1500, pages=10, seconds=1.0, warm=0.5, connections=(8, 16), room=200
)
# Of the same partition's speed while it was empty.
LEAST_WHEN_GROWN = 0.9


def main() -> int:
    options = _arguments()
    size = _size(options)
    stack = running_stack(home=options.home, address=options.address)
    result: dict[str, Any] = {"machine": machine.described(stack)}
    result["size"] = dataclasses.asdict(size)
    print(_title(result["machine"], size), flush=True)
    if options.against:
        result["against"] = compare_revisions.compare(
            stack, options.against, size, measure=measure_briefly
        )
        held = True
    elif options.rate:
        held = _offer(stack, size, options.rate, result)
    elif options.growth:
        held = _growth(stack, size, int(options.growth * 1e6), result)
    elif options.soak:
        held = _soak(stack, size, options.soak, result)
    else:
        held = _capacity(stack, size, result)
    _keep(result, options)
    print(json.dumps(result))
    return 0 if held else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/bench",
        description="Measures the stack that provisioning/stack up has started: page"
        " saves alone and the mix of a day (half page saves), each as fast as they go,"
        " and beside them what the database, gunicorn and nginx do by themselves. It"
        " makes a rehearsal of its own, whose answers it deletes before each run; real"
        " administrations are never touched. Prints tables, and as its last line one"
        " JSON object, which is kept in .bench/ as well.",
        epilog="45 pages are Illinois's: 4.5 million requests an hour by 50,000 people"
        " are 90 each, of which half are page saves.",
    )
    add = parser.add_argument
    add("--respondents", type=_number, default=20_000, help="invited (20,000)")
    add("--pages", type=_number, default=45, help="of the survey (45)")
    add("--items", type=_number, default=5, help="on each page (5)")
    add("--seconds", type=float, help="of each part (10), or of --rate (60)")
    add("--drivers", type=_number, default=1, help="processes that offer load (1)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--rate",
        type=float,
        help="offer so many requests a second, whatever the answers do; exit status 1"
        f" where p99 is above {P99_LIMIT_MS:.0f} ms or a request fails",
    )
    what.add_argument(
        "--against",
        metavar="REV",
        help="run this checkout and that revision in turns, and print the ratios",
    )
    what.add_argument(
        "--growth",
        type=float,
        metavar="MILLIONS",
        help="compare the empty partition with one that holds so many responses; says"
        " beforehand how large it is and how long it takes, and may be interrupted;"
        f" exit status 1 below {LEAST_WHEN_GROWN:.0%}% of the empty one's speed",
    )
    what.add_argument(
        "--soak",
        type=_number,
        metavar="REQUESTS",
        help="the mix until so many were answered, and the memory of each worker; ends"
        " one worker beforehand, to time the start of the next; exit status 1 above"
        f" {WORKER_MB} MB, where one grew by more than {MOST_GROWTH_MB:.0f} MB, or took"
        f" longer than {LONGEST_START:.0f} s",
    )
    what.add_argument(
        "--quick", action="store_true", help="small and short: does everything work?"
    )
    add("--home", type=Path, help="of the stack (.stack, or GROUNDSWELL_STACK)")
    add("--address", default="", help="instead of nginx's own: http://127.0.0.1:8080")
    add("--output", type=Path, help="also write the JSON there")
    return parser.parse_args()


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def _size(options: argparse.Namespace) -> Size:
    if options.quick:
        return QUICK
    seconds = options.seconds or (60.0 if options.rate else 10.0)
    if seconds < 1:
        raise Refusal("--seconds is at least 1")
    size = Size(
        respondents=options.respondents,
        pages=options.pages,
        items=options.items,
        seconds=seconds,
        drivers=options.drivers,
    )
    if options.rate:
        # The first minute of a server that was idle is not what is promised.
        return dataclasses.replace(size, warm=5.0)
    if options.growth or options.against:
        return dataclasses.replace(size, connections=(16, 32))
    return size


def _title(here: dict[str, Any], size: Size) -> str:
    return (
        f"{here['cpu']}, {here['cores']} cores, revision {here['revision']}\n"
        f"{size.pages} pages of {size.items} items, {size.respondents:,} respondents"
    )


def _name(size: Size, purpose: str = "bench") -> str:
    return f"rehearsal-{purpose}-{size.pages}x{size.items}"


# What is measured


def _capacity(stack: Stack, size: Size, result: dict[str, Any]) -> bool:
    size = with_enough_people(size, parts=len(size.connections) + 1)
    with rehearsing(stack, size, name=_name(size)) as rehearsal:
        print("Page saves alone, closed loop", flush=True)
        saves = find_knee(rehearsal, size)
        saves["inserted_share"] = _inserted_share(rehearsal.rows(), saves, size)
        print("The mix, closed loop", flush=True)
        together = saves["together"]
        mixed = mix(rehearsal, size, together)
        print("The limits", flush=True)
        alone = limits(rehearsal, size, together)
    result |= {
        "saves_per_s": saves["saves_per_s"],
        "mix_per_s": mixed["mix_per_s"],
        "views": mixed["views"],
        "cpu_us_per_save": saves["cpu_us_per_save"],
        "cpu_us_per_request": mixed["cpu_us_per_request"],
        "non_2xx": _added(saves["non_2xx"], mixed["non_2xx"]),
        "failed": saves["failed"] + mixed["failed"],
        "statements_per_save": saves["statements_per_save"],
        "commits_per_fsync": saves["commits_per_fsync"],
        "limits": alone,
        "saves": saves,
        "mix": mixed,
    }
    _print_capacity(result)
    return not result["failed"]


def _inserted_share(rows: int, saves: dict[str, Any], size: Size) -> float:
    """Of all saved rows those that were new: an update would be cheaper."""
    written = sum(step["saves_counted_by_postgresql"] for step in saves["steps"])
    return round(rows / max(1, written * size.items), 4)


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def _offer(stack: Stack, size: Size, rate: float, result: dict[str, Any]) -> bool:
    size = with_enough_people(size, parts=1, rate=rate)
    with rehearsing(stack, size, name=_name(size)) as rehearsal:
        print(f"Offering {rate:,.0f} requests a second, open loop", flush=True)
        offered = offer(rehearsal, size, rate)
    result |= {"rate": offered, "mix_per_s": offered["mix_per_s"]}
    result |= {"views": offered["views"], "non_2xx": offered["non_2xx"]}
    result["cpu_us_per_request"] = offered["cpu_us_per_request"]
    _print_views(offered["views"])
    _print_cpu("CPU, µs a request", offered["cpu_us_per_request"])
    print(
        f"{'held' if offered['held'] else 'MISSED'}: offered {rate:,.0f}/s, answered"
        f" {offered['mix_per_s']:,.0f}/s, p99 {offered['p99']:.1f} ms"
        f" (at most {P99_LIMIT_MS:.0f}), {offered['failed']} failed"
        f" {offered['failures'] or ''}"
    )
    return offered["held"]


def _growth(stack: Stack, size: Size, rows: int, result: dict[str, Any]) -> bool:
    """Empty and grown in turns, so that the machine's moods fall on both."""
    # Each of them has ten others beside them in the grown partition.
    size = dataclasses.replace(size, respondents=min(size.respondents, 2000))
    size = with_enough_people(size, parts=3)
    together = size.connections[-1]
    speeds: dict[str, list[float]] = {"empty": [], "grown": []}
    with (
        rehearsing(stack, size, name=_name(size)) as empty,
        rehearsing(stack, size, name=_name(size, "growth"), grown=rows) as grown,
    ):
        for _ in range(3):
            for name, rehearsal in (("empty", empty), ("grown", grown)):
                print(f"Page saves into the {name} partition", flush=True)
                step = save_as_fast_as_possible(rehearsal, size, together)
                print_step(step)
                speeds[name].append(step["saves_per_s"])
    medians = {name: sorted(found)[1] for name, found in speeds.items()}
    ratio = round(medians["grown"] / medians["empty"], 3)
    result["growth"] = {"rows": rows, "ratio": ratio, "runs": speeds, **medians}
    print(
        f"With {rows / 1e6:,g} million responses stored: {medians['grown']:,.0f}"
        f" saves/s, {ratio:.0%} of the empty partition's {medians['empty']:,.0f}"
    )
    return ratio >= LEAST_WHEN_GROWN


def _soak(stack: Stack, size: Size, requests: int, result: dict[str, Any]) -> bool:
    size = with_enough_people(size, parts=len(size.connections))
    needed = size.respondents + people_for(size, requests)
    size = dataclasses.replace(size, respondents=needed)
    start = start_of_a_worker(stack)
    with rehearsing(stack, size, name=_name(size)) as rehearsal:
        print("Page saves alone, to find the knee", flush=True)
        together = find_knee(rehearsal, size)["together"]
        print(
            f"The mix, {together} at a time, until {requests:,} were answered;"
            " MB of each taking worker (PSS)",
            flush=True,
        )
        soaked = soak(rehearsal, size, requests, together)
    soaked["start_seconds"] = round(start, 3)
    soaked["shortcomings"] += start_shortcomings(start)
    result["soak"] = soaked
    _print_soak(soaked)
    return not soaked["shortcomings"] and not soaked["failed"]


def measure_briefly(stack: Stack, size: Size) -> dict[str, float]:
    """The figures that two revisions are compared by."""
    together = size.connections[-1]
    size = with_enough_people(size, parts=2)
    with rehearsing(stack, size, name=_name(size)) as rehearsal:
        saves = save_as_fast_as_possible(rehearsal, size, together)
        mixed = mix(rehearsal, size, together)
    return {
        "saves_per_s": saves["saves_per_s"],
        "saves_p99_ms": saves["p99"],
        "mix_per_s": mixed["mix_per_s"],
        "mix_p99_ms": mixed["p99"],
        "cpu_us_per_save": _servers_share(saves["cpu_us_per_save"]),
        "cpu_us_per_request": _servers_share(mixed["cpu_us_per_request"]),
        "failed": saves["failed"] + mixed["failed"],
    }


def _servers_share(cpu: dict[str, float]) -> float:
    aside = ("load engine", "rest of the machine")
    return round(sum(it for name, it in cpu.items() if name not in aside), 1)


# What is printed and kept


def _print_capacity(result: dict[str, Any]) -> None:
    saves, mixed = result["saves"], result["mix"]
    print(f"\n{'':<26}{'per second':>12}{'p50':>9}{'p95':>9}{'p99':>9}  ms")
    rows = [
        (f"page saves ({saves['together']} at a time)", saves["saves_per_s"], saves)
    ]
    rows.append(("mix, half page saves", mixed["mix_per_s"], mixed))
    for name, rate, at in rows:
        print(
            f"{name:<26}{rate:>12,.0f}{at['p50']:>9.1f}{at['p95']:>9.1f}{at['p99']:>9.1f}"
        )
    _print_views(mixed["views"])
    _print_cpu("CPU, µs a save", saves["cpu_us_per_save"])
    _print_cpu("CPU, µs a request of the mix", mixed["cpu_us_per_request"])
    print("Limits, by themselves, per second")
    for name, rate in result["limits"].items():
        print(f"  {name.removesuffix('_per_s').replace('_', ' '):<24}{rate:>12,.0f}")
    print(
        f"{saves['statements_per_save']} statements a save,"
        f" {saves['commits_per_fsync']} commits a flush,"
        f" {saves['inserted_share']:.0%} of the rows were new,"
        f" {result['failed']} failed {saves['failures'] or mixed['failures'] or ''}"
    )


def _print_soak(soaked: dict[str, Any]) -> None:
    print(
        f"{soaked['requests']:,} requests in {soaked['seconds']:,.0f} s,"
        f" {soaked['failed']} failed; {soaked['compared']} workers were compared with"
        f" themselves, {soaked['restarted']} had come in the place of one that ended"
        " (max_requests)"
    )
    print(
        f"{'; '.join(soaked['shortcomings']) or 'held'}: at most"
        f" {soaked['most_mb']:.1f} MB (limit {WORKER_MB}), grew by"
        f" {soaked['growth_mb']:.1f} MB (limit {MOST_GROWTH_MB:.0f}), a worker starts"
        f" in {soaked['start_seconds']:.2f} s (limit {LONGEST_START:.0f})"
    )


def _print_views(views: dict[str, Any]) -> None:
    for view, at in views.items():
        if at:
            print(
                f"  {view:<24}{at['per_second']:>12,.0f}{at['p50']:>9.1f}"
                f"{at['p95']:>9.1f}{at['p99']:>9.1f}"
            )


def _print_cpu(title: str, cpu: dict[str, float]) -> None:
    print(title)
    for group, used in sorted(cpu.items(), key=lambda one: -one[1]):
        print(f"  {group:<24}{used:>12,.0f}")


def _keep(result: dict[str, Any], options: argparse.Namespace) -> None:
    KEPT.mkdir(exist_ok=True)
    text = json.dumps(result, indent=1) + "\n"
    kind = next(
        (
            one
            for one in ("rate", "against", "growth", "soak", "quick")
            if getattr(options, one)
        ),
        "latest",
    )
    moment = time.strftime("%Y%m%d-%H%M%S")
    for path in (KEPT / f"{kind}.json", KEPT / f"{kind}-{moment}.json", options.output):
        if path is not None:
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            draft.write_text(text)
            draft.replace(path)


if __name__ == "__main__":
    sys.exit(run_command("provisioning/bench", main))

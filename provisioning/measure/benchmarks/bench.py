"""Measure page saves alone, the mix of a day (half page saves) and the servers' limits.

On the stack that provisioning/stack up has started. Opens a rehearsal of its own, whose
answers it deletes before each run; real administrations are never touched. The last
line is one JSON object, which is kept in .bench/ as well.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    command_parser,
    positive_integer,
    print_figures,
    print_table,
)
from provisioning.measure.benchmarks import compare_revisions, open_codes, phases, soak
from provisioning.measure.benchmarks.growth import stored_rows
from provisioning.measure.benchmarks.meter import describe_machine
from provisioning.measure.benchmarks.phases import P99_LIMIT_MS, Size, rehearsal_of
from provisioning.measure.benchmarks.soak import LONGEST_START, MOST_GROWTH_MB
from provisioning.measure.benchmarks.stack import Stack, running_stack
from provisioning.measure.capacity import WORKER_MB

RESULTS = ROOT / ".bench"
QUICK = Size(
    respondents=2000, pages=10, seconds=0.5, warm=0.25, connections=(8, 16), room=200
)
# Relative to the empty partition: the speed of saves, and their processor time.
LEAST_WHEN_GROWN, MOST_WHEN_GROWN = 0.9, 1.1
KINDS = ("rate", "against", "growth", "soak", "open_code", "quick")


def main() -> int:
    options = parser().parse_args()
    size = size_of(options)
    stack = running_stack(folder=options.home, address=options.address)
    machine = describe_machine(stack)
    print(f"{machine['cpu']}, {machine['cores']} cores, revision {machine['revision']}")
    print(
        f"{size.pages} pages of {size.items} items, {size.respondents:,} respondents",
        flush=True,
    )
    result: dict[str, Any] = {"machine": machine, "size": dataclasses.asdict(size)}
    held = True
    if options.against:
        result["against"] = compare_revisions.compare(
            stack, options.against, size, measure=measure_briefly
        )
    elif options.rate:
        held = _measure_rate(stack, size, options.rate, result)
    elif options.growth:
        held = _measure_growth(stack, size, int(options.growth * 1e6), result)
    elif options.soak:
        print("Page saves alone, to find the knee", flush=True)
        result["soak"] = soaked = soak.measure(stack, size, options.soak)
        print_figures({name: soaked[name] for name in soaked if name != "readings"})
        print("; ".join(soaked["shortcomings"]) or "held")
        held = not soaked["shortcomings"] and not soaked["failed"]
    elif options.open_code:
        result |= open_codes.measure(stack, size)
        print_figures({key: result[key] for key in open_codes.SHOWN})
        print("; ".join(result["missed"]) or "held")
        held = not result["missed"]
    else:
        held = _measure_capacity(stack, size, result)
    keep_result(result, options)
    print(json.dumps(result))
    return 0 if held else 1


def parser() -> argparse.ArgumentParser:
    parser = command_parser(
        __doc__,
        "45 pages are Illinois's: 4.5 million requests an hour by 50,000 people"
        " are 90 each, of which half are page saves.",
        respondents=(20_000, "who are invited"),
        pages=(45, "of the survey"),
        items=(5, "on each page"),
        drivers=(1, "processes that offer load"),
    )
    add = parser.add_argument
    add("--seconds", type=float, help="of each part (10), or of --rate (60)")
    add("--home", type=Path, help="of the stack (.stack, or GROUNDSWELL_STACK)")
    add("--address", default="", help="instead of nginx's own: http://127.0.0.1:8080")
    add("--output", type=Path, help="also write the JSON there")
    add = parser.add_mutually_exclusive_group().add_argument
    add(
        "--rate",
        type=float,
        help="offer so many requests a second, whatever the answers do; exit status 1"
        f" where p99 is above {P99_LIMIT_MS:.0f} ms or a request fails",
    )
    add(
        "--against",
        metavar="REV",
        help="run this checkout and that revision in turns, and print the ratios",
    )
    add(
        "--growth",
        type=float,
        metavar="MILLIONS",
        help="compare the empty partition with one of so many responses, whose size"
        f" and time it announces; exit status 1 below {LEAST_WHEN_GROWN:.0%}% of the"
        f" empty one's speed, or above {MOST_WHEN_GROWN:.0%}% of its processor time",
    )
    add(
        "--soak",
        type=positive_integer,
        metavar="REQUESTS",
        help="answer so many of the mix and watch the workers' memory; exit status 1"
        f" above {WORKER_MB} MB, where one grew by more than {MOST_GROWTH_MB:.0f} MB,"
        f" or took longer than {LONGEST_START:.0f} s to start",
    )
    add(
        "--open-code",
        action="store_true",
        help="compare starts by open codes with logins by personal codes; exit status"
        f" 1 above {open_codes.MOST_STATEMENTS} statements a start, above a p95 of"
        f" {open_codes.P95_LIMIT_MS:.0f} ms at {open_codes.WANTED_PER_S:.0f} starts a"
        " second (fewer on a slow machine, which it says), or below "
        + ", ".join(
            f"{least} × {reference} for {variant}"
            for variant, reference, least in open_codes.REQUIRED
        ),
    )
    add("--quick", action="store_true", help="small and short: does everything work?")
    return parser


def size_of(options: argparse.Namespace) -> Size:
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
        # The promise does not cover the first minute of an idle server.
        return dataclasses.replace(size, warm=5.0)
    if options.growth or options.against:
        return dataclasses.replace(size, connections=(16, 32))
    return size


# Measurements: each adds to `result`, and returns whether its bounds were held.


def _measure_capacity(stack: Stack, size: Size, result: dict[str, Any]) -> bool:
    size = phases.with_enough_people(size, parts=len(size.connections) + 1)
    with rehearsal_of(stack, size) as rehearsal:
        print("Page saves alone, closed loop", flush=True)
        saves = phases.find_knee(rehearsal)
        # Updated rows would be cheaper than new ones.
        written = sum(step["saves_counted_by_postgresql"] for step in saves["steps"])
        rows = stored_rows(stack, rehearsal.details["administration_id"])
        saves["inserted_share"] = round(rows / max(1, written * size.items), 4)
        print("The mix, closed loop", flush=True)
        mixed = phases.mix(rehearsal, saves["together"])
        print("The limits", flush=True)
        alone = phases.limits(rehearsal, saves["together"])
    keys = ("saves_per_s", "cpu_us_per_save", "statements_per_save")
    result |= {key: saves[key] for key in (*keys, "commits_per_fsync")}
    result |= {key: mixed[key] for key in ("mix_per_s", "views", "cpu_us_per_request")}
    result |= {"limits": alone, "saves": saves, "mix": mixed}
    result |= {
        "non_2xx": dict(Counter(saves["non_2xx"]) + Counter(mixed["non_2xx"])),
        "failed": saves["failed"] + mixed["failed"],
    }
    print()
    saves_alone = {**saves, "per_second": saves["saves_per_s"]}
    whole_mix = {**mixed, "per_second": mixed["mix_per_s"]}
    _print_latencies(
        {
            f"page saves ({saves['together']} at a time)": saves_alone,
            "mix, half page saves": whole_mix,
            **mixed["views"],
        }
    )
    shown = ("cpu_us_per_save", "cpu_us_per_request", "limits", "statements_per_save")
    print_figures({key: result[key] for key in (*shown, "commits_per_fsync", "failed")})
    print_figures({"failures": saves["failures"] or mixed["failures"]})
    return not result["failed"]


def _measure_rate(
    stack: Stack, size: Size, rate: float, result: dict[str, Any]
) -> bool:
    size = phases.with_enough_people(size, parts=1, rate=rate)
    with rehearsal_of(stack, size) as rehearsal:
        print(f"Offering {rate:,.0f} requests a second, open loop", flush=True)
        offered = phases.offer(rehearsal, rate)
    keys = ("mix_per_s", "views", "non_2xx", "cpu_us_per_request")
    result |= {"rate": offered, **{key: offered[key] for key in keys}}
    _print_latencies(offered["views"])
    print_figures({"cpu_us_per_request": offered["cpu_us_per_request"]})
    print(
        f"{'held' if offered['held'] else 'MISSED'}: offered {rate:,.0f}/s, answered"
        f" {offered['mix_per_s']:,.0f}/s, p99 {offered['p99']:.1f} ms"
        f" (at most {P99_LIMIT_MS:.0f}), {offered['failed']} failed"
        f" {offered['failures'] or ''}"
    )
    return bool(offered["held"])


def _measure_growth(
    stack: Stack, size: Size, rows: int, result: dict[str, Any]
) -> bool:
    """Save into an empty and a grown partition in turns, as machines vary."""
    # In the grown partition each of them lies between ten others.
    size = dataclasses.replace(size, respondents=min(size.respondents, 2000))
    size = phases.with_enough_people(size, parts=3)
    runs: dict[str, list[dict[str, float]]] = {"grown": [], "empty": []}
    with (
        rehearsal_of(stack, size) as empty,
        rehearsal_of(stack, size, purpose="growth", grown=rows) as grown,
    ):
        for _ in range(3):
            for name, rehearsal in (("empty", empty), ("grown", grown)):
                print(f"Page saves into the {name} partition", flush=True)
                step = phases.save_pages(rehearsal, size.connections[-1])
                cost = cpu_of_servers(step["cpu_us_per_save"])
                runs[name].append(
                    {"saves_per_s": step["saves_per_s"], "cpu_us_per_save": cost}
                )
    ratios = compare_revisions.ratios_of_medians(*runs.values())
    result["growth"] = {"rows": rows, "ratios": ratios, "runs": runs}
    print(
        f"With {rows / 1e6:,g} million responses stored:"
        f" {ratios['saves_per_s']:.0%} of the saves a second into the empty partition,"
        f" {ratios['cpu_us_per_save']:.0%} of their processor time"
    )
    return growth_held(ratios)


def growth_held(ratios: Mapping[str, float]) -> bool:
    return (
        ratios["saves_per_s"] >= LEAST_WHEN_GROWN
        and ratios["cpu_us_per_save"] <= MOST_WHEN_GROWN
    )


def measure_briefly(stack: Stack, size: Size) -> dict[str, float]:
    """Measure the figures by which two revisions are compared."""
    size = phases.with_enough_people(size, parts=2)
    together = size.connections[-1]
    with rehearsal_of(stack, size) as rehearsal:
        saves = phases.save_pages(rehearsal, together)
        mixed = phases.mix(rehearsal, together)
    return {
        "saves_per_s": saves["saves_per_s"],
        "saves_p99_ms": saves["p99"],
        "mix_per_s": mixed["mix_per_s"],
        "mix_p99_ms": mixed["p99"],
        "cpu_us_per_save": cpu_of_servers(saves["cpu_us_per_save"]),
        "cpu_us_per_request": cpu_of_servers(mixed["cpu_us_per_request"]),
        "failed": saves["failed"] + mixed["failed"],
    }


def cpu_of_servers(cpu: Mapping[str, float]) -> float:
    excluded = ("load engine", "rest of the machine")
    return round(sum(used for name, used in cpu.items() if name not in excluded), 1)


# Tables and files


def _print_latencies(views: Mapping[str, Any]) -> None:
    print_table(
        ("", "per second", "p50 ms", "p95 ms", "p99 ms"),
        [
            (name, f"{view['per_second']:,.0f}")
            + tuple(f"{view[key]:.1f}" for key in ("p50", "p95", "p99"))
            for name, view in views.items()
            if view
        ],
    )


def keep_result(result: Mapping[str, Any], options: argparse.Namespace) -> None:
    RESULTS.mkdir(exist_ok=True)
    kind = next((kind for kind in KINDS if getattr(options, kind)), "latest")
    dated = RESULTS / f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    paths = (RESULTS / f"{kind}.json", dated, options.output)
    for path in filter(None, paths):
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(result, indent=1) + "\n")
        draft.replace(path)

"""`provisioning/finder`: measure the public school finder on the running stack."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from provisioning.benchmarks.finder_load import (
    EDITS,
    REQUESTS,
    closed_loop,
    edits,
    made_up_schools,
    measure_misses,
    measure_throughput,
    nearby,
    offer,
    outage,
)
from provisioning.benchmarks.machine import describe_machine
from provisioning.benchmarks.stack import Stack, running_stack
from provisioning.commands import positive_integer, print_table, run_command
from provisioning.fault_injection.stack import RunningStack
from provisioning.load.school_visitors import Place, draw_places, hit_ratio
from provisioning.load.target import refuse_real_respondents
from provisioning.percentiles import percentile

SCHOOLS = 100_000
WANTED_RATE = REQUESTS / 60
# Seconds for which a visitor may see a page after the school was edited.
KEPT = 30.0
LEAST_HITS, LEAST_OF_LIMIT = 0.9, 0.5
MOST_P95_MS, MOST_SLOWER = 20.0, 1.2
MOST_SEARCH_MS, MOST_NEAREST_MS = 10.0, 5.0
OUTAGE = 10.0
# Of the misses that the application answers at most, so many are offered.
SHARE_OF_MOST = 0.6
SEARCHES = Path(__file__).with_name("school_searches.py")


def main() -> int:
    options = parse_options()
    stack = running_stack()
    gc.freeze()
    machine = describe_machine(stack)
    print(f"{machine['cpu']}, {machine['cores']} cores, revision {machine['revision']}")
    with closing(RunningStack(stack.folder)) as servers:
        refuse_real_respondents(
            lambda sql: json.loads(stack.sql(sql)[0][0]),
            consequence="this loads the stack and stops its database",
        )
        with made_up_schools(stack, options.schools, keep=options.keep):
            result = measure(stack, servers, options.seconds)
    missed = [name for name, held in requirements(result).items() if not held]
    print(f"MISSED: {', '.join(missed)}" if missed else "held: all requirements")
    print(json.dumps({"machine": machine, **result, "missed": missed}))
    return 1 if missed else 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/finder",
        description="Imports made-up schools into the stack that provisioning/stack up"
        " has started, asks for the nearest ones from places around towns, and"
        " compares nginx's cache with and without normalised coordinates. It edits"
        " schools and stops the database for ten seconds meanwhile. The schools are"
        " deleted at the end. The last line is one JSON object.",
    )
    add = parser.add_argument
    add("--schools", type=positive_integer, default=SCHOOLS, help="(100,000)")
    add("--seconds", type=float, default=60.0, help="of each part under load (60)")
    add("--keep", action="store_true", help="keep the made-up schools for the next run")
    options = parser.parse_args()
    if options.seconds < 4:
        parser.error("--seconds is at least 4")
    return options


def measure(stack: Stack, servers: RunningStack, seconds: float) -> dict[str, Any]:
    print("Misses, in the application's process", flush=True)
    result: dict[str, Any] = {"misses": time_misses(stack)}
    part = min(10.0, seconds / 2)
    throughput = measure_throughput(stack, part)
    misses = measure_misses(stack, part)
    rate = rate_to_offer(misses)
    print(
        f"At most {misses:,.0f} misses a second. Offered: {rate:,.0f} requests a"
        f" second, {rate / WANTED_RATE:.0%} of {REQUESTS:,} a minute",
        flush=True,
    )
    # The first part fills the cache.
    parts = [list(draw_places(round(rate * seconds), seed)) for seed in range(3)]
    cold = offer(stack, parts[0], rate, seconds)
    calm = offer(stack, parts[1], rate, seconds)
    edited = offer(stack, parts[2], rate, seconds, edits(stack, seconds))
    # Some were refused before; now all of these are in the cache.
    known = parts[2][-round(rate * OUTAGE) :]
    closed_loop(stack, (nearby(stack, place) for place in known))
    known = list(islice(cycle(known), round(rate * OUTAGE * 2)))
    down = offer(stack, known, rate, OUTAGE, outage(stack, servers))
    by_decimals = hit_ratios(parts[0] + parts[1], rate, warm=seconds)
    result |= {
        "hit_ratio": calm["hit_ratio"],
        "hit_ratio_raw": by_decimals[12],
        "hit_ratio_by_decimals": by_decimals,
        **throughput,
        "p95_ms": calm["p95"],
        "p95_ms_edited": edited["p95"],
        "edited": {**edited, "schools": EDITS},
        "cold": cold,
        "calm": calm,
        "database_down": down,
        "scale": round(rate / WANTED_RATE, 2),
        "misses_per_s": misses,
    }
    print_result(result)
    return result


def rate_to_offer(misses: float) -> float:
    """Return the wanted rate, or the highest that leaves room for its misses."""
    for percent in range(100, 5, -5):
        rate = WANTED_RATE * (percent / 100)
        places = list(draw_places(round(rate * KEPT * 2), seed=9))
        missing = 1 - hit_ratios(places, rate, warm=KEPT)[2]
        if rate * missing <= SHARE_OF_MOST * misses:
            break
    return rate


def hit_ratios(
    places: Sequence[Place], rate: float, *, warm: float
) -> dict[int, float]:
    """Return the share of cached pages by the decimals of the keys."""
    return {
        decimals: round(
            hit_ratio(places, decimals=decimals, rate=rate, kept=KEPT, warm=warm), 4
        )
        for decimals in (1, 2, 3, 4, 12)
    }


# Misses


def time_misses(stack: Stack) -> dict[str, dict[str, float]]:
    printed = stack.run_python(SEARCHES, failing="The searches failed")
    timed: dict[str, list[float]] = json.loads(printed.splitlines()[-1])
    found = {
        name: {
            "median": round(percentile(times, 50), 2),
            "p95": round(percentile(times, 95), 2),
        }
        for name, times in timed.items()
    }
    print_table(
        ("", "median ms", "p95 ms"),
        [(f"  {name}", each["median"], each["p95"]) for name, each in found.items()],
    )
    return found


# Results


def requirements(result: Mapping[str, Any]) -> dict[str, bool]:
    """Return each requirement and whether it was held."""
    misses, near = dict(result["misses"]), result["misses"]["nearest"]
    del misses["nearest"]
    return {
        f"hit ratio of {LEAST_HITS:.0%}": result["hit_ratio"] >= LEAST_HITS,
        f"{LEAST_OF_LIMIT:g} of nginx's own limit": result["cached_per_s"]
        >= LEAST_OF_LIMIT * result["nginx_cache_per_s"],
        f"p95 of {MOST_P95_MS:g} ms": result["p95_ms"] <= MOST_P95_MS,
        f"p95 while editing {MOST_SLOWER:g} times that": result["p95_ms_edited"]
        <= MOST_SLOWER * result["p95_ms"],
        "no failed request": not any(
            result[part][how]
            for part in ("calm", "edited", "database_down")
            for how in ("failed", "refused")
        ),
        f"nearest in {MOST_NEAREST_MS:g} ms": near["median"] <= MOST_NEAREST_MS,
        f"by name in {MOST_SEARCH_MS:g} ms": all(
            each["median"] <= MOST_SEARCH_MS for each in misses.values()
        ),
    }


def print_result(result: Mapping[str, Any]) -> None:
    print_table(
        ("Hit ratio by the keys' decimals (model)", ""),
        [
            (f"  {decimals} decimals", f"{ratio:.1%}")
            for decimals, ratio in result["hit_ratio_by_decimals"].items()
        ],
    )
    print_table(
        ("Under load", "requests", "from the cache", "p50 ms", "p95 ms", "refused"),
        [
            (
                f"  {title}",
                f"{part['requests']:,}",
                f"{part['hit_ratio']:.1%}",
                f"{part.get('p50', 0):.1f}",
                f"{part.get('p95', 0):.1f}",
                part["refused"] + part["failed"],
            )
            for title, part in (
                ("an empty cache", result["cold"]),
                ("a full cache", result["calm"]),
                (f"{EDITS:,} schools are edited", result["edited"]),
                ("the database is down", result["database_down"]),
            )
        ],
    )


if __name__ == "__main__":
    sys.exit(run_command("provisioning/finder", main))

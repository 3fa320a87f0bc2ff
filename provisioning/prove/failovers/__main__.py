"""Run `provisioning/run failovers` in its namespaces."""

from __future__ import annotations

import argparse
import json
import statistics
from contextlib import closing
from datetime import UTC, datetime
from random import Random
from typing import Any

from provisioning.commands import ROOT, Refusal, conclude, print_figures, seed_of, step
from provisioning.prove.failovers.cluster import Cluster
from provisioning.prove.failovers.drill import (
    TABLE,
    Drill,
    Load,
    Probe,
    find_split,
    prepare,
)
from provisioning.prove.failovers.faults import FAULTS, PROTECTED, UNPROTECTED
from provisioning.prove.failovers.start import arguments
from provisioning.prove.fault_injection.saver import ADMINISTRATION, PAGES
from provisioning.prove.fault_injection.saves import AnswerSource
from provisioning.prove.fault_injection.verdict import Judge, read_back

RECORD = ROOT / "provisioning" / "measured" / "failovers.json"
# Seconds that saves may need until they succeed again, in the middle.
MEDIAN = 15.0
# Seconds that a failover takes at most, on average, with all that follows.
EACH = 150


def main() -> int:
    options = arguments()
    seed = seed_of(options)
    if options.control:
        options.promise, options.count = "A1", 3
    print(f"Promise {options.promise}", flush=True)
    result = run(options, seed)
    if options.record:
        record(result)
    print_figures({name: value for name, value in result.items() if name != "each"})
    return conclude(result, shortcomings_of(result, options))


def run(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    with step("Making hosts"):
        cluster = Cluster(options.folder, options.promise)
    with step("Starting Patroni, etcd, HAProxy and pgbouncer"):
        cluster.start()
    people = max(2_000, options.count * EACH * options.rate // len(PAGES))
    with step("Making tables and respondents"):
        prepare(cluster, people, ADMINISTRATION)
        cluster.execute(TABLE)
    random = Random(seed)  # noqa: S311
    faults = [each for each in FAULTS if not options.only or each.name in options.only]
    probe = Probe(cluster.databases, synchronous_commit="on")
    load = Load.of(cluster, seed=seed, rate=options.rate, people=people)
    drill = Drill(cluster, load, random)
    protected = 0
    if options.control:
        drill.run(PROTECTED, 2)
        protected = len(find_split(probe.writes))
        drill.run([UNPROTECTED], 3)
    else:
        drill.run(faults, options.count)
    load.stop()
    probe.stop()
    primary = cluster.primary()
    if primary is None:
        raise Refusal("There is no primary for the final read: the run is void")
    with step("Reading everything back"), closing(primary.connect()) as connection:
        stored, _ = read_back(connection, ADMINISTRATION)
    source = AnswerSource(seed, PAGES)
    verdict = Judge(source, load.attempts, stored).verdict()
    # Without those that changed and interrupted nothing, as a jump of the clock.
    seconds = [
        each.seconds
        for each in drill.failovers
        if each.seconds is not None and (each.seconds or each.successor)
    ]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "seed": seed,
        "promise": options.promise,
        "failovers": drill.changes(),
        "faults": len(drill.failovers),
        "acknowledged": verdict.acknowledged,
        **verdict.counts(),
        "split": len(find_split(probe.writes)),
        **({"split_with_protection": protected} if options.control else {}),
        "probe_writes": len(probe.writes),
        "median_s": round(statistics.median(seconds), 1),
        "longest_s": round(max(seconds), 1),
        "not_whole": int(not drill.is_whole),
        "resets": sum(
            each.watchdog.resets for each in cluster.databases if each.watchdog
        ),
        "never": sum(each.seconds is None for each in drill.failovers),
        "each": [
            [each.fault, each.host, each.successor, each.seconds]
            for each in drill.failovers
        ],
    }


def shortcomings_of(result: dict[str, Any], options: argparse.Namespace) -> list[str]:
    if options.control:
        if result["split_with_protection"]:
            return ["there was a split with every protection in place"]
        return [] if result["split"] else ["the control did not find its split"]
    names = [
        "split",
        "never",
        "not_whole",
        "crossed",
        "corrupt",
        "unexpected",
        "duplicated",
    ]
    # A tab may have seen what A1 loses, and is refused then.
    of_a2 = ["lost", "regressions", "lost_updates", "false_rejected"]
    names += of_a2 if options.promise == "A2" else []
    shortcomings = [f"{name} is {result[name]}" for name in names if result[name]]
    if result["median_s"] > MEDIAN:
        shortcomings.append(f"saves succeed again after {result['median_s']} s")
    return shortcomings


def record(result: dict[str, Any]) -> None:
    runs = json.loads(RECORD.read_text()) if RECORD.exists() else []
    lines = ",\n".join(json.dumps(each) for each in [*runs, result])
    RECORD.write_text(f"[\n{lines}\n]\n")

"""Run `provisioning/run cluster_fleet` in its namespaces."""

from __future__ import annotations

import argparse
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from provisioning.commands import (
    Refusal,
    conclude,
    print_figures,
    seed_of,
    step,
    wait_until,
)
from provisioning.prove import fault_injection
from provisioning.prove.citus.fleet import ALL_NODES, CitusFleet, primary_of
from provisioning.prove.citus.fleet_start import arguments
from provisioning.prove.failovers.drill import Load
from provisioning.prove.failovers.host import Host
from provisioning.prove.fault_injection.saver import ADMINISTRATION, PAGES
from provisioning.prove.fault_injection.saves import AnswerSource
from provisioning.prove.fault_injection.verdict import Judge, read_back

PEOPLE = 4_000
PATIENCE = 240.0
# Seconds of saves before each fault, and after the last.
CALM = 20.0
FORBIDDEN = (
    *("lost", "regressions", "lost_updates", "false_rejected"),
    *("crossed", "corrupt", "unexpected", "duplicated"),
)
SHARDS = """
SELECT count(DISTINCT groupid) FROM citus_shards JOIN pg_dist_node USING (nodename)
WHERE table_name = 'survey_response'::regclass
"""


def main() -> int:
    options = arguments()
    result = run(options, seed_of(options))
    print_figures(result)
    return conclude(result, shortcomings_of(result))


def run(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    with step("Making hosts"):
        fleet = CitusFleet(options.folder, "A2")
    began = time.monotonic()
    with step("Starting Patroni, etcd, HAProxy, pgbouncer and the firewall"):
        fleet.start()
    with step("Making tables, and distributing them"):
        fleet.migrate()
        fleet.distribute()
    with step("Making respondents"):
        controls = Path(fault_injection.__file__).with_name("controls.sql").read_text()
        fleet.execute(controls.format(administration=ADMINISTRATION, people=PEOPLE))
    built = time.monotonic() - began
    load = Load.of(fleet, seed=seed, rate=options.rate, people=PEOPLE)
    worker = kill_primary(fleet, load, 1)
    coordinator = kill_primary(fleet, load, 0)
    time.sleep(CALM)
    load.stop()
    primary = fleet.primary()
    if primary is None:
        raise Refusal("There is no primary for the final read: the run is void")
    with step("Reading everything back"), closing(primary.connect()) as connection:
        stored, _ = read_back(connection, ADMINISTRATION)
        with connection.cursor() as cursor:
            cursor.execute(SHARDS)
            [nodes_with_answers] = cursor.fetchone()
            cursor.execute("SELECT count(*) FROM pg_prepared_xacts")
            [prepared] = cursor.fetchone()
    verdict = Judge(AnswerSource(seed, PAGES), load.attempts, stored).verdict()
    return {
        "seconds_to_build": round(built),
        "nodes_with_answers": nodes_with_answers,
        "acknowledged": verdict.acknowledged,
        **verdict.counts(),
        "seconds_without_worker": worker,
        "seconds_without_coordinator": coordinator,
        "prepared": prepared,
        "seed": seed,
    }


def kill_primary(fleet: CitusFleet, load: Load, number: int) -> float | None:
    """Kill a node's primary; return the seconds until saves succeed, None if never."""
    if not wait_until(load.is_steady, seconds=PATIENCE, pause=0.2):
        raise Refusal("Page saves do not succeed before the fault")
    time.sleep(CALM)
    node = fleet.nodes[number]
    host = primary_of(node)
    if host is None:
        raise Refusal(f"Node {number} has no primary before the fault")
    began = time.time()
    with step(f"Killing {host.name}, the primary of node {number}"):
        host.kill()
        survivors = [each for each in node if each is not host]
        recovers = wait_until(
            lambda: takes_over(fleet, number, survivors) and load.is_steady(),
            seconds=PATIENCE,
            pause=0.2,
        )
    seconds = round(load.recovered_after(began), 1)
    with step("Bringing it back as a standby"):
        host.resume()
        if not fleet.becomes_whole():
            raise Refusal(f"{host.name} does not come back")
    return seconds if recovers else None


def takes_over(fleet: CitusFleet, number: int, survivors: list[Host]) -> bool:
    """Return whether a standby is the primary, and the coordinator calls it."""
    successor, coordinator = primary_of(survivors), fleet.primary()
    if successor is None or coordinator is None:
        return False
    with closing(coordinator.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(ALL_NODES)
        names = [name for (name,) in cursor.fetchall()]
    return len(names) > number and names[number] == successor.address


def shortcomings_of(result: dict[str, Any]) -> list[str]:
    shortcomings = [f"{name} is {result[name]}" for name in FORBIDDEN if result[name]]
    for name in ("seconds_without_worker", "seconds_without_coordinator"):
        if result[name] is None:
            shortcomings.append(f"{name}: saves never succeeded again")
    if result["nodes_with_answers"] != 2:
        shortcomings.append(f"{result['nodes_with_answers']} nodes have answers")
    if result["prepared"]:
        shortcomings.append(f"{result['prepared']} transactions are left prepared")
    return shortcomings

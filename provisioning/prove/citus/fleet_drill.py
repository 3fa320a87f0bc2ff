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
from provisioning.installation.backups.records import count_tables, differences
from provisioning.prove import fault_injection
from provisioning.prove.citus.fleet import (
    ALL_NODES,
    CitusFleet,
    FleetThatBecomes,
    primary_of,
)
from provisioning.prove.citus.fleet_start import arguments
from provisioning.prove.failovers.drill import Load, judge_with_control
from provisioning.prove.failovers.host import Host
from provisioning.prove.fault_injection.saver import ADMINISTRATION
from provisioning.prove.fault_injection.saves import Attempt
from provisioning.prove.fault_injection.verdict import read_back

PEOPLE = 4_000
PATIENCE = 240.0
# Seconds of saves before each fault, and after the last.
CALM = 20.0
FORBIDDEN = (
    *("lost", "regressions", "lost_updates", "false_rejected"),
    *("crossed", "corrupt", "unexpected", "duplicated"),
)
# What the rows of controls.sql refer to: a cluster's foreign keys are made anew.
REFERRED = """
SET session_replication_role = replica;
INSERT INTO accounts_district (id, code, name) VALUES (0, 'control', 'Control');
INSERT INTO accounts_school (id, district_id, code, name)
VALUES (0, 0, 'control', 'Control');
INSERT INTO survey_survey (id, name, version, title, languages, source_name,
    created_at, last_change, compiled_change, published_at)
VALUES (0, 'control', '1', '{}', '[]', '', now(), 0, 0, now());
INSERT INTO survey_publishedsurvey (digest, survey_id, definition, published_at)
VALUES ('none', 0, '{}', now());
"""
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
        kind = FleetThatBecomes if options.from_fleet else CitusFleet
        fleet = kind(options.folder, "A2")
    began = time.monotonic()
    with step("Starting Patroni, etcd, HAProxy, pgbouncer and the firewall"):
        fleet.start()
    with step("Making tables"):
        fleet.migrate()
    attempts: list[Attempt] = []
    night: dict[str, Any] = {}
    if isinstance(fleet, FleetThatBecomes):
        fleet.grant()
        make_people(fleet)
        attempts = answer(fleet, options, seed)
        night = become_cluster(fleet)
    else:
        fleet.distribute()
        make_people(fleet)
    built = time.monotonic() - began
    # Each page is saved once, so that no later save hides its loss.
    first = 1 + max((each.respondent for each in attempts), default=0)
    load = Load.of(fleet, seed=seed, rate=options.rate, people=PEOPLE, first=first)
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
    return {
        **night,
        "seconds_to_build": round(built),
        "nodes_with_answers": nodes_with_answers,
        **judge_with_control(seed, attempts + load.attempts, stored),
        "seconds_without_worker": worker,
        "seconds_without_coordinator": coordinator,
        "prepared": prepared,
        "seed": seed,
    }


def make_people(fleet: CitusFleet) -> None:
    with step("Making respondents"):
        controls = Path(fault_injection.__file__).with_name("controls.sql").read_text()
        fleet.execute(controls.format(administration=ADMINISTRATION, people=PEOPLE))
        fleet.execute(REFERRED)


def answer(fleet: CitusFleet, options: argparse.Namespace, seed: int) -> list[Attempt]:
    """Let people answer while there is one database."""
    load = Load.of(fleet, seed=seed, rate=options.rate, people=PEOPLE)
    with step("Saving pages on the one database"):
        if not wait_until(load.is_steady, seconds=PATIENCE, pause=0.2):
            raise Refusal("Page saves do not succeed on the fleet")
        time.sleep(CALM)
        load.stop()
    return load.attempts


def become_cluster(fleet: FleetThatBecomes) -> dict[str, Any]:
    """Make a cluster of a fleet, and compare all rows."""
    began, before = time.monotonic(), count_rows(fleet)
    with step("Making a coordinator of its database"):
        fleet.become_cluster()
    coordinator = time.monotonic() - began
    with step("Distributing the tables"):
        fleet.distribute()
    pause = time.monotonic() - began
    # A cluster has a table of its own besides, with the way to each code.
    after = {name: it for name, it in count_rows(fleet).items() if name in before}
    return {
        "rows": sum(int(rows) for rows, _ in before.values()),
        "differences": differences(before, after),
        "seconds_to_coordinator": round(coordinator),
        "seconds_of_pause": round(pause),
    }


def count_rows(fleet: CitusFleet) -> dict[str, list[str]]:
    primary = fleet.primary()
    if primary is None:
        raise Refusal("There is no primary to count its rows: the run is void")
    return count_tables(primary.folder / "run")


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
    shortcomings += result.get("differences", [])
    if result["lost_in_control"] != 1:
        shortcomings.append("the control's lost answer was not noticed")
    if result["nodes_with_answers"] != 2:
        shortcomings.append(f"{result['nodes_with_answers']} nodes have answers")
    if result["prepared"]:
        shortcomings.append(f"{result['prepared']} transactions are left prepared")
    return shortcomings

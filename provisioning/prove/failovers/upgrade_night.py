"""Run `provisioning/run drill_fleet_upgrade` in its namespaces."""

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
from provisioning.installation.backups.records import count_tables
from provisioning.installation.postgresql import INSTALLED
from provisioning.installation.upgrades.comparison import (
    Record,
    differences,
    record_database,
)
from provisioning.prove.failovers.cluster import Cluster
from provisioning.prove.failovers.drill import Load, judge_with_control, prepare
from provisioning.prove.failovers.upgrade_start import arguments
from provisioning.prove.fault_injection.saver import ADMINISTRATION
from provisioning.prove.fault_injection.verdict import FORBIDDEN, read_back

PEOPLE = 20_000
# Until saves succeed, and seconds of saves before the night and after it.
PATIENCE = 120.0
CALM = 20.0
# Saves change these meanwhile; every answer is compared by its receipt.
ANSWERED = ("survey_respondent", "survey_response")
# The playbook sets the same ones anew, with another salt: saves go on by them.
PASSWORD = 8
VERSION = "SELECT current_setting('server_version_num')::int / 10000"
# What the standbys have may be a moment old.
REPLAYED = (
    "SELECT pg_current_wal_lsn() <= ALL (SELECT replay_lsn FROM pg_stat_replication)"
)


class OldFleet(Cluster):
    """Start a fleet with data of another version of PostgreSQL than Debian's."""

    def programs(self) -> Path:
        return INSTALLED / "{{ postgresql_version }}" / "bin"


def main() -> int:
    options = arguments()
    result = run(options, seed_of(options))
    print_figures(result)
    return conclude(result, shortcomings_of(result, options.to))


def run(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    with step("Making hosts"):
        fleet = OldFleet(options.folder, "A2")
    with step("Starting Patroni, etcd, HAProxy and pgbouncer"):
        fleet.start()
    with step("Making tables and respondents"):
        prepare(fleet, PEOPLE, ADMINISTRATION)
    load = Load.of(fleet, seed=seed, rate=options.rate, people=PEOPLE)
    with step("Saving pages"):
        save_for_a_while(load)
    before, began = record(fleet), time.time()
    with step("Upgrading all hosts by upgrade_postgresql.yml"):
        fleet.play_night("upgrade_postgresql.yml", to=options.to, link=options.link)
    night = time.time() - began
    with step("Saving pages"):
        save_for_a_while(load)
    pause = load.recovered_after(began)
    load.stop()
    is_whole = fleet.becomes_whole()
    after = record(fleet)
    primary = primary_of(fleet)
    wait_until(lambda: primary.query(REPLAYED) == (True,), seconds=PATIENCE)
    with step("Reading everything back"), closing(primary.connect()) as connection:
        stored, _ = read_back(connection, ADMINISTRATION)
    rows = [count_tables(host.folder / "run") for host in fleet.databases]
    return {
        "versions": [(host.query(VERSION) or (0,))[0] for host in fleet.databases],
        "not_whole": int(not is_whole),
        "tables": len(before["table"]) + len(ANSWERED),
        "differences": differences(before, after),
        "unlike_the_primary": sum(each != rows[0] for each in rows),
        "night_s": round(night),
        "saves_again_after_s": round(pause),
        **judge_with_control(seed, load.attempts, stored),
        "seed": seed,
    }


def save_for_a_while(load: Load) -> None:
    if not wait_until(load.is_steady, seconds=PATIENCE, pause=0.2):
        raise Refusal("Page saves do not succeed")
    time.sleep(CALM)


def primary_of(fleet: Cluster) -> Any:
    primary = fleet.primary()
    if primary is None:
        raise Refusal("No database host is the primary: the run is void")
    return primary


def record(fleet: Cluster) -> Record:
    """Return what the database holds, without what saves and the playbook change."""
    recorded = record_database(primary_of(fleet).folder / "run")
    for table in ANSWERED:
        del recorded["table"][table]
    for role in recorded["role"].values():
        del role[PASSWORD]
    return recorded


def shortcomings_of(result: dict[str, Any], to: int) -> list[str]:
    names = (*FORBIDDEN, "not_whole", "unlike_the_primary")
    shortcomings = [f"{name} is {result[name]}" for name in names if result[name]]
    shortcomings += result["differences"]
    if result["versions"] != [to] * 3:
        shortcomings.append(f"the hosts run PostgreSQL {result['versions']}")
    if not result["acknowledged"]:
        shortcomings.append("nobody saved a page")
    if result["lost_in_control"] != 1:
        shortcomings.append("the control's lost answer was not noticed")
    return shortcomings

"""Run `provisioning/run measure_firewall` in its namespaces."""

from __future__ import annotations

import dataclasses
import os
import socket
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provisioning.commands import conclude, missed, print_figures, step
from provisioning.installation.temporary_stack import temporary_stack
from provisioning.measure.benchmarks import phases
from provisioning.measure.benchmarks.meter import describe_machine
from provisioning.measure.benchmarks.stack import Stack, running_stack
from provisioning.measure.load.target import Target
from provisioning.prove.failovers.host import Host
from provisioning.prove.firewall.network import (
    ADDRESS,
    PORT,
    PROC,
    RESPONDENTS,
    SCHOOL,
    ask,
    connect_respondents,
    connected,
    connections_per_second,
    fill_table,
    forget_connections,
    idle_connections,
    load_rules,
    network_of,
    read_number,
    remove_rules,
    share_connected,
    tracked,
    waiting_places,
    write_rules,
)
from provisioning.prove.firewall.start import arguments

REDIS = (ADDRESS, 6379)
# Between the programs TCP, as between the hosts of a fleet.
SETTINGS = (
    f"nginx_listen=0.0.0.0:{PORT}",
    f"allowed_hosts=127.0.0.1,localhost,{ADDRESS}",
    "primary_host=127.0.0.1",
    "postgresql_listen=127.0.0.1",
    'postgresql_hba={{ ["host all all 127.0.0.1/32 scram-sha-256"] }}',
    f"redis_listen=bind 127.0.0.1 {ADDRESS}\nport {REDIS[1]}\nprotected-mode no",
    f"redis_url=redis://127.0.0.1:{REDIS[1]}/0",
    'memcached_servers={{ ["127.0.0.1:11211"] }}',
    "memcached_listen=-l 127.0.0.1 -p 11211",
    "backup_repository=none",
)
TOGETHER = 32
TRIES = 10
# Respondents' workers of 16 cores want this many places; see roles/web.
BACKLOG_OF_16_CORES = 16 * 2 * 2 * 128
NO_RULES, ALL_TRACKED, AS_WRITTEN = "no_rules", "all_tracked", "as_written"
SETS = (NO_RULES, ALL_TRACKED, AS_WRITTEN)
LEAST = {"saves_ratio": 0.9, "full_kept": 1.0, "full_servers": 1.0}
# Entries end meanwhile, and leave room for some.
MOST = {"full_servers_control": 0.5, "full_new": 0.5}


def main() -> int:
    options = arguments()
    folder = Path(options.folder)
    result: dict[str, Any] = {"load_average_before": round(os.getloadavg()[0], 2)}
    respondents = connect_respondents(folder)
    with step("Writing the fleet's rules"):
        rules = write_rules(folder)
    result |= measure_backlog()
    with temporary_stack(folder, *SETTINGS, port=PORT, keep=True) as path:
        stack = dataclasses.replace(
            running_stack(folder=path),
            target=Target(socket.AF_INET, (ADDRESS, PORT), f"{ADDRESS}:{PORT}"),
        )
        result["machine"] = describe_machine(stack)
        meter = Measurement(stack, respondents, rules, options.seconds, options.idle)
        result |= meter.compare(options.rounds)
        result |= meter.fill()
    print_figures({name: result[name] for name in result if name != "machine"})
    return conclude(result, missed(result, least=LEAST, most=MOST))


def measure_backlog() -> dict[str, Any]:
    """Count who may wait for the pool of 16 cores, by the kernel's bound."""
    usual = read_number("core/somaxconn")
    places = {}
    for bound in (4096, 65535):
        (PROC / "core/somaxconn").write_text(str(bound))
        places[str(bound)] = waiting_places(BACKLOG_OF_16_CORES)
    (PROC / "core/somaxconn").write_text(str(usual))
    return {"wanted_by_16_cores": BACKLOG_OF_16_CORES, "places_by_somaxconn": places}


class Measurement:
    def __init__(
        self, stack: Stack, respondents: Host, rules: Path, seconds: float, idle: int
    ) -> None:
        self.stack, self.respondents, self.rules = stack, respondents, rules
        self.seconds, self.idle = seconds, idle

    def use(self, rules: str) -> None:
        remove_rules()
        if rules != NO_RULES:
            load_rules(self.rules, tracks_everything=rules == ALL_TRACKED)

    # In turns

    def compare(self, rounds: int) -> dict[str, Any]:
        """Measure each set of rules in each round; return medians and ratios."""
        size = phases.Size(
            respondents=0, pages=45, seconds=self.seconds, warm=0.5, drivers=1
        )
        size = phases.with_enough_people(size, parts=2 * len(SETS) * rounds)
        readings: dict[str, dict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        with phases.rehearsal_of(
            self.stack,
            size,
            purpose="firewall",
            network=network_of(self.respondents),
        ) as rehearsal:
            for number in range(rounds):
                # Each set is the first as often as the last.
                turn = number % len(SETS)
                for rules in (*SETS[turn:], *SETS[:turn]):
                    self.use(rules)
                    print(f"Round {number + 1}, {rules}", flush=True)
                    for name, figure in self.measure(rehearsal, rules).items():
                        readings[rules][name].append(figure)
        return summarise(readings)

    def measure(self, rehearsal: phases.Rehearsal, rules: str) -> dict[str, float]:
        figures = {"saves_per_s": self.saves(rehearsal)}
        # Beforehand: nginx keeps idle connections for a minute only.
        needed = (rehearsal.size.warm + self.seconds) * phases.MOST_SAVES
        rehearsal.drivers.do("enter", rehearsal.share(needed))
        if rules != NO_RULES:
            forget_connections()
        with network_of(self.respondents):
            rate, failed = connections_per_second(RESPONDENTS, self.seconds)
        figures |= {"connections_per_s": rate, "connections_failed": failed}
        if rules != NO_RULES:
            # What has been closed is among them for two minutes.
            figures["entries_per_connection"] = tracked() / (rate * self.seconds)
        with network_of(self.respondents), idle_connections(self.idle):
            beyond = connected(source=SCHOOL, timeout=20.0)
            figures["beyond_the_bound"] = float(bool(beyond and ask(beyond)))
            if beyond:
                beyond.close()
            rate, _ = connections_per_second(RESPONDENTS, self.seconds)
            figures["connections_per_s_idle"] = rate
            figures["saves_per_s_idle"] = self.saves(rehearsal)
        return figures

    @staticmethod
    def saves(rehearsal: phases.Rehearsal) -> float:
        return float(phases.save_pages(rehearsal, TOGETHER)["saves_per_s"])

    # A full table

    def fill(self) -> dict[str, Any]:
        """Count who gets through when the table is full, in the control too."""
        result: dict[str, Any] = {}
        for rules, suffix in ((ALL_TRACKED, "_control"), (AS_WRITTEN, "")):
            self.use(rules)
            forget_connections()
            with network_of(self.respondents):
                opened = [
                    connected(source=RESPONDENTS, timeout=20.0) for _ in range(TRIES)
                ]
                for connection in opened:
                    if connection:
                        ask(connection)
            with step(f"Filling the table ({rules})"):
                result["full_entries"] = fill_table()
            # First, for what others close makes room.
            result[f"full_servers{suffix}"] = share_connected(
                REDIS, source=ADDRESS, tries=TRIES
            )
            fill_table(refill=True)
            with network_of(self.respondents):
                answered = [bool(each and ask(each)) for each in opened]
                result[f"full_kept{suffix}"] = sum(answered) / TRIES
                result[f"full_new{suffix}"] = share_connected(
                    (ADDRESS, PORT), source=RESPONDENTS, tries=TRIES
                )
            for connection in opened:
                if connection:
                    connection.close()
            forget_connections()
        self.use(NO_RULES)
        return result


def summarise(readings: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Return each set's medians, and the medians of its rounds' ratios."""
    summary: dict[str, Any] = {
        rules: {
            name: round(statistics.median(figures), 2)
            for name, figures in readings[rules].items()
        }
        for rules in SETS
    }

    def ratio(name: str, rules: str) -> float:
        pairs = zip(readings[rules][name], readings[NO_RULES][name], strict=True)
        return median_ratio([each / base for each, base in pairs if base])

    for name in ("saves", "connections"):
        for when in ("", "_idle"):
            figure = f"{name}_per_s{when}"
            summary[f"{name}_ratio{when}"] = ratio(figure, AS_WRITTEN)
            summary[f"{name}_ratio{when}_control"] = ratio(figure, ALL_TRACKED)
    return summary


def median_ratio(ratios: Sequence[float]) -> float:
    return round(statistics.median(ratios), 3) if ratios else 0.0

"""Set up a fleet from nothing, answer a survey there, and lose a host of each kind."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from provisioning.commands import (
    Refusal,
    conclude,
    print_figures,
    seed_of,
    step,
    wait_until,
)
from provisioning.installation.environment import PYTHON
from provisioning.prove.failovers.drill import Load
from provisioning.prove.fault_injection.load_processes import RESPONDENTS
from provisioning.prove.fault_injection.saves import AnswerSource
from provisioning.prove.fault_injection.verdict import (
    COMPLETED,
    STORED,
    WITHOUT_INDEXES,
    StoredAnswer,
)
from provisioning.prove.fleet.doors import reachable_doors
from provisioning.prove.fleet.fleet import Fleet
from provisioning.prove.fleet.hosts import Host
from provisioning.prove.fleet.inventory import BALANCER, NAME
from provisioning.prove.fleet.load import ITEMS, PAGES, RATE, describe
from provisioning.prove.fleet.losses import Loss, judge, lose, shortcomings
from provisioning.prove.fleet.start import arguments

EMAIL = "it@example.org"
CODES = "/tmp/codes"  # noqa: S108
# What is lost, in this order.
KINDS: dict[str, Callable[[Fleet], Host]] = {
    "web": lambda fleet: fleet.first("web"),
    "worker": lambda fleet: fleet.first("worker"),
    "queue": lambda fleet: fleet.first("queue"),
    "cache": lambda fleet: fleet.first("cache"),
    "standby": Fleet.standby,
    "primary": Fleet.primary,
    "balancer": lambda fleet: fleet.hosts[BALANCER[0]],
}


@dataclass(frozen=True)
class Survey:
    described: dict[str, Any]
    # Each respondent's ID and access code.
    people: list[tuple[int, str]]
    seed: int


def main() -> int:
    options = arguments()
    seed = seed_of(options)
    fleet = Fleet(options.folder, options.suite)
    try:
        figures = drill(fleet, options, seed)
    finally:
        fleet.stop()
    print_figures(figures)
    return conclude(figures, shortcomings(figures))


def drill(fleet: Fleet, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the figures of all of it."""
    began = time.monotonic()
    figures = set_up(fleet)
    survey = open_survey(fleet, options.people, seed)
    with answering(fleet, survey) as load:
        with step("Answering over TLS"):
            if not wait_until(lambda: has_saved(load), seconds=120, pause=0.1):
                raise Refusal("Nobody could save a page")
        figures["minutes_to_first_answer"] = round((time.monotonic() - began) / 60, 1)
        open_doors = reachable_doors(fleet)
        losses: list[Loss] = []
        for kind, find in KINDS.items():
            if not options.only or kind in options.only:
                losses.append(lose(kind, find(fleet), load, fleet.is_whole))
                if losses[-1].start_s is None:
                    break
    figures["open_doors"] = sorted({*open_doors, *reachable_doors(fleet)})
    with step("Running the playbook again, which changes nothing"):
        fleet.play()
    figures["changed_again"] = fleet.changed()
    stored, completed = read_rows(fleet, survey.described["administration_id"])
    source = AnswerSource.of(seed, survey.described)
    return {**figures, **judge(source, load.attempts, stored, completed, losses)}


def set_up(fleet: Fleet) -> dict[str, Any]:
    began = time.monotonic()
    fleet.make()
    made = time.monotonic()
    fleet.write_inventory(fleet.serve_code())
    with step("Setting up the balancer"):
        fleet.balance()
    with step("Running the playbook"):
        played = fleet.play()
    return {
        "hosts": len(fleet.hosts),
        "debian_seconds": round(made - began),
        "playbook_minutes": round(played / 60, 1),
    }


def open_survey(fleet: Fleet, people: int, seed: int) -> Survey:
    """Make the first administrator, a published survey, and a roster of people."""
    with step("Making an administrator, a survey and a roster"):
        link = fleet.manage("appoint", EMAIL, "--role=state", "--first")
        if f"https://{NAME}/" not in link:
            raise Refusal("There is no link for the first administrator")
        sizes = (f"--respondents={people}", f"--pages={PAGES}", f"--items={ITEMS}")
        described = json.loads(
            fleet.manage("open_rehearsal", "--json", f"--codes={CODES}", *sizes)
        )
        codes = fleet.first("web").run("cat", CODES).split()
        query = RESPONDENTS.format(described["administration_id"])
        numbers = json.loads(fleet.sql(query))
    return Survey(described, list(zip(numbers, codes, strict=True)), seed)


@contextmanager
def answering(fleet: Fleet, survey: Survey) -> Iterator[Load]:
    """Let people answer meanwhile; at the end they save what waits."""
    file, log = fleet.folder / "load.json", fleet.folder / "attempts.log"
    describe(
        file,
        survey.described,
        survey.people,
        authority=str(fleet.authority),
        log=str(log),
        seed=survey.seed,
    )
    process = fleet.start_process(
        "load", str(PYTHON), "-m", "provisioning.prove.fleet.load", str(file)
    )
    load = Load(process, log, rate=RATE)
    yield load
    with step("Letting everybody save what waits"):
        load.stop()


def has_saved(load: Load) -> bool:
    load.read()
    return bool(load.acknowledged)


def read_rows(
    fleet: Fleet, administration: int
) -> tuple[list[StoredAnswer], frozenset[int]]:
    """Return all answers, and the respondents who have finished."""

    def rows(query: str) -> list[list[str]]:
        statement = query.replace("%s", str(administration))
        copy = f"{WITHOUT_INDEXES} COPY ({statement}) TO STDOUT WITH (FORMAT csv)"
        return list(csv.reader(io.StringIO(fleet.sql(copy))))

    with step("Reading everything back"):
        stored = [
            StoredAnswer(int(person), int(item), state, value, int(revision))
            for person, item, state, value, revision in rows(STORED)
        ]
        return stored, frozenset(int(person) for (person,) in rows(COMPLETED))


if __name__ == "__main__":
    sys.exit(main())

"""Ask about people as message platforms do, then save pages meanwhile.

With 500 to 15,000 users scaled to this machine: from Redis, from PostgreSQL, without
the fast path, and an empty view; each served by processes of its own on the running
stack's databases. Ends with one line of JSON, and with 1 if a requirement is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from multiprocessing import Process
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from provisioning import processes
from provisioning.benchmarks.phases import Size, rehearsal_of, save_pages
from provisioning.benchmarks.stack import Stack, running_stack
from provisioning.benchmarks.timed_requests import served
from provisioning.commands import (
    ROOT,
    Refusal,
    missed,
    positive_integer,
    print_table,
    step,
    wait_until,
    write_csv,
)
from provisioning.installation.stack_folder import environment_of
from provisioning.load.crowd import send
from provisioning.load.respondent import get_request
from provisioning.load.tally import Tally
from provisioning.load.target import Target

USERS = (500, 5_000, 10_000, 15_000)
# This step is offered REQUIRED_RATE requests a second, or two thirds of what the
# machine can do at most, if that is less.
REFERENCE_USERS, REQUIRED_RATE, HEADROOM = 10_000, 1_000.0, 2 / 3
MOST_P95_MS, LEAST_RATIO, MOST_LOSS = 50.0, 0.7, 0.05
NAME = "rehearsal-messages"
FAST, PLAIN = "survey.taking.wsgi", "provisioning.benchmarks.plain_views"
# Requests at the same time, to find the highest rate.
TOGETHER = 32
# Seconds at the highest rate, which the people who were invited are enough for.
LONGEST_AT_MOST = 60
WARM = 1.0


class Variant(NamedTuple):
    application: str
    # Replaces the first folder of the addresses.
    folder: str = "messages"
    variables: Mapping[str, str] = MappingProxyType({})


VARIANTS = {
    "empty view": Variant(PLAIN, "empty"),
    "redis": Variant(FAST),
    "without fast path": Variant(PLAIN),
    "postgresql": Variant(FAST, variables={"GROUNDSWELL_MESSAGES_REDIS": ""}),
}


class Rung(NamedTuple):
    """One step of the ladder; users 0 is the highest rate."""

    variant: str
    users: int
    offered_per_s: float
    answered_per_s: float
    p50_ms: float
    p95_ms: float
    errors: int


class Requests(NamedTuple):
    """Requests about people in turn, with an API key."""

    addresses: Sequence[str]
    api_key: str
    folder: str = "messages"

    def send(self, target: Target, *, together: int = 256, **load: float) -> Tally:
        """Send at a rate, or with 0 one after the other on each connection."""
        key = f"Authorization: Bearer {self.api_key}\r\n"
        requests = [
            get_request(
                *(target, address.replace("/messages/", f"/{self.folder}/", 1)),
                headers=key,
                kind="message",
            )
            for address in self.addresses
        ]
        people = (iter((each,)) for each in cycle(requests))
        options: Any = {**load, "warm": WARM, "connections": together, "timeout": 10}
        return send(target, people, together=together, **options).tally

    def answers(self, target: Target) -> bool:
        return self.send(target, seconds=0.1, together=1).answered() > 0


def main() -> int:
    options = parse_options()
    stack = running_stack()
    with step("Inviting people"), tempfile.TemporaryDirectory() as folder:
        people, file = f"{options.people}", Path(folder) / "addresses"
        stack.open_rehearsal(f"--name={NAME}", "--pages=10", f"--respondents={people}")
        words = (f"--name={NAME}", f"--addresses={file}", f"--people={people}")
        made = json.loads(stack.manage("open_message_rehearsal", *words))
        addresses = file.read_text().split()
    rungs, scale = climb(stack, addresses, made["api_key"], options)
    requests = Requests(addresses, made["api_key"])
    rate = scale * REFERENCE_USERS
    print_table(Rung._fields, rungs)
    if options.csv:
        write_csv(options.csv, [Rung._fields, *rungs])
    with step("Saving pages alone, then beside messages"):
        alongside = saves_alongside(
            stack, requests, min(options.seconds, LONGEST_AT_MOST), rate
        )
    result = verdict(rungs, alongside, scale)
    print(json.dumps(result))
    return 0 if result["passed"] else 1


def climb(
    stack: Stack, addresses: Sequence[str], api_key: str, options: argparse.Namespace
) -> tuple[list[Rung], float]:
    """Return all steps of all variants, and the requests a second of one user."""
    rungs: list[Rung] = []
    scale = 0.0
    for name, variant in VARIANTS.items():
        requests = Requests(addresses, api_key, variant.folder)
        environment = {**environment_of(stack.folder, "taking"), **variant.variables}
        with served(
            stack,
            "--preload",
            "--worker-class=settings.infrastructure.gunicorn_workers.PromptWorker",
            *("--threads=1", f"--workers={options.workers}", "--backlog=2048"),
            wsgi=variant.application,
            environment={**environment, "PYTHONPATH": str(ROOT)},
        ) as target:
            if not wait_until(partial(requests.answers, target), seconds=30):
                raise Refusal(f"The {name} does not answer")
            seconds = min(options.seconds, LONGEST_AT_MOST)
            rungs.append(measure(name, 0, requests, target, seconds, 0.0))
            if not scale:
                most = LEAST_RATIO * HEADROOM * rungs[0].answered_per_s
                scale = min(REQUIRED_RATE, most) / REFERENCE_USERS
                print(f"Scale: {scale:.4f} requests a second for each user")
                continue
            for users in USERS:
                rate = users * scale
                rung = measure(name, users, requests, target, options.seconds, rate)
                rungs.append(rung)
    return rungs, scale


def measure(
    name: str,
    users: int,
    requests: Requests,
    target: Target,
    seconds: float,
    rate: float,
) -> Rung:
    with step(f"{name}, {users:,} users" if users else f"{name}, as fast as possible"):
        together = 256 if rate else TOGETHER
        tally = requests.send(target, seconds=seconds, rate=rate, together=together)
    times, answered = tally.percentiles(), round(tally.per_second(), 1)
    p50, p95 = times.get("p50", 0.0), times.get("p95", 0.0)
    return Rung(name, users, rate or answered, answered, p50, p95, tally.failed())


def saves_alongside(
    stack: Stack, requests: Requests, seconds: float, rate: float
) -> dict[str, float]:
    """Save pages alone and beside messages; return how much is lost at equal CPU."""
    before = processes.machine_cpu_seconds()
    requests.send(stack.target, seconds=seconds, rate=rate)
    used = processes.machine_cpu_seconds() - before
    share = used / (seconds + WARM) / (os.cpu_count() or 1)
    size = Size(respondents=20_000, pages=20, seconds=seconds)
    with rehearsal_of(stack, size, purpose="messages") as rehearsal:
        alone = save_pages(rehearsal, TOGETHER)["saves_per_s"]
        lasting = {"seconds": seconds + size.warm, "rate": rate}
        load = Process(target=requests.send, args=(stack.target,), kwargs=lasting)
        load.start()
        beside = save_pages(rehearsal, TOGETHER)["saves_per_s"]
        load.join()
    return {
        "saves_alone_per_s": alone,
        "saves_beside_per_s": beside,
        "cpu_share_of_messages": round(share, 3),
        "saves_lost": round(max(0.0, 1 - beside / (alone * (1 - share))), 3),
    }


def verdict(
    rungs: Sequence[Rung], alongside: dict[str, float], scale: float
) -> dict[str, Any]:
    most = {rung.variant: rung.answered_per_s for rung in rungs if not rung.users}
    redis = [rung for rung in rungs if rung.variant == "redis"]
    errors = sum(rung.errors for rung in redis)
    p95 = next(rung.p95_ms for rung in redis if rung.users == REFERENCE_USERS)
    figures = {
        "redis_per_s": most["redis"],
        "postgresql_per_s": most["postgresql"],
        "without_fast_path_per_s": most["without fast path"],
        "empty_view_per_s": most["empty view"],
        "ratio": round(most["redis"] / most["empty view"], 3),
        "p95_ms": p95,
        "offered_per_s": round(scale * REFERENCE_USERS, 1),
        "scale": round(scale, 5),
        "errors": errors,
        **alongside,
    }
    limits = {"p95_ms": MOST_P95_MS, "errors": 0, "saves_lost": MOST_LOSS}
    found = missed(figures, least={"ratio": LEAST_RATIO}, most=limits)
    return {**figures, "passed": not found}


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="provisioning/messages", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=positive_integer, default=300, help="for each step (300)")
    add("--people", type=positive_integer, default=20_000, help="to ask about")
    add("--workers", type=positive_integer, default=4, help="of each variant (4)")
    add("--csv", type=Path, help="write the table there as well")
    return parser.parse_args(arguments)

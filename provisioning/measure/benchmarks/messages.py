"""Ask about people as message platforms do, then save pages meanwhile.

With 500 to 15,000 users scaled to this machine, beside an empty view; each served by
processes of its own on the running stack's databases. Ends with one line of JSON, and
with 1 if a requirement is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import cycle
from multiprocessing import Process
from pathlib import Path
from typing import Any, NamedTuple

from provisioning import processes
from provisioning.commands import (
    ROOT,
    Refusal,
    command_parser,
    conclude,
    missed,
    print_table,
    step,
    wait_until,
    write_csv,
)
from provisioning.installation.stack_folder import environment_of
from provisioning.measure.benchmarks.phases import Size, rehearsal_of, save_pages
from provisioning.measure.benchmarks.stack import Stack, running_stack
from provisioning.measure.benchmarks.timed_requests import served
from provisioning.measure.load import crowd
from provisioning.measure.load.respondent import get_request
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import Target

USERS = (500, 5_000, 10_000, 15_000)
# This step is offered REQUIRED_RATE requests a second, or two thirds of what the
# machine can do at most, if that is less.
REFERENCE_USERS, REQUIRED_RATE, HEADROOM = 10_000, 1_000.0, 2 / 3
MOST_P95_MS, LEAST_RATIO, MOST_LOSS = 50.0, 0.7, 0.05
NAME = "rehearsal-messages"
# Applications, by the names of their variants.
APPLICATIONS = {
    "empty view": "provisioning.measure.benchmarks.empty_view",
    "redis": "survey.taking.wsgi",
}
# Requests at the same time, to find the highest rate.
TOGETHER = 32
# Seconds at the highest rate, which the people who were invited are enough for.
LONGEST_AT_MOST = 60
WARM = 1.0


class Rung(NamedTuple):
    """One step of the ladder; users 0 is the highest rate."""

    variant: str
    users: int
    offered_per_s: float
    answered_per_s: float
    p50_ms: float
    p95_ms: float
    errors: int

    @classmethod
    def of(cls, variant: str, users: int, tally: Tally, rate: float = 0.0) -> Rung:
        times, answered = tally.percentiles(), round(tally.per_second(), 1)
        p50, p95 = times.get("p50", 0.0), times.get("p95", 0.0)
        return cls(variant, users, rate or answered, answered, p50, p95, tally.failed())


def send(
    target: Target,
    addresses: Sequence[str],
    api_key: str,
    *,
    together: int = 256,
    **load: float,
) -> Tally:
    """Ask about people in turn: at a rate, or `together` at a time."""
    key = f"Authorization: Bearer {api_key}\r\n"
    requests = [
        get_request(target, address, headers=key, kind="message")
        for address in addresses
    ]
    people = (iter((each,)) for each in cycle(requests))
    options: Any = {**load, "warm": WARM, "connections": together, "timeout": 10}
    return crowd.send(target, people, together=together, **options).tally


def main() -> int:
    options = parse_options()
    stack = running_stack()
    with step("Inviting people"), tempfile.TemporaryDirectory() as folder:
        people, file = f"{options.people}", Path(folder) / "addresses"
        stack.open_rehearsal(f"--name={NAME}", "--pages=10", f"--respondents={people}")
        words = (f"--name={NAME}", f"--addresses={file}", f"--people={people}")
        made = json.loads(stack.manage("open_message_rehearsal", *words))
        asked = (file.read_text().split(), made["api_key"])
    rungs, scale = climb(stack, asked, options)
    print_table(Rung._fields, rungs)
    if options.csv:
        write_csv(options.csv, [Rung._fields, *rungs])
    figures = figures_of(rungs, scale)
    with step("Saving pages alone, then beside messages"):
        seconds = min(options.seconds, LONGEST_AT_MOST)
        figures |= saves_alongside(stack, asked, seconds, scale * REFERENCE_USERS)
    least = {"ratio": LEAST_RATIO}
    most = {"p95_ms": MOST_P95_MS, "errors": 0, "saves_lost": MOST_LOSS}
    return conclude(figures, missed(figures, least=least, most=most))


def climb(
    stack: Stack, asked: tuple[Sequence[str], str], options: argparse.Namespace
) -> tuple[list[Rung], float]:
    """Return all steps of all variants, and the requests a second of one user."""
    rungs: list[Rung] = []
    scale = 0.0
    environment = {**environment_of(stack.folder, "taking"), "PYTHONPATH": str(ROOT)}
    for name, application in APPLICATIONS.items():
        with served(
            stack,
            "--preload",
            "--worker-class=settings.infrastructure.gunicorn_workers.PromptWorker",
            *("--threads=1", f"--workers={options.workers}", "--backlog=2048"),
            wsgi=application,
            environment=environment,
        ) as target:
            ask = partial(send, target, *asked)
            answers = partial(ask, seconds=0.1, together=1)
            if not wait_until(lambda: answers().answered(), seconds=30):  # noqa: B023
                raise Refusal(f"The {name} does not answer")
            with step(f"{name}, as fast as possible"):
                seconds = min(options.seconds, LONGEST_AT_MOST)
                most = Rung.of(name, 0, ask(seconds=seconds, together=TOGETHER))
            rungs.append(most)
            if not scale:
                highest = LEAST_RATIO * HEADROOM * most.answered_per_s
                scale = min(REQUIRED_RATE, highest) / REFERENCE_USERS
                print(f"Scale: {scale:.4f} requests a second for each user")
                continue
            for users in USERS:
                rate = users * scale
                with step(f"{name}, {users:,} users"):
                    tally = ask(seconds=options.seconds, rate=rate)
                rungs.append(Rung.of(name, users, tally, rate))
    return rungs, scale


def saves_alongside(
    stack: Stack, asked: tuple[Sequence[str], str], seconds: float, rate: float
) -> dict[str, float]:
    """Save pages alone and beside messages; return how much is lost at equal CPU."""
    before = processes.machine_cpu_seconds()
    send(stack.target, *asked, seconds=seconds, rate=rate)
    used = processes.machine_cpu_seconds() - before
    share = used / (seconds + WARM) / (os.cpu_count() or 1)
    size = Size(respondents=20_000, pages=20, seconds=seconds)
    with rehearsal_of(stack, size, purpose="messages") as rehearsal:
        alone = save_pages(rehearsal, TOGETHER)["saves_per_s"]
        lasting = {"seconds": seconds + size.warm, "rate": rate}
        load = Process(target=send, args=(stack.target, *asked), kwargs=lasting)
        load.start()
        beside = save_pages(rehearsal, TOGETHER)["saves_per_s"]
        load.join()
    return {
        "saves_alone_per_s": alone,
        "saves_beside_per_s": beside,
        "cpu_share_of_messages": round(share, 3),
        "saves_lost": round(max(0.0, 1 - beside / (alone * (1 - share))), 3),
    }


def figures_of(rungs: Sequence[Rung], scale: float) -> dict[str, float]:
    most = {rung.variant: rung.answered_per_s for rung in rungs if not rung.users}
    redis = [rung for rung in rungs if rung.variant == "redis"]
    return {
        **{f"{name.replace(' ', '_')}_per_s": rate for name, rate in most.items()},
        "ratio": round(most["redis"] / most["empty view"], 3),
        "p95_ms": next(rung.p95_ms for rung in redis if rung.users == REFERENCE_USERS),
        "offered_per_s": round(scale * REFERENCE_USERS, 1),
        "scale": round(scale, 5),
        "errors": sum(rung.errors for rung in redis),
    }


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        __doc__,
        seconds=(300, "for each step"),
        people=(20_000, "to ask about"),
        workers=(4, "of each variant"),
    )
    parser.add_argument("--csv", type=Path, help="write the table there as well")
    return parser.parse_args(arguments)

"""Measure the phases of a benchmark: saves alone, the mix, and the limits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from provisioning.commands import Refusal
from provisioning.installation.stack_folder import environment_of
from provisioning.measure.benchmarks import growth
from provisioning.measure.benchmarks.meter import Counters, Meter
from provisioning.measure.benchmarks.stack import Stack
from provisioning.measure.benchmarks.statement import PGBOUNCER, pgbench, save_script
from provisioning.measure.load.driver import Drivers, sleep_until
from provisioning.measure.load.engine import clock
from provisioning.measure.load.respondent import SAVE, VIEWS, RehearsalSurvey
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import Target, target_of

# Above what any machine of two cores saves in a second: so many people are
# logged in beforehand.
MOST_SAVES = 5000
# What this machine does at most, for as long as a phase lasts.
USUAL_SAVES = 1700
P99_LIMIT_MS = 250.0


@dataclass(frozen=True, slots=True)
class Size:
    respondents: int = 20_000
    pages: int = 45
    items: int = 5
    seconds: float = 10.0
    warm: float = 2.0
    # Concurrent requests, tried until more of them give no more saves.
    connections: tuple[int, ...] = (8, 16, 32, 64)
    # People taking the survey at any moment: nginx limits a session to ten
    # requests a second, so that a few people can't replace thousands.
    room: int = 500
    drivers: int = 1


def with_enough_people(size: Size, *, parts: int, rate: float = USUAL_SAVES) -> Size:
    """Invite so many that no part runs out of people at `rate` saves a second."""
    lasting = size.warm + size.seconds
    saves = parts * lasting * rate + lasting * MOST_SAVES
    needed = int(saves / size.pages) + 2 * size.room
    return dataclasses.replace(size, respondents=max(size.respondents, needed))


class Rehearsal(NamedTuple):
    """An open rehearsal in a stack, and the processes that send its people."""

    stack: Stack
    size: Size
    # What open_rehearsal printed.
    details: dict[str, Any]
    drivers: Drivers

    def share(self, number: float) -> int:
        """Return each driver's part of a number."""
        return max(1, math.ceil(number / len(self.drivers)))


@contextmanager
def rehearsal_of(
    stack: Stack,
    size: Size,
    *,
    purpose: str = "bench",
    grown: int = 0,
    network: AbstractContextManager[None] | None = None,
) -> Iterator[Rehearsal]:
    """Open a rehearsal without answers, or with `grown` responses of others.

    The load processes start in `network`, if that is not this process's own.
    """
    shape = [f"--name=rehearsal-{purpose}-{size.pages}x{size.items}"]
    shape += [f"--pages={size.pages}", f"--items={size.items}"]
    if grown:
        growth.fill_with_others(stack, shape, grown, measured=size.respondents)
    shape += ["--unstarted" if grown else "--empty"]
    details, codes = stack.open_rehearsal(*shape, f"--respondents={size.respondents}")
    growth.settle(stack, details["administration_id"])
    survey = RehearsalSurvey.of(details)
    with network or nullcontext():
        drivers = Drivers(size.drivers, stack.target, survey, codes)
    try:
        yield Rehearsal(stack, size, details, drivers)
    finally:
        drivers.stop()


def run_phase(
    rehearsal: Rehearsal, method: str, **options: object
) -> tuple[Tally, Meter, Counters, dict[str, Any]]:
    """Call a method of the drivers that returns a tally, and measure its cost."""
    stack = rehearsal.stack
    meter, before = Meter(stack), Counters.now(stack)
    tally = measured(meter, rehearsal.size, rehearsal.drivers, method, **options)
    counted = Counters.now(stack).since(before)
    figures = {
        **tally.percentiles(),
        "failed": tally.failed(),
        "failures": tally.failures_by_name(),
        "non_2xx": tally.non_2xx(),
        "commits_per_fsync": ratio(counted.commits, counted.flushes),
    }
    return tally, meter, counted, figures


def measured(
    meter: Meter, size: Size, drivers: Drivers, method: str, **options: object
) -> Tally:
    """Call a method that returns a tally; let the meter run with it, after `warm`."""

    def measure_cpu() -> None:
        began = clock()
        sleep_until(began + size.warm)
        meter.begin()
        sleep_until(began + size.warm + size.seconds)
        meter.end()

    tally = drivers.tally(
        method, warm=size.warm, seconds=size.seconds, meanwhile=measure_cpu, **options
    )
    refuse_silence(tally)
    return tally


def refuse_silence(tally: Tally) -> None:
    if not tally.answered():
        raise Refusal(f"Nothing was answered: {tally.failures_by_name()}")


def ratio(value: float, divisor: float) -> float | None:
    return round(value / divisor, 3) if divisor else None


# Saves alone


def find_knee(rehearsal: Rehearsal) -> dict[str, Any]:
    steps = [save_pages(rehearsal, each) for each in rehearsal.size.connections]
    best = max(steps, key=lambda step: step["saves_per_s"])
    return {**best, "steps": steps}


def save_pages(rehearsal: Rehearsal, together: int) -> dict[str, Any]:
    size = rehearsal.size
    saves = (size.warm + size.seconds) * MOST_SAVES
    rehearsal.drivers.do("enter", rehearsal.share(saves))
    tally, meter, counted, figures = run_phase(
        rehearsal,
        "save",
        together=rehearsal.share(together),
        present=rehearsal.share(size.room),
    )
    step = {
        "together": together,
        "saves_per_s": round(tally.per_second(SAVE), 1),
        **figures,
        "cpu_us_per_save": meter.per_request(tally.answered(SAVE), tally.own_cpu),
        "statements_per_save": ratio(counted.statements, counted.saves),
        "wal_bytes_per_save": ratio(counted.wal_bytes, counted.saves),
        "saves_counted_by_postgresql": counted.saves,
    }
    print_step(step)
    return step


def print_step(step: dict[str, Any]) -> None:
    print(
        f"  {step['together']:>3} at a time: {step['saves_per_s']:>7,.0f} saves/s,"
        f" p50 {step['p50']:.1f} ms, p99 {step['p99']:.1f} ms,"
        f" {step['failed']} failed",
        flush=True,
    )


# The mix


def mix(
    rehearsal: Rehearsal, together: int, *, present: int = 0, rate: float = 0.0
) -> dict[str, Any]:
    """Send whole people as fast as possible; half of the requests are saves.

    With `rate`, so many requests a second are sent, however many are answered.
    """
    size = rehearsal.size
    rehearsal.drivers.do("enter_room", rehearsal.share(present or size.room))
    tally, meter, counted, figures = run_phase(
        rehearsal,
        "mix",
        together=rehearsal.share(together),
        rate=rate / len(rehearsal.drivers),
    )
    views = tally.views()
    # PostgreSQL counted the warm-up too.
    requests = tally.answered() * (1 + size.warm / tally.seconds)
    return {
        "mix_per_s": round(tally.per_second(), 1),
        "saves_per_s": round(tally.per_second(SAVE), 1),
        "save_share": ratio(tally.answered(SAVE), tally.answered()),
        **figures,
        "views": {view: views.get(view) for view in VIEWS},
        "cpu_us_per_request": meter.per_request(tally.answered(), tally.own_cpu),
        "statements_per_request": ratio(counted.statements, requests),
        "processors_used": round(meter.used_by_all / size.seconds, 2),
    }


def offer(rehearsal: Rehearsal, rate: float) -> dict[str, Any]:
    """Send a fixed rate, however it is answered; add whether it was held."""
    # Enough people that one is free when each request is due, even if answers
    # to the others take twice the allowed p99.
    present = max(rehearsal.size.room, int(rate * 2 * P99_LIMIT_MS / 1000))
    result = mix(rehearsal, 0, present=present, rate=rate)
    held = is_held(result, rate, rehearsal.size.seconds)
    return {**result, "offered_per_s": rate, "held": held}


def is_held(result: dict[str, Any], rate: float, seconds: float) -> bool:
    return bool(
        not result["failed"]
        and result["p99"] <= P99_LIMIT_MS
        # Arrivals are random: their number varies by its square root.
        and result["mix_per_s"] >= rate * 0.99 - 3 * (rate / seconds) ** 0.5
    )


# The limits


def limits(rehearsal: Rehearsal, together: int) -> dict[str, float]:
    """Measure what the parts of the stack do by themselves, in this run."""
    stack, seconds = rehearsal.stack, rehearsal.size.seconds / 2

    def fetch(target: Target, path: str, *accepted: int) -> float:
        tally = rehearsal.drivers.tally(
            "fetch",
            target=target,
            path=path,
            accepted=accepted,
            together=rehearsal.share(together),
            seconds=seconds,
        )
        if tally.failed():
            raise Refusal(f"{path} fails: {tally.failures_by_name()}")
        return round(tally.per_second(), 1)

    script = save_script(stack, rehearsal.details)
    taking = environment_of(stack.folder, "taking")
    rates = {
        f"statement_{name}_per_s": pgbench(
            stack,
            script,
            clients=together,
            seconds=seconds,
            port=port,
            password=taking["GROUNDSWELL_DATABASE_PASSWORD"],
        )
        for name, port in (("direct", 5432), ("by_pgbouncer", PGBOUNCER))
    }
    socket = stack.run / "taking.sock"
    if socket.is_socket():
        # A missing page costs an empty view too, in revisions without /healthz.
        pool = target_of(f"unix:{socket}", host=stack.target.host)
        rates["empty_view_per_s"] = fetch(pool, "/healthz", 200, 404)
    content = RehearsalSurvey.of(rehearsal.details).content_path(1)
    rates["nginx_cache_per_s"] = fetch(stack.target, content, 200)
    return rates

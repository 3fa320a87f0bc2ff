"""Measure the phases of a benchmark: saves alone, the mix, and the limits."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.benchmarks import growth, statement
from provisioning.benchmarks.meter import Counters, Meter
from provisioning.benchmarks.stack import POOL, Stack
from provisioning.commands import Refusal
from provisioning.load.driver import Drivers, sleep_until
from provisioning.load.engine import clock
from provisioning.load.respondent import SAVE, VIEWS, RehearsalSurvey
from provisioning.load.tally import Tally
from provisioning.load.target import Target, target_of
from provisioning.postgresql import DATABASE

# Above what any machine of two cores saves in a second: so many people are
# logged in beforehand.
MOST_SAVES = 3000
# What this machine does at most, for as long as a phase lasts.
USUAL_SAVES = 1700
P99_LIMIT_MS = 250.0


@dataclass(frozen=True, slots=True)
class Size:
    """People, pages and seconds of a run."""

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


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """An open rehearsal in a stack, and the processes that send its people."""

    stack: Stack
    # What open_rehearsal printed.
    details: dict[str, Any]
    drivers: Drivers

    @property
    def administration(self) -> int:
        administration: int = self.details["administration_id"]
        return administration

    def rows(self) -> int:
        table = f"survey_response_{self.administration}"
        [[count]] = self.stack.sql(f"SELECT count(*) FROM {table}")  # noqa: S608
        return int(count)


@contextmanager
def rehearsal_of(
    stack: Stack, size: Size, *, name: str, grown: int = 0
) -> Iterator[Rehearsal]:
    """Open a rehearsal without answers, or with `grown` responses of others."""
    # A folder that only the application may read: it contains access codes.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.txt"
        command = ["open_rehearsal", f"--name={name}", f"--pages={size.pages}"]
        command += [f"--items={size.items}", f"--codes={path}", "--json"]
        if grown:
            details = json.loads(stack.manage(*command, "--respondents=1"))
            _grow(stack, command, details, size, grown)
        command += [
            "--unstarted" if grown else "--empty",
            f"--respondents={size.respondents}",
        ]
        details = json.loads(stack.manage(*command))
        codes = path.read_text().split()
    growth.settle(stack, details["administration_id"])
    drivers = Drivers.start(
        size.drivers, stack.target, RehearsalSurvey.of(details), codes
    )
    try:
        yield Rehearsal(stack, details, drivers)
    finally:
        drivers.stop()


def _grow(
    stack: Stack, command: list[str], details: dict[str, Any], size: Size, rows: int
) -> None:
    items = [item["id"] for page in details["pages"] for item in page["items"]]
    wanted = growth.Growth(rows, items)
    administration = details["administration_id"]
    print(wanted.announcement(), flush=True)
    growth.check_disk(stack, wanted, growth.stored_rows(stack, administration))
    stack.manage(*command, f"--respondents={wanted.invited(size.respondents)}")
    growth.fill(stack, administration, wanted)


# Saves alone


def find_knee(rehearsal: Rehearsal, size: Size) -> dict[str, Any]:
    """Save as fast as possible, at each number of concurrent requests."""
    steps = []
    for together in size.connections:
        steps.append(save_as_fast_as_possible(rehearsal, size, together))
        print_step(steps[-1])
    best = max(steps, key=lambda step: step["saves_per_s"])
    return {**best, "steps": steps}


def print_step(step: dict[str, Any]) -> None:
    print(
        f"  {step['together']:>3} at a time: {step['saves_per_s']:>7,.0f} saves/s,"
        f" p50 {step['p50']:.1f} ms, p99 {step['p99']:.1f} ms,"
        f" {step['failed']} failed",
        flush=True,
    )


def save_as_fast_as_possible(
    rehearsal: Rehearsal, size: Size, together: int
) -> dict[str, Any]:
    stack, drivers = rehearsal.stack, rehearsal.drivers
    together = max(together, len(drivers))
    drivers.do("enter", int((size.warm + size.seconds) * MOST_SAVES / len(drivers)))
    meter, before = Meter(stack), Counters.now(stack)
    tally = drivers.tally(
        "save",
        present=size.room // len(drivers),
        together=together // len(drivers),
        warm=size.warm,
        seconds=size.seconds,
        meanwhile=_measure_cpu(meter, size),
    )
    counted = Counters.now(stack).since(before)
    refuse_silence(tally)
    return {
        "together": together,
        "saves_per_s": round(tally.per_second(SAVE), 1),
        **tally.percentiles(),
        "failed": tally.failed(),
        "failures": tally.failures_by_name(),
        "non_2xx": tally.non_2xx(),
        "cpu_us_per_save": meter.per_request(tally.answered(SAVE), tally.own_cpu),
        "statements_per_save": ratio(counted.statements, counted.saves),
        "commits_per_fsync": ratio(counted.commits, counted.flushes),
        "wal_bytes_per_save": ratio(counted.wal_bytes, counted.saves),
        "saves_counted_by_postgresql": counted.saves,
    }


def _measure_cpu(meter: Meter, size: Size) -> Callable[[], None]:
    def measure() -> None:
        began = clock()
        sleep_until(began + size.warm)
        meter.begin()
        sleep_until(began + size.warm + size.seconds)
        meter.end()

    return measure


def refuse_silence(tally: Tally) -> None:
    if not tally.answered():
        raise Refusal(f"Nothing was answered: {tally.failures_by_name()}")


def ratio(value: float, divisor: float) -> float | None:
    return round(value / divisor, 3) if divisor else None


# The mix


def mix(
    rehearsal: Rehearsal,
    size: Size,
    together: int,
    *,
    present: int = 0,
    rate: float = 0.0,
) -> dict[str, Any]:
    """Send whole people as fast as possible; half of the requests are saves.

    With `rate`, so many requests a second are sent, however many are answered.
    """
    stack, drivers = rehearsal.stack, rehearsal.drivers
    count = len(drivers)
    drivers.do("enter_room", -(-(present or size.room) // count))
    meter, before = Meter(stack), Counters.now(stack)
    tally = drivers.tally(
        "mix",
        together=max(1, together // count),
        warm=size.warm,
        seconds=size.seconds,
        rate=rate / count,
        meanwhile=_measure_cpu(meter, size),
    )
    counted = Counters.now(stack).since(before)
    refuse_silence(tally)
    views = tally.views()
    # PostgreSQL counted the warm-up too.
    requests = tally.answered() * (1 + size.warm / tally.seconds)
    return {
        "mix_per_s": round(tally.per_second(), 1),
        "saves_per_s": round(tally.per_second(SAVE), 1),
        "save_share": ratio(tally.answered(SAVE), tally.answered()),
        **tally.percentiles(),
        "views": {view: views.get(view) for view in VIEWS},
        "failed": tally.failed(),
        "failures": tally.failures_by_name(),
        "non_2xx": tally.non_2xx(),
        "cpu_us_per_request": meter.per_request(tally.answered(), tally.own_cpu),
        "statements_per_request": ratio(counted.statements, requests),
        "commits_per_fsync": ratio(counted.commits, counted.flushes),
        "processors_used": round(meter.used_by_all / size.seconds, 2),
    }


def offer(rehearsal: Rehearsal, size: Size, rate: float) -> dict[str, Any]:
    """Send a fixed rate, however it is answered; add whether it was held."""
    # Enough people that one is free when each request is due, even if answers
    # to the others take twice the allowed p99.
    present = max(size.room, int(rate * 2 * P99_LIMIT_MS / 1000))
    result = mix(rehearsal, size, 0, present=present, rate=rate)
    result["offered_per_s"] = rate
    result["held"] = is_held(result, rate, size.seconds)
    return result


def is_held(result: dict[str, Any], rate: float, seconds: float) -> bool:
    return bool(
        not result["failed"]
        and result["p99"] <= P99_LIMIT_MS
        # Arrivals are random: their number varies by its square root.
        and result["mix_per_s"] >= rate * 0.99 - 3 * (rate / seconds) ** 0.5
    )


# The limits


def limits(rehearsal: Rehearsal, size: Size, together: int) -> dict[str, float]:
    """Measure what the parts of the stack do by themselves, in this run."""
    stack, seconds = rehearsal.stack, size.seconds / 2

    def fetch(target: Target, path: str, *accepted: int) -> float:
        tally = rehearsal.drivers.tally(
            "fetch",
            target=target,
            path=path,
            accepted=accepted,
            together=max(1, together // len(rehearsal.drivers)),
            seconds=seconds,
        )
        if tally.failed():
            raise Refusal(f"{path} fails: {tally.failures_by_name()}")
        return round(tally.per_second(), 1)

    found = {
        "statement_direct_per_s": _statement_rate(rehearsal, 5432, together, seconds),
        "statement_by_pgbouncer_per_s": _statement_rate(
            rehearsal, 6432, together, seconds
        ),
    }
    socket = stack.run / "taking.sock"
    if socket.is_socket():
        # A missing page costs an empty view too, in revisions without /healthz.
        pool = target_of(f"unix:{socket}", host=stack.target.host)
        found["empty_view_per_s"] = fetch(pool, "/healthz", 200, 404)
    content = RehearsalSurvey.of(rehearsal.details).content_path(1)
    found["nginx_cache_per_s"] = fetch(stack.target, content, 200)
    return found


def _statement_rate(
    rehearsal: Rehearsal, port: int, together: int, seconds: float
) -> float:
    """Run the save statement with pgbench, through pgbouncer at its port."""
    stack = rehearsal.stack
    [[first, last]] = stack.sql(
        "SELECT min(id), max(id) FROM survey_respondent WHERE completed_at IS NULL"  # noqa: S608
        f" AND administration_id = {rehearsal.administration}"
    )
    pages = rehearsal.details["pages"]
    saved_pages = statement.SavedPages(
        administration=rehearsal.administration,
        first_respondent=int(first),
        last_respondent=int(last),
        first_items=[page["items"][0]["id"] for page in pages],
        items=len(pages[0]["items"]),
    )
    database, user = POOL if port == 6432 else (DATABASE, "postgres")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "save.sql"
        script.write_text(
            statement.save_script(stack.python, stack.checkout, saved_pages)
        )
        rate = statement.pgbench(
            script,
            host=stack.run,
            port=port,
            database=database,
            user=user,
            clients=together,
            seconds=seconds,
        )
    return round(rate.per_second, 1)

"""The parts of a benchmark, each of which gives figures for its JSON."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provisioning.benchmarks import growth, statement
from provisioning.benchmarks.stack import DATABASE, POOL, Stack
from provisioning.benchmarks.watch import Counters, Meter
from provisioning.commands import Refusal
from provisioning.load.driver import Drivers, sleep_until
from provisioning.load.engine import clock
from provisioning.load.respondent import SAVE, VIEWS, RehearsalSurvey
from provisioning.load.tally import Tally
from provisioning.load.target import target_of

# More than any machine of two cores saves in a second: so many are logged in.
MOST_SAVES = 3000
# What this machine does at the most, for as long as a part lasts.
USUAL_SAVES = 1700
P99_LIMIT_MS = 250.0


@dataclass(frozen=True, slots=True)
class Size:
    """Of a run: people, pages, and how long each part takes."""

    respondents: int = 20_000
    pages: int = 45
    items: int = 5
    seconds: float = 10.0
    warm: float = 2.0
    # Requests at a time, until more of them give no more.
    connections: tuple[int, ...] = (8, 16, 32, 64)
    # People in the room at any moment: nginx lets a session ask ten times a
    # second, and a few people would stand there for thousands.
    room: int = 500
    drivers: int = 1


def with_enough_people(size: Size, *, parts: int, rate: float = USUAL_SAVES) -> Size:
    """So many that none of the parts runs out of them, at `rate` saves a second."""
    lasting = size.warm + size.seconds
    saves = parts * lasting * rate + lasting * MOST_SAVES
    needed = int(saves / size.pages) + 2 * size.room
    return dataclasses.replace(size, respondents=max(size.respondents, needed))


@dataclass(slots=True)
class Rehearsal:
    """People of a stack who are ready to be driven."""

    stack: Stack
    described: dict[str, Any]
    codes: list[str]
    drivers: Drivers
    rows_before: int = 0
    tallied: int = field(default=0)

    @property
    def administration(self) -> int:
        return self.described["administration_id"]

    def rows(self) -> int:
        table = f"survey_response_{self.administration}"
        [[count]] = self.stack.sql(f"SELECT count(*) FROM {table}")  # noqa: S608
        return int(count)


@contextmanager
def rehearsing(
    stack: Stack, size: Size, *, name: str, grown: int = 0
) -> Iterator[Rehearsal]:
    """A rehearsal without answers, or with `grown` responses of other people."""
    described, codes = _open(stack, size, name, grown)
    drivers = Drivers.start(
        size.drivers, stack.target, RehearsalSurvey.of(described), codes
    )
    try:
        yield Rehearsal(stack, described, codes, drivers)
    finally:
        drivers.stop()


def _open(
    stack: Stack, size: Size, name: str, grown: int
) -> tuple[dict[str, Any], list[str]]:
    # Where the application may read and nobody else: there are codes in it.
    with tempfile.TemporaryDirectory() as folder:
        codes = Path(folder) / "codes.txt"
        options = [f"--name={name}", f"--pages={size.pages}", f"--items={size.items}"]
        options += [f"--codes={codes}", "--json"]
        if grown:
            _grow(stack, options, size, grown)
            options.append("--unstarted")
        else:
            options.append("--empty")
        described = json.loads(
            stack.manage(
                "open_rehearsal", *options, f"--respondents={size.respondents}"
            )
        )
        growth.settle(stack, described["administration_id"])
        return described, codes.read_text().split()


def _grow(stack: Stack, options: list[str], size: Size, rows: int) -> None:
    ask = ["open_rehearsal", *options]
    described = json.loads(stack.manage(*ask, "--respondents=1"))
    items = [item["id"] for page in described["pages"] for item in page["items"]]
    wanted = growth.Growth(rows, items)
    administration = described["administration_id"]
    print(wanted.announcement(), flush=True)
    growth.check_disk(stack, wanted, growth.stored(stack, administration))
    stack.manage(*ask, f"--respondents={wanted.invited(size.respondents)}")
    growth.fill(stack, administration, wanted)


# Saves alone


def find_knee(rehearsal: Rehearsal, size: Size) -> dict[str, Any]:
    """Page saves as fast as they go, at each number of requests under way."""
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
    needed = int((size.warm + size.seconds) * MOST_SAVES / len(drivers))
    drivers.do("enter", needed)
    meter, before = Meter(stack), Counters.now(stack)
    tally = drivers.tally(
        "save",
        present=size.room // len(drivers),
        together=together // len(drivers),
        warm=size.warm,
        seconds=size.seconds,
        meanwhile=_metered(meter, size),
    )
    counted = Counters.now(stack).since(before)
    _refuse_silence(tally)
    return {
        "together": together,
        "saves_per_s": round(tally.per_second(SAVE), 1),
        **tally.overall().figures(),
        "failed": tally.failed(),
        "failures": tally.failures_by_name(),
        "non_2xx": {str(one): count for one, count in tally.non_2xx.items()},
        "cpu_us_per_save": meter.per_request(tally.answered(SAVE), tally.own_cpu),
        "statements_per_save": _ratio(counted.statements, counted.saves),
        "commits_per_fsync": _ratio(counted.commits, counted.flushes),
        "wal_bytes_per_save": _ratio(counted.wal_bytes, counted.saves),
        "saves_counted_by_postgresql": counted.saves,
    }


def _metered(meter: Meter, size: Size) -> Any:
    def watch() -> None:
        began = clock()
        sleep_until(began + size.warm)
        meter.begin()
        sleep_until(began + size.warm + size.seconds)
        meter.end()

    return watch


def _refuse_silence(tally: Tally) -> None:
    if not tally.answered():
        raise Refusal(f"Nothing was answered: {tally.failures_by_name()}")


def _ratio(one: float, other: float) -> float | None:
    return round(one / other, 3) if other else None


# The mix


def mix(rehearsal: Rehearsal, size: Size, together: int) -> dict[str, Any]:
    """Whole people as fast as they go; half of the requests are page saves."""
    return _mix(rehearsal, size, present=size.room, together=together)


def offer(rehearsal: Rehearsal, size: Size, rate: float) -> dict[str, Any]:
    """A fixed rate, whatever the answers do; says whether it was held."""
    # Enough that somebody is free to ask when each request is due, however
    # slow the answers to the others are (twice the allowed p99).
    present = max(size.room, int(rate * 2 * P99_LIMIT_MS / 1000))
    result = _mix(rehearsal, size, present=present, together=0, rate=rate)
    result["offered_per_s"] = rate
    result["held"] = (
        not result["failed"]
        and result["p99"] <= P99_LIMIT_MS
        # Arrivals are random: their number varies by its root.
        and result["mix_per_s"] >= rate * 0.99 - 3 * (rate / size.seconds) ** 0.5
    )
    return result


def _mix(
    rehearsal: Rehearsal,
    size: Size,
    *,
    present: int,
    together: int,
    rate: float = 0.0,
) -> dict[str, Any]:
    stack, drivers = rehearsal.stack, rehearsal.drivers
    count = len(drivers)
    drivers.do("enter_room", -(-present // count))
    meter, before = Meter(stack), Counters.now(stack)
    tally = drivers.tally(
        "mix",
        together=max(1, together // count),
        warm=size.warm,
        seconds=size.seconds,
        rate=rate / count,
        meanwhile=_metered(meter, size),
    )
    counted = Counters.now(stack).since(before)
    _refuse_silence(tally)
    figures = tally.figures()
    return {
        "mix_per_s": figures["per_second"],
        "saves_per_s": round(tally.per_second(SAVE), 1),
        "save_share": _ratio(tally.answered(SAVE), tally.answered()),
        **tally.overall().figures(),
        "views": {view: figures["views"].get(view) for view in VIEWS},
        "failed": tally.failed(),
        "failures": figures["failures"],
        "non_2xx": figures["non_2xx"],
        "cpu_us_per_request": meter.per_request(tally.answered(), tally.own_cpu),
        "statements_per_request": _ratio(
            counted.statements, _all_asked(tally, size.warm)
        ),
        "commits_per_fsync": _ratio(counted.commits, counted.flushes),
        "processors_used": round(meter.used_by_all / size.seconds, 2),
    }


def _all_asked(tally: Tally, warm: float) -> float:
    """The warming included, which PostgreSQL counted too."""
    return tally.answered() * (1 + warm / tally.seconds)


# The limits


def limits(rehearsal: Rehearsal, size: Size, together: int) -> dict[str, Any]:
    """What the parts do by themselves, on this machine, in this run."""
    stack, plan = rehearsal.stack, RehearsalSurvey.of(rehearsal.described)
    seconds = size.seconds / 2
    found: dict[str, Any] = {
        "statement_direct_per_s": _statement(rehearsal, 5432, together, seconds),
        "statement_by_pgbouncer_per_s": _statement(rehearsal, 6432, together, seconds),
    }
    socket = stack.run / "taking.sock"
    if socket.is_socket():
        target = target_of(f"unix:{socket}", host=stack.target.host)
        # An address that nobody has costs an empty view too, where there is
        # no /healthz.
        found["empty_view_per_s"] = _fetch(
            rehearsal, target, "/healthz", (200, 404), together, seconds
        )
    found["nginx_cache_per_s"] = _fetch(
        rehearsal, stack.target, plan.content_path(1), (200,), together, seconds
    )
    return found


def _fetch(
    rehearsal: Rehearsal,
    target: Any,
    path: str,
    accepted: tuple[int, ...],
    together: int,
    seconds: float,
) -> float:
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


def _statement(rehearsal: Rehearsal, port: int, together: int, seconds: float) -> float:
    stack = rehearsal.stack
    [[first, last]] = stack.sql(
        "SELECT min(id), max(id) FROM survey_respondent WHERE completed_at IS NULL"  # noqa: S608
        f" AND administration_id = {rehearsal.administration}"
    )
    pages = rehearsal.described["pages"]
    people = statement.People(
        administration=rehearsal.administration,
        first=int(first),
        last=int(last),
        pages=[page["items"][0]["id"] for page in pages],
        items=len(pages[0]["items"]),
    )
    database, user = POOL if port == 6432 else (DATABASE, "postgres")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "save.sql"
        script.write_text(statement.save_script(stack.python, stack.checkout, people))
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

"""Load the school finder, edit its schools, and stop its database."""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from functools import partial
from itertools import cycle, repeat
from pathlib import Path
from typing import Any

from provisioning.benchmarks.meter import Meter
from provisioning.benchmarks.stack import Stack, sql_file
from provisioning.commands import Refusal, step, wait_until
from provisioning.fault_injection.stack import RunningStack
from provisioning.load.crowd import Crowd
from provisioning.load.engine import Engine
from provisioning.load.replies import Reply
from provisioning.load.respondent import Request, check_status
from provisioning.load.school_visitors import Place, draw_places
from survey.simulation.schools import EAST, NORTH, SOUTH, WEST

REQUESTS, EDITS = 100_000, 10_000
# At a time, of pages that are cached, and of others: nginx refuses more than 32.
TOGETHER, MISSES_TOGETHER = 64, 8
FROM_THE_CACHE = ("HIT", "STALE", "UPDATING", "REVALIDATED")
STATIC_FILE = "static/finder-limit.html"


@contextmanager
def made_up_schools(stack: Stack, wanted: int, *, keep: bool) -> Iterator[None]:
    """Import schools, unless they are there; delete them at the end."""
    if len(stack.sql(sql_file("made_up_schools"))) != wanted:
        with step(f"Importing {wanted:,} schools"), tempfile.TemporaryDirectory() as at:
            path = Path(at) / "schools.csv"
            path.write_text(stack.manage("make_schools", f"--schools={wanted}"))
            stack.manage("import_schools", str(path), "--create")
        stack.sql("VACUUM ANALYZE accounts_schoollisting, accounts_schoolword")
    try:
        yield
    finally:
        if not keep:
            with step("Deleting the made-up schools"):
                # The directory's words are refreshed every ten minutes.
                stack.sql(sql_file("delete_made_up_schools"))


# Requests


def request_for(stack: Stack, path: str) -> Request:
    data = f"GET {path} HTTP/1.1\r\nHost: {stack.target.host}\r\n\r\n"
    # 503: a miss for which the pool has no place, told to come again.
    return Request(path[:9], data.encode(), lambda r: check_status(r, 200, 503))


def nearby(stack: Stack, place: Place) -> Request:
    # In another order than the key's, with a parameter that nobody knows.
    query = f"utm_source=mail&lon={place.longitude}&lat={place.latitude}"
    return request_for(stack, f"/schools/?{query}")


def closed_loop(
    stack: Stack,
    requests: Iterable[Request],
    seconds: float = math.inf,
    together: int = MISSES_TOGETHER,
) -> tuple[float, float]:
    """Return requests a second, and µs of nginx's processor time for each."""
    meter = Meter(stack)
    with closing(Engine(stack.target, connections=together)) as engine:
        crowd = Crowd(engine, (iter((request,)) for request in requests))
        meter.begin()
        tally = crowd.run_closed(together=together, seconds=seconds)
        meter.end()
    if tally.failed():
        raise Refusal(f"A request failed: {tally.failures_by_name()}")
    used = meter.per_request(tally.answered(), tally.own_cpu)
    return round(tally.per_second(), 1), used["nginx"]


def measure_throughput(stack: Stack, seconds: float) -> dict[str, float]:
    """Compare cached pages with a file of their size, as fast as nginx can."""
    places = list(draw_places(200, seed=2))
    sizes: set[int] = set()

    def noting_size(request: Request) -> Request:
        def check(reply: Reply) -> str:
            sizes.add(len(reply.body))
            return request.check_reply(reply)

        return Request(request.kind, request.data, check)

    # The first time they are not cached yet.
    closed_loop(stack, (noting_size(nearby(stack, place)) for place in places))
    path = stack.folder / STATIC_FILE
    try:
        path.write_bytes(b"x" * (sum(sizes) // len(sizes)))
        path.chmod(0o644)
        file = request_for(stack, f"/{STATIC_FILE}")
        limit, limit_us = closed_loop(stack, repeat(file), seconds, TOGETHER)
    finally:
        path.unlink(missing_ok=True)
    pages = cycle([nearby(stack, place) for place in places])
    cached, cached_us = closed_loop(stack, pages, seconds, TOGETHER)
    print(
        f"From the cache {cached:,.0f}/s, a file of the same size {limit:,.0f}/s;"
        f" nginx takes {cached_us:.0f} and {limit_us:.0f} us of processor time",
        flush=True,
    )
    return {
        "cached_per_s": cached,
        "nginx_cache_per_s": limit,
        "cached_nginx_us": cached_us,
        "file_nginx_us": limit_us,
    }


def measure_misses(stack: Stack, seconds: float) -> float:
    """Return how many pages a second the application makes, that are not cached."""
    chance = random.Random()  # noqa: S311
    # All over the country, so that hardly any two are neighbours.
    places = (
        Place(
            f"{chance.uniform(SOUTH, NORTH):.12f}", f"{chance.uniform(WEST, EAST):.12f}"
        )
        for _ in repeat(None)
    )
    return closed_loop(stack, (nearby(stack, place) for place in places), seconds)[0]


def offer(
    stack: Stack,
    places: Sequence[Place],
    rate: float,
    seconds: float,
    during: AbstractContextManager[None] | None = None,
) -> dict[str, Any]:
    """Offer one request for each place at this rate, whatever the stack does."""
    log = stack.folder / "log" / "nginx-access.log"
    before = log.stat().st_size
    with (
        during or nullcontext(),
        closing(Engine(stack.target, connections=1024)) as engine,
    ):
        crowd = Crowd(engine, (iter((nearby(stack, place),)) for place in places))
        tally = crowd.run_open(rate=rate, seconds=seconds, seed=len(places))
    # The log is written once a second.
    time.sleep(2)
    with log.open("rb") as lines:
        lines.seek(before)
        entries = [
            entry for entry in map(json.loads, lines) if entry["path"] == "/schools/"
        ]
    found = Counter(entry["cache"] for entry in entries)
    hits = sum(found[status] for status in FROM_THE_CACHE)
    return {
        "offered_per_s": round(rate, 1),
        "requests": found.total(),
        "hit_ratio": round(hits / max(1, found.total()), 4),
        "cache": dict(found),
        "refused": sum(entry["status"] == 503 for entry in entries),
        "failed": tally.failed(),
        "failures": tally.failures_by_name(),
        **tally.percentiles(),
    }


# Meanwhile


@contextmanager
def edits(stack: Stack, seconds: float) -> Iterator[None]:
    """Edit EDITS schools in many transactions, spread over the time."""
    batches = 200
    schools = [school for (school,) in stack.sql(sql_file("made_up_schools"))]
    chosen = schools[:: max(1, len(schools) // EDITS)]
    statements = "".join(
        sql_file("edit_schools", ids=",".join(chosen[part::batches]))
        + f"SELECT pg_sleep({seconds / batches * 0.9:.3f});\n"
        for part in range(min(batches, len(chosen)))
    )
    with ThreadPoolExecutor(1) as threads:
        editing = threads.submit(stack.sql, statements)
        yield
        editing.result()


@contextmanager
def outage(stack: Stack, servers: RunningStack) -> Iterator[None]:
    """Stop both databases, as long as the block lasts."""
    names = [name for name in ("primary", "replica") if servers.programs(name)]
    for name in names:
        servers.stop(name)
    try:
        yield
    finally:
        for name in names:
            servers.start(name)
        for name in names:
            servers.wait_for(name)
        if not wait_until(partial(is_up, stack), seconds=60):
            raise Refusal("PostgreSQL did not come back")


def is_up(stack: Stack) -> bool:
    with suppress(Refusal):
        return bool(stack.sql("SELECT 1"))
    return False

"""Measure the public school finder on the stack that provisioning/stack up has started.

Imports made-up schools, and asks for the nearest ones from places around towns. Edits
schools and stops the database for ten seconds meanwhile. The schools are deleted at the
end. The last line is one JSON object.
"""

from __future__ import annotations

import gc
import json
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import accumulate, cycle, islice, repeat
from pathlib import Path
from typing import Any

from provisioning.commands import (
    Refusal,
    command_parser,
    conclude,
    missed,
    print_figures,
    step,
    wait_until,
)
from provisioning.installation.promotion import PRIMARY, answers
from provisioning.measure.benchmarks.meter import Meter, describe_machine
from provisioning.measure.benchmarks.stack import Stack, running_stack, sql_file
from provisioning.measure.load.crowd import send
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.respondent import Request, get_request
from provisioning.measure.load.tally import percentile
from provisioning.measure.load.target import refuse_real_respondents
from provisioning.prove.fault_injection.stack import RunningStack
from survey.simulation.schools import EAST, NORTH, SOUTH, WEST, made_up_towns

# A spike is one state's: the towns of the made-up country that lie in it.
TOWNS_OF_THE_COUNTRY, STATE = 12_500, "IL"
# Degrees: two thirds of the largest town's people live within 7 km of its centre.
# The other towns are as dense.
LARGEST_TOWN = 0.05
# Of the coordinates in nginx's key.
DECIMALS = 2


@dataclass(frozen=True)
class Place:
    latitude: str
    longitude: str

    @property
    def cell(self) -> tuple[str, str]:
        """Return both coordinates as nginx cuts them for its key."""
        return _cut(self.latitude), _cut(self.longitude)


def _cut(degrees: str) -> str:
    return degrees[: degrees.index(".") + 1 + DECIMALS]


def draw_places(count: int, seed: int) -> Iterator[Place]:
    """Draw towns by size, by Zipf's law, and places around their centres."""
    chance = random.Random(f"visitors {seed}")  # noqa: S311
    towns = [
        town for town in made_up_towns(TOWNS_OF_THE_COUNTRY) if town.state == STATE
    ]
    sizes = [1 / rank for rank in range(1, len(towns) + 1)]
    totals = list(accumulate(sizes))
    numbers = range(len(towns))
    for number in chance.choices(numbers, cum_weights=totals, k=count):
        spread = LARGEST_TOWN * math.sqrt(sizes[number])
        yield Place(
            f"{chance.gauss(towns[number].latitude, spread):.12f}",
            f"{chance.gauss(towns[number].longitude, spread):.12f}",
        )


def hit_ratio(
    places: Sequence[Place], *, rate: float, lifetime: float, warm: float
) -> float:
    """Return the share of requests that find a page `lifetime` seconds old.

    The requests come one after another at this rate, to an empty cache; those of
    the first `warm` seconds are not counted.
    """
    stored: dict[tuple[str, str], float] = {}
    hits = counted = 0
    for number, place in enumerate(places):
        now, cell = number / rate, place.cell
        is_hit = now - stored.get(cell, -math.inf) < lifetime
        if not is_hit:
            stored[cell] = now
        if now >= warm:
            counted += 1
            hits += is_hit
    return hits / max(1, counted)


SCHOOLS = 100_000
REQUESTS, EDITS = 100_000, 10_000
FROM_THE_CACHE = ("HIT", "STALE", "UPDATING", "REVALIDATED")
WANTED_RATE = REQUESTS / 60
# Seconds for which a visitor may see a page after the school was edited.
LIFETIME = 30.0
LEAST_HITS = 0.9
MOST_P95_MS, MOST_SLOWER = 20.0, 1.2
MOST_SEARCH_MS, MOST_NEAREST_MS = 10.0, 5.0
OUTAGE = 10.0
# Of the misses that the application answers at most, so many are offered.
SHARE_OF_MOST = 0.6
# At a time, of pages that are cached, and of others: nginx refuses more than 32.
TOGETHER, MISSES_TOGETHER = 64, 8
STATIC_FILE = "static/limit-of-nginx.html"
# Share of the requests a second of a file of the same size.
LEAST_OF_LIMIT = 0.5


def main() -> int:
    parser = command_parser(
        __doc__,
        schools=(SCHOOLS, "made up"),
        seconds=(60.0, "of each part under load"),
    )
    keep = "keep the made-up schools for the next run"
    parser.add_argument("--keep", action="store_true", help=keep)
    options = parser.parse_args()
    if options.seconds < 4:
        parser.error("--seconds is at least 4")
    stack = running_stack()
    gc.freeze()
    machine = describe_machine(stack)
    print(f"{machine['cpu']}, {machine['cores']} cores, revision {machine['revision']}")
    with closing(RunningStack(stack.folder)) as servers:
        refuse_real_respondents(
            lambda sql: json.loads(stack.sql(sql)[0][0]),
            consequence="this loads the stack and stops its database",
        )
        with made_up_schools(stack, options.schools, keep=options.keep):
            result = measure(stack, servers, options.seconds)
    shortcomings = missed(result, **limits_of(result))
    return conclude({"machine": machine, **result}, shortcomings)


def measure(stack: Stack, servers: RunningStack, seconds: float) -> dict[str, Any]:
    print("Misses, in the application's process", flush=True)
    timed = stack.call("measure.benchmarks.school_searches.time_searches")
    searches = {
        name: {
            "median": round(percentile(times, 50), 2),
            "p95": round(percentile(times, 95), 2),
        }
        for name, times in timed.items()
    }
    part = min(10.0, seconds / 2)
    places = draw_places(200, seed=2)
    throughput = measure_throughput(
        stack, [nearby(stack, place) for place in places], part
    )
    chance = random.Random()  # noqa: S311
    # All over the country, so that hardly any two are neighbours.
    anywhere = (
        Place(
            f"{chance.uniform(SOUTH, NORTH):.12f}", f"{chance.uniform(WEST, EAST):.12f}"
        )
        for _ in repeat(None)
    )
    # Pages a second that the application makes, because they are not cached.
    misses, _ = closed_loop(stack, (nearby(stack, place) for place in anywhere), part)
    rate = rate_to_offer(misses)
    print(
        f"At most {misses:,.0f} misses a second. Offered: {rate:,.0f} requests a"
        f" second, {rate / WANTED_RATE:.0%} of {REQUESTS:,} a minute",
        flush=True,
    )
    # The first part fills the cache.
    parts = [list(draw_places(round(rate * seconds), seed)) for seed in range(3)]
    cold = offer(stack, parts[0], rate, seconds)
    calm = offer(stack, parts[1], rate, seconds)
    edited = offer(stack, parts[2], rate, seconds, edits(stack, seconds))
    # Some were refused before; now all of these are in the cache.
    known = parts[2][-round(rate * OUTAGE) :]
    closed_loop(stack, (nearby(stack, place) for place in known))
    known = list(islice(cycle(known), round(rate * OUTAGE * 2)))
    down = offer(stack, known, rate, OUTAGE, outage(servers))
    result = {
        "misses": searches,
        "hit_ratio": calm["hit_ratio"],
        **throughput,
        "p95_ms": calm["p95"],
        "p95_ms_edited": edited["p95"],
        "edited": {**edited, "schools": EDITS},
        "cold": cold,
        "calm": calm,
        "database_down": down,
        "scale": round(rate / WANTED_RATE, 2),
        "misses_per_s": misses,
    }
    result |= worst_of(result)
    print_figures(result)
    return result


def rate_to_offer(misses: float) -> float:
    """Return the wanted rate, or the highest that leaves room for its misses."""
    for percent in range(100, 5, -5):
        rate = WANTED_RATE * (percent / 100)
        places = list(draw_places(round(rate * LIFETIME * 2), seed=9))
        missing = 1 - hit_ratio(places, rate=rate, lifetime=LIFETIME, warm=LIFETIME)
        if rate * missing <= SHARE_OF_MOST * misses:
            break
    return rate


def limits_of(result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    of_limit = LEAST_OF_LIMIT * result["nginx_cache_per_s"]
    return {
        "least": {"hit_ratio": LEAST_HITS, "cached_per_s": of_limit},
        "most": {
            "p95_ms": MOST_P95_MS,
            "p95_ms_edited": MOST_SLOWER * result["p95_ms"],
            "failed": 0,
            "nearest_ms": MOST_NEAREST_MS,
            "by_name_ms": MOST_SEARCH_MS,
        },
    }


def worst_of(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the sums and maxima that have limits."""
    medians = {name: each["median"] for name, each in result["misses"].items()}
    parts = [result[part] for part in ("calm", "edited", "database_down")]
    return {
        "failed": sum(part["failed"] + part["refused"] for part in parts),
        "nearest_ms": medians.pop("nearest"),
        "by_name_ms": max(medians.values()),
    }


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


def nearby(stack: Stack, place: Place) -> Request:
    # In another order than the key's, with a parameter that nobody knows.
    query = f"utm_source=mail&lon={place.longitude}&lat={place.latitude}"
    return request_for(stack, f"/schools/?{query}")


def request_for(stack: Stack, path: str) -> Request:
    # 503: a miss for which the pool has no place, told to come again.
    return get_request(stack.target, path, 200, 503, kind=path[:9])


def closed_loop(
    stack: Stack,
    requests: Iterable[Request],
    seconds: float = math.inf,
    together: int = MISSES_TOGETHER,
) -> tuple[float, float]:
    """Return requests a second, and µs of nginx's processor time for each."""
    meter = Meter(stack)
    people = (iter((request,)) for request in requests)
    meter.begin()
    tally = send(
        stack.target, people, together=together, seconds=seconds, connections=together
    ).tally
    meter.end()
    tally.refuse_failures()
    used = meter.per_request(tally.answered(), tally.own_cpu)
    return round(tally.per_second(), 1), used["nginx"]


def measure_throughput(
    stack: Stack, pages: Sequence[Request], seconds: float
) -> dict[str, float]:
    """Compare cached pages with a file of their size, as fast as nginx can."""
    sizes: set[int] = set()

    def noting_size(request: Request) -> Request:
        def check(reply: Reply) -> str:
            sizes.add(len(reply.body))
            return request.check_reply(reply)

        return Request(request.kind, request.data, check)

    # The first time they are not cached yet.
    closed_loop(stack, map(noting_size, pages))
    path = stack.folder / STATIC_FILE
    try:
        path.write_bytes(b"x" * (sum(sizes) // len(sizes)))
        path.chmod(0o644)
        file = request_for(stack, f"/{STATIC_FILE}")
        limit, limit_us = closed_loop(stack, repeat(file), seconds, TOGETHER)
    finally:
        path.unlink(missing_ok=True)
    cached, cached_us = closed_loop(stack, cycle(pages), seconds, TOGETHER)
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
    people = (iter((nearby(stack, place),)) for place in places)
    load: Any = {"rate": rate, "seconds": seconds, "seed": len(places)}
    with during or nullcontext():
        tally = send(stack.target, people, connections=1024, **load).tally
    # The log is written once a second.
    time.sleep(2)
    with log.open("rb") as lines:
        lines.seek(before)
        entries = [
            entry for entry in map(json.loads, lines) if entry["path"] == "/schools/"
        ]
    statuses = Counter(entry["cache"] for entry in entries)
    hits = sum(statuses[status] for status in FROM_THE_CACHE)
    return {
        "offered_per_s": round(rate, 1),
        "requests": statuses.total(),
        "hit_ratio": round(hits / max(1, statuses.total()), 4),
        "cache": dict(statuses),
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
def outage(servers: RunningStack) -> Iterator[None]:
    names = [name for name in ("primary", "replica") if servers.programs(name)]
    try:
        with servers.stopped(*names):
            yield
    finally:
        if not wait_until(lambda: answers(servers.run, PRIMARY), seconds=60):
            raise Refusal("PostgreSQL did not come back")

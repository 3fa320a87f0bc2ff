"""Compare pages from nginx's cache with a file of their size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import cycle, repeat

from provisioning.measure.benchmarks.meter import Meter
from provisioning.measure.benchmarks.stack import Stack
from provisioning.measure.load.crowd import send
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.respondent import Request, get_request

# At a time, of pages that are cached, and of others: nginx refuses more than 32.
TOGETHER, MISSES_TOGETHER = 64, 8
STATIC_FILE = "static/limit-of-nginx.html"
# Share of the file's requests a second.
LEAST_OF_LIMIT = 0.5


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

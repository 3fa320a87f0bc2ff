"""Measure the public pages of results, on a stack that is removed at the end.

Publishes the results of the demonstration's last wave, opens every page of them in
every language, and compares nginx's cache with a file of the same size. The last line
is one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urljoin

from provisioning.commands import (
    Refusal,
    command_parser,
    conclude,
    missed,
    port_number,
    print_figures,
    scratch_folder,
    step,
)
from provisioning.install.environment import PRODUCTION, STACK, prepare_environment
from provisioning.install.temporary_stack import temporary_stack
from provisioning.measure.benchmarks.cached_pages import (
    LEAST_OF_LIMIT,
    measure_throughput,
    request_for,
)
from provisioning.measure.benchmarks.machine import describe_machine
from provisioning.measure.benchmarks.stack import Stack, running_stack
from provisioning.measure.load.engine import Engine

FIRST = "/results/"
PUBLISHED = ("demo-last-students", "--benchmark=demo-first-students")
LINK = re.compile(rb'href="([^"#]*)')
# Addresses of files, which are not cached pages.
FILE = re.compile(r"\.csv(\?|$)")


def main() -> int:
    options = parse_options()
    prepare_environment(PRODUCTION, STACK)
    with (
        scratch_folder() as folder,
        temporary_stack(folder, port=options.port) as home,
    ):
        stack = running_stack(folder=home)
        with step("Publishing the demonstration's results"):
            stack.manage("load_demo")
            stack.manage("publish_results", *PUBLISHED)
        gc.freeze()
        result = {"machine": describe_machine(stack), **measure(stack, options)}
    least = {"cached_per_s": LEAST_OF_LIMIT * result["nginx_cache_per_s"]}
    shortcomings = missed(result, least=least, most={"with_cookies": 0})
    return conclude(result, shortcomings)


def parse_options() -> argparse.Namespace:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=10.0, help="of each closed loop (10)")
    add(
        "--port", type=port_number, default=8480, help="of the new stack's nginx (8480)"
    )
    return parser.parse_args()


def measure(stack: Stack, options: argparse.Namespace) -> dict[str, Any]:
    pages = public_pages(stack)
    requests = [request_for(stack, path) for path in pages]
    result = {
        "pages": len(pages),
        "with_cookies": sum(b"\r\nset-cookie:" in head for head in pages.values()),
        **measure_throughput(stack, requests, options.seconds),
    }
    result["share_of_limit"] = round(
        result["cached_per_s"] / result["nginx_cache_per_s"], 2
    )
    print_figures(result)
    return result


def public_pages(stack: Stack) -> dict[str, bytes]:
    """Follow all links between the public pages; return their heads by address."""
    pages: dict[str, bytes] = {}
    waiting = [FIRST]
    with closing(Engine(stack.target)) as engine:
        while waiting:
            path = waiting.pop()
            reply = engine.exchange(request_for(stack, path).data).reply
            if reply is None or reply.status != 200:
                raise Refusal(f"{path} can't be opened")
            pages[path] = reply.head.lower()
            waiting += new_links(path, reply.body, [*pages, *waiting])
    return pages


def new_links(path: str, body: bytes, known: Sequence[str]) -> list[str]:
    links = [
        urljoin(path, link.decode().replace("&amp;", "&"))
        for link in LINK.findall(body)
    ]
    return [
        link
        for link in dict.fromkeys(links)
        if link.startswith(FIRST) and not FILE.search(link) and link not in known
    ]

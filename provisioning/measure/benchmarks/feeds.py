"""Scan the OneRoster ZIPs of synthetic districts on the running stack, by its workers.

A first scan, a nightly scan (1 % of the people changed, 60 % of the feeds unchanged),
and a night in which servers hang, send broken files and workers are killed. Compares
everybody with the files. Also saves pages beside scans, and at last scans a large feed.
The feeds' servers are threads of this process, on the same machine. Everything that was
added is removed at the end. Ends with one line of JSON, and with 1 if a requirement is
missed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from provisioning.commands import (
    Refusal,
    command_parser,
    conclude,
    missed,
    print_table,
    step,
    wait_until,
)
from provisioning.measure.benchmarks.feed_servers import (
    USUAL,
    BadServers,
    DistrictServers,
)
from provisioning.measure.benchmarks.meter import processor
from provisioning.measure.benchmarks.phases import Size, mix, offer, rehearsal_of
from provisioning.measure.benchmarks.stack import SCRATCH, Stack, running_stack
from provisioning.processes import children_of, descendants_of, peak_mb
from provisioning.prove.fault_injection.stack import RunningStack
from survey.simulation.oneroster_server import serve

WORKERS = ("download_worker", "scan_worker", "long_worker")
# Programs of the stack, and the statement that tells whether they have work.
UNFINISHED = "SELECT count(*) > 0 FROM survey_feedstage WHERE ended_at IS NULL AND "
AT_WORK = {
    "download_worker": UNFINISHED + "stage = 'download'",
    "scan_worker": UNFINISHED + "stage <> 'download'",
}


def kill_workers(stack: Stack) -> int:
    """Kill the download worker, then a scan worker, each while it works."""
    killed = 0
    with closing(RunningStack(stack.folder)) as running:
        for program, at_work in AT_WORK.items():
            # What a killed worker had begun, another one begins after half a minute.
            if wait_until(partial(is_true, stack, at_work), seconds=90):
                pids = running.tree(program)
                running.kill_together(pids)
                killed += bool(pids)
                print(f"  killed {program}", flush=True)
                running.wait_for(program)
    return killed


def is_true(stack: Stack, statement: str) -> bool:
    return stack.sql(statement)[0][0] == "t"


def peak_memory(stack: Stack) -> float:
    """Return the most that a worker, with its children, has held so far, in MB."""
    with closing(RunningStack(stack.folder)) as running:
        masters = [pid for program in WORKERS for pid in running.pids(program)]
    # Threads are in the process that the supervisor has started.
    workers = [each for pid in masters for each in children_of(pid) or [pid]]
    return max(sum(map(peak_mb, [each, *descendants_of(each)])) for each in workers)


TOGETHER = 32
# Of what the machine serves at most without scans: a survey day at night is quieter.
OFFERED_SHARE = 0.5
RUNNING = "SELECT count(*) > 0 FROM survey_feedscan WHERE state = 'running'"


def saves_beside_scans(
    stack: Stack, seconds: float, scan_all: Callable[[], float]
) -> dict[str, float]:
    """Measure page saves at one rate, first without scans and then during them.

    `scan_all` returns the seconds it took.
    """
    size = Size(respondents=20_000, pages=20, seconds=seconds)
    over = Event()

    def scan_until_over() -> float:
        """Return the share of the time in which scans were running."""
        began, scanned = time.monotonic(), 0.0
        while not over.is_set():
            scanned += scan_all()
        return scanned / (time.monotonic() - began)

    with (
        rehearsal_of(stack, size, purpose="feeds") as rehearsal,
        ThreadPoolExecutor(1) as thread,
    ):
        rate = OFFERED_SHARE * mix(rehearsal, TOGETHER)["mix_per_s"]
        alone = offer(rehearsal, rate)
        scanning = thread.submit(scan_until_over)
        try:
            if not wait_until(partial(is_true, stack, RUNNING), seconds=60):
                raise Refusal("No scan has begun")
            beside = offer(rehearsal, rate)
        finally:
            over.set()
        share = scanning.result()
    return {
        "saves_alone_per_s": alone["saves_per_s"],
        "saves_beside_per_s": beside["saves_per_s"],
        "saves_kept": round(beside["saves_per_s"] / alone["saves_per_s"], 4),
        "requests_refused": beside["failed"],
        "p99_alone_ms": alone["p99"],
        "p99_beside_ms": beside["p99"],
        "scanning_share": round(share, 2),
    }


DISTRICTS, PEOPLE = 900, 2_000_000
# One server hangs and one sends broken files; others do neither.
FEWEST_DISTRICTS = 3
QUICK_DISTRICTS, QUICK_PEOPLE = 30, 20_000
# In the file of one more feed, which is scanned alone.
LARGE_PEOPLE = 200_000
MOST_WINDOW_S = 20 * 60
LEAST_SAVES_KEPT = 0.98
LEAST_ROWS_PER_S, MOST_MEMORY_MB = 25_000, 250
# All zero if everybody is as the files say.
WRONG = ("duplicates", "wrong_withdrawals", "missing", "outdated")
UNCHANGED_SHARE = 0.6
# Until a server that sends nothing is given up; then a night's window must be over,
# or the download is tried again minutes later.
BAD_WINDOW_S = 150
STAGES = ("download", "parse", "compare", "apply")


class Feeds:
    """The feeds of this benchmark in a stack, and their servers."""

    def __init__(
        self, stack: Stack, servers: DistrictServers, address: str, wait_s: float
    ) -> None:
        self.stack, self.servers, self.wait_s = stack, servers, wait_s
        self._address, self._nights = address, 0
        # Of the last files that everybody was offered.
        self._file = 2

    def call(self, action: str, **arguments: object) -> dict[str, Any]:
        """Run a function of `feed_rows` in the stack's application."""
        result: dict[str, Any] = self.stack.call(
            f"measure.benchmarks.feed_rows.{action}", **arguments
        )
        return result

    def add(self, numbers: Sequence[int]) -> None:
        self.call("prepare", numbers=list(numbers), address=self._address)

    def _scan(self, numbers: Sequence[int], window_s: float) -> dict[str, Any]:
        self._nights += 1
        return self.call(
            "scan",
            numbers=list(numbers),
            night=self._nights,
            window_s=window_s,
            wait_s=self.wait_s,
        )

    def scan_and_verify(
        self,
        name: str,
        numbers: Sequence[int] | None = None,
        window_s: float = 0,
    ) -> dict[str, Any]:
        """Scan, print what it took, and compare everybody with the files."""
        result = self._scan(numbers or self.servers.numbers, window_s or self.wait_s)
        print_night(name, result)
        offered = self.servers.offered
        paths = {each: f"{offered[each].absolute()}" for each in numbers or offered}
        people = self.call("verify", offered=paths)
        people["duplicates"] += result["applied_twice"]
        wrong = ", ".join(f"{people[name]:,} {name}" for name in WRONG)
        print(
            f"  {people['exact']:,} districts are as their files say; people: {wrong}"
        )
        return {**result, **people}

    def scan_changed(self) -> float:
        """Scan all feeds, all of them changed, and return the window's seconds."""
        self._file = 3 - self._file
        self.servers.offer(self._file)
        result = self._scan(self.servers.numbers, self.wait_s)
        # A bad server may have offered the same file in an earlier night.
        if set(result["states"]) - {"applied", "unchanged"}:
            raise Refusal(f"Not all scans beside page saves were applied: {result}")
        seconds: float = result["window_s"]
        return seconds


def main() -> int:
    options = parse_options()
    stack = running_stack()
    print(f"{processor()}, {os.cpu_count()} cores")
    print(f"Servers on this machine: {USUAL}")
    SCRATCH.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=SCRATCH) as folder,
        feeds_of(stack, Path(folder), options) as feeds,
    ):
        figures = measure(feeds, options.saving)
    return conclude(figures, missed(figures, **limits_of(figures)))


@contextmanager
def feeds_of(
    stack: Stack, folder: Path, options: argparse.Namespace
) -> Iterator[Feeds]:
    """Add feeds with servers; remove all of it at the end, however it ends."""
    servers = DistrictServers(folder, options.districts)
    with step(f"Writing {options.people:,} people, three nights"):
        for night in range(3):
            stack.manage(
                "make_oneroster",
                f"{servers.path(1, night).parent.absolute()}",
                f"--districts={options.districts}",
                f"--people={options.people}",
                f"--night={night}",
            )
        servers.offer(0)
    with serve(servers.districts) as server:
        address = f"http://127.0.0.1:{server.port}"
        feeds = Feeds(stack, servers, address, options.seconds)
        try:
            with step(f"Adding {options.districts:,} districts with feeds"):
                # Of a run that was killed.
                feeds.call("remove")
                feeds.add(servers.numbers)
            yield feeds
        finally:
            with step("Removing districts, feeds and people"):
                feeds.call("remove")


def measure(feeds: Feeds, saving_s: float) -> dict[str, Any]:
    servers, count = feeds.servers, len(feeds.servers.numbers)
    first = feeds.scan_and_verify("First scan")
    servers.offer(1, servers.numbers[: count - round(UNCHANGED_SHARE * count)])
    night = feeds.scan_and_verify("Nightly scan")
    bad_night, bad = measure_bad_night(feeds)
    servers.set_speeds()
    with step("Saving pages alone, then beside scans"):
        saves = saves_beside_scans(feeds.stack, saving_s, feeds.scan_changed)
    large_nights, large = measure_large_feed(feeds)
    nights = (first, night, bad_night, *large_nights)
    return {
        "window_s": round(night["window_s"], 1),
        "feeds": count,
        "applied": min(first["exact"], night["exact"]),
        **bad,
        **{name: sum(each[name] for each in nights) for name in WRONG},
        # Of all feeds together: small ones cost more for each row.
        "rows_per_s": rows_per_s(first),
        "first_window_s": round(first["window_s"], 1),
        "unchanged": night["states"].get("unchanged", 0),
        **saves,
        **large,
    }


def rows_per_s(night: Mapping[str, Any]) -> float:
    compare = night["stages"].get("compare")
    return round(compare["rows"] / compare["seconds"], 1) if compare else 0.0


def measure_bad_night(feeds: Feeds) -> tuple[dict[str, Any], dict[str, int]]:
    """Scan while servers hang, send broken files, and workers are killed."""
    servers = feeds.servers
    before = dict(servers.offered)
    servers.offer(2)
    bad = servers.break_some()
    # These keep the people whom they had.
    servers.offered |= {number: before[number] for number in bad.all}
    print(
        f"Bad night: {len(bad.hanging)} servers hang, {len(bad.broken)} send broken"
        " files, and two workers are killed"
    )
    window_s = max(BAD_WINDOW_S, feeds.wait_s / 2 if len(before) > 100 else 0)
    with ThreadPoolExecutor(1) as thread:
        killing = thread.submit(kill_workers, feeds.stack)
        night = feeds.scan_and_verify("Bad night", window_s=window_s)
    return night, {
        "named_bad": named(bad, night["failed"]),
        "bad": len(bad.all),
        "bad_night_applied": night["states"].get("applied", 0),
        "bad_night_healthy": len(before) - len(bad.all),
        "bad_night_exact": night["exact"],
        "killed": killing.result(),
    }


def measure_large_feed(feeds: Feeds) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Scan a large feed, then once more with 1 % of its people changed.

    Returns both nights, the slower comparison and the workers' memory.
    """
    with step(f"Adding a feed of {LARGE_PEOPLE:,} people"):
        number = feeds.servers.add_large(LARGE_PEOPLE)
        feeds.add([number])
    nights = []
    for night, name in enumerate(("Large feed", "Large feed, 1 % changed")):
        feeds.servers.offer(night, [number])
        nights.append(feeds.scan_and_verify(name, [number]))
    return nights, {
        "rows_compared_per_s": min(map(rows_per_s, nights)),
        "memory_mb": round(peak_memory(feeds.stack), 1),
    }


def named(bad: BadServers, failed: Mapping[str, str]) -> int:
    """Count the bad servers whose scan failed with a message."""
    return sum(bool(failed.get(f"{number}")) for number in bad.all)


def print_night(name: str, result: Mapping[str, Any]) -> None:
    states = ", ".join(f"{n} {state}" for state, n in sorted(result["states"].items()))
    print(f"{name}: {result['window_s']:.1f} s; {states}")
    stages = {
        stage: result["stages"][stage] for stage in STAGES if stage in result["stages"]
    }
    total = sum(figures["seconds"] for figures in stages.values()) or 1.0
    print_table(
        ("stage", "s of all", "share", "rows", "rows/s", "MB", "repeated"),
        [
            (
                stage,
                f"{figures['seconds']:.1f}",
                f"{100 * figures['seconds'] / total:.0f} %",
                f"{figures['rows']:,}",
                f"{figures['rows'] / max(figures['seconds'], 0.001):,.0f}",
                f"{figures['bytes'] / 1e6:.1f}",
                figures["repeated"],
            )
            for stage, figures in stages.items()
        ],
    )
    messages: dict[str, list[str]] = {}
    for number, message in result["failed"].items():
        messages.setdefault(message, []).append(number)
    for message, numbers in messages.items():
        print(f"  failed: {', '.join(numbers)}: {message}")
    for message in sorted(set(result["held"])):
        print(f"  held: {message}")
    if not result["is_over"]:
        print("  not all scans ended in time")


def limits_of(figures: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {
        "least": {
            "applied": figures["feeds"],
            "named_bad": figures["bad"],
            "bad_night_applied": figures["bad_night_healthy"],
            "bad_night_exact": figures["feeds"],
            "killed": 2,
            "saves_kept": LEAST_SAVES_KEPT,
            "rows_compared_per_s": LEAST_ROWS_PER_S,
        },
        "most": {
            "window_s": MOST_WINDOW_S,
            "memory_mb": MOST_MEMORY_MB,
            **dict.fromkeys(WRONG, 0),
        },
    }


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = command_parser(
        __doc__,
        districts=(DISTRICTS, "with a feed each"),
        people=(PEOPLE, "of all districts"),
        seconds=(3600, "until a window that has not ended is given up"),
        saving=(60, "seconds of saves"),
    )
    quick = f"{QUICK_DISTRICTS} districts of {QUICK_PEOPLE:,} people"
    parser.add_argument("--quick", action="store_true", help=quick)
    if parser.parse_args(arguments).quick:
        parser.set_defaults(districts=QUICK_DISTRICTS, people=QUICK_PEOPLE)
    options = parser.parse_args(arguments)
    if options.districts < FEWEST_DISTRICTS:
        parser.error(f"--districts is at least {FEWEST_DISTRICTS}")
    return options

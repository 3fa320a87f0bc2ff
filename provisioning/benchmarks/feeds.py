"""`provisioning/feeds`: a first scan, a nightly scan and a bad night of many feeds.

On the running stack, by its workers. The feeds' servers are threads of this process,
on the same machine. Everything that was added is removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from provisioning.benchmarks.feed_saves import saves_beside_scans
from provisioning.benchmarks.feed_servers import (
    DISTRIBUTION,
    BadServers,
    DistrictServers,
)
from provisioning.benchmarks.machine import processor
from provisioning.benchmarks.stack import SCRATCH, Stack, running_stack
from provisioning.commands import (
    Refusal,
    positive_integer,
    print_table,
    run_command,
    step,
    wait_until,
)
from provisioning.fault_injection.stack import RunningStack
from survey.simulation.oneroster_server import serve

DISTRICTS, PEOPLE = 900, 2_000_000
# One server hangs and one sends broken files; others do neither.
FEWEST_DISTRICTS = 3
QUICK_DISTRICTS, QUICK_PEOPLE = 30, 20_000
MOST_WINDOW_S = 20 * 60
LEAST_SAVES_KEPT, LEAST_WARM_RATIO, MOST_POOLS_RATIO = 0.98, 2.0, 0.6
# Feeds scanned one after the other, and in pools.
SMALL_FEEDS, MOST_IN_POOLS = 10, 60
UNCHANGED_SHARE = 0.6
# Until a server that sends nothing is given up; then a night's window must be over,
# or the download is tried again minutes later.
BAD_WINDOW_S = 150
# Programs of the stack, and the statement that tells whether they have work.
UNFINISHED = "SELECT count(*) > 0 FROM survey_feedstage WHERE ended_at IS NULL AND "
AT_WORK = {
    "download_worker": UNFINISHED + "stage = 'download'",
    "scan_worker": UNFINISHED + "stage <> 'download'",
}
STAGES = ("download", "parse", "compare", "apply")


class Feeds:
    """The feeds of this benchmark in a stack, and their servers."""

    def __init__(self, stack: Stack, servers: DistrictServers, wait_s: float) -> None:
        self.stack, self.servers, self.wait_s = stack, servers, wait_s
        self._nights = 0
        # Of the last files that everybody was offered.
        self._file = 2

    def call(self, action: str, **arguments: object) -> dict[str, Any]:
        return call(self.stack, action, **arguments)

    def scan(self, name: str, window_s: float | None = None) -> dict[str, Any]:
        """Scan all feeds, and print what it took."""
        window_s = self.wait_s if window_s is None else window_s
        self._nights += 1
        result = self.call(
            "scan", night=self._nights, window_s=window_s, wait_s=self.wait_s
        )
        print_night(name, result)
        return result

    def next_night(self) -> int:
        """Return a night in which all files differ from those offered before."""
        self._file = 3 - self._file
        return self._file

    def scan_changed(self) -> float:
        """Scan all feeds, all of them changed, and return the window's seconds."""
        self.servers.offer(self.next_night())
        self._nights += 1
        result = self.call(
            "scan", night=self._nights, window_s=self.wait_s, wait_s=self.wait_s
        )
        seconds: float = result["window_s"]
        # A bad server may have offered the same file in an earlier night.
        if set(result["states"]) - {"applied", "unchanged"}:
            raise Refusal(f"Not all scans beside page saves were applied: {result}")
        return seconds

    def verify(self) -> dict[str, int]:
        offered = {
            number: f"{path.absolute()}"
            for number, path in self.servers.offered.items()
        }
        return self.call("verify", offered=offered)


def call(stack: Stack, action: str, **arguments: object) -> dict[str, Any]:
    """Run an action of `feed_rows` or `feed_jobs`, which is named with its module."""
    module, _, name = action.rpartition(".")
    module = f"provisioning.benchmarks.{module or 'feed_rows'}"
    words = ("-m", module, name, json.dumps(arguments))
    printed = stack.run_python(*words, failing=f"Feeds: {action} failed")
    result: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return result


def main() -> int:
    options = parse_options()
    stack = running_stack()
    print(f"{processor()}, {os.cpu_count()} cores")
    print(f"Servers on this machine: {DISTRIBUTION}")
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        servers = DistrictServers(Path(folder), options.districts)
        with feeds_of(stack, servers, options) as feeds:
            figures = measure(feeds, options)
    figures["passed"] = is_passed(figures)
    print(json.dumps(figures))
    return 0 if figures["passed"] else 1


@contextmanager
def feeds_of(
    stack: Stack, servers: DistrictServers, options: argparse.Namespace
) -> Iterator[Feeds]:
    """Add feeds with servers; remove all of it at the end, however it ends."""
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
    try:
        with serve(servers.districts) as server:
            with step(f"Adding {options.districts:,} districts with feeds"):
                # Of a run that was killed.
                call(stack, "remove")
                address = f"http://127.0.0.1:{server.port}"
                call(stack, "prepare", numbers=list(servers.numbers), address=address)
            yield Feeds(stack, servers, options.seconds)
    finally:
        with step("Removing districts, feeds and people"):
            call(stack, "remove")


def measure(feeds: Feeds, options: argparse.Namespace) -> dict[str, Any]:
    servers = feeds.servers
    first = feeds.scan("First scan")
    first_found = feeds.verify()
    count = len(servers.numbers)
    changed = servers.numbers[: count - round(UNCHANGED_SHARE * count)]
    servers.offer(1, changed)
    night = feeds.scan("Nightly scan")
    night_found = feeds.verify()
    bad_night = measure_bad_night(feeds)
    saves = measure_saves(feeds, options.saving)
    jobs = measure_jobs(feeds)
    counts = (first_found, night_found, bad_night)
    return {
        "window_s": round(night["window_s"], 1),
        "feeds": count,
        "applied": min(first_found["exact"], night_found["exact"]),
        "named_bad": bad_night["named_bad"],
        "duplicates": sum(each["duplicates"] for each in counts)
        + first["applied_twice"]
        + night["applied_twice"],
        "wrong_withdrawals": sum(each["wrong_withdrawals"] for each in counts),
        "missing": sum(each["missing"] for each in counts),
        "outdated": sum(each["outdated"] for each in counts),
        # Of all feeds together: small ones cost more for each row.
        "rows_per_s": rows_per_s(first),
        "first_window_s": round(first["window_s"], 1),
        "unchanged": night["states"].get("unchanged", 0),
        "bad": bad_night["bad"],
        "bad_night_applied": bad_night["applied"],
        "bad_night_healthy": count - bad_night["bad"],
        "bad_night_exact": bad_night["exact"],
        "killed": bad_night["killed"],
        **saves,
        **jobs,
    }


def rows_per_s(night: Mapping[str, Any]) -> float:
    """Return the rows that one worker compares in a second."""
    compare = night["stages"].get("compare")
    if not compare:
        return 0.0
    return round(compare["rows"] / compare["seconds"], 1)


def measure_bad_night(feeds: Feeds) -> dict[str, int]:
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
    with ThreadPoolExecutor(1) as other:
        killing = other.submit(kill_workers, feeds.stack)
        result = feeds.scan("Bad night", window_s)
        killed = killing.result()
    found = feeds.verify()
    return {
        **found,
        "duplicates": found["duplicates"] + result["applied_twice"],
        "applied": result["states"].get("applied", 0),
        "named_bad": named(bad, result["failed"]),
        "bad": len(bad.all),
        "killed": killed,
    }


def measure_saves(feeds: Feeds, seconds: float) -> dict[str, float]:
    """Save pages alone, and beside scans in which everybody's file has changed."""
    feeds.servers.make_usual()
    with step("Saving pages alone, then beside scans"):
        return saves_beside_scans(feeds.stack, seconds, feeds.scan_changed)


def measure_jobs(feeds: Feeds) -> dict[str, float]:
    """Compare warm workers with a process per job, and separate pools with one.

    The stack's workers of feeds are stopped meanwhile: the jobs are run here.
    """
    servers = feeds.servers
    small = servers.smallest(SMALL_FEEDS)
    many = list(servers.numbers)[:MOST_IN_POOLS]
    with stopped(feeds.stack, "scan_worker", "long_worker", "download_worker"):
        servers.make_fast()
        with step("Small feeds by a warm worker, then by a process per job"):
            servers.offer(feeds.next_night(), small)
            warm = feeds.call("feed_jobs.in_turn", numbers=small, apart=False)
            servers.offer(feeds.next_night(), small)
            apart = feeds.call("feed_jobs.in_turn", numbers=small, apart=True)
        servers.make_usual()
        with step("Separate pools, then one pool"):
            servers.offer(feeds.next_night(), many)
            separate = feeds.call("feed_jobs.in_pools", numbers=many, separate=True)
            servers.offer(feeds.next_night(), many)
            one = feeds.call("feed_jobs.in_pools", numbers=many, separate=False)
    return {
        "warm_jobs_per_s": warm["per_s"],
        "process_jobs_per_s": apart["per_s"],
        "separate_pools_s": separate["seconds"],
        "one_pool_s": one["seconds"],
    }


@contextmanager
def stopped(stack: Stack, *programs: str) -> Iterator[None]:
    running = RunningStack(stack.folder)
    try:
        for program in programs:
            running.stop(program)
        yield
    finally:
        for program in programs:
            running.start(program)
            running.wait_for(program)
        running.close()


def named(bad: BadServers, failed: Mapping[str, str]) -> int:
    """Count the bad servers whose scan failed with a message."""
    return sum(bool(failed.get(f"{number}")) for number in bad.all)


def kill_workers(stack: Stack) -> int:
    """Kill the download worker, then a scan worker, each while it works."""
    running = RunningStack(stack.folder)
    killed = 0
    try:
        for program, at_work in AT_WORK.items():
            if wait_until(partial(is_true, stack, at_work), seconds=30):
                pids = running.tree(program)
                running.kill_together(pids)
                killed += bool(pids)
                print(f"  killed {program}", flush=True)
                running.wait_for(program)
    finally:
        running.close()
    return killed


def is_true(stack: Stack, statement: str) -> bool:
    return stack.sql(statement)[0][0] == "t"


def print_night(name: str, result: Mapping[str, Any]) -> None:
    states = ", ".join(f"{n} {state}" for state, n in sorted(result["states"].items()))
    print(f"{name}: {result['window_s']:.1f} s; {states}")
    stages = result["stages"]
    total = sum(stage["seconds"] for stage in stages.values()) or 1.0
    rows = [
        (
            stage,
            f"{found['seconds']:.1f}",
            f"{100 * found['seconds'] / total:.0f} %",
            f"{found['rows']:,}",
            f"{found['rows'] / max(found['seconds'], 0.001):,.0f}",
            f"{found['bytes'] / 1e6:.1f}",
            found["repeated"],
        )
        for stage in STAGES
        if (found := stages.get(stage))
    ]
    header = ("stage", "s of all", "share", "rows", "rows/s", "MB", "repeated")
    print_table(header, rows)
    messages: dict[str, list[str]] = {}
    for number, message in result["failed"].items():
        messages.setdefault(message, []).append(number)
    for message, numbers in messages.items():
        print(f"  failed: {', '.join(numbers)}: {message}")
    for message in sorted(set(result["held"])):
        print(f"  held: {message}")
    if not result["is_over"]:
        print("  not all scans ended in time")


def is_passed(figures: Mapping[str, Any]) -> bool:
    wrong = ("duplicates", "wrong_withdrawals", "missing", "outdated")
    return (
        figures["window_s"] <= MOST_WINDOW_S
        and figures["applied"] == figures["feeds"]
        and figures["named_bad"] == figures["bad"]
        and figures["bad_night_applied"] == figures["bad_night_healthy"]
        and figures["bad_night_exact"] == figures["feeds"]
        and figures["killed"] == 2
        and figures["saves_kept"] >= LEAST_SAVES_KEPT
        and figures["warm_jobs_per_s"]
        >= LEAST_WARM_RATIO * figures["process_jobs_per_s"]
        and figures["separate_pools_s"] <= MOST_POOLS_RATIO * figures["one_pool_s"]
        and not any(figures[name] for name in wrong)
    )


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/feeds",
        description="Scans the OneRoster ZIPs of synthetic districts on the running"
        " stack: a first scan, a nightly scan (1 % of the people changed, 60 % of the"
        " feeds unchanged), and a night in which servers hang, send broken files and"
        " workers are killed. Compares everybody with the files. Removes what it has"
        " added. Also saves pages beside scans, and runs jobs in one warm process, in"
        " a process each, in separate pools and in one. Ends with one line of JSON, and"
        " with 1 if a requirement is missed.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help=f"{QUICK_DISTRICTS} districts")
    add("--districts", type=positive_integer, help=f"with a feed each ({DISTRICTS})")
    add("--people", type=positive_integer, help=f"of all districts ({PEOPLE:,})")
    add(
        "--seconds",
        type=positive_integer,
        default=60 * 60,
        help="until a window that has not ended is given up (3600)",
    )
    add("--saving", type=positive_integer, default=60, help="seconds of saves (60)")
    options = parser.parse_args(arguments)
    options.districts = options.districts or (
        QUICK_DISTRICTS if options.quick else DISTRICTS
    )
    if options.districts < FEWEST_DISTRICTS:
        parser.error(f"--districts is at least {FEWEST_DISTRICTS}")
    options.people = options.people or (QUICK_PEOPLE if options.quick else PEOPLE)
    return options


if __name__ == "__main__":
    sys.exit(run_command("provisioning/feeds", main))

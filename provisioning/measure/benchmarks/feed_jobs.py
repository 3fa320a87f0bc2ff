"""Run the jobs of feeds in this process, in a process each, or in pools of processes.

For `provisioning/run feeds`, while the stack's own workers of feeds are stopped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections

from provisioning.commands import ROOT, wait_until
from provisioning.in_django import arguments_for
from provisioning.measure.benchmarks.feed_rows import feeds, scans
from provisioning.processes import start_process, stop_process
from survey.models import FeedScan, Job
from survey.people.rosters.feeds.scan_jobs import download_feed, process_scan
from survey.people.rosters.feeds.scans import start_scan
from survey.work import jobs

# As in production: see `download_worker_threads`.
DOWNLOAD_THREADS = 16
# A process imports Django before it looks for jobs.
START_S = 10.0
KINDS = {"download": download_feed.name, "scan": process_scan.name}


def command(action: str, **arguments: object) -> list[str]:
    path = f"measure.benchmarks.feed_jobs.{action}"
    return [sys.executable, *arguments_for(path, **arguments)]


def scan_feeds(numbers: Sequence[int]) -> list[FeedScan]:
    return [
        start_scan(feed, reason=FeedScan.Reason.NOW, by=None) for feed in feeds(numbers)
    ]


def check_applied(started: Sequence[FeedScan]) -> None:
    pks = [scan.pk for scan in started]
    applied = scans().filter(pk__in=pks, state=FeedScan.State.APPLIED)
    if applied.count() != len(pks):
        raise SystemExit("Some scans were not applied.")


# Actions


def in_turn(*, numbers: list[int], apart: bool) -> dict[str, Any]:
    """Return the jobs a second, in this process or with a process for each."""
    if not apart:
        # A warm worker has run a job before.
        first, *numbers = numbers
        run_scan(first, apart=False)
    began = time.monotonic()
    done = sum(run_scan(number, apart=apart) for number in numbers)
    return {"per_s": round(done / (time.monotonic() - began), 2), "jobs": done}


def run_scan(number: int, *, apart: bool) -> int:
    """Run both jobs of a scan, and return their number."""
    [started] = scan_feeds([number])
    for kind in KINDS.values():
        pk = Job.objects.get(kind=kind, subject_id=started.pk).pk
        if apart:
            subprocess.run(command("run", pk=pk), cwd=ROOT, check=True)
        else:
            jobs.run(pk)
    check_applied([started])
    return len(KINDS)


def run(*, pk: int) -> dict[str, Any]:
    return {"is_done": jobs.run(pk)}


def in_pools(*, numbers: list[int], separate: bool) -> dict[str, Any]:
    """Return the seconds of a window, with separate pools or one for all jobs."""
    workers = [
        start_process(worker, cwd=ROOT, output=subprocess.DEVNULL)
        for worker in workers_of(separate=separate)
    ]
    try:
        time.sleep(START_S)
        began = time.monotonic()
        started = scan_feeds(numbers)
        unfinished = scans().filter(state__in=FeedScan.UNFINISHED)
        if not wait_until(lambda: not unfinished.exists(), seconds=3600, pause=0.1):
            raise SystemExit("The scans did not end.")
        seconds = time.monotonic() - began
    finally:
        stop_process(*workers)
    check_applied(started)
    return {"seconds": round(seconds, 1), "processes": len(workers)}


def workers_of(*, separate: bool) -> list[list[str]]:
    """Return the commands of as many processes, one more than cores, either way.

    In one pool each takes the oldest job of any kind. Separate, one process
    downloads, in threads because it waits, and the others scan.
    """
    cores = os.cpu_count() or 1
    if not separate:
        return [command("work", kinds=list(KINDS), threads=1)] * (cores + 1)
    downloads = command("work", kinds=["download"], threads=DOWNLOAD_THREADS)
    return [downloads, *[command("work", kinds=["scan"], threads=1)] * cores]


def work(*, kinds: list[str], threads: int) -> dict[str, Any]:
    """Run jobs of these kinds until this process is ended."""
    names = [KINDS[kind] for kind in kinds]

    def run_one_by_one() -> None:
        try:
            while True:
                waiting = jobs.runnable_jobs().filter(
                    kind__in=names, subject_id__in=scans().values("pk")
                )
                pk = waiting.values_list("pk", flat=True).first()
                if pk is None:
                    time.sleep(0.05)
                else:
                    # Another worker may have been faster; then there is a next one.
                    jobs.run(pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(threads):
            pool.submit(run_one_by_one)
    return {}

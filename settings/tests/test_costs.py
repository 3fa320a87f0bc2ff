"""What files of tests cost: `provisioning/test --costs`."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings

from settings.tests.costs import Costs, supervisors

BUSY, IDLE = "survey/tests/test_busy.py", "survey/tests/test_idle.py"


def run_one(costs: Costs, file: str, *program: str) -> None:
    """Run the last test of a file, which starts a program."""
    test = SimpleNamespace(nodeid=f"{file}::test_it", path=Path(file))
    protocol = costs.pytest_runtest_protocol(test, None)
    next(protocol)
    subprocess.run([sys.executable, "-c", *program], check=True)
    with suppress(StopIteration):
        protocol.send(True)


def lines_of(costs: Costs) -> list[str]:
    lines: list[str] = []
    costs.pytest_terminal_summary(SimpleNamespace(write_line=lines.append))
    return lines


def test_files_are_shown_with_what_their_processes_took():
    costs = Costs(SimpleNamespace())
    run_one(costs, IDLE, "")
    run_one(costs, BUSY, "import time\nwhile time.process_time() < 0.5: pass")
    assert costs.seconds[BUSY] > max(0.4, costs.seconds[IDLE])
    whole, first, second = lines_of(costs)
    assert "s of processor time" in whole
    assert (first.split()[1], second.split()[1]) == (BUSY, IDLE)


def test_test_processes_report_to_the_one_that_directs_them():
    worker = Costs(SimpleNamespace(workeroutput={}))
    run_one(worker, IDLE, "")
    worker.pytest_sessionfinish()
    director = Costs(SimpleNamespace())
    for _ in range(2):
        director.pytest_testnodedown(
            SimpleNamespace(workeroutput=worker.config.workeroutput)
        )
    assert director.seconds[IDLE] == 2 * worker.seconds[IDLE] > 0
    # One that died has nothing to report.
    director.pytest_testnodedown(SimpleNamespace())


@pytest.mark.skipif(not settings.SERVERS, reason="SQLite needs no servers")
def test_the_servers_of_a_test_process_count():
    [supervisor] = supervisors()
    started = {process.name() for process in supervisor.children(recursive=True)}
    assert {"postgres", "redis-server", "memcached", "pgbouncer"} <= started

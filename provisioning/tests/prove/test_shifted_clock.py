"""A running program reads another time of day, and no other program does."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from provisioning.processes import is_alive
from provisioning.prove.shifted_clock import shift_clock

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="clocks are shifted on x86-64 alone"
)
HOUR = 3600
# Prints its clocks for each line that it reads: time of day, monotonic, and the
# time of day of a program that it executes.
CLOCKS = """
import subprocess, sys, time
for line in sys.stdin:
    date = subprocess.run(["date", "+%s"], capture_output=True, text=True).stdout
    print(time.time(), time.monotonic(), date.strip(), flush=True)
"""
BUSY = """
import threading, time
def read():
    while True:
        time.time()
for _ in range(3):
    threading.Thread(target=read).start()
print("ready", flush=True)
"""


class Clocks:
    def __init__(self) -> None:
        command = [sys.executable, "-c", CLOCKS]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def ahead(self) -> list[float]:
        """Return by how much each clock is ahead of this program's, to a second."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        read = map(float, self.process.stdout.readline().split())
        own_times = (time.time(), time.monotonic(), time.time())
        return [
            pytest.approx(clock - now, abs=5)
            for clock, now in zip(read, own_times, strict=True)
        ]


@pytest.fixture
def clocks() -> Iterator[Clocks]:
    clocks = Clocks()
    yield clocks
    clocks.process.kill()
    clocks.process.communicate()


def test_the_time_of_day_jumps_and_comes_back(clocks):
    for seconds in (HOUR, -HOUR, 0):
        shift_clock([clocks.process.pid], seconds)
        # The monotonic clock stays, and so does that of what it executes.
        assert clocks.ahead() == [seconds, 0, 0]


def test_no_other_program_is_shifted(clocks):
    other_clocks = Clocks()
    try:
        shift_clock([clocks.process.pid], HOUR)
        assert other_clocks.ahead() == [0, 0, 0]
    finally:
        other_clocks.process.kill()
        other_clocks.process.communicate()


def test_threads_that_read_the_clock_all_the_time_survive():
    command = [sys.executable, "-c", BUSY]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline()
        for seconds in [HOUR, -HOUR, 0] * 10:
            shift_clock([process.pid], seconds)
        time.sleep(0.1)
        assert is_alive(process.pid)
    finally:
        process.kill()
        process.communicate()


def test_a_process_that_has_ended_is_left_out():
    process = subprocess.Popen(["true"])
    process.wait()
    shift_clock([process.pid], HOUR)

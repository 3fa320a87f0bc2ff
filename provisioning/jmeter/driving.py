"""JMeter at work, and whose the processor was meanwhile."""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from provisioning import processes
from provisioning.commands import Refusal
from provisioning.jmeter.java import java_command, rmi_options
from provisioning.jmeter.shapes import Load
from provisioning.jmeter.target import own_address
from provisioning.processes import end_with_parent

# What JMeter may take longer than its schedule: to start, to write the
# dashboard of a million samples.
GRACE = 120


def drive(
    java: str, home: Path, output: Path, load: Load, options: argparse.Namespace
) -> tuple[float, dict[str, float], float]:
    """The start (s, epoch), and CPU by program and the time that it counts."""
    scratch = output / "scratch"
    scratch.mkdir()
    command = java_command(java, home, heap=options.heap, scratch=scratch)
    command += ["-n", "-t", "plan.jmx", "-l", "results.csv", "-j", "jmeter.log"]
    command += ["-e", "-o", "dashboard", "-q", "run.properties"]
    if options.remote:
        command += rmi_options(options.keystore, address=own_address(options))
        command += ["-G", "run.properties", "-R", ",".join(options.remote)]
    log = output / "output.txt"
    with log.open("w") as file:
        # Inherited by nobody: it ends with this command, however that ends.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=output,
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGKILL),
        )
        try:
            return _watch(process, log, load)
        finally:
            _stop(process)
            shutil.rmtree(scratch, ignore_errors=True)


def _watch(
    process: subprocess.Popen, log: Path, load: Load
) -> tuple[float, dict[str, float], float]:
    deadline = time.monotonic() + load.seconds + GRACE
    began = _wait_for(process, log, r"Starting .* \((\d{13})\)", deadline)
    start = int(began) / 1000
    _sleep_until(start + load.begins, process)
    before, since = processes.cpu_seconds_by_process(), time.monotonic()
    _sleep_until(start + load.ends, process)
    spent = processes.cpu_used_by_program(before, processes.cpu_seconds_by_process())
    elapsed = time.monotonic() - since
    # Its threads are kept for a minute after the last person left, and it is
    # not waited for.
    _wait_for(process, log, r"(end of run)", deadline)
    return start, spent, elapsed


def _wait_for(
    process: subprocess.Popen, log: Path, pattern: str, deadline: float
) -> str:
    while True:
        ended = process.poll() is not None
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        if ended:
            raise Refusal(f"JMeter ended by itself: {_why(text)}")
        if time.monotonic() > deadline:
            raise Refusal("JMeter did not end in time, and was stopped")
        time.sleep(0.2)


def _why(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"rror|xception|annot", line)]
    return (telling or lines or ["it gave no reason"])[0][:300]


def _sleep_until(moment: float, process: subprocess.Popen) -> None:
    while process.poll() is None and (left := moment - time.time()) > 0:
        time.sleep(min(left, 0.5))


def _stop(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

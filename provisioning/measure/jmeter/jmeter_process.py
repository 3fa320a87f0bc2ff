"""Start JMeter, wait for its run, and measure the processor time meanwhile."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of
from provisioning.measure.jmeter.install import cache_folder
from provisioning.measure.jmeter.options import load_servers
from provisioning.measure.jmeter.shapes import Load
from provisioning.processes import (
    cpu_used_by_program,
    start_process,
    stats_by_program,
    stop_process,
)

# Seconds that JMeter may take longer than its schedule: to start, and to write
# the dashboard of a million samples.
GRACE = 120
SETTINGS = ROOT / "jmeter" / "settings.properties"


@dataclass(frozen=True, slots=True)
class JmeterRun:
    # Seconds since 1970.
    began: float
    # The cores that each program kept busy.
    cores: dict[str, float]


def run_jmeter(
    java: str, jmeter: Path, output: Path, load: Load, options: argparse.Namespace
) -> JmeterRun:
    scratch = output / "scratch"
    scratch.mkdir()
    command = java_command(java, jmeter, heap=options.heap, scratch=scratch)
    command += ["-n", "-t", "plan.jmx", "-l", "results.csv", "-j", "jmeter.log"]
    command += ["-e", "-o", "dashboard", "-q", "run.properties"]
    if options.remote:
        own_address = address_towards(load_servers(options)[0])
        command += rmi_options(options.keystore, address=own_address)
        command += ["-G", "run.properties", "-R", ",".join(options.remote)]
    log = output / "output.txt"
    with log.open("w") as file:
        process = start_process(
            command, output=file, cwd=output, parent_signal=signal.SIGKILL
        )
        try:
            deadline = time.monotonic() + load.seconds + GRACE
            began = _wait_for(process, log, r"Starting .* \((\d{13})\)", deadline)
            start = int(began) / 1000
            _sleep_until(start + load.begins, process)
            before, since = stats_by_program(), time.monotonic()
            _sleep_until(start + load.ends, process)
            used = cpu_used_by_program(before, stats_by_program())
            elapsed = time.monotonic() - since
            # JMeter itself ends a minute later, after its idle threads.
            _wait_for(process, log, r"(end of run)", deadline)
            return JmeterRun(start, {name: cpu / elapsed for name, cpu in used.items()})
        finally:
            stop_process(process)
            shutil.rmtree(scratch, ignore_errors=True)


def _wait_for(
    process: subprocess.Popen[bytes], log: Path, pattern: str, deadline: float
) -> str:
    """Wait for a line of JMeter's output, and return its group."""
    while True:
        ended = process.poll() is not None
        text = log.read_text(errors="replace")
        if line := re.search(pattern, text):
            return line[1]
        if ended:
            raise Refusal(f"JMeter ended by itself: {why_ended(text)}")
        if time.monotonic() > deadline:
            raise Refusal("JMeter did not end in time, and was stopped")
        time.sleep(0.2)


def why_ended(text: str, *, which: int = 0) -> str:
    """Return the first error in what JMeter printed, or another one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"rror|ERROR|xception|annot", line)]
    return (errors or lines or ["it gave no reason"])[which][:300]


def _sleep_until(moment: float, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and (left := moment - time.time()) > 0:
        time.sleep(min(left, 0.5))


def address_towards(server: str) -> str:
    """Return this machine's address, by which a load server calls back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: this only selects a route.
        probe.connect((server, 9))
        address: str = probe.getsockname()[0]
        return address


def java_command(java: str, jmeter: Path, *, heap: str, scratch: Path) -> list[str]:
    """Return the command of JMeter without a window; it only reads its folder."""
    return [
        java,
        "-Xms256m",
        f"-Xmx{heap}",
        # One thread for each person, and each needs little stack.
        "-Xss256k",
        "-XX:+UseSerialGC",
        "-Djava.awt.headless=true",
        f"-Djava.util.prefs.userRoot={scratch}",
        f"-Djava.io.tmpdir={scratch}",
        "-jar",
        str(jmeter / "bin" / "ApacheJMeter.jar"),
        "-q",
        str(SETTINGS),
    ]


def rmi_options(keystore: Path | None, *, address: str) -> list[str]:
    """Return options that require the keystore, by TLS, to call this JMeter.

    Without TLS it would listen on every address, and run any code sent to it.
    """
    path = (keystore or own_keystore()).absolute()
    if not path.is_file():
        raise Refusal(f"{path} is not there")
    options = [f"-Djava.rmi.server.hostname={address}"]
    for store in ("keystore", "truststore"):
        options.append(f"-Jserver.rmi.ssl.{store}.file={path}")
        options.append(f"-Jserver.rmi.ssl.{store}.type=PKCS12")
    return options


def own_keystore() -> Path:
    path = cache_folder() / "load-servers.p12"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        command = ["keytool", "-genkeypair", "-alias", "rmi", "-keyalg", "RSA"]
        command += ["-keysize", "2048", "-validity", "3650", "-storetype", "PKCS12"]
        # The file is the secret; this is the password that JMeter expects.
        command += ["-dname", "CN=load server", "-storepass", "changeit"]
        output_of([*command, "-keystore", draft], failing="keytool can't make a key")
        draft.chmod(0o600)
        draft.rename(path)
    return path

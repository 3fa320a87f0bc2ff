"""Every program ends, in order; the data stay."""

from __future__ import annotations

import contextlib
import time
import xmlrpc.client
from pathlib import Path

from provisioning.commands import Refusal, step
from provisioning.installation.home import PATIENCE, Supervisor
from provisioning.processes import is_alive

# First whoever takes requests, then whoever asks the servers, then those.
STOPPING = (
    {"nginx"},
    {"taking", "console", "worker", "long_worker", "beat"},
    {"primary", "replica", "pgbouncer", "memcached", "redis", "rabbitmq", "logs"},
    {"epmd"},
)


def down(home: Path) -> int:
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        print("Nothing is running.")
        return 0
    with step("Stopping every program"):
        for groups in STOPPING:
            _stop(supervisor, groups)
        _end(supervisor)
    print(f"Stopped; the data stay in {home}")
    return 0


def _stop(supervisor: Supervisor, groups: set[str]) -> None:
    """At once, and each in its own way of ending; then wait for the last."""
    for one in supervisor.programs():
        if one["group"] in groups:
            # It may have ended by itself in between.
            with contextlib.suppress(xmlrpc.client.Fault):
                supervisor.calls.stopProcess(f"{one['group']}:{one['name']}", False)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not any(
            one["pid"] for one in supervisor.programs() if one["group"] in groups
        ):
            return
        time.sleep(0.05)


def _end(supervisor: Supervisor) -> None:
    pid = supervisor.calls.getPID()
    supervisor.calls.shutdown()
    deadline = time.monotonic() + PATIENCE
    while is_alive(pid):
        if time.monotonic() > deadline:
            raise Refusal(f"The supervisor (process {pid}) does not end")
        time.sleep(0.05)

"""New code for every worker, and no request is lost."""

from __future__ import annotations

import time
from pathlib import Path

from provisioning.commands import Refusal, step
from provisioning.installation.home import PATIENCE, Supervisor


def reload(home: Path) -> int:
    """Restart each gunicorn while its twin accepts; then nginx, in place.

    Both share one socket, which the supervisor holds: whoever connects waits
    in its queue until one of them takes it. A request under way is finished.
    """
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        raise Refusal("Nothing is running; start it with provisioning/stack up")
    masters = [
        (program["group"], program["name"])
        for program in supervisor.programs()
        if program["group"] in ("taking", "console")
    ]
    for group, name in masters:
        with step(f"Restarting {name}"):
            supervisor.calls.stopProcess(f"{group}:{name}")
            supervisor.calls.startProcess(f"{group}:{name}", False)
            _wait_for_worker(home, supervisor, group, name)
    with step("Reloading nginx"):
        supervisor.calls.signalProcess("nginx", "HUP")
    print(f"{len(masters)} masters restarted, each while its twin served")
    return 0


def _wait_for_worker(home: Path, supervisor: Supervisor, group: str, name: str) -> None:
    ready = home / "run" / f"{name}.ready"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        pid = supervisor.calls.getProcessInfo(f"{group}:{name}")["pid"]
        if pid and ready.exists() and ready.read_text() == str(pid):
            return
        time.sleep(0.05)
    raise Refusal(f"{name} does not come back; the other master serves alone")

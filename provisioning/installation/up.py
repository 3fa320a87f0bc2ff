"""Every server is brought up, or into step with what changed."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import pwd
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, step
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    VENV,
    install_packages,
    prepare_environment,
)
from provisioning.installation.ansible_here import play_site
from provisioning.installation.chosen import Chosen, keep
from provisioning.installation.home import PATIENCE, Supervisor, addresses_of, is_open
from provisioning.installation.packages import missing_packages, postgresql_programs
from provisioning.installation.status import readyz

SERVER_USER = "groundswell"
# Everything else is a unix socket. With --port they follow one another from
# there, so that a second stack finds its place beside the first.
PORTS = {
    "nginx_port": 8080,
    "nginx_monitoring_port": 8081,
    "queue_port": 5672,
    "queue_dist_port": 25672,
    "queue_epmd_port": 4371,
}


def up(home: Path, variables: dict[str, Any], chosen: Chosen) -> int:
    began = time.monotonic()
    refuse_somebody_elses(home, str(variables["server_user"]))
    supervisor = Supervisor(home)
    if not supervisor.is_running():
        # Before the long work.
        _refuse_taken_ports(variables)
    packages = missing_packages()
    if packages:
        install_packages(packages)
    prepare_environment(PRODUCTION, STACK)
    play_site(
        home,
        {
            **variables,
            "postgresql_bin": str(postgresql_programs()),
            "version": _version(),
        },
    )
    keep(home, chosen)
    with step("Waiting until it serves"):
        _wait(supervisor, int(variables["nginx_port"]))
        degraded = _wait_for_helpers(addresses_of(home)["monitoring"])
    for consequence in degraded:
        print(consequence, flush=True)
    print(_welcome(home, supervisor, time.monotonic() - began), flush=True)
    return 0


def variables_of(home: Path, chosen: Chosen) -> dict[str, Any]:
    """What only this machine knows; the rest stands in provisioning/ansible."""
    is_root = os.geteuid() == 0
    # Servers refuse to be root, and the application should not be; only where
    # nobody else may read the checkout it has to.
    readable = all(is_open(path) for path in (ROOT / "manage.py", VENV / "pyvenv.cfg"))
    return {
        "home": str(home),
        "checkout": str(ROOT),
        "python": str(PYTHON),
        "server_user": SERVER_USER if is_root else "",
        "app_user": (SERVER_USER if readable else "root") if is_root else "",
        **_ports(chosen.port),
        **chosen.settings,
    }


def _ports(first: int) -> dict[str, int]:
    if not first:
        return PORTS
    return {name: first + n for n, name in enumerate(PORTS)}


# What is refused


def refuse_somebody_elses(home: Path, server_user: str) -> None:
    """Root would give a user's stack to the servers' user, and lock him out."""
    if not home.exists():
        return
    may = {os.geteuid()}
    with contextlib.suppress(KeyError):
        may.add(pwd.getpwnam(server_user).pw_uid)
    owner = home.stat().st_uid
    if owner not in may:
        raise Refusal(
            f"{home} belongs to another user (number {owner}); start it as that"
            " user, or let GROUNDSWELL_STACK name another folder"
        )


def _refuse_taken_ports(variables: dict[str, Any]) -> None:
    for port in (int(variables[name]) for name in PORTS):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except PermissionError:
            raise Refusal(
                f"Only root may serve on port {port}; choose another with --port"
            ) from None
        except OSError:
            raise Refusal(
                f"Port {port} is taken by another program; choose others with --port"
            ) from None


# Which code, and until it serves


def _version() -> str:
    """Of the code that the workers load: other code means other workers."""
    digest = hashlib.sha256(PRODUCTION.read_bytes())
    folders = ("accounts", "reports", "settings", "static", "survey", "templates")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and "tests" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _wait(supervisor: Supervisor, port: int) -> None:
    """Until every program runs, people can log in, and nobody is missed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        programs = supervisor.programs()
        waiting = [one["name"] for one in programs if one["statename"] != "RUNNING"]
        if not waiting and _status_of(port, "/") == http.client.OK:
            return
        time.sleep(0.2)
    if waiting:
        raise Refusal(f"Not running: {', '.join(waiting)}; see provisioning/stack logs")
    raise Refusal(f"The login page does not come: it says {_status_of(port, '/')}")


def _wait_for_helpers(monitoring: str) -> list[str]:
    """What /readyz still misses; RabbitMQ takes longest."""
    deadline = time.monotonic() + 20
    while degraded := readyz(monitoring).get("degraded"):
        if time.monotonic() > deadline:
            return degraded
        time.sleep(0.2)
    return []


def _status_of(port: int, path: str) -> int | None:
    try:
        with urllib.request.urlopen(  # noqa: S310
            f"http://127.0.0.1:{port}{path}", timeout=5
        ) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


def _welcome(home: Path, supervisor: Supervisor, seconds: float) -> str:
    told = addresses_of(home)
    return "\n".join(
        [
            "",
            f"Groundswell is running: {told['address']}",
            f"  watched at {told['monitoring']} (/healthz /readyz /metrics)",
            f"  data, logs and configuration in {home}",
            f"  {len(supervisor.programs())} programs, up in {seconds:.0f} s",
            "",
            "provisioning/stack status shows them; provisioning/stack down stops them.",
        ]
    )

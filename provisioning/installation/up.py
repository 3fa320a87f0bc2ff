"""Start every server, or bring it into step with what has changed."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import pwd
import socket
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from provisioning.commands import ROOT, Refusal, step, wait_until
from provisioning.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    VENV,
    install_packages,
    prepare_environment,
)
from provisioning.installation.packages import missing_packages
from provisioning.installation.playbook import run_playbook
from provisioning.installation.stack_folder import addresses_of, is_readable_by_all
from provisioning.installation.static_files import digest_of
from provisioning.installation.status import readiness
from provisioning.installation.supervisor import PATIENCE, Supervisor
from provisioning.postgresql import postgresql_programs

SERVER_USER = "groundswell"
# Everything else is a Unix socket. With --port they follow one another from
# there, so that a second stack fits on the same machine.
PORTS = {
    "nginx_port": 8080,
    "nginx_monitoring_port": 8081,
    "queue_port": 5672,
    "queue_dist_port": 25672,
    "queue_epmd_port": 4371,
}
OPTIONS_FILE = "etc/chosen.json"


@dataclass(frozen=True, slots=True)
class StackOptions:
    """--port (0: the usual ones) and --set, also those of earlier calls."""

    port: int
    settings: dict[str, str]


def merge_options(folder: Path, options: argparse.Namespace) -> StackOptions:
    """Add the options that the stack was last started with, and print them."""
    try:
        kept = StackOptions(**json.loads((folder / OPTIONS_FILE).read_text()))
    except FileNotFoundError:
        kept = StackOptions(port=0, settings={})
    except (TypeError, ValueError):
        raise Refusal(f"{folder / OPTIONS_FILE} can't be read; delete it") from None
    given = dict(options.set)
    words = [
        f"--set={name}={value}"
        for name, value in kept.settings.items()
        if name not in given
    ]
    if kept.port and options.port is None:
        words.insert(0, f"--port={kept.port}")
    if words:
        print(f"As the last time: {' '.join(words)}", flush=True)
    settings = {**kept.settings, **given}
    return StackOptions(
        port=kept.port if options.port is None else options.port,
        settings={name: value for name, value in settings.items() if value},
    )


def keep_options(folder: Path, options: StackOptions) -> None:
    for parent in (folder, (folder / OPTIONS_FILE).parent):
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A setting may be a password.
    draft = folder / f"{OPTIONS_FILE}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(options), file)
    draft.replace(folder / OPTIONS_FILE)


def variables_of(folder: Path, options: StackOptions) -> dict[str, object]:
    """Return Ansible's variables that depend on this machine and its options."""
    is_root = os.geteuid() == 0
    # Servers refuse to run as root, and the application should not; it has to
    # where other users may not read the checkout.
    readable = all(
        is_readable_by_all(path) for path in (ROOT / "manage.py", VENV / "pyvenv.cfg")
    )
    ports = {name: options.port + n for n, name in enumerate(PORTS)}
    return {
        "home": str(folder),
        "checkout": str(ROOT),
        "python": str(PYTHON),
        "server_user": SERVER_USER if is_root else "",
        "app_user": (SERVER_USER if readable else "root") if is_root else "",
        **(ports if options.port else PORTS),
        **options.settings,
    }


def up(folder: Path, options: StackOptions) -> int:
    variables = variables_of(folder, options)
    began = time.monotonic()
    refuse_other_owner(folder, str(variables["server_user"]))
    supervisor = Supervisor(folder)
    if not supervisor.is_running():
        # Before the long work.
        refuse_used_ports([int(str(variables[name])) for name in PORTS])
    if packages := missing_packages():
        install_packages(packages)
    prepare_environment(PRODUCTION, STACK)
    # With other code, or other packages, the workers are restarted.
    folders = ("accounts", "reports", "settings", "static", "survey", "templates")
    variables["version"] = digest_of(*folders, tests=False)[:16]
    variables["postgresql_bin"] = str(postgresql_programs())
    run_playbook(folder, variables)
    keep_options(folder, options)
    addresses = addresses_of(folder)
    with step("Waiting until it serves"):
        _wait_for_service(supervisor, int(str(variables["nginx_port"])))
        degraded: list[str] = []

        def is_complete() -> bool:
            degraded[:] = readiness(addresses["monitoring"]).get("degraded", [])
            return not degraded

        # RabbitMQ takes longest.
        wait_until(is_complete, seconds=20, pause=0.2)
    for consequence in degraded:
        print(consequence, flush=True)
    print(
        f"\nGroundswell is running: {addresses['address']}\n"
        f"  monitoring at {addresses['monitoring']} (/healthz /readyz /metrics)\n"
        f"  data, logs and configuration in {folder}\n"
        f"  {len(supervisor.programs())} programs, up in"
        f" {time.monotonic() - began:.0f} s\n\n"
        "provisioning/stack status shows them; provisioning/stack down stops them.",
        flush=True,
    )
    return 0


def refuse_other_owner(folder: Path, server_user: str) -> None:
    """Root would give a user's stack to the servers' user, and lock the user out."""
    if not folder.exists():
        return
    allowed = {os.geteuid()}
    with contextlib.suppress(KeyError):
        allowed.add(pwd.getpwnam(server_user).pw_uid)
    owner = folder.stat().st_uid
    if owner not in allowed:
        raise Refusal(
            f"{folder} belongs to another user (number {owner}); start it as that"
            " user, or let GROUNDSWELL_STACK name another folder"
        )


def refuse_used_ports(ports: list[int]) -> None:
    for port in ports:
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


def _wait_for_service(supervisor: Supervisor, port: int) -> None:
    """Wait until every program runs and the login page is served."""
    waiting: list[str] = []
    status: int | None = None

    def serves() -> bool:
        nonlocal status
        waiting[:] = [
            program["name"]
            for program in supervisor.programs()
            if program["statename"] != "RUNNING"
        ]
        try:
            address = f"http://127.0.0.1:{port}/"
            with urllib.request.urlopen(address, timeout=5) as reply:
                status = reply.status
        except urllib.error.HTTPError as error:
            status = error.code
        except (OSError, http.client.HTTPException):
            status = None
        return not waiting and status == http.client.OK

    if wait_until(serves, seconds=PATIENCE, pause=0.2):
        return
    if waiting:
        raise Refusal(f"Not running: {', '.join(waiting)}; see provisioning/stack logs")
    raise Refusal(f"The login page is not served; its status is {status}")

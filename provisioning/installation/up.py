"""Start every server, or bring it into step with what has changed."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import (
    ROOT,
    Refusal,
    fetch,
    listen,
    refuse_unless_served,
    step,
    wait_until,
)
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    VENV,
    install_missing_packages,
    prepare_environment,
)
from provisioning.installation.playbook import run_playbook
from provisioning.installation.postgresql import postgresql_programs, programs_of
from provisioning.installation.stack_folder import (
    addresses_of,
    checkout_of_fleet,
    is_installed,
    is_readable_by_all,
)
from provisioning.installation.static_files import digest_of
from provisioning.installation.supervisor import PATIENCE, Supervisor
from provisioning.installation.time_zone import zone_of_machine

SERVER_USER = "groundswell"
# Everything else is a Unix socket. With --port they follow one another from
# there, so that a second stack fits on the same machine.
PORTS = {
    "nginx_port": 8080,
    "nginx_monitoring_port": 8081,
    "queue_port": 5672,
    "queue_dist_port": 25672,
    "queue_epmd_port": 4371,
    "nginx_engineers_port": 8082,
}
OPTIONS_FILE = "etc/chosen.json"


@dataclass(frozen=True, slots=True)
class StackOptions:
    """--port (0: the usual ones) and --set, also those of earlier calls."""

    port: int
    settings: dict[str, str]


def merge_options(
    folder: Path, port: int | None, settings: Sequence[tuple[str, str]]
) -> StackOptions:
    """Add the options that the stack was last started with, and print them."""
    try:
        remembered = StackOptions(**json.loads((folder / OPTIONS_FILE).read_text()))
    except FileNotFoundError:
        remembered = StackOptions(port=0, settings={})
    except (TypeError, ValueError):
        raise Refusal(f"{folder / OPTIONS_FILE} can't be read; delete it") from None
    given = dict(settings)
    repeated = [f"--port={remembered.port}"] if remembered.port and port is None else []
    repeated += [
        f"--set={n}={v}" for n, v in remembered.settings.items() if n not in given
    ]
    if repeated:
        print(f"As the last time: {' '.join(repeated)}", flush=True)
    merged = {**remembered.settings, **given}
    return StackOptions(
        port=remembered.port if port is None else port,
        settings={name: value for name, value in merged.items() if value},
    )


def keep_options(folder: Path, options: StackOptions) -> None:
    for parent in (folder, (folder / OPTIONS_FILE).parent):
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f"{OPTIONS_FILE}.new"
    draft.unlink(missing_ok=True)
    # A setting may be a password.
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(json.dumps(asdict(options)))
    draft.replace(folder / OPTIONS_FILE)


def variables_of(folder: Path, options: StackOptions) -> dict[str, object]:
    """Return Ansible's variables that depend on this machine and its options."""
    # Servers refuse to run as root, and the application should not; it has to
    # where other users may not read the checkout.
    files = (ROOT / "manage.py", VENV / "pyvenv.cfg")
    app_user = SERVER_USER if all(map(is_readable_by_all, files)) else "root"
    is_root = os.geteuid() == 0
    ports = {name: options.port + n for n, name in enumerate(PORTS)}
    return {
        "home": str(folder),
        "checkout": str(ROOT),
        "python": str(PYTHON),
        "server_user": SERVER_USER if is_root else "",
        "app_user": app_user if is_root else "",
        "superusers": [pwd.getpwuid(os.geteuid()).pw_name],
        "time_zone": options.settings.get("time_zone") or zone_of_machine(),
        **(ports if options.port else PORTS),
        **options.settings,
    }


def up(folder: Path, *, port: int | None, settings: Sequence[tuple[str, str]]) -> int:
    refuse_installed(folder)
    options = merge_options(folder, port, settings)
    variables = variables_of(folder, options)
    began = time.monotonic()
    refuse_other_owner(folder, str(variables["server_user"]))
    supervisor = Supervisor(folder)
    if not supervisor.is_running():
        # Before the long work.
        for name in PORTS:
            listen(int(str(variables[name]))).close()
    install_missing_packages()
    prepare_environment(PRODUCTION, STACK)
    # With other code, or other packages, the workers are restarted.
    folders = ("accounts", "reports", "settings", "static", "survey", "templates")
    variables["version"] = digest_of(*folders)[:16]
    variables["postgresql_bin"] = str(programs_for(folder, options))
    run_playbook(folder, variables)
    keep_options(folder, options)
    addresses = addresses_of(folder)
    address, monitoring = addresses["address"], addresses["monitoring"]
    with step("Waiting until it serves"):
        wait_until(
            lambda: not supervisor.not_running() and fetch(address)[0] == 200,
            seconds=PATIENCE,
        )
        if names := ", ".join(supervisor.not_running()):
            raise Refusal(f"Not running: {names}; see provisioning/stack logs")
        refuse_unless_served(address)
        # RabbitMQ takes longest.
        wait_until(lambda: not readiness(monitoring).get("degraded"), seconds=20)
    for consequence in readiness(monitoring).get("degraded", []):
        print(consequence, flush=True)
    print(
        f"\nGroundswell is running: {address}\n"
        f"  monitoring at {monitoring} (/healthz /readyz /metrics)\n"
        f"  data, logs and configuration in {folder}\n"
        f"  times are those of {variables['time_zone']}\n"
        f"  {len(supervisor.programs())} programs, up in"
        f" {time.monotonic() - began:.0f} s\n\n"
        "provisioning/stack status shows them; provisioning/stack down stops them.",
        flush=True,
    )
    return 0


def programs_for(folder: Path, options: StackOptions) -> Path:
    """Return PostgreSQL's programs: of the data, else the version that was chosen."""
    data = folder / "data" / "primary"
    chosen = options.settings.get("postgresql_version")
    if chosen and not (data / "PG_VERSION").exists():
        return programs_of(int(chosen))
    return postgresql_programs(data)


def readiness(monitoring: str) -> dict[str, Any]:
    """Return what /readyz answers, also with 503; empty where it doesn't."""
    state: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        state = json.loads(fetch(f"{monitoring}readyz")[1])
    return state


def refuse_installed(folder: Path) -> None:
    """A stack's inventory would put plain HTTP on loopback in the place of TLS."""
    if is_installed(folder):
        raise Refusal(
            f"{folder} is a server that people use: run provisioning/install instead"
        )
    if checkout_of_fleet(folder):
        raise Refusal(
            f"{folder} is of a host of a fleet: run its playbook instead, on the"
            " machine from which you run Ansible"
        )


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

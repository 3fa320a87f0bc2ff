"""Start the nodes of a Citus cluster on Unix sockets, as the fleet's roles do."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import output_of
from provisioning.installation.environment import PYTHON
from provisioning.installation.playbook import run_playbook
from provisioning.installation.postgresql import run_sql, running_server

LEFT_OUT = "replica,failover,cache,queue,pgbouncer,application,web,worker,load"
# What a small machine needs instead of a fleet's sizes.
SIZES = {"max_connections": 200, "citus_prepared_transactions": 200}


@dataclass(frozen=True, slots=True)
class Node:
    """A server of the cluster; `run` is the folder of its socket."""

    run: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def home(self) -> Path:
        return home_of(self.run, self.port)

    def sql(self, statements: str, failing: str = "Citus refuses") -> list[list[str]]:
        return run_sql(statements, run=self.run, port=self.port, failing=failing)

    def call(self, script: str, *arguments: str, as_owner: bool = False) -> str:
        """Run a script that a role wrote for this node."""
        return output_of(
            ["sh", self.home / "etc" / script, *arguments],
            failing=f"The script {script} failed",
            user=system_user() if as_owner else None,
        )


def home_of(run: Path, port: int) -> Path:
    return run / "nodes" / str(port)


def system_user() -> str | None:
    """Return the system user that PostgreSQL needs, if it is another one."""
    return None if os.geteuid() else "postgres"


def write_nodes(
    run: Path, ports: Sequence[int], programs: Path, *, backs_up: bool = False
) -> None:
    """Write the configuration of a coordinator and workers with the fleet's roles."""
    folder = run / "nodes"
    folder.mkdir(exist_ok=True)
    # The servers' user has to pass.
    folder.chmod(0o711)
    inventory = folder / f"inventory-{ports[0]}.json"
    inventory.write_text(json.dumps(inventory_of(run, ports)))
    skipped = LEFT_OUT if backs_up else f"{LEFT_OUT},backup,citus"
    run_playbook(
        folder,
        variables_of(run, programs, backs_up=backs_up),
        "--tags=files",
        f"--skip-tags={skipped}",
        quietly=True,
        inventories=[inventory],
    )


def inventory_of(run: Path, ports: Sequence[int]) -> dict[str, Any]:
    """Return the groups of an inventory: the first port is the coordinator's."""
    hosts = {
        f"node-{port}": {
            "home": str(home_of(run, port)),
            "primary_port": port,
            "citus_node": number,
            "citus_address": str(run),
        }
        for number, port in enumerate(ports)
    }
    coordinator, *workers = hosts
    groups = {"primary": [coordinator], "citus_workers": workers}
    return {
        name: {"hosts": {host: hosts[host] for host in members}}
        for name, members in groups.items()
    }


def variables_of(run: Path, programs: Path, *, backs_up: bool) -> dict[str, object]:
    folder, user = run / "nodes", system_user()
    caller = pwd.getpwuid(os.geteuid()).pw_name
    return {
        **SIZES,
        "ansible_connection": "local",
        "ansible_python_interpreter": str(PYTHON),
        "installs_packages": False,
        "files_only": True,
        "run": str(run),
        "secrets": str(folder / "secrets"),
        "backup_folder": str(folder / "backups"),
        "backs_up_files": False,
        "server_user": user or "",
        "python": str(PYTHON),
        "postgresql_bin": str(programs),
        "postgresql_collects_logs": False,
        "allowed_hosts": ["localhost"],
        "time_zone": "UTC",
        # As the private servers have them.
        "postgresql_passwords": {},
        "superusers": sorted({caller, user or caller}),
        "initdb_options": "--no-sync",
        "backup_repository": "posix" if backs_up else "none",
        # Those of the one primary are granted, which names the tables of its release.
        "model_grants": [],
    }


@contextmanager
def running_node(run: Path, port: int, programs: Path) -> Iterator[Node]:
    """Run the server of a node with what the roles wrote for it."""
    home = home_of(run, port)
    with running_server(
        home / "data" / "primary",
        f"--config_file={home}/etc/primary/postgresql.conf",
        run=run,
        port=port,
        log=run / "log" / f"node-{port}.log",
        programs=programs,
        user=system_user(),
        # SIGTERM would wait for pgbouncer's connections.
        end_by=signal.SIGINT,
    ) as process:
        yield Node(run, port, process)


@contextmanager
def new_node(run: Path, port: int, programs: Path) -> Iterator[Node]:
    """Make an empty node with the roles, database and extension of a cluster."""
    initialise = home_of(run, port) / "etc" / "primary" / "initialise"
    output_of(
        ["sh", initialise], failing="PostgreSQL's initdb failed", user=system_user()
    )
    with running_node(run, port, programs) as node:
        node.call("primary/prepare")
        yield node


def give_data(data: Path, run: Path, port: int, settings: Mapping[str, str]) -> None:
    """Give the data of a stopped replica to a node, which follows by these settings."""
    target = home_of(run, port) / "data" / "primary"
    shutil.move(data, target)
    # Where ALTER SYSTEM writes: they end when the node is promoted.
    with (target / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

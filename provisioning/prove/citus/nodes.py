"""Start the nodes of a Citus cluster on Unix sockets.

The replica of the private servers becomes the coordinator; workers are made anew.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import output_of
from provisioning.installation.postgresql import run_sql, running_server
from provisioning.installation.servers import SOCKETS

COORDINATOR_PORT = int(SOCKETS["replica"].rpartition(".")[2])
FIRST_WORKER_PORT = COORDINATOR_PORT + 10
# Beside those of the stack's role. A transaction on several nodes is prepared on each
# of them.
SETTINGS = {
    "shared_preload_libraries": "citus,pg_stat_statements",
    "max_prepared_transactions": "200",
    # Shards are moved while people write to them.
    "wal_level": "logical",
    "max_connections": "200",
    # Each partition has its shards, which one transaction distributes.
    "max_locks_per_transaction": "4096",
    "shared_buffers": "256MB",
    "logging_collector": "off",
    # A small cluster on one machine; a fleet has as many as it may grow to nodes.
    "citus.shard_count": "32",
    "citus.enable_statistics_collection": "off",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A server of the cluster; `run` is the folder of its socket."""

    run: Path
    port: int
    process: subprocess.Popen[bytes]

    def sql(self, statements: str, failing: str = "Citus refuses") -> list[list[str]]:
        return run_sql(statements, run=self.run, port=self.port, failing=failing)


@contextmanager
def running_node(
    run: Path, data: Path, port: int, programs: Path, role: str = "primary"
) -> Iterator[Node]:
    """Run the server of a data folder, with the settings of a role of the stack."""
    log = run / "log" / f"node-{port}.log"
    # Moving a shard, a node connects to itself by this name.
    settings = {
        "config_file": f"{run}/etc/{role}/postgresql.conf",
        **SETTINGS,
        "port": str(port),
        "citus.local_hostname": str(run),
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    with running_server(
        data,
        *options,
        run=run,
        port=port,
        log=log,
        programs=programs,
        user=owner_of(data),
        # SIGTERM would wait for pgbouncer's connections.
        end_by=signal.SIGINT,
    ) as process:
        yield Node(run, port, process)


@contextmanager
def new_worker(run: Path, number: int, programs: Path) -> Iterator[Node]:
    """Make an empty worker with the roles, database and extension of a cluster."""
    data, user = run / "data" / f"worker-{number}", owner_of(run / "data" / "primary")
    output_of(
        [f"{programs}/initdb", f"--pgdata={data}", "--username=postgres", "--no-sync"]
        + ["--data-checksums", "--encoding=UTF8", "--locale=C.UTF-8"],
        failing="PostgreSQL's initdb failed",
        user=user,
    )
    with running_node(run, data, FIRST_WORKER_PORT + number, programs) as node:
        roles = (run / "etc" / "primary" / "roles.sql").read_text()
        run_sql(roles, run=run, port=node.port, database="postgres")
        node.sql("CREATE EXTENSION citus")
        yield node


def owner_of(folder: Path) -> str | None:
    """Return the system user that PostgreSQL needs, if it is another one."""
    return None if os.geteuid() else folder.owner()

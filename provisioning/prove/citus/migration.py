"""Migrate a running primary to a Citus cluster, under load.

The replica follows the primary until pgbouncer holds all statements back and the last
change has arrived. Then it is promoted, becomes the coordinator, distributes its
tables to the workers, and pgbouncer lets the statements through to it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from provisioning.commands import Refusal, wait_until
from provisioning.install.postgresql import run_sql
from provisioning.install.supervisor import Supervisor
from provisioning.measure.benchmarks.stack import Application
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from provisioning.commands import output_of
from provisioning.install.postgresql import run_sql, running_server
from provisioning.install.servers import SOCKETS

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


PRIMARY_PORT, POOLER_PORT = 5432, 6432
WORKERS = 2
# Seconds for which the control goes on saving after the last change was received.
UNSEEN = 3.0
PORT_OF_SHARD = "SELECT nodeport FROM citus_shards WHERE shardid = {}"
DISTRIBUTED = {"GROUNDSWELL_DISTRIBUTED": "true"}


@dataclass(frozen=True, slots=True)
class Cluster:
    coordinator: Node
    workers: Sequence[Node]
    # The application with the settings of a cluster.
    application: Application


def follow_primary(
    application: Application, programs: Path, stack: ExitStack, workers: int = WORKERS
) -> Cluster:
    """Restart the replica as a coordinator to be, and start empty workers."""
    run = application.run
    with closing(Supervisor(run, run=run)) as supervisor:
        supervisor.calls.stopProcess("replica")
    data = run / "data" / "replica"
    enter = stack.enter_context
    coordinator = enter(running_node(run, data, COORDINATOR_PORT, programs, "replica"))
    nodes = [enter(new_worker(run, n, programs)) for n in range(1, workers + 1)]
    environment = {**application.environment, **DISTRIBUTED}
    return Cluster(coordinator, nodes, replace(application, environment=environment))


def promote_after_last_change(application: Application, cluster: Cluster) -> None:
    """Hold statements back, wait for what was committed, and promote the replica."""
    pooler(application, "PAUSE")
    [[last]] = application.sql("SELECT pg_current_wal_lsn()")
    replayed = f"SELECT pg_last_wal_replay_lsn() >= '{last}'"
    if not wait_until(
        lambda: cluster.coordinator.sql(replayed) == [["t"]], seconds=120, pause=0.2
    ):
        raise Refusal("The replica does not receive the primary's last change")
    promote(cluster)


def promote_at_once(application: Application, cluster: Cluster) -> None:
    """Be the control: promote the replica without the last seconds of saves."""
    cluster.coordinator.sql("ALTER SYSTEM SET primary_conninfo = ''")
    cluster.coordinator.sql("SELECT pg_reload_conf()")
    time.sleep(UNSEEN)
    pooler(application, "PAUSE")
    promote(cluster)


def promote(cluster: Cluster) -> None:
    cluster.coordinator.sql("SELECT pg_promote(true, 120)")


def distribute(cluster: Cluster) -> None:
    """Make the promoted server a coordinator, and distribute its tables."""
    coordinator, run = cluster.coordinator, cluster.coordinator.run
    coordinator.sql("CREATE EXTENSION citus")
    coordinator.sql(f"SELECT citus_set_coordinator_host('{run}', {coordinator.port})")
    for worker in cluster.workers:
        coordinator.sql(f"SELECT citus_add_node('{run}', {worker.port})")
    coordinator.sql(cluster.application.manage("distribution_sql"))
    coordinator.sql((run / "etc" / "primary" / "grants.sql").read_text())


def move_shard(cluster: Cluster, shard: int) -> None:
    """Move a shard, and those colocated with it, to the other worker."""
    [[source]] = cluster.coordinator.sql(PORT_OF_SHARD.format(shard))
    [target] = {worker.port for worker in cluster.workers} - {int(source)}
    run = cluster.coordinator.run
    cluster.coordinator.sql(
        "SET statement_timeout = 0; SET lock_timeout = 0;"
        f" SELECT citus_move_shard_placement({shard}, '{run}', {source}, '{run}',"
        f" {target}, 'force_logical')",
        failing="Citus does not move the shard",
    )


def lead_to_coordinator(application: Application) -> None:
    """Point pgbouncer at the coordinator, and let statements through."""
    path = application.run / "etc" / "pgbouncer" / "pgbouncer.ini"
    text = path.read_text()
    path.write_text(text.replace(f"port={PRIMARY_PORT}", f"port={COORDINATOR_PORT}"))
    pooler(application, "RELOAD")
    pooler(application, "RESUME")


def pooler(application: Application, command: str) -> None:
    run_sql(command, run=application.run, port=POOLER_PORT, database="pgbouncer")

"""Migrate a running primary to a Citus cluster, under load.

The replica follows the primary until pgbouncer holds all statements back and the last
change has arrived. Then it is promoted, becomes the coordinator, distributes its
tables to the workers, and pgbouncer lets the statements through to it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from provisioning.commands import Refusal, wait_until
from provisioning.installation.postgresql import run_sql
from provisioning.installation.supervisor import Supervisor
from provisioning.measure.benchmarks.stack import Application
from provisioning.prove.citus.nodes import (
    Node,
    give_data,
    new_node,
    running_node,
    write_nodes,
)

PRIMARY_PORT, POOLER_PORT = 5432, 6432
# The replica's.
COORDINATOR_PORT = 5433
# How the replica follows, in its settings.
FOLLOWED = re.compile(r"^(primary_conninfo|primary_slot_name) = '(.+)'$", re.MULTILINE)
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
    enter = stack.enter_context
    ports = [COORDINATOR_PORT + number for number in range(workers + 1)]
    write_nodes(run, ports, programs, backs_up=True)
    settings = (run / "etc/replica/postgresql.conf").read_text()
    followed = dict(FOLLOWED.findall(settings))
    give_data(run / "data" / "replica", run, COORDINATOR_PORT, followed)
    coordinator = enter(running_node(run, COORDINATOR_PORT, programs))
    nodes = [enter(new_node(run, port, programs)) for port in ports[1:]]
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
    coordinator.call("primary/prepare")
    coordinator.call("citus/distribute")
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

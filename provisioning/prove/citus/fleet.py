"""A fleet with a cluster, as the example inventories and roles configure it.

Three hosts of the coordinator and of a worker node, two of the other one, and a web
host, in network namespaces of this machine: Patroni, etcd, HAProxy, pgbouncer, TLS, and
the firewall.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from provisioning.commands import Refusal, wait_until
from provisioning.installation.playbook import ANSIBLE
from provisioning.prove.citus.build import programs_with_citus
from provisioning.prove.failovers.cluster import INVENTORY, IS_PRIMARY, SIZES, Cluster
from provisioning.prove.failovers.host import Host

# As in the inventory, which has a third host of the second node too: that one is not
# killed. Without a standby nothing is committed, and no node is told of the others.
WORKERS = {
    "node1a": "10.0.0.81",
    "node1b": "10.0.0.82",
    "node1c": "10.0.0.83",
    "node2a": "10.0.0.91",
    "node2b": "10.0.0.92",
}
START_SECONDS = 300.0
ALL_NODES = """
SELECT nodename FROM pg_dist_node WHERE isactive AND metadatasynced ORDER BY groupid
"""
FOLLOWS = (
    "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
)


@dataclass
class CitusFleet(Cluster):
    """`databases` are the coordinator's hosts."""

    workers: dict[int, list[Host]] = field(default_factory=dict)
    inventories = (INVENTORY, ANSIBLE / "inventories" / "citus.example")
    limit = ",".join(["failover", *WORKERS, "web1"])
    skipped = "web"
    sizes: ClassVar[Mapping[str, object]] = {
        **SIZES,
        # Many servers on few processors, which have to be on time.
        "patroni_ttl": 30,
        "patroni_loop_wait": 3,
        "patroni_retry_timeout": 10,
        "max_connections": 60,
        "citus_locks": 2048,
        "connections_per_address": 0,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, address in WORKERS.items():
            host = Host.connected(name, address, self.folder / name)
            self.workers.setdefault(int(name[4]), []).append(host)

    def programs(self) -> Path:
        programs = programs_with_citus()
        if programs is None:
            raise Refusal("Citus is not built here; provisioning/run cluster builds it")
        return programs

    @property
    def nodes(self) -> list[list[Host]]:
        """Return the hosts of each node, the coordinator's first."""
        return [self.databases, *self.workers.values()]

    def start(self) -> None:
        hosts = [host for node in self.nodes for host in node]
        for host in (*hosts, self.web):
            host.run(f"nft --file {host.folder}/etc/firewall/rules.nft")
            host.start()
        for node in self.nodes:
            configure_node(node)
        if not self.becomes_whole():
            raise Refusal("The cluster does not become whole; see --keep")

    def is_whole(self) -> bool:
        """Return whether each node has a primary that a standby follows."""
        primaries = [primary_of(node) for node in self.nodes]
        return all(
            host is not None and (host.query(FOLLOWS) or (0,))[0] > 0
            for host in primaries
        )

    def distribute(self) -> None:
        """Lay the tables out on the nodes, and grant, as the playbook does."""
        for host in self.databases:
            host.run(f"sh {host.folder}/etc/citus/distribute")
        self.grant()

    def grant(self) -> None:
        grants = self.databases[0].folder / "etc/database/grants.sql"
        self.execute(grants.read_text())


@dataclass
class FleetThatBecomes(CitusFleet):
    """A fleet with one database, and worker nodes that it does not know yet."""

    is_cluster: bool = False

    def write_configuration(self) -> None:
        self.write_files(Cluster.limit, Cluster.inventories)
        self.write_files(",".join(WORKERS), self.inventories)

    def start(self) -> None:
        """Start the fleet, and the worker nodes beside it; the doors stay open."""
        Cluster.start(self)
        for node in self.workers.values():
            for host in node:
                host.start()
            configure_node(node)

    def is_whole(self) -> bool:
        return super().is_whole() if self.is_cluster else Cluster.is_whole(self)

    def become_cluster(self) -> None:
        """Do what docs/guides/citus.md says, up to the tables' distribution."""
        self.play_night("become_cluster.yml", "--limit=failover,citus_workers,web1")
        self.is_cluster = True
        self.write_files(self.limit, self.inventories)
        self.web.run(f"sh {self.web.folder}/etc/start haproxy pgbouncer")
        hosts = [host for node in self.nodes for host in node]
        for host in (*hosts, self.web):
            host.run(f"nft --file {host.folder}/etc/firewall/rules.nft")


def configure_node(node: list[Host]) -> None:
    """Wait for a node's primary, and make its roles and the database."""
    if not wait_until(lambda: primary_of(node), seconds=START_SECONDS, pause=1):
        raise Refusal(f"No host of {node[0].name} becomes the primary")
    for host in node:
        scripts = host.folder / "etc/database"
        host.run(f"sh {scripts}/on_leader sh {scripts}/configure")


def primary_of(node: list[Host]) -> Host | None:
    """Return the only host of a node that is no standby."""
    primaries = [host for host in node if host.query(IS_PRIMARY) == (True,)]
    return primaries[0] if len(primaries) == 1 else None

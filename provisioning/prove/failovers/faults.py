"""Inject faults into the primary's host."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provisioning import processes

# Not at the top: --list works before the environment is installed.
if TYPE_CHECKING:
    from provisioning.prove.failovers.cluster import Cluster
    from provisioning.prove.failovers.host import Host

HOUR = 3600
SYNCHRONOUS = """
SELECT application_name FROM pg_stat_replication WHERE sync_state = 'sync'
"""


@dataclass(frozen=True)
class Fault:
    name: str
    description: str
    inject: Callable[[Cluster, Host], None]
    # Whether another host has to become the primary.
    fails_over: bool = True
    # What happens to the primary of then, once saves have succeeded again.
    then: Callable[[Cluster, Host], None] | None = None
    # After the first host has come back; else in its state.
    heals_first: bool = False


def kill(_: Cluster, host: Host) -> None:
    host.kill()


def partition(cluster: Cluster, host: Host) -> None:
    host.partition([each.address for each in cluster.databases if each is not host])


def suspend_patroni(cluster: Cluster, host: Host) -> None:
    processes.send_signal(host.patroni(), signal.SIGSTOP)


def slow_down_standby(cluster: Cluster, host: Host) -> None:
    """Slow down the standby for which commits wait; under A1 they wait for none."""
    synchronous = host.query(SYNCHRONOUS)
    standbys = [each for each in cluster.databases if each is not host]
    chosen = [each for each in standbys if synchronous == (each.name,)] or standbys
    chosen[0].slow_down_disk(3)


def partition_unprotected(cluster: Cluster, host: Host) -> None:
    """Partition the primary while its Patroni is suspended, without watchdogs."""
    for each in cluster.databases:
        if each.watchdog:
            each.watchdog.is_on = False
    suspend_patroni(cluster, host)
    partition(cluster, host)


FAULTS = (
    Fault("kill", "every program of the host is killed", kill),
    Fault(
        "crash",
        "PostgreSQL is killed; Patroni and etcd live",
        lambda _, host: processes.kill_together(host.postmasters()),
    ),
    Fault("hang", "every program is suspended", lambda _, host: host.suspend()),
    Fault("manager", "Patroni is suspended; PostgreSQL lives", suspend_patroni),
    Fault("partition", "no other database host is reached; clients are", partition),
    Fault("isolation", "nobody is reached", lambda _, host: host.disconnect()),
    Fault("full disk", "the host's disk is full", lambda _, host: host.fill_disk()),
    Fault(
        "slow disk",
        "each flush of the host's disk takes 3 s",
        lambda _, host: host.slow_down_disk(3),
    ),
    Fault(
        "stuck disk",
        "each flush of the host's disk takes 60 s",
        lambda _, host: host.slow_down_disk(60),
    ),
    Fault(
        "slow standby",
        "each flush takes 3 s on the standby for which commits wait",
        slow_down_standby,
        fails_over=False,
    ),
    Fault(
        "clock ahead",
        "the host's clock jumps an hour ahead, then the primary is killed",
        lambda _, host: host.shift_clock(HOUR),
        fails_over=False,
        then=kill,
    ),
    Fault(
        "clock behind",
        "the host's clock jumps an hour back, then the primary is killed",
        lambda _, host: host.shift_clock(-HOUR),
        fails_over=False,
        then=kill,
    ),
    Fault(
        "twice",
        "the host is killed, and the next primary while it comes back",
        kill,
        then=kill,
        heals_first=True,
    ),
)
# Of `--control split`, with and without what protects: Patroni gives up a primary
# that can't reach etcd, and a watchdog resets the host of a silent Patroni. (Under
# A2 a commit would wait for a standby too.)
PROTECTED = [fault for fault in FAULTS if fault.name in ("partition", "manager")]
UNPROTECTED = Fault(
    "unprotected", "as `partition`, without Patroni", partition_unprotected
)

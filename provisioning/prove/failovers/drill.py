"""Let faults follow one another under load, and time each failover."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from provisioning import processes
from provisioning.commands import Refusal, wait_until
from provisioning.in_django import arguments_for
from provisioning.installation.environment import PYTHON
from provisioning.installation.stack_folder import environment_of
from provisioning.measure.load.respondent import ACKED
from provisioning.prove import fault_injection
from provisioning.prove.failovers.cluster import IS_PRIMARY, Cluster
from provisioning.prove.failovers.faults import Fault
from provisioning.prove.failovers.host import Host
from provisioning.prove.fault_injection.saver import PAGES
from provisioning.prove.fault_injection.saves import AnswerSource, Attempt, LogReader
from provisioning.prove.fault_injection.verdict import Judge, StoredAnswer

TABLE = "CREATE TABLE failover_probe (host text, at timestamptz)"
# The current timeline is in the name of the log's file.
WRITE = """
INSERT INTO failover_probe VALUES (%s, now())
RETURNING ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int
"""
PAUSE = 0.1


class Write(NamedTuple):
    """A write that a host has accepted; times of a clock that never jumps."""

    host: str
    timeline: int
    sent: float
    accepted: float


class Probe:
    def __init__(self, hosts: Iterable[Host], *, synchronous_commit: str) -> None:
        self.writes: list[Write] = []
        self.synchronous_commit = synchronous_commit
        self.is_over = False
        for host in hosts:
            # A host that hangs never ends its thread.
            threading.Thread(target=self._ask, args=[host], daemon=True).start()

    def stop(self) -> None:
        self.is_over = True

    def _ask(self, host: Host) -> None:
        import psycopg2

        while not self.is_over:
            with suppress(psycopg2.Error), closing(host.connect()) as connection:
                cursor = connection.cursor()
                cursor.execute(f"SET synchronous_commit = {self.synchronous_commit}")
                while not self.is_over:
                    sent = time.monotonic()
                    cursor.execute(WRITE, [host.name])
                    [timeline] = cursor.fetchone()
                    accepted = time.monotonic()
                    # A wait for a standby that was cancelled is no promise kept.
                    if not connection.notices:
                        write = Write(host.name, timeline, sent, accepted)
                        self.writes.append(write)
                    connection.notices.clear()
                    time.sleep(PAUSE)
            time.sleep(PAUSE)


def find_split(writes: Iterable[Write]) -> list[Write]:
    """Return writes that were sent to a primary after its successor's first.

    A primary is a host on a timeline. Only what is certain counts: the older one
    was asked after the newer one had answered, and accepted.
    """
    reigns: dict[tuple[str, int], list[Write]] = defaultdict(list)
    for write in writes:
        reigns[write.host, write.timeline].append(write)
    began = {
        reign: min(write.accepted for write in accepted)
        for reign, accepted in reigns.items()
    }
    return [
        write
        for reign, accepted in reigns.items()
        for write in accepted
        if any(began[reign] < first < write.sent for first in began.values())
    ]


RESPONDENTS = "prove.failovers.respondents.run"
# Within which another host has to be the primary; else the fault did not make
# it fail, or nobody could take over.
FAILOVER_SECONDS = 45.0
# As long a fault that should change nothing is watched: longer than a lease.
UNNOTICED_SECONDS = 12.0
RECOVERY_SECONDS = 90.0
# Saving has recovered when it succeeded in each of so many seconds.
STEADY = 3
GAP = 1.0
# Between a cluster that is whole and the next fault.
CALM = 2.0


@dataclass
class Failover:
    fault: str
    began: float
    host: str
    # The next primary; "" where the fault changed none.
    successor: str = ""
    # Until saves succeeded again; None: they never did.
    seconds: float | None = None
    # Until both standbys followed again.
    whole: float = 0.0

    def line(self) -> str:
        change = f"{self.host} -> {self.successor}" if self.successor else self.host
        back = "never" if self.seconds is None else f"{self.seconds:.1f} s"
        return (
            f"{self.fault:<12} {change:<12} saves again after {back:<8}"
            f" whole after {self.whole:.1f} s"
        )


class Load:
    """A load process, and what it has acknowledged."""

    def __init__(
        self, process: subprocess.Popen[bytes], log: Path, *, rate: int
    ) -> None:
        self.process = process
        self.rate = rate
        self.reader = LogReader(log)
        self.attempts: list[Attempt] = []
        self.acknowledged: list[float] = []

    @classmethod
    def of(
        cls, cluster: Cluster, *, seed: int, rate: int, people: int, first: int = 1
    ) -> Load:
        """Start the load of a cluster."""
        path = cluster.folder / f"attempts-{first}.log"
        load: dict[str, Any] = {"log": str(path), "seed": seed, "rate": rate}
        load |= {"people": people, "first": first}
        with (cluster.folder / "load.log").open("w") as output:
            process = processes.start_process(
                [PYTHON, *arguments_for(RESPONDENTS, **load)],
                output=output,
                env={**os.environ, **environment_of(cluster.web.folder, "taking")},
            )
        return cls(process, path, rate=rate)

    def read(self) -> None:
        if self.process.poll() is not None:
            raise Refusal("The load process has ended")
        self._read()

    def _read(self) -> None:
        for attempt in self.reader.read():
            self.attempts.append(attempt)
            if attempt.outcome == ACKED:
                self.acknowledged.append(attempt.answered)

    def is_steady(self) -> bool:
        """Return whether saves succeeded in each of the last seconds."""
        self.read()
        now = time.time()
        ages = [now - answered for answered in self.acknowledged[-self.rate * 5 :]]
        return all(
            sum(second <= age < second + 1 for age in ages) >= self.rate / 4
            for second in range(STEADY)
        )

    def recovered_after(self, began: float) -> float:
        """Return the seconds from `began` to the end of the last interruption."""
        last, recovered = began, began
        for answered in sorted(at for at in self.acknowledged if at >= began):
            if answered - last >= GAP:
                recovered = answered
            last = answered
        return recovered - began

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self._read()
        if not self.reader.completed:
            raise Refusal("The load process did not end as planned: the run is void")


@dataclass
class Drill:
    cluster: Cluster
    load: Load
    random: Random
    failovers: list[Failover] = field(default_factory=list)
    # False once a host did not come back: the drill ends there.
    is_whole: bool = True

    def run(self, faults: list[Fault], count: int) -> None:
        """Inject faults in turn until the primary has changed `count` times."""
        drawn: list[Fault] = []
        while self.is_whole and self.changes() < count:
            drawn = drawn or self.random.sample(faults, len(faults))
            self.inject(drawn.pop())

    def changes(self) -> int:
        return sum(bool(failover.successor) for failover in self.failovers)

    def inject(self, fault: Fault) -> None:
        if not wait_until(self.load.is_steady, seconds=RECOVERY_SECONDS, pause=0.2):
            raise Refusal("Page saves do not succeed before the fault")
        host = self.cluster.primary()
        if host is None:
            raise Refusal("There is no primary before the fault")
        self._fail(fault.name, fault.inject, host, fails_over=fault.fails_over)
        if fault.then and (primary := self.cluster.primary()):
            if fault.heals_first:
                self.cluster.heal()
                # Its member of etcd is back, PostgreSQL is not yet.
                time.sleep(CALM)
            self._fail(fault.name, fault.then, primary)
        began = time.monotonic()
        self.cluster.heal()
        self.is_whole = self.cluster.becomes_whole()
        self.failovers[-1].whole = time.monotonic() - began
        print(f"{self.changes():>4} {self.failovers[-1].line()}", flush=True)
        time.sleep(CALM)

    def _fail(
        self,
        name: str,
        inject: Callable[[Cluster, Host], None],
        host: Host,
        *,
        fails_over: bool = True,
    ) -> None:
        failover = Failover(name, time.time(), host.name)
        self.failovers.append(failover)
        inject(self.cluster, host)
        survivors = [each for each in self.cluster.databases if each is not host]

        def successor() -> Host | None:
            primaries = [
                each for each in survivors if each.query(IS_PRIMARY) == (True,)
            ]
            return primaries[0] if primaries else None

        seconds = FAILOVER_SECONDS if fails_over else UNNOTICED_SECONDS
        if wait_until(successor, seconds=seconds, pause=0.2):
            promoted = successor()
            failover.successor = promoted.name if promoted else ""
        if wait_until(self.load.is_steady, seconds=RECOVERY_SECONDS, pause=0.2):
            failover.seconds = round(self.load.recovered_after(failover.began), 1)


def prepare(cluster: Cluster, people: int, administration: int) -> None:
    """Make the tables, and an administration that respondents may answer."""
    cluster.migrate()
    folder = Path(fault_injection.__file__).parent
    sql = (folder / "controls.sql").read_text()
    cluster.execute(sql.format(administration=administration, people=people))
    for host in cluster.databases:
        if host is cluster.primary():
            cluster.execute((host.folder / "etc/database/grants.sql").read_text())


def judge_with_control(
    seed: int, attempts: Sequence[Attempt], stored: Sequence[StoredAnswer]
) -> dict[str, int]:
    """Compare what was sent with what is stored; and once more without an answer."""
    source = AnswerSource(seed, PAGES)
    verdict = Judge(source, attempts, stored).verdict()
    control = Judge(source, attempts, stored[1:]).verdict()
    return {
        "acknowledged": verdict.acknowledged,
        **verdict.counts(),
        "lost_in_control": control.count("lost") - verdict.count("lost"),
    }

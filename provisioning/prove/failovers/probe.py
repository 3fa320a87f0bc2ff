"""Ask every host for a write, all the time, and find moments with two primaries.

Each host is reached by its own socket, so that no partition is in the way.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing, suppress
from typing import NamedTuple

from provisioning.prove.failovers.host import Host

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

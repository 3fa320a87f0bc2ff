"""The primary is lost for good, and the replica takes over."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg2

from provisioning.commands import Refusal
from provisioning.fault_injection.faults import wait_for_database
from provisioning.fault_injection.stack import REPLICA, Home
from provisioning.fault_injection.verdict import Finding
from provisioning.installation.promotion import promote

LIMIT = 60.0


@dataclass
class Losing:
    """Under A2 a commit waits for the replica, and nothing may be lost.

    Under A1 whatever the replica had not received is gone. It is measured and
    told apart, by when it was acknowledged.
    """

    promise: str
    # Everything that was acknowledged before this is on the replica.
    began: float = 0.0
    # What is acknowledged from here on, the new primary answers for.
    ended: float = 0.0
    recovered: float | None = None
    lost: int = 0
    acknowledged: int = 0

    def prepare(self, home: Home) -> None:
        if not caught_up(home):
            raise Refusal("The replica does not catch up with the primary")
        if self.promise == "A2":
            home.ask("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (replica)'")
            home.ask("SELECT pg_reload_conf()")
            time.sleep(1.0)
            state = home.ask("SELECT sync_state FROM pg_stat_replication")
            if state not in ("sync", "quorum"):
                raise Refusal("The replica does not become a synchronous standby")

    def inject(self, home: Home) -> None:
        data = home.folder / "data"
        # First, so that the supervisor finds nothing to start again.
        (data / "primary").rename(data / "gone")
        home.kill_together(home.tree("primary"))

    def heal(self, home: Home) -> None:
        promote(home.folder)

    def explains(self, finding: Finding) -> bool:
        return self.began <= finding.acknowledged <= self.ended

    @property
    def as_required(self) -> bool:
        if self.recovered is None or self.recovered > LIMIT:
            return False
        return self.promise == "A1" or not self.lost


def caught_up(home: Home, *, seconds: float = 60.0) -> bool:
    """Whether the replica has replayed what the primary has written by now."""
    wait_for_database(home)
    written = home.ask("SELECT pg_current_wal_lsn()")
    question = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
    return _becomes_true(lambda: bool(home.ask(question, port=REPLICA)), seconds)


def _becomes_true(ask: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(psycopg2.Error):
            if ask():
                return True
        time.sleep(0.2)
    return False

"""Lose the primary for good, and let the replica take over."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from provisioning.commands import Refusal, wait_until
from provisioning.install.promotion import REPLICA, promote
from provisioning.prove.fault_injection.stack import RunningStack
from provisioning.prove.fault_injection.verdict import Finding

# Seconds within which saving has to recover.
LIMIT = 60.0
CATCH_UP_SECONDS = 60.0


@dataclass
class PrimaryLoss:
    """The loss of the primary, and what it has cost.

    Under promise A2 a commit waits for the replica, and nothing may be lost.
    Under A1 everything that the replica had not received is lost. That is
    counted apart, by the moment of its acknowledgement.
    """

    promise: str
    # Saves acknowledged before are on the replica; those after, on the new primary.
    began: float = 0.0
    ended: float = 0.0
    recovered: float | None = None
    lost: int = 0
    acknowledged: int = 0

    def prepare(self, stack: RunningStack) -> None:
        stack.wait_for_database()
        written = stack.query("SELECT pg_current_wal_lsn()")

        def has_replayed() -> bool:
            question = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
            with contextlib.suppress(Refusal):
                return bool(stack.query(question, port=REPLICA))
            return False

        if not wait_until(has_replayed, seconds=CATCH_UP_SECONDS, pause=0.2):
            raise Refusal("The replica does not catch up with the primary")
        if self.promise == "A2":
            names = "synchronous_standby_names = 'ANY 1 (replica)'"
            stack.query(f"ALTER SYSTEM SET {names}")
            stack.query("SELECT pg_reload_conf()")
            time.sleep(1.0)
            state = stack.query("SELECT sync_state FROM pg_stat_replication")
            if state not in ("sync", "quorum"):
                raise Refusal("The replica does not become a synchronous standby")

    def inject(self, stack: RunningStack) -> None:
        data = stack.folder / "data"
        # Before the kill, so that the supervisor finds nothing to start again.
        (data / "primary").rename(data / "gone")
        stack.kill_together(stack.tree("primary"))

    def heal(self, stack: RunningStack) -> None:
        promote(stack.folder)

    def explains(self, finding: Finding) -> bool:
        return self.began <= finding.acknowledged <= self.ended

    @property
    def as_required(self) -> bool:
        if self.recovered is None or self.recovered > LIMIT:
            return False
        return self.promise == "A1" or not self.lost

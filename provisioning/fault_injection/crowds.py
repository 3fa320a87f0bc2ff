"""The people of a run, in processes of their own, and what they wrote down."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT
from provisioning.environment import PYTHON
from provisioning.fault_injection import reading
from provisioning.fault_injection.attempts import Attempt, Follower
from provisioning.fault_injection.driver import PATIENCE
from provisioning.fault_injection.recovery import Timeline
from provisioning.fault_injection.stack import Home
from provisioning.processes import end_with_parent

# Eight choices of five tell 390,000 pages apart.
PAGES, ITEMS = 6, 8


@dataclass(frozen=True)
class Rehearsal:
    administration: int
    pages: list[dict[str, Any]]
    # Each with the access code.
    people: list[tuple[int, str]]


def rehearse(home: Home, folder: Path, respondents: int) -> Rehearsal:
    """A survey that nobody has answered yet, and people for it."""
    codes = folder / "codes"
    sizes = f"--respondents={respondents} --pages={PAGES} --items={ITEMS}"
    described = json.loads(
        home.manage(
            "open_rehearsal",
            *sizes.split(),
            f"--name=faults-{time.time_ns()}",
            f"--codes={codes}",
            "--json",
        )
    )
    administration = described["administration_id"]
    with contextlib.closing(home.connect()) as connection:
        known = reading.people(connection, administration, respondents)
    people = list(zip(known, codes.read_text().split(), strict=True))
    return Rehearsal(administration, described["pages"], people)


@dataclass(frozen=True)
class Share:
    """What one process gets of the load."""

    url: str
    seats: int
    rate: float


class Crowds:
    """Started together, ended together; their logs are read while they grow."""

    def __init__(
        self, folder: Path, rehearsal: Rehearsal, shares: Sequence[Share], seed: int
    ) -> None:
        self.timeline = Timeline()
        self.followers: list[Follower] = []
        self.processes: list[subprocess.Popen] = []
        total = sum(share.rate for share in shares)
        people, first = rehearsal.people, 0.0
        for number, share in enumerate(shares):
            last = first + share.rate / total
            part = people[round(first * len(people)) : round(last * len(people))]
            first = last
            orders = {
                "url": share.url,
                "seats": share.seats,
                "rate": share.rate,
                "people": part,
                "pages": rehearsal.pages,
                "seed": seed,
                "log": str(folder / f"attempts-{number}.log"),
            }
            self._start(folder / f"orders-{number}.json", orders)

    def _start(self, path: Path, orders: dict[str, Any]) -> None:
        path.touch(mode=0o600)
        path.write_text(json.dumps(orders))
        self.followers.append(Follower(Path(orders["log"])))
        self.processes.append(
            subprocess.Popen(
                [PYTHON, "-m", "provisioning.fault_injection.driver", path],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent(signal.SIGKILL),
            )
        )

    def follow(self) -> Timeline:
        for follower in self.followers:
            self.timeline.add(follower.read())
        return self.timeline

    def dead(self) -> int:
        """Processes that ended while they should be working."""
        return sum(process.poll() is not None for process in self.processes)

    def drain(self) -> bool:
        """Let everybody save what waits; whether all of them could."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE + 20
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=max(1.0, deadline - time.monotonic()))
        self.follow()
        return all(process.returncode == 0 for process in self.processes) and all(
            follower.completed for follower in self.followers
        )

    def kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def attempts(self) -> Iterator[Attempt]:
        yield from self.timeline.attempts


def acknowledged(attempts: Iterable[Attempt]) -> int:
    return sum(attempt.outcome == "acked" for attempt in attempts)

"""Lose a host of each kind while people answer, and judge what became of answers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from provisioning.commands import Refusal, step, wait_until
from provisioning.measure.load.respondent import ACKED
from provisioning.prove.failovers.drill import RECOVERY_SECONDS, Load
from provisioning.prove.fault_injection.saves import AnswerSource, Attempt
from provisioning.prove.fault_injection.verdict import (
    FORBIDDEN,
    Judge,
    StoredAnswer,
)
from provisioning.prove.fleet.hosts import Host

# How long a host stays away, and how long everything may be calm before the next.
AWAY = 20.0
CALM = 5.0
WHOLE_SECONDS = 240.0


@dataclass
class Loss:
    kind: str
    host: str
    began: float
    # When the next one may be lost.
    ended: float = 0.0
    # Seconds until pages were saved again; None: they never were.
    away_s: float | None = None
    # The longest that a page waited for its receipt, over all of its attempts.
    longest_wait_s: float = 0.0
    # From its power until all of its programs run; None: some do not.
    start_s: float | None = None
    lost: int = 0
    # What attempts got that were no receipt.
    replies: dict[str, int] = field(default_factory=dict)

    def line(self) -> str:
        away = "never" if self.away_s is None else f"{self.away_s:.1f} s"
        return (
            f"{self.kind:<9} {self.host:<8} saves again after {away:<7} longest wait"
            f" {self.longest_wait_s:.1f} s, whole after {self.start_s} s"
        )

    def figures(self) -> dict[str, Any]:
        times = ("began", "ended", "kind")
        figures = asdict(self)
        return {name: figures[name] for name in figures if name not in times}


def lose(kind: str, host: Host, load: Load, is_whole: Callable[[Host], bool]) -> Loss:
    """Lose a host, wait, start it again, and wait until all of it is back."""
    if not wait_until(load.is_steady, seconds=RECOVERY_SECONDS, pause=0.2):
        raise Refusal(f"Page saves do not succeed before {host.label} is lost")
    with step(f"Losing {host.label} ({kind})"):
        loss = Loss(kind, host.label, host.kill())
        time.sleep(AWAY)
        began = time.time()
        host.boot()
        back = wait_until(lambda: is_whole(host), seconds=WHOLE_SECONDS, pause=1)
        if back:
            loss.start_s = round(time.time() - began, 1)
        if wait_until(load.is_steady, seconds=RECOVERY_SECONDS, pause=0.2):
            loss.away_s = round(load.recovered_after(loss.began), 1)
        time.sleep(CALM)
        loss.ended = time.time()
    load.read()
    seen = [each for each in load.attempts if loss.began <= each.answered <= loss.ended]
    loss.longest_wait_s = round(longest_wait(load.attempts, loss.began, loss.ended), 1)
    loss.replies = dict(
        Counter(each.reply for each in seen if not each.succeeded).most_common()
    )
    print(loss.line(), flush=True)
    return loss


def longest_wait(attempts: Iterable[Attempt], begin: float, end: float) -> float:
    """Return how long a page waited at most whose receipt came between these times."""
    first: dict[tuple[int, int, int], float] = {}
    longest = 0.0
    for each in sorted(attempts, key=lambda each: each.sent):
        sent = first.setdefault((each.respondent, each.page, each.revision), each.sent)
        if (
            each.outcome == ACKED
            and each.kind != "late"
            and begin <= each.answered <= end
        ):
            longest = max(longest, each.answered - sent)
    return longest


def judge(
    source: AnswerSource,
    attempts: Sequence[Attempt],
    stored: Iterable[StoredAnswer],
    completed: frozenset[int],
    losses: Sequence[Loss],
) -> dict[str, Any]:
    """Compare all receipts with all rows; give each lost answer to a loss of a host."""
    verdict = Judge(source, attempts, stored, completed).verdict()
    for finding in verdict.findings:
        if finding.count == "lost":
            # The first host that was lost after its receipt.
            later = [each for each in losses if finding.acknowledged <= each.ended]
            for loss in [*later, *losses[-1:]][:1]:
                loss.lost += 1
    return {
        "saves_acknowledged": verdict.acknowledged,
        "lost": verdict.count("lost"),
        "findings": {
            name: verdict.count(name) for name in FORBIDDEN if verdict.count(name)
        },
        "killed": {loss.kind: loss.figures() for loss in losses},
    }


def shortcomings(figures: Mapping[str, Any]) -> list[str]:
    """Say what is not as it has to be."""
    sentences = [
        f"{name} is {number}" for name, number in figures["findings"].items() if number
    ]
    for kind, loss in figures["killed"].items():
        if loss["away_s"] is None:
            sentences.append(f"no page was saved again after the loss of: {kind}")
        if loss["start_s"] is None:
            sentences.append(f"{loss['host']} did not come back whole")
    if not figures["saves_acknowledged"]:
        sentences.append("nobody saved a page")
    if figures["open_doors"]:
        doors = ", ".join(figures["open_doors"])
        sentences.append(f"the firewall lets everybody in at {doors}")
    if figures["changed_again"]:
        tasks = ", ".join(figures["changed_again"])
        sentences.append(f"a second run changed something: {tasks}")
    return sentences

"""Judge what was served and shed at each step of an overload run."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from provisioning.measure.load.tally import percentile

# What can be refused, in the order in which it has to be shed.
CLASSES = ("starts", "resumes", "saves", "finishes")
START, RESUME, SAVE, FINISH = CLASSES
# Share of the knee that has to remain.
REQUIRED_GOODPUT = 0.9
# Milliseconds until a refusal at most: a queue of one second, and a save.
REFUSAL_LIMIT = 2000
RECOVERY_LIMIT = 60.0
# Share of all cores that other programs may take; interrupts count as them.
OTHER_PROGRAMS_LIMIT = 0.15
CORES = os.cpu_count() or 1
# Shares of a few hundred requests tell no smaller difference.
SHARE_TOLERANCE = 0.05


@dataclass
class OverloadStep:
    name: str
    people: int = 0
    seconds: float = 0.0
    # Saves a second in a closed loop, just before and after.
    knee: float = 1.0
    # Class -> seconds until each of its requests was served or refused.
    served: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    # Refusals without Retry-After, and requests without a reply.
    impolite: int = 0
    unanswered: int = 0
    # Shares of one core: the simulation's, and that of other programs.
    own_cpu: float = 0.0
    others_cpu: float = 0.0

    @property
    def saved(self) -> float:
        """Return the saves a second that reached the disk."""
        return round(len(self.served[SAVE]) / self.seconds, 1)

    @property
    def goodput(self) -> float:
        """Return the saves a second as a share of what the machine could do then."""
        return self.saved / self.knee

    @property
    def goodput_per_core(self) -> float:
        """Return the goodput for each core that the simulation left to the stack."""
        return self.goodput / max(0.1, CORES - self.own_cpu - self.others_cpu)

    @property
    def p95(self) -> float:
        return p95_ms(self.served[SAVE])

    @property
    def refusals(self) -> list[float]:
        return list(itertools.chain(*self.refused.values()))

    def share_refused(self, name: str) -> float:
        refused = len(self.refused[name])
        return round(refused / max(1, refused + len(self.served[name])), 3)

    def figures(self) -> dict[str, object]:
        return {
            "name": self.name,
            "people": self.people,
            "knee": round(self.knee, 1),
            "saved": self.saved,
            "served_per_second": {
                name: round(len(self.served[name]) / self.seconds, 1)
                for name in CLASSES
            },
            "refused": {name: self.share_refused(name) for name in CLASSES},
            "refusals_per_second": round(len(self.refusals) / self.seconds, 1),
            "p95": self.p95,
            "finish_p95": p95_ms(self.served[FINISH]),
            "refused_p95": p95_ms(self.refusals),
            "impolite": self.impolite,
            "unanswered": self.unanswered,
            "finishes_refused": len(self.refused[FINISH]),
            "own_cpu": round(self.own_cpu, 2),
            "others_cpu": round(self.others_cpu, 2),
        }

    def shortcomings(self) -> Iterator[str]:
        if self.goodput < REQUIRED_GOODPUT:
            yield f"{self.goodput:.0%} of the saves that it could serve"
        if (refused_p95 := p95_ms(self.refusals)) > REFUSAL_LIMIT:
            yield f"refused after {refused_p95:.0f} ms"
        if self.impolite:
            yield f"{self.impolite} refusals without a time"
        if self.unanswered:
            yield f"{self.unanswered} requests without a reply"
        if self.refused[FINISH] and self.saved:
            yield f"{len(self.refused[FINISH])} could not finish"
        for first, second in itertools.pairwise(CLASSES):
            if self.share_refused(first) < self.share_refused(second) - SHARE_TOLERANCE:
                yield f"{second} were shed before {first}"


@dataclass
class OverloadResult:
    steps: list[OverloadStep] = field(default_factory=list)
    # Seconds after the burst until saving was as before; None if it was not.
    back: float | None = None

    def shares_kept(self) -> dict[str, float]:
        """Return each step's share of the knee, which is what counts."""
        return {step.name: round(step.goodput, 3) for step in self.steps}

    def kept_per_core(self) -> dict[str, float]:
        """Return the same per core left to the stack. It excuses nothing.

        The load shares the machine with the stack, and simulates ten times the
        people at several times the cost.
        """
        most = max(step.goodput_per_core for step in self.steps)
        return {
            step.name: round(step.goodput_per_core / most, 3) for step in self.steps
        }

    def why_void(self) -> str:
        others_cpu = max(step.others_cpu for step in self.steps)
        if others_cpu <= OTHER_PROGRAMS_LIMIT * CORES:
            return ""
        return f"other programs took up to {others_cpu:.2f} of {CORES} cores"

    def shortcomings(self) -> list[str]:
        sentences = [
            f"{step.name}: {shortcoming}"
            for step in self.steps
            for shortcoming in step.shortcomings()
        ]
        if self.back is None:
            sentences.append(f"not as before within {RECOVERY_LIMIT:.0f} s")
        return sentences

    def described(self) -> dict[str, object]:
        return {
            "steps": [step.figures() for step in self.steps],
            "kept": self.shares_kept(),
            "kept_per_core": self.kept_per_core(),
            "back_after_seconds": self.back,
            "void": self.why_void(),
        }


def p95_ms(seconds: list[float]) -> float:
    return round(percentile(seconds, 95) * 1000, 1)

"""Report a run: a table for people, one line of JSON for programs."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from provisioning.fault_injection.controls import ControlResult
from provisioning.fault_injection.run import (
    InjectedFault,
    RunOptions,
    RunOutcome,
    seconds_or_never,
)
from provisioning.fault_injection.verdict import FORBIDDEN

# Share of the planned faults that have to be injected.
REQUIRED_FAULTS = 0.9


@dataclass
class Report:
    seed: int
    options: RunOptions | None = None
    outcome: RunOutcome | None = None
    controls: list[ControlResult] = field(default_factory=list)
    # Whether an earlier run was too slow, and this one is the second.
    is_repeated: bool = False

    @property
    def status(self) -> int:
        if self.why_void():
            return 2
        return 1 if self.shortcomings() else 0

    def may_repeat(self) -> bool:
        """Return whether the run failed for its timing alone.

        Another program may have been busy then. A lost, crossed, duplicated
        or corrupt answer has no such excuse, and neither has a control that
        finds nothing.
        """
        if self.is_repeated or self.outcome is None or self.outcome.verdict is None:
            return False
        controls_hold = all(control.as_required for control in self.controls)
        is_right = self.outcome.verdict.holds() and controls_hold
        return is_right and self.status != 0

    def why_void(self) -> str:
        outcome = self.outcome
        if outcome is None:
            return ""
        if outcome.why_void:
            return outcome.why_void
        if outcome.verdict is None:
            return "there was no final read"
        happened, planned = len(self._happened()), len(outcome.faults)
        if happened < REQUIRED_FAULTS * planned:
            return f"only {happened} of {planned} planned faults happened"
        return ""

    def shortcomings(self) -> list[str]:
        found = [
            f"control {control.name}: {control.count} {control.found},"
            f" with the protection {control.twin}"
            for control in self.controls
            if not control.as_required
        ]
        outcome, options = self.outcome, self.options
        if outcome is None or options is None:
            return found
        if outcome.verdict is not None:
            counts = outcome.verdict.counts()
            found += [f"{name} {counts[name]}" for name in FORBIDDEN if counts[name]]
            if outcome.verdict.acknowledged < options.saves:
                found.append(f"only {outcome.verdict.acknowledged:,} saves")
        found += [
            f"{fault.name}: {fault.shortcoming}"
            for fault in outcome.faults
            if fault.shortcoming
        ]
        found += [
            f"median save x {ratio:.2f} without {helper}"
            for helper, ratio in self._ratios().items()
            if ratio > options.slower
        ]
        loss = outcome.primary_loss
        if loss is not None and not loss.as_required:
            found.append(
                f"primary lost under {loss.promise}: {loss.lost}"
                f" saves lost, {seconds_or_never(loss.recovered)}"
            )
        return found

    def _happened(self) -> list[InjectedFault]:
        faults = self.outcome.faults if self.outcome else []
        return [fault for fault in faults if not fault.missed]

    def _ratios(self) -> dict[str, float]:
        found = defaultdict(list)
        for fault in self._happened():
            if fault.helper and fault.ratio is not None:
                found[fault.helper].append(fault.ratio)
        return {
            helper: round(statistics.median(ratios), 3)
            for helper, ratios in found.items()
        }

    def _recoveries(self) -> dict[str, list[float | None]]:
        found = defaultdict(list)
        for fault in self._happened():
            seconds = None if fault.recovered is None else round(fault.recovered, 2)
            found[fault.name].append(seconds)
        return dict(found)

    # Output

    def print(self) -> None:
        self.print_run()
        print(json.dumps(self._described()), flush=True)

    def print_run(self) -> None:
        if self.outcome is not None:
            self._print_outcome(self.outcome)
        for shortcoming in self.shortcomings():
            print(f"Not as required: {shortcoming}")
        verdict = "NOT as required" if self.status else "Every requirement holds"
        void = self.why_void()
        print(f"Void: {void}" if void else verdict, flush=True)

    def _print_outcome(self, outcome: RunOutcome) -> None:
        print(f"\n{'fault':<20}{'times':>6}{'median s':>10}{'max s':>8}{'failed':>8}")
        failed: dict[str, int] = defaultdict(int)
        for fault in self._happened():
            failed[fault.name] += fault.failed
        for name, seconds in sorted(self._recoveries().items()):
            known = [each for each in seconds if each is not None]
            most = max(known, default=0.0)
            worst = f"{most:.1f}" if len(known) == len(seconds) else "never"
            median = _median(known)
            print(
                f"{name:<20}{len(seconds):>6}{median:>10.1f}{worst:>8}{failed[name]:>8}"
            )
        for name, why in outcome.prevented.items():
            print(f"{name:<20} not planned: {why}")
        if outcome.verdict is None:
            return
        print(f"\nN {outcome.verdict.acknowledged:,} acknowledged saves,", end=" ")
        print(f"K {len(self._happened())} faults, in {outcome.seconds:.0f} s")
        counts = outcome.verdict.counts()
        print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
        forbidden = [
            each for each in outcome.verdict.findings if each.count in FORBIDDEN
        ]
        for finding in forbidden[:5]:
            print(f"  {finding}")
        loss = outcome.primary_loss
        if loss is not None:
            print(
                f"Primary lost for good under {loss.promise}: recovered in"
                f" {seconds_or_never(loss.recovered)}, {loss.lost} of"
                f" {loss.acknowledged:,} saves lost"
            )

    def _described(self) -> dict[str, object]:
        described: dict[str, object] = {"seed": self.seed}
        if self.outcome is not None:
            described |= self._described_run(self.outcome)
        described["controls"] = {
            control.name: {
                "count": control.count,
                "found": control.found,
                "with_protection": control.twin,
            }
            for control in self.controls
        }
        described["void"] = self.why_void()
        described["not_as_required"] = self.shortcomings()
        described["repeated"] = self.is_repeated
        return described

    def _described_run(self, outcome: RunOutcome) -> dict[str, object]:
        recoveries, verdict = self._recoveries(), outcome.verdict
        known = [
            seconds
            for each in recoveries.values()
            for seconds in each
            if seconds is not None
        ]
        deployments = [fault for fault in self._happened() if fault.unharmed]
        loss = outcome.primary_loss
        return {
            "N": verdict.acknowledged if verdict else 0,
            "K": len(self._happened()),
            "planned": len(outcome.faults),
            "not_planned": outcome.prevented,
            "attempts": verdict.attempts if verdict else 0,
            "seconds": round(outcome.seconds, 1),
            "counts": verdict.counts() if verdict else None,
            "baseline": asdict(outcome.baseline) if outcome.baseline else None,
            "window_seconds": self.options.window if self.options else None,
            "recovery": {
                "median": _median(known),
                "max": max(known, default=None),
                "each": recoveries,
            },
            "failed_in_deployments": sum(fault.failed for fault in deployments),
            "resent_in_deployments": sum(
                fault.failures["resent"] for fault in deployments
            ),
            "median_save_without_helper": self._ratios(),
            "primary_lost": asdict(loss) if loss else None,
        }


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2) if values else 0.0

"""What came out: a table for people, one line of JSON for programs."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from provisioning.fault_injection.controls import Controlled
from provisioning.fault_injection.run import Fired, Orders, Outcome
from provisioning.fault_injection.verdict import FORBIDDEN

FIRED = 0.9


@dataclass
class Report:
    seed: int
    orders: Orders | None = None
    outcome: Outcome | None = None
    controlled: list[Controlled] = field(default_factory=list)

    def add_run(self, orders: Orders, outcome: Outcome) -> None:
        self.orders, self.outcome = orders, outcome

    @property
    def status(self) -> int:
        if self._why_void():
            return 2
        return 1 if self.shortcomings() else 0

    # What is demanded

    def _why_void(self) -> str:
        outcome = self.outcome
        if outcome is None or self.orders is None:
            return ""
        if outcome.why_void:
            return outcome.why_void
        if outcome.verdict is None:
            return "there was no final read"
        happened, planned = len(self._happened()), len(outcome.fired)
        if happened < FIRED * planned:
            return f"only {happened} of {planned} planned faults happened"
        return ""

    def shortcomings(self) -> list[str]:
        found = [
            f"control {control.name}: {control.count} {control.found},"
            f" with the protection {control.twin}"
            for control in self.controlled
            if not control.as_required
        ]
        if self.outcome is not None and self.orders is not None:
            found += self._of_run(self.outcome, self.orders)
        return found

    def _of_run(self, outcome: Outcome, orders: Orders) -> list[str]:
        found = []
        if outcome.verdict is not None:
            counts = outcome.verdict.counts()
            found += [f"{name} {counts[name]}" for name in FORBIDDEN if counts[name]]
            if outcome.verdict.acknowledged < orders.saves:
                found.append(f"only {outcome.verdict.acknowledged:,} saves")
        found += [
            f"{fired.name}: {_shortcoming(fired)}"
            for fired in outcome.fired
            if not fired.as_required
        ]
        found += [
            f"median save x {ratio:.2f} without {helper}"
            for helper, ratio in self._ratios().items()
            if ratio > orders.slower
        ]
        if outcome.losing is not None and not outcome.losing.as_required:
            found.append(
                f"primary lost under {outcome.losing.promise}: {outcome.losing.lost}"
                f" saves lost, {_seconds(outcome.losing.recovered)}"
            )
        return found

    def _happened(self) -> list[Fired]:
        fired = self.outcome.fired if self.outcome else []
        return [one for one in fired if not one.missed]

    def _ratios(self) -> dict[str, float]:
        found = defaultdict(list)
        for fired in self._happened():
            if fired.helper and fired.ratio is not None:
                found[fired.helper].append(fired.ratio)
        return {
            helper: round(statistics.median(ratios), 3)
            for helper, ratios in found.items()
        }

    def _recoveries(self) -> dict[str, list[float | None]]:
        found = defaultdict(list)
        for fired in self._happened():
            seconds = None if fired.recovered is None else round(fired.recovered, 2)
            found[fired.name].append(seconds)
        return dict(found)

    # How it is told

    def print(self) -> None:
        if self.outcome is not None:
            self._print_recoveries()
            self._print_counts(self.outcome)
        void = self._why_void()
        for shortcoming in self.shortcomings():
            print(f"Not as required: {shortcoming}")
        verdict = "every requirement holds" if not self.status else "NOT as required"
        print(f"Void: {void}" if void else verdict[0].upper() + verdict[1:])
        print(self.json(), flush=True)

    def _print_recoveries(self) -> None:
        print(f"\n{'fault':<20}{'times':>6}{'median s':>10}{'max s':>8}{'failed':>8}")
        failed: dict[str, int] = defaultdict(int)
        for fired in self._happened():
            failed[fired.name] += fired.failed
        for name, seconds in sorted(self._recoveries().items()):
            known = [one for one in seconds if one is not None]
            middle, most = _middle(known), max(known, default=0.0)
            worst = f"{most:>8.1f}" if len(known) == len(seconds) else f"{'never':>8}"
            print(f"{name:<20}{len(seconds):>6}{middle:>10.1f}{worst}{failed[name]:>8}")
        for name, why in (self.outcome.prevented if self.outcome else {}).items():
            print(f"{name:<20} not planned: {why}")

    def _print_counts(self, outcome: Outcome) -> None:
        if outcome.verdict is None:
            return
        counts = outcome.verdict.counts()
        print(f"\nN {outcome.verdict.acknowledged:,} acknowledged saves,", end=" ")
        print(f"K {len(self._happened())} faults, in {outcome.seconds:.0f} s")
        print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
        for finding in [
            one for one in outcome.verdict.findings if one.count in FORBIDDEN
        ][:5]:
            print(f"  {finding}")
        if outcome.losing is not None:
            print(
                f"Primary lost for good under {outcome.losing.promise}: recovered in"
                f" {_seconds(outcome.losing.recovered)}, {outcome.losing.lost} of"
                f" {outcome.losing.acknowledged:,} saves lost"
            )

    def json(self) -> str:
        return json.dumps(self._described())

    def _described(self) -> dict[str, Any]:
        described: dict[str, Any] = {"seed": self.seed}
        if self.outcome is not None:
            described |= self._described_run(self.outcome)
        described["controls"] = {
            control.name: {
                "count": control.count,
                "found": control.found,
                "with_protection": control.twin,
            }
            for control in self.controlled
        }
        described["void"] = self._why_void()
        described["not_as_required"] = self.shortcomings()
        return described

    def _described_run(self, outcome: Outcome) -> dict[str, Any]:
        recovered = self._recoveries()
        known = [one for many in recovered.values() for one in many if one is not None]
        verdict = outcome.verdict
        return {
            "N": verdict.acknowledged if verdict else 0,
            "K": len(self._happened()),
            "planned": len(outcome.fired),
            "not_planned": outcome.prevented,
            "attempts": verdict.attempts if verdict else 0,
            "seconds": round(outcome.seconds, 1),
            "counts": verdict.counts() if verdict else None,
            "baseline": asdict(outcome.baseline) if outcome.baseline else None,
            "window_seconds": self.orders.window if self.orders else None,
            "recovery": {
                "median": _middle(known),
                "max": max(known, default=None),
                "each": recovered,
            },
            "failed_in_deployments": sum(
                one.failed for one in self._happened() if one.unharmed
            ),
            "resent_in_deployments": sum(
                one.failures["resent"] for one in self._happened() if one.unharmed
            ),
            "median_save_without_helper": self._ratios(),
            "primary_lost": asdict(outcome.losing) if outcome.losing else None,
        }


def _shortcoming(fired: Fired) -> str:
    if fired.unharmed and fired.failed:
        return f"{fired.failed} saves failed"
    return f"recovered in {_seconds(fired.recovered)}"


def _seconds(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s"


def _middle(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2) if values else 0.0

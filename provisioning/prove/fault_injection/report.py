"""Report a run: a table for people, one line of JSON for programs."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from provisioning.commands import print_figures, print_verdict
from provisioning.prove.fault_injection.controls import ControlResult
from provisioning.prove.fault_injection.faults import Fault, PrimaryLoss
from provisioning.prove.fault_injection.recovery import Baseline
from provisioning.prove.fault_injection.verdict import FORBIDDEN, Verdict

# Share of the planned faults that have to be injected.
REQUIRED_FAULTS = 0.9
# Seconds within which saving has to recover.
RECOVERY_LIMIT = 10.0


@dataclass(frozen=True)
class RunOptions:
    seed: int
    faults: Sequence[Fault]
    saves: int
    minutes: float
    rate: float
    window: float
    # Undisturbed seconds before each fault, and before the first.
    calm: float
    warm: float
    respondents: int
    # How much slower the median save may be without a helper.
    slower: float
    # Faults that can't be injected here, and why.
    prevented: dict[str, str]


@dataclass
class InjectedFault:
    fault: Fault
    # Why it could not be injected; empty if it was.
    missed: str = ""
    # Seconds; None if saving did not recover.
    recovered: float | None = None
    failures: Counter[str] = field(default_factory=Counter)
    # Median save without the helper against those before and after.
    ratio: float | None = None

    @property
    def failed(self) -> int:
        return self.failures.total() - self.failures["resent"]

    @property
    def shortcoming(self) -> str:
        if self.missed:
            return ""
        if self.fault.unharmed and self.failed:
            return f"{self.failed} saves failed"
        if self.recovered is not None and self.recovered <= RECOVERY_LIMIT:
            return ""
        return f"recovered in {seconds_or_never(self.recovered)}"

    def line(self) -> str:
        if self.missed:
            return f"{self.fault.name:<20} did not happen: {self.missed}"
        counts = [f"{count} {reply}" for reply, count in self.failures.items()]
        text = (
            f"{self.fault.name:<20} recovered in {seconds_or_never(self.recovered):>7}"
            f", {', '.join(counts) or 'no failure'}"
        )
        if self.ratio is not None:
            text += f", median save x {self.ratio:.2f}"
        return text


def seconds_or_never(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s"


@dataclass
class Report:
    seed: int
    # None where the controls run alone.
    options: RunOptions | None = None
    verdict: Verdict | None = None
    faults: list[InjectedFault] = field(default_factory=list)
    failure: str = ""
    baseline: Baseline | None = None
    seconds: float = 0.0
    primary_loss: PrimaryLoss | None = None
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
        if self.is_repeated or self.verdict is None:
            return False
        controls_hold = all(control.as_required for control in self.controls)
        is_right = not self.verdict.forbidden() and controls_hold
        return is_right and self.status != 0

    def why_void(self) -> str:
        if self.options is None or self.failure:
            return self.failure
        if self.verdict is None:
            return "there was no final read"
        happened, planned = len(self._happened()), len(self.faults)
        if happened < REQUIRED_FAULTS * planned:
            return f"only {happened} of {planned} planned faults happened"
        return ""

    def shortcomings(self) -> list[str]:
        sentences = [
            f"control {control.name}: {control.count} {control.findings},"
            f" with the protection {control.twin}"
            for control in self.controls
            if not control.as_required
        ]
        if self.options is None:
            return sentences
        if self.verdict is not None:
            counts = self.verdict.counts()
            sentences += [
                f"{name} {counts[name]}" for name in FORBIDDEN if counts[name]
            ]
            if self.verdict.acknowledged < self.options.saves:
                sentences.append(f"only {self.verdict.acknowledged:,} saves")
        sentences += [
            f"{injected.fault.name}: {injected.shortcoming}"
            for injected in self.faults
            if injected.shortcoming
        ]
        sentences += [
            f"median save x {ratio:.2f} without {helper}"
            for helper, ratio in self._ratios().items()
            if ratio > self.options.slower
        ]
        loss = self.primary_loss
        if loss is not None and not loss.as_required:
            sentences.append(
                f"primary lost under {loss.promise}: {loss.lost}"
                f" saves lost, {seconds_or_never(loss.recovered)}"
            )
        return sentences

    def _happened(self) -> list[InjectedFault]:
        return [injected for injected in self.faults if not injected.missed]

    def _ratios(self) -> dict[str, float]:
        by_helper = defaultdict(list)
        for injected in self._happened():
            if injected.fault.helper and injected.ratio is not None:
                by_helper[injected.fault.helper].append(injected.ratio)
        return {
            helper: round(statistics.median(ratios), 3)
            for helper, ratios in by_helper.items()
        }

    # Output

    def print(self) -> None:
        self.print_run()
        print(json.dumps(self.described()), flush=True)

    def print_run(self) -> None:
        print_figures(self.described())
        for finding in (self.verdict or Verdict()).forbidden()[:5]:
            print(f"  {finding}")
        print_verdict(self.shortcomings(), self.why_void())

    def described(self) -> dict[str, object]:
        described: dict[str, object] = {"seed": self.seed}
        if self.options is not None:
            described |= self._described_run(self.options, self.verdict or Verdict())
        return described | {
            "controls": {
                control.name: {
                    "count": control.count,
                    "found": control.findings,
                    "with_protection": control.twin,
                }
                for control in self.controls
            },
            "void": self.why_void(),
            "not_as_required": self.shortcomings(),
            "repeated": self.is_repeated,
        }

    def _described_run(
        self, options: RunOptions, verdict: Verdict
    ) -> dict[str, object]:
        recoveries: dict[str, list[float | None]] = defaultdict(list)
        harmed: Counter[str] = Counter()
        for injected in self._happened():
            recovered = injected.recovered
            seconds = None if recovered is None else round(recovered, 2)
            recoveries[injected.fault.name].append(seconds)
            if injected.fault.unharmed:
                harmed += injected.failures
        every = [seconds for each in recoveries.values() for seconds in each]
        known = [seconds for seconds in every if seconds is not None]
        return {
            "N": verdict.acknowledged,
            "K": len(self._happened()),
            "planned": len(self.faults),
            "not_planned": options.prevented,
            "attempts": verdict.attempts,
            "seconds": round(self.seconds, 1),
            "counts": verdict.counts() if self.verdict else None,
            "baseline": asdict(self.baseline) if self.baseline else None,
            "window_seconds": options.window,
            "recovery": {
                "median": round(statistics.median(known), 2) if known else 0.0,
                "max": max(known, default=None),
                "each": recoveries,
            },
            "failed_in_deployments": harmed.total() - harmed["resent"],
            "resent_in_deployments": harmed["resent"],
            "median_save_without_helper": self._ratios(),
            "primary_lost": asdict(self.primary_loss) if self.primary_loss else None,
        }

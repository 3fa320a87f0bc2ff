"""Run faults under load, one after another; then read back and judge."""

from __future__ import annotations

import contextlib
import time
import xmlrpc.client
from pathlib import Path
from random import Random

import psycopg2

from provisioning.commands import Refusal
from provisioning.measure.load.respondent import ACKED
from provisioning.prove.fault_injection.faults import (
    Fault,
    FaultContext,
    NotInjected,
    PrimaryLoss,
)
from provisioning.prove.fault_injection.load_processes import (
    LoadProcesses,
    Rehearsal,
    open_rehearsal,
)
from provisioning.prove.fault_injection.recovery import Baseline, Timeline
from provisioning.prove.fault_injection.report import InjectedFault, Report, RunOptions
from provisioning.prove.fault_injection.saves import AnswerSource
from provisioning.prove.fault_injection.verdict import Judge, read_back

LOOK_INTERVAL = 0.25
# Seconds after which there is no recovery from a fault.
PATIENCE = 45.0
CALM_LIMIT = 15.0
FAILOVER_LIMIT = 90.0
# Seconds after which breakers have opened.
BREAKERS_OPEN = 2.0


class TooSlow(Refusal):
    """The stack is too slow for a run, before any fault."""


class FaultRun:
    def __init__(
        self,
        context: FaultContext,
        folder: Path,
        options: RunOptions,
        primary_loss: PrimaryLoss | None = None,
    ) -> None:
        self.context = context
        self.stack = context.stack
        self.folder = folder
        self.options = options
        self.report = Report(options.seed, options, primary_loss=primary_loss)
        self.random = Random(options.seed)  # noqa: S311
        self.began = time.monotonic()

    def run(self) -> Report:
        report, options = self.report, self.options
        rehearsal = open_rehearsal(self.stack.application, options.respondents)
        url, rate, seed = self.stack.address, options.rate, options.seed
        self.load = LoadProcesses(self.folder, rehearsal, url=url, rate=rate, seed=seed)
        self.context.load = self.load
        try:
            self._warm_up()
            self._inject_faults()
            self._wait_for_saves()
            if report.primary_loss is not None:
                self._lose_primary(report.primary_loss)
            drained = self.load.drain()
        finally:
            self.load.kill()
        if not drained:
            report.failure = "not everyone could save what they had in the end"
        self._read_back(rehearsal)
        report.seconds = time.monotonic() - self.began
        return report

    # Under load

    @property
    def timeline(self) -> Timeline:
        return self.load.timeline

    def _watch(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(LOOK_INTERVAL)
            self.load.read_logs()

    def _time_left(self) -> bool:
        return time.monotonic() - self.began <= self.options.minutes * 60

    def _warm_up(self) -> None:
        print("Warming up", flush=True)
        self._watch(self.options.warm)
        now = time.time()
        baseline = self.timeline.baseline(now - self.options.warm / 2, now)
        self.report.baseline = baseline
        if baseline.per_second < self.options.rate / 4:
            raise TooSlow(
                "The stack serves too few saves before any fault:"
                f" {baseline.per_second:.0f} a second"
            )

    def _inject_faults(self) -> None:
        count = len(self.options.faults)
        for number, fault in enumerate(self.options.faults, start=1):
            injected = InjectedFault(fault)
            self.report.faults.append(injected)
            if not self._time_left():
                injected.missed = "no time was left"
                continue
            with fault.setup(self.context):
                # A fault begins on a stack that is well.
                self._watch(self.options.calm)
                since = time.time() - self.options.calm
                self._wait_for_recovery(since, limit=CALM_LIMIT)
                try:
                    self._inject(fault, injected)
                except (NotInjected, xmlrpc.client.Fault) as missed:
                    injected.missed = str(missed)
            print(f"{number:>3}/{count} {injected.line()}", flush=True)

    def _inject(self, fault: Fault, injected: InjectedFault) -> None:
        calm = self.options.calm
        began = time.time()
        before = self.timeline.baseline(began - calm, began)
        with fault.inject(self.context):
            self._watch(self.random.uniform(*fault.lasts))
            ended = time.time()
        since = time.time() if fault.from_its_end else began
        injected.recovered = self._wait_for_recovery(since, before)
        if fault.helper:
            # Against before and after, since other programs come and go.
            without = self.timeline.median(began + BREAKERS_OPEN, ended)
            recovered = time.time()
            self._watch(calm)
            after = self.timeline.median(recovered, time.time())
            if without and before.median and after:
                injected.ratio = 2 * without / (before.median + after)
        if fault.unharmed:
            self._watch(1.0)
        injected.failures = self.timeline.failures(began, time.time())

    def _wait_for_recovery(
        self, since: float, calm: Baseline | None = None, limit: float = PATIENCE
    ) -> float | None:
        baseline = self.report.baseline
        assert baseline is not None  # noqa: S101
        if calm is not None:
            baseline = baseline.or_as_in(calm)
        deadline = time.time() + limit
        while True:
            now = time.time()
            seconds = self.timeline.recovered(since, now, baseline, self.options.window)
            if seconds is not None or now > deadline:
                return seconds
            self._watch(LOOK_INTERVAL)

    def _wait_for_saves(self) -> None:
        while self._time_left() and not self.load.ended():
            if self._count_acked(0, time.time()) >= self.options.saves * 1.02:
                return
            self._watch(2.0)

    def _count_acked(self, begin: float, end: float) -> int:
        attempts = self.timeline.between(begin, end)
        return sum(attempt.outcome == ACKED for attempt in attempts)

    def _lose_primary(self, loss: PrimaryLoss) -> None:
        print(f"The primary is lost for good, under {loss.promise}", flush=True)
        calm = self.options.calm
        try:
            loss.prepare(self.stack)
            loss.began = time.time()
            self._watch(calm)
            injected = time.time()
            before = self.timeline.baseline(injected - calm, injected)
            loss.inject(self.stack)
            loss.ended = time.time()
            loss.heal(self.stack)
        except (Refusal, xmlrpc.client.Fault) as error:
            self.report.failure = f"the replica did not replace the primary: {error}"
            return
        loss.recovered = self._wait_for_recovery(injected, before, FAILOVER_LIMIT)
        self._watch(calm)
        loss.acknowledged = self._count_acked(loss.began, loss.ended)

    # Afterwards

    def _read_back(self, rehearsal: Rehearsal) -> None:
        try:
            self.stack.wait_for_database()
            with contextlib.closing(self.stack.connect()) as connection:
                verdict = Judge(
                    AnswerSource.of(self.options.seed, rehearsal.described),
                    self.timeline.attempts,
                    *read_back(connection, rehearsal.administration),
                ).verdict()
        except (Refusal, psycopg2.Error) as error:
            self.report.failure = f"the final read failed: {error}"
            return
        loss = self.report.primary_loss
        if loss is not None and loss.began:
            gone = [each for each in verdict.findings if loss.explains(each)]
            loss.lost = sum(finding.count == "lost" for finding in gone)
            if loss.promise == "A1":
                verdict = verdict.without(gone)
        self.report.verdict = verdict

"""Run faults under load, one after another; then read back and judge."""

from __future__ import annotations

import contextlib
import time
import xmlrpc.client
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psycopg2

from provisioning.commands import Refusal
from provisioning.fault_injection.answers import pages_of
from provisioning.fault_injection.failover import PrimaryLoss
from provisioning.fault_injection.faults import Fault, FaultContext, NotInjected
from provisioning.fault_injection.load_processes import (
    LoadProcesses,
    LoadShare,
    Rehearsal,
    open_rehearsal,
)
from provisioning.fault_injection.proxy import Fault as ProxyFault
from provisioning.fault_injection.proxy import proxied
from provisioning.fault_injection.recovery import Baseline, Timeline
from provisioning.fault_injection.verdict import (
    Judge,
    Verdict,
    read_completed,
    read_stored_answers,
)
from provisioning.load.respondent import ACKED

LOOK_INTERVAL = 0.25
# Seconds after which there is no recovery from a fault.
RECOVERY_LIMIT = 45.0
CALM_LIMIT = 15.0
FAILOVER_LIMIT = 90.0
# Seconds after which breakers have opened.
BREAKERS_OPEN = 2.0
# What the proxied part of the load suffers while replies are lost.
LOST_REPLIES = ProxyFault(lose=True, share=0.3)


class TooSlow(Refusal):
    """The stack is too slow for a run, before any fault."""


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
    name: str
    # Why it could not be injected; empty if it was.
    missed: str = ""
    # Seconds; None if saving did not recover.
    recovered: float | None = None
    limit: float = 10.0
    failures: Counter[str] = field(default_factory=Counter)
    unharmed: bool = False
    helper: str = ""
    # Median save without the helper against those before and after.
    ratio: float | None = None

    @property
    def failed(self) -> int:
        return self.failures.total() - self.failures["resent"]

    @property
    def shortcoming(self) -> str:
        if self.missed:
            return ""
        if self.unharmed and self.failed:
            return f"{self.failed} saves failed"
        if self.recovered is not None and self.recovered <= self.limit:
            return ""
        return f"recovered in {seconds_or_never(self.recovered)}"

    def line(self) -> str:
        if self.missed:
            return f"{self.name:<20} did not happen: {self.missed}"
        counts = [f"{count} {reply}" for reply, count in self.failures.items()]
        text = (
            f"{self.name:<20} recovered in {seconds_or_never(self.recovered):>7}"
            f", {', '.join(counts) or 'no failure'}"
        )
        if self.ratio is not None:
            text += f", median save x {self.ratio:.2f}"
        return text


def seconds_or_never(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s"


@dataclass
class RunOutcome:
    verdict: Verdict | None = None
    faults: list[InjectedFault] = field(default_factory=list)
    why_void: str = ""
    baseline: Baseline | None = None
    seconds: float = 0.0
    prevented: dict[str, str] = field(default_factory=dict)
    primary_loss: PrimaryLoss | None = None


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
        self.outcome = RunOutcome(
            prevented=options.prevented, primary_loss=primary_loss
        )
        self.random = Random(options.seed)  # noqa: S311
        self.began = time.monotonic()

    def run(self) -> RunOutcome:
        outcome, rate = self.outcome, self.options.rate
        rehearsal = open_rehearsal(self.stack, self.folder, self.options.respondents)
        with self._proxied() as proxy_url:
            # Two processes connect to nginx, and a quarter goes through the proxy.
            nginx_url, seats = self.stack.address, max(8, round(rate * 0.75))
            shares: list[LoadShare] = [
                {"url": url, "seats": round(seats * part), "rate": rate * part}
                for url, part in (
                    (nginx_url, 0.375),
                    (nginx_url, 0.375),
                    (proxy_url, 0.25),
                )
            ]
            self.load = LoadProcesses(self.folder, rehearsal, shares, self.options.seed)
            try:
                self._warm_up()
                self._inject_faults()
                self._wait_for_saves()
                if outcome.primary_loss is not None:
                    self._lose_primary(outcome.primary_loss)
                drained = self.load.drain()
            finally:
                self.load.kill()
        if not drained:
            outcome.why_void = "not everyone could save what they had in the end"
        self._read_back(rehearsal)
        outcome.seconds = time.monotonic() - self.began
        return outcome

    @contextlib.contextmanager
    def _proxied(self) -> Iterator[str]:
        host, _, port = self.stack.address.removeprefix("http://").partition(":")
        nginx = (host, int(port))
        with proxied(("127.0.0.1", 0), nginx, seed=self.options.seed) as proxy:

            def lose_replies(is_on: bool) -> None:
                if not is_on and not proxy.happened:
                    raise NotInjected("No reply went through the proxy")
                proxy.happened = 0
                proxy.fault = LOST_REPLIES if is_on else ProxyFault()

            self.context.lose_replies = lose_replies
            yield f"http://127.0.0.1:{proxy.listen[1]}"

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
        self.outcome.baseline = baseline
        if baseline.per_second < self.options.rate / 4:
            raise TooSlow(
                "The stack serves too few saves before any fault:"
                f" {baseline.per_second:.0f} a second"
            )

    def _inject_faults(self) -> None:
        for number, fault in enumerate(self.options.faults, start=1):
            injected = InjectedFault(
                fault.name,
                limit=fault.limit,
                unharmed=fault.unharmed,
                helper=fault.helper,
            )
            self.outcome.faults.append(injected)
            if not self._time_left():
                injected.missed = "no time was left"
                continue
            fault.prepare(self.context)
            try:
                # A fault begins on a stack that is well.
                self._watch(self.options.calm)
                since = time.time() - self.options.calm
                self._wait_for_recovery(since, limit=CALM_LIMIT)
                self._inject(fault, injected)
            except (NotInjected, psycopg2.Error, xmlrpc.client.Fault) as missed:
                injected.missed = str(missed).strip() or type(missed).__name__
            finally:
                fault.undo(self.context)
            count = len(self.options.faults)
            print(f"{number:>3}/{count} {injected.line()}", flush=True)

    def _inject(self, fault: Fault, injected: InjectedFault) -> None:
        calm = self.options.calm
        began = time.time()
        before = self.timeline.baseline(began - calm, began)
        try:
            fault.inject(self.context)
            self._watch(self.random.uniform(*fault.lasts))
            ended = time.time()
        finally:
            fault.heal(self.context)
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
        self,
        since: float,
        calm: Baseline | None = None,
        limit: float = RECOVERY_LIMIT,
    ) -> float | None:
        assert self.outcome.baseline is not None  # noqa: S101
        baseline = self.outcome.baseline
        if calm is not None:
            baseline = baseline.or_as_in(calm)
        deadline = time.time() + limit
        while True:
            now = time.time()
            found = self.timeline.recovered(since, now, baseline, self.options.window)
            if found is not None or now > deadline:
                return found
            self._watch(LOOK_INTERVAL)

    def _wait_for_saves(self) -> None:
        while self._time_left() and not self.load.ended():
            if self._count_acked(0, time.time()) >= self.options.saves * 1.02:
                return
            self._watch(2.0)

    def _count_acked(self, begin: float, end: float) -> int:
        found = self.timeline.between(begin, end)
        return sum(attempt.outcome == ACKED for attempt in found)

    def _lose_primary(self, loss: PrimaryLoss) -> None:
        print(f"The primary is lost for good, under {loss.promise}", flush=True)
        try:
            loss.prepare(self.stack)
        except (Refusal, psycopg2.Error) as error:
            self.outcome.why_void = f"the primary could not be lost: {error}"
            return
        loss.began = time.time()
        self._watch(self.options.calm)
        injected = time.time()
        calm = self.timeline.baseline(injected - self.options.calm, injected)
        loss.inject(self.stack)
        loss.ended = time.time()
        try:
            loss.heal(self.stack)
        except (Refusal, psycopg2.Error, xmlrpc.client.Fault) as error:
            self.outcome.why_void = f"the replica could not take over: {error}"
            return
        loss.recovered = self._wait_for_recovery(injected, calm, FAILOVER_LIMIT)
        self._watch(self.options.calm)
        loss.acknowledged = self._count_acked(loss.began, loss.ended)

    # Afterwards

    def _read_back(self, rehearsal: Rehearsal) -> None:
        try:
            self.stack.wait_for_database()
            with contextlib.closing(self.stack.connect()) as connection:
                verdict = Judge(
                    self.options.seed,
                    pages_of(rehearsal.described),
                    self.timeline.attempts,
                    read_stored_answers(connection, rehearsal.administration),
                    read_completed(connection, rehearsal.administration),
                ).verdict()
        except (psycopg2.Error, Refusal) as error:
            self.outcome.why_void = f"the final read failed: {error}"
            return
        loss = self.outcome.primary_loss
        if loss is not None and loss.began:
            gone = [each for each in verdict.findings if loss.explains(each)]
            loss.lost = sum(finding.count == "lost" for finding in gone)
            if loss.promise == "A1":
                verdict = verdict.without(gone)
        self.outcome.verdict = verdict

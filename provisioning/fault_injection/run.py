"""A run: load, faults one after another, drain, final read, verdict."""

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
from provisioning.fault_injection import reading
from provisioning.fault_injection.crowds import (
    Crowds,
    Rehearsal,
    Share,
    acknowledged,
    rehearse,
)
from provisioning.fault_injection.driver import pages_of
from provisioning.fault_injection.failover import Losing
from provisioning.fault_injection.faults import Fault, NotFired, Site, wait_for_database
from provisioning.fault_injection.proxy import Fault as Break
from provisioning.fault_injection.proxy import Proxy
from provisioning.fault_injection.recovery import Baseline, Timeline
from provisioning.fault_injection.stack import Home
from provisioning.fault_injection.verdict import Judge, Verdict

LOOK = 0.25
# After this a fault is taken not to have been recovered from.
GIVE_UP = 45.0
CALM_AGAIN = 15.0
# A breaker has opened by then.
OPENED = 2.0
# What the proxied part of the load loses while replies are lost.
LOSES = Break(lose=True, share=0.3)


@dataclass(frozen=True)
class Orders:
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
    # What can't be done here, and why not.
    prevented: dict[str, str]


@dataclass
class Fired:
    name: str
    # Empty if it could be brought about.
    missed: str = ""
    # None if saving did not recover.
    recovered: float | None = None
    limit: float = 10.0
    failures: Counter[str] = field(default_factory=Counter)
    unharmed: bool = False
    helper: str = ""
    # Median save with the helper down against those before and afterwards.
    ratio: float | None = None

    @property
    def failed(self) -> int:
        return self.failures.total() - self.failures["resent"]

    @property
    def as_required(self) -> bool:
        if self.missed:
            return True
        if self.unharmed and self.failed:
            return False
        return self.recovered is not None and self.recovered <= self.limit


@dataclass
class Outcome:
    verdict: Verdict | None = None
    fired: list[Fired] = field(default_factory=list)
    why_void: str = ""
    baseline: Baseline | None = None
    seconds: float = 0.0
    prevented: dict[str, str] = field(default_factory=dict)
    losing: Losing | None = None


class Run:
    def __init__(
        self, site: Site, folder: Path, orders: Orders, losing: Losing | None = None
    ) -> None:
        self.site = site
        self.home: Home = site.home
        self.folder = folder
        self.orders = orders
        self.outcome = Outcome(losing=losing, prevented=orders.prevented)
        self.random = Random(orders.seed)  # noqa: S311

    def run(self) -> Outcome:
        began = time.monotonic()
        rehearsal = rehearse(self.home, self.folder, self.orders.respondents)
        with self._proxied() as proxied:
            self.crowds = Crowds(
                self.folder, rehearsal, self._shares(proxied), self.orders.seed
            )
            try:
                self._warm_up()
                self._break_things(began)
                self._reach_the_saves(began)
                if self.outcome.losing is not None:
                    self._lose_the_primary(self.outcome.losing)
                drained = self.crowds.drain()
            finally:
                self.crowds.kill()
        if not drained:
            self.outcome.why_void = "not everybody could save what they had in the end"
        self._read_back(rehearsal)
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    @contextlib.contextmanager
    def _proxied(self) -> Iterator[str]:
        host, _, port = self.home.address.removeprefix("http://").partition(":")
        proxy = Proxy(("127.0.0.1", 0), (host, int(port)), seed=self.orders.seed)
        proxy.start()

        def lose(is_on: bool) -> None:
            if not is_on and not proxy.happened:
                raise NotFired("No reply went through the proxy")
            proxy.happened = 0
            proxy.fault = LOSES if is_on else Break()

        self.site.lose_replies = lose
        try:
            yield f"http://127.0.0.1:{proxy.listen[1]}"
        finally:
            proxy.stop()

    def _shares(self, proxied: str) -> list[Share]:
        """Two processes go straight to nginx, a quarter through the proxy."""
        rate = self.orders.rate
        seats = max(8, round(rate * 0.75))
        direct = self.home.address
        return [
            Share(direct, round(seats * 0.375), rate * 0.375),
            Share(direct, round(seats * 0.375), rate * 0.375),
            Share(proxied, round(seats * 0.25), rate * 0.25),
        ]

    # Under load

    def _warm_up(self) -> None:
        print("Warming up", flush=True)
        self._watch(self.orders.warm)
        now = time.time()
        self.outcome.baseline = self.timeline.baseline(now - self.orders.warm / 2, now)
        if self.outcome.baseline.per_second < self.orders.rate / 4:
            raise Refusal(
                "The stack serves too few saves before anything is broken:"
                f" {self.outcome.baseline.per_second:.0f} a second"
            )

    @property
    def timeline(self) -> Timeline:
        return self.crowds.timeline

    def _watch(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(LOOK)
            self.crowds.follow()

    def _break_things(self, began: float) -> None:
        for number, fault in enumerate(self.orders.faults, start=1):
            if time.monotonic() - began > self.orders.minutes * 60:
                self._miss(fault, "no time was left")
                continue
            fired = self._break(fault)
            self.outcome.fired.append(fired)
            print(_line(number, len(self.orders.faults), fired), flush=True)

    def _miss(self, fault: Fault, why: str) -> None:
        self.outcome.fired.append(Fired(fault.name, missed=why))

    def _break(self, fault: Fault) -> Fired:
        fired = Fired(
            fault.name,
            limit=fault.limit,
            unharmed=fault.unharmed,
            helper=fault.helper,
        )
        fault.prepare(self.site)
        try:
            self._wait_until_calm()
            self._bring_about(fault, fired)
        except (NotFired, psycopg2.Error, xmlrpc.client.Fault) as missed:
            fired.missed = str(missed).strip() or type(missed).__name__
        finally:
            fault.undo(self.site)
        return fired

    def _wait_until_calm(self) -> None:
        """A fault begins on a stack that is well."""
        self._watch(self.orders.calm)
        since = time.time() - self.orders.calm
        self._recovery(since, give_up=CALM_AGAIN)

    def _bring_about(self, fault: Fault, fired: Fired) -> None:
        began = time.time()
        calm = self.timeline.baseline(began - self.orders.calm, began)
        try:
            fault.inject(self.site)
            self._watch(self.random.uniform(*fault.lasts))
            ended = time.time()
        finally:
            fault.heal(self.site)
        healed = time.time()
        since = healed if fault.from_its_end else began
        fired.recovered = self._recovery(since, calm)
        if fault.helper:
            without = self.timeline.median(began + OPENED, ended)
            fired.ratio = self._ratio(without, calm.median)
        if fault.unharmed:
            self._watch(1.0)
        fired.failures = self.timeline.failures(began, time.time())

    def _ratio(self, without: float, before: float) -> float | None:
        """Against before and afterwards: what else runs here comes and goes."""
        now = time.time()
        self._watch(self.orders.calm)
        afterwards = self.timeline.median(now, time.time())
        if not (without and before and afterwards):
            return None
        return 2 * without / (before + afterwards)

    def _recovery(
        self, since: float, calm: Baseline | None = None, give_up: float = GIVE_UP
    ) -> float | None:
        assert self.outcome.baseline is not None  # noqa: S101
        baseline = self.outcome.baseline
        if calm is not None:
            baseline = baseline.or_as_in(calm)
        deadline = time.time() + give_up
        while True:
            now = time.time()
            found = self.timeline.recovered(since, now, baseline, self.orders.window)
            if found is not None or now > deadline:
                return found
            self._watch(LOOK)

    def _lose_the_primary(self, losing: Losing) -> None:
        print(f"The primary is lost for good, under {losing.promise}", flush=True)
        try:
            losing.prepare(self.home)
        except (Refusal, psycopg2.Error) as error:
            self.outcome.why_void = f"the primary could not be lost: {error}"
            return
        losing.began = time.time()
        self._watch(self.orders.calm)
        injected = time.time()
        calm = self.timeline.baseline(injected - self.orders.calm, injected)
        losing.inject(self.home)
        losing.ended = time.time()
        try:
            losing.heal(self.home)
        except (Refusal, psycopg2.Error, xmlrpc.client.Fault) as error:
            self.outcome.why_void = f"the replica could not take over: {error}"
            return
        losing.recovered = self._recovery(injected, calm, give_up=90.0)
        self._watch(self.orders.calm)
        doomed = self.timeline.between(losing.began, losing.ended)
        losing.acknowledged = acknowledged(doomed)

    def _reach_the_saves(self, began: float) -> None:
        while time.monotonic() - began < self.orders.minutes * 60:
            if acknowledged(self.timeline.attempts) >= self.orders.saves * 1.02:
                return
            if self.crowds.dead():
                return
            self._watch(2.0)

    # Afterwards

    def _read_back(self, rehearsal: Rehearsal) -> None:
        try:
            wait_for_database(self.home)
            with contextlib.closing(self.home.connect()) as connection:
                judge = Judge(
                    self.orders.seed,
                    pages_of(rehearsal.pages),
                    self.crowds.attempts(),
                    reading.stored_rows(connection, rehearsal.administration),
                    reading.completed(connection, rehearsal.administration),
                )
                self.outcome.verdict = self._judged(judge.verdict())
        except (psycopg2.Error, Refusal) as error:
            self.outcome.why_void = f"the final read failed: {error}"

    def _judged(self, verdict: Verdict) -> Verdict:
        losing = self.outcome.losing
        if losing is None or not losing.began:
            return verdict
        gone = [one for one in verdict.findings if losing.explains(one)]
        losing.lost = sum(one.count == "lost" for one in gone)
        return verdict.without(gone) if losing.promise == "A1" else verdict


def _line(number: int, count: int, fired: Fired) -> str:
    if fired.missed:
        return f"{number:>3}/{count} {fired.name:<20} did not happen: {fired.missed}"
    seconds = "never" if fired.recovered is None else f"{fired.recovered:.1f} s"
    text = f"{number:>3}/{count} {fired.name:<20} recovered in {seconds:>7}"
    said = ", ".join(f"{count} {reply}" for reply, count in fired.failures.items())
    text += f", {said}" if said else ", no failure"
    if fired.ratio is not None:
        text += f", median save x {fired.ratio:.2f}"
    return text

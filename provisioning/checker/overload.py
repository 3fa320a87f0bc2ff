"""More saves than the stack can take: it has to go on with what it can.

Arrivals do not wait for answers. The knee is what a closed loop gets; then
1, 2, 5 and 10 times as much is offered. Whatever is not saved is to be told
to come again, and soon. The load shares the machine with the stack, so what
it costs itself is told beside what the stack managed.
"""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from provisioning.checker.answers import answers_for
from provisioning.checker.crowds import Rehearsal
from provisioning.checker.driver import pages_of
from provisioning.checker.person import FORM
from provisioning.checker.wire import Browser, json_of, read_receipt
from provisioning.commands import Refusal
from provisioning.load.engine import Engine, Exchange, clock
from provisioning.load.latencies import p95
from provisioning.load.schedule import Arrivals
from provisioning.load.target import Target

TIMES = (1, 2, 5, 10)
SECONDS = 8.0
# Saves under way in the closed loop: four for each worker.
TOGETHER = 32
CALM = 0.5
KEPT = 0.9
# A queue of one second, and the time of a save.
SOON = 2.0
BACK = 60.0


@dataclass
class Step:
    name: str
    offered: float
    saved: float
    refused: float
    # Of what was saved, and of what was told to come again, in ms.
    p95: float
    refused_p95: float
    # Refusals that did not say when to come again, and requests without reply.
    impolite: int
    unanswered: int
    # Share of one core that offering the load took.
    own_cpu: float


@dataclass
class Overloaded:
    steps: list[Step] = field(default_factory=list)
    # Seconds after the burst until saving was as before; None if it was not.
    back: float | None = None

    @property
    def peak(self) -> float:
        return max(step.saved for step in self.steps)

    def shortcomings(self) -> list[str]:
        found = []
        for step in self.steps:
            if step.saved < KEPT * self.peak:
                share = step.saved / self.peak
                found.append(f"{step.name}: {share:.0%} of the best goodput")
            if step.refused_p95 > SOON * 1000:
                found.append(f"{step.name}: refused after {step.refused_p95:.0f} ms")
            if step.impolite:
                found.append(f"{step.name}: {step.impolite} refusals without a time")
        if self.back is None:
            found.append(f"not as before within {BACK:.0f} s")
        return found

    def described(self) -> dict[str, Any]:
        return {
            "steps": [asdict(step) for step in self.steps],
            "peak": self.peak,
            "back_after_seconds": self.back,
        }


class Saver:
    """Somebody who is logged in, and saves one page after another."""

    def __init__(self, target: Target, respondent: int, code: str) -> None:
        self.browser = Browser(target)
        self.respondent = respondent
        self.code = code
        self.next = 0


@dataclass
class Counted:
    saved: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    impolite: int = 0
    unanswered: int = 0


class Overload:
    def __init__(self, target: Target, rehearsal: Rehearsal, seed: int) -> None:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.engine = Engine(target, connections=min(4000, most - 100))
        self.pages = pages_of(rehearsal.pages)
        self.seed = seed
        self.random = Random(seed)  # noqa: S311
        self.savers = [Saver(target, *person) for person in rehearsal.people]
        self.turns: Iterator[Saver] = itertools.cycle(self.savers)

    def run(self) -> Overloaded:
        self._log_in()
        knee = self._knee()
        print(f"Knee: {knee:.0f} saves a second in a closed loop", flush=True)
        found = Overloaded()
        before = self._offer("before", CALM * knee)
        print(_line(before), flush=True)
        for times in TIMES:
            step = self._offer(f"{times}x", times * knee)
            found.steps.append(step)
            print(_line(step), flush=True)
        found.back = self._wait_until_as(before)
        self.engine.close()
        return found

    # Coming in

    def _log_in(self) -> None:
        waiting = iter(self.savers)

        def next_one() -> None:
            saver = next(waiting, None)
            if saver is not None:
                self._ask(saver, saver.browser.get("/"), lambda e: typed(saver, e))

        def typed(saver: Saver, exchange: Exchange) -> None:
            csrf = json_of(exchange.reply).get("csrf", "")
            form = f"code={saver.code}&csrfmiddlewaretoken={csrf}".encode()
            post = saver.browser.post("/", form, FORM)
            self._ask(saver, post, lambda e: admitted(saver, e))

        def admitted(saver: Saver, exchange: Exchange) -> None:
            get = saver.browser.get("/take/")
            self._ask(saver, get, lambda e: shown(saver, e))

        def shown(saver: Saver, exchange: Exchange) -> None:
            shell = json_of(exchange.reply)
            saver.browser.tag = shell.get("tag", "")
            saver.next = shell.get("revision", 0)
            next_one()

        for _ in range(8):
            next_one()
        self.engine.run(until=clock() + 120)
        self.savers = [saver for saver in self.savers if saver.next]
        if not self.savers:
            raise Refusal("Nobody could log in")
        self.turns = itertools.cycle(self.savers)

    def _ask(self, saver: Saver, data: bytes, done: Any) -> None:
        def answered(exchange: Exchange) -> None:
            if exchange.reply is not None:
                saver.browser.keep_cookies(exchange.reply)
            done(exchange)

        self.engine.ask(data, answered)

    # Saving

    def _save(self, counted: Counted, due: float, then: Any = None) -> None:
        saver = next(self.turns)
        page = self.random.randint(1, len(self.pages))
        revision, saver.next = saver.next, saver.next + 1
        answers = answers_for(
            seed=self.seed,
            respondent=saver.respondent,
            page=page,
            revision=revision,
            items=self.pages[page],
        )
        data = saver.browser.save(page, revision, answers)

        def answered(exchange: Exchange) -> None:
            receipt = read_receipt(exchange, revision)
            seconds = exchange.answered - exchange.scheduled
            if receipt.kind == "saved" or receipt.error == "superseded":
                counted.saved.append(seconds)
            elif exchange.reply is None:
                counted.unanswered += 1
            else:
                counted.refused.append(seconds)
                counted.impolite += not receipt.after
            if then is not None:
                then()

        self.engine.ask(data, answered, scheduled=due)

    def _knee(self) -> float:
        counted, end = Counted(), clock() + SECONDS

        def again() -> None:
            if clock() < end:
                self._save(counted, clock(), again)

        for _ in range(TOGETHER):
            again()
        self.engine.run(until=end)
        return len(counted.saved) / SECONDS

    def _offer(self, name: str, rate: float, seconds: float = SECONDS) -> Step:
        counted, begin = Counted(), clock()
        cpu = time.process_time()
        arrivals = Arrivals(
            self.engine,
            rate=rate,
            begin=begin,
            seconds=seconds,
            act=lambda due: self._save(counted, due),
            seed=self.seed,
        )
        self.engine.run(until=begin + seconds)
        saved = len(counted.saved) / (clock() - begin)
        refused = len(counted.refused) / (clock() - begin)
        cpu = (time.process_time() - cpu) / (clock() - begin)
        # What is under way is answered before the next step begins.
        self.engine.run(until=clock() + 6)
        return Step(
            name=name,
            offered=round(arrivals.offered / seconds, 1),
            saved=round(saved, 1),
            refused=round(refused, 1),
            p95=_p95_ms(counted.saved),
            refused_p95=_p95_ms(counted.refused),
            impolite=counted.impolite,
            unanswered=counted.unanswered,
            own_cpu=round(cpu, 2),
        )

    def _wait_until_as(self, before: Step) -> float | None:
        """As fast as before at the load of before, and nobody refused."""
        began = clock()
        while clock() - began < BACK:
            since = clock() - began
            step = self._offer("after", before.offered, 2.0)
            is_fast = step.p95 <= max(2 * before.p95, 50)
            if is_fast and not step.refused and not step.unanswered:
                return round(since, 1)
        return None


def _p95_ms(seconds: Sequence[float]) -> float:
    if len(seconds) < 2:
        return 0.0
    return round(p95(seconds) * 1000, 1)


def _line(step: Step) -> str:
    return (
        f"  {step.name:<7} offered {step.offered:>8.0f}/s  saved {step.saved:>7.0f}/s"
        f" (p95 {step.p95:.0f} ms)  refused {step.refused:>7.0f}/s"
        f" (p95 {step.refused_p95:.0f} ms)  load's own CPU {step.own_cpu:.2f}"
    )

"""Offer more load than the stack can serve, and judge what it serves and sheds.

Ten times the load is ten times the people, who do what their browsers do: go
on answering, keep what is not saved, and come again when they are told to.
The knee is the number of saves a second in a closed loop of all that people do:
log in, open their survey again, save pages, and finish. At 1x, people together send
that many saves a second.
"""

from __future__ import annotations

import gc
import itertools
import os
import resource
import time
from collections import defaultdict, deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from provisioning.commands import Refusal, print_figures
from provisioning.measure.load.crowd import Crowd
from provisioning.measure.load.engine import (
    Engine,
    Exchange,
    Scenario,
    clock,
    play,
    schedule_arrivals,
)
from provisioning.measure.load.respondent import (
    COMPLETE,
    DISPLAY,
    HTML,
    JSON,
    LOGIN,
    Receipt,
    RehearsalSurvey,
    Request,
    Respondent,
    login_requests,
    read_receipt,
    retry_after,
    save_requests,
)
from provisioning.measure.load.respondent import SAVE as SAVE_VIEW
from provisioning.measure.load.tally import percentile
from provisioning.measure.load.target import target_of
from provisioning.processes import cpu_seconds_by_group, machine_cpu_seconds
from provisioning.prove.fault_injection.load_processes import Rehearsal
from provisioning.prove.fault_injection.saves import PendingSave, SaveQueue
from provisioning.prove.fault_injection.stack import RunningStack

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


TIMES = (1, 2, 5, 10)
# At first all come at once, and then those who were refused come again.
SECONDS = 36.0
CALM_SECONDS = 12.0
# Requests under way in the closed loop: four for each worker.
TOGETHER = 32
KNEE_SECONDS = 6.0
# Time to drain pending requests.
QUIET_SECONDS = 3.0
# Share of the knee before and after the burst.
CALM = 0.5
RECOVERY_WINDOW = 2.0
# Seconds between two pages of one person. Real ones take ten times as long,
# and would be ten times as many, which one machine can't simulate.
THINKING = 2.0
# Of so many saves one is a person's last.
PAGES = 20
# For each person who logs in, so many open again what they have started.
RETURNING = 0.5
# Twice what the stack lets wait; it refuses the others at once.
CONNECTIONS = 1500
# So many save, in as many tabs as needed. Others finish, first of all those who are
# inside before; their places are taken by people who log in meanwhile.
SAVERS = 3000
FINISHERS = 3000
RESPONDENTS = 40_000
# As static/js/clock.js.
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
CLASS_OF_VIEW = {LOGIN: START, DISPLAY: RESUME, COMPLETE: FINISH}


class Tab:
    """Simulate a tab in which a respondent answers one page after another.

    After a refusal it pauses as long as the server asked, and some more. Not as
    in a browser, a retry has a revision of its own: tabs share a respondent and
    its pages, and the older save would only be told that it was superseded.
    """

    __slots__ = ("failures", "is_gone", "queue", "respondent", "run")

    def __init__(self, run: OverloadRun, respondent: Respondent, wait: float) -> None:
        self.run = run
        self.respondent = respondent
        self.queue = SaveQueue()
        self.failures = 0
        self.is_gone = False
        play(run.engine, self._answer_pages(wait))

    def _answer_pages(self, wait: float) -> Scenario:
        yield wait
        pages = itertools.cycle(range(1, len(self.run.survey.pages) + 1))
        for turn in itertools.count(1):
            if self.is_gone:
                return
            self.queue.put(PendingSave(next(pages), turn))
            self.queue.drain(self.run.engine, self._save)
            yield self.run.random.expovariate(1 / THINKING)

    def _save(self, save: PendingSave) -> Generator[bytes | float, Any, bool]:
        save.attempts += 1
        [request] = save_requests(self.respondent, [save.page])
        exchange = yield request.data
        receipt = read_receipt(exchange, request.revision)
        if self.run.count(SAVE, exchange, receipt):
            self.failures = 0
            self.queue.remove(save)
            self.run.count_saved_page()
        else:
            self.failures += 1
            draw = self.run.random.random
            longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (self.failures - 1))
            yield receipt.after + max(draw() * longest, draw() * receipt.after)
        return not self.is_gone


class OverloadRun:
    def __init__(self, stack: RunningStack, rehearsal: Rehearsal, seed: int) -> None:
        self.target = target_of(stack.address)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.engine = Engine(self.target, connections=min(CONNECTIONS, most - 100))
        self.servers = {"stack": [stack.supervisor_pid]}
        self.survey = RehearsalSurvey.of(rehearsal.described)
        self.seed = seed
        self.random = Random(seed)  # noqa: S311
        self.step = OverloadStep("")
        self.tabs: list[Tab] = []
        self.saves = 0
        # Number of the burst, and the share of earlier people who stay after it.
        self.burst = 0
        self.staying = 1.0
        codes = [code for _, code in rehearsal.people]
        self.respondents = [
            Respondent(code, self.survey, self.target, seed=seed, accept=JSON)
            for code in codes[: SAVERS + FINISHERS]
        ]
        # A login ends the session that its code had, so each has a code of its own.
        self.newcomers = iter(codes[SAVERS + FINISHERS :])

    def run(self) -> OverloadResult:
        self._log_in()
        # A pause for garbage collection would count as the server's, and there
        # are no cycles here that take up memory.
        gc.freeze()
        gc.disable()
        knee = self._find_knee()
        print(f"Knee: {knee:.0f} saves a second in a closed loop", flush=True)
        result = OverloadResult()
        before = self._offer("before", CALM, knee, CALM_SECONDS)
        before.knee = knee
        print_figures(before.figures())
        for times in TIMES:
            # The machine may be faster or slower than it was.
            knee = self._find_knee()
            step = self._offer(f"{times}x", times, knee, SECONDS)
            result.steps.append(step)
            if times == TIMES[-1]:
                result.back = self._wait_for_recovery(before, before.knee)
            step.knee = (knee + self._find_knee()) / 2
            print_figures(step.figures())
        self.engine.close()
        if not self.finishers:
            raise Refusal("There were too few respondents: nobody was left to finish")
        return result

    def count(self, name: str, exchange: Exchange, receipt: Receipt | None) -> bool:
        """Count a reply; return False if the request has to be sent again."""
        seconds = exchange.answered - exchange.scheduled
        if exchange.reply is None:
            self.step.unanswered += 1
        elif exchange.reply.status in (429, 503):
            self.step.refused[name].append(seconds)
            self.step.impolite += not retry_after(exchange.reply)
        elif receipt is None or receipt.kind == "saved" or receipt.error:
            self.step.served[name].append(seconds)
            return True
        return False

    def count_saved_page(self) -> None:
        """Let another respondent finish after every so many saves."""
        self.saves += 1
        if self.saves % PAGES == 0 and self.finishers:
            self._send_each(self._finish(self.finishers.popleft()))

    def _log_in(self) -> None:
        crowd = Crowd(self.engine, map(login_requests, self.respondents))
        crowd.run_closed(together=8).refuse_failures("Logging in fails")
        for person in self.respondents:
            person.accept = HTML
        # A respondent who has finished can't save: others do that.
        self.savers = itertools.cycle(self.respondents[:SAVERS])
        self.finishers = deque(self.respondents[SAVERS:])

    def _find_knee(self) -> float:
        # Late replies are of no step.
        self.step = OverloadStep("")
        self._resize(0)
        self.engine.run(until=clock() + QUIET_SECONDS)
        crowd = Crowd(self.engine, self._mixed_visits())
        tally = crowd.run_closed(together=TOGETHER, seconds=KNEE_SECONDS)
        return tally.per_second(SAVE_VIEW)

    def _mixed_visits(self) -> Iterator[Iterator[Request]]:
        """Yield visits in the proportions of a step."""
        pages = len(self.survey.pages)
        while True:
            for saver in itertools.islice(self.savers, PAGES):
                yield save_requests(saver, [self.random.randint(1, pages)])
            yield self._enter()
            if self.random.random() < RETURNING:
                yield iter([next(self.savers).display()])
            if self.finishers:
                yield self._finish(self.finishers.popleft())

    def _enter(self) -> Iterator[Request]:
        """Log in a newcomer, who finishes later."""
        code = next(self.newcomers, None)
        if code is None:
            raise Refusal("There were too few respondents: nobody was left to log in")
        newcomer = Respondent(code, self.survey, self.target, seed=self.seed)
        yield from login_requests(newcomer)
        self.finishers.append(newcomer)

    @staticmethod
    def _finish(person: Respondent) -> Iterator[Request]:
        yield person.review()
        yield person.finish()

    def _send_each(self, requests: Iterator[Request]) -> None:
        """Send requests in turn, each as often as needed, as the busy page does."""
        play(self.engine, self._insist(requests))

    def _insist(self, requests: Iterator[Request]) -> Scenario:
        burst = self.burst
        for request in requests:
            data = request.data
            while True:
                exchange = yield data
                is_served = self.count(CLASS_OF_VIEW[request.kind], exchange, None)
                # Keep the cookie of a refusal.
                request.check(exchange)
                if is_served:
                    break
                yield retry_after(exchange.reply) or THINKING
                if burst != self.burst and self.random.random() >= self.staying:
                    return
                burst = self.burst
                data = request.renewed() if request.renewed else request.data

    # Steps

    def _offer(
        self, name: str, times: float, knee: float, seconds: float
    ) -> OverloadStep:
        begin, cpu, others_cpu = clock(), time.process_time(), self._cpu_of_others()
        self._resize(round(times * knee * THINKING))
        self.step = step = OverloadStep(name, people=len(self.tabs))
        rate = times * knee / PAGES
        begins: dict[str, Any] = {"begin": begin, "seconds": seconds, "seed": self.seed}

        def log_in_another(due: float) -> None:
            self._send_each(self._enter())

        def open_again(due: float) -> None:
            self._send_each(iter([next(self.savers).display()]))

        schedule_arrivals(self.engine, log_in_another, rate=rate, **begins)
        schedule_arrivals(self.engine, open_again, rate=rate * RETURNING, **begins)
        self.engine.run(until=begin + seconds)
        step.seconds = clock() - begin
        step.own_cpu = (time.process_time() - cpu) / step.seconds
        step.others_cpu = (self._cpu_of_others() - others_cpu) / step.seconds
        return step

    def _cpu_of_others(self) -> float:
        """Return the CPU seconds of neither the stack nor this process."""
        ours = cpu_seconds_by_group(self.servers)["stack"] + time.process_time()
        return machine_cpu_seconds() - ours

    def _resize(self, people: int) -> None:
        """Open or close tabs until there are so many."""
        if people < len(self.tabs):
            self.burst += 1
            self.staying = people / len(self.tabs)
        for tab in self.tabs[people:]:
            tab.is_gone = True
        del self.tabs[people:]
        while len(self.tabs) < people:
            wait = self.random.random() * THINKING
            self.tabs.append(Tab(self, next(self.savers), wait))

    def _wait_for_recovery(self, before: OverloadStep, knee: float) -> float | None:
        """Wait until saves are as fast as before, and no request is refused."""
        began = clock()
        while (since := clock() - began) < RECOVERY_LIMIT:
            step = self._offer("after", CALM, knee, RECOVERY_WINDOW)
            is_fast = step.p95 <= max(2 * before.p95, 50)
            if is_fast and not step.refusals and not step.unanswered:
                return round(since, 1)
        return None

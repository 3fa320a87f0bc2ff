"""Offer more load than the stack can serve, and check what it sheds.

Ten times the load is ten times the people, who do what their browsers do: go
on answering, keep what is not saved, and come again when they are told to.
The knee is the goodput of a closed loop of saves. At 1x as many people turn
their pages as ask for just that; others log in, open their survey again, and
finish after their last page.
"""

from __future__ import annotations

import gc
import itertools
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from random import Random

from provisioning.commands import Refusal
from provisioning.fault_injection.load_processes import Rehearsal
from provisioning.fault_injection.stack import RunningStack
from provisioning.load.crowd import Crowd
from provisioning.load.engine import Engine, Exchange, clock, schedule_arrivals
from provisioning.load.respondent import (
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
from provisioning.load.respondent import SAVE as SAVE_VIEW
from provisioning.load.target import target_of
from provisioning.percentiles import percentile
from provisioning.processes import cpu_seconds_by_group, machine_cpu_seconds

TIMES = (1, 2, 5, 10)
SECONDS = 12.0
# Saves under way in the closed loop: four for each worker.
TOGETHER = 32
KNEE_SECONDS = 6.0
LOGIN_SECONDS = 120.0
# Share of the knee before and after the burst.
CALM = 0.5
# Share of the best goodput that has to remain.
REQUIRED_GOODPUT = 0.9
# Seconds within which a refusal has to come: a queue of one second, and a save.
REFUSAL_LIMIT = 2.0
RECOVERY_LIMIT = 60.0
RECOVERY_WINDOW = 2.0
# Share of all cores that other programs may take; interrupts count as them.
OTHER_PROGRAMS_LIMIT = 0.15
CORES = os.cpu_count() or 1

# Seconds between two pages of one person. Real ones take ten times as long,
# and would be ten times as many, which one machine can't simulate.
THINKING = 2.0
# Of so many saves one is a person's last.
PAGES = 20
# For each person who logs in, so many open again what they have started.
RETURNING = 0.5
# Twice what the stack lets wait; it refuses the others at once.
CONNECTIONS = 1500
# Half of them save, in as many tabs as needed; the others finish.
RESPONDENTS = 6000
# As static/js/clock.js.
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
# What can be refused, in the order in which it has to be shed.
CLASSES = ("starts", "resumes", "saves", "finishes")
START, RESUME, SAVE, FINISH = CLASSES
CLASS_OF_VIEW = {LOGIN: START, DISPLAY: RESUME, COMPLETE: FINISH}
# Shares of a few hundred requests tell no smaller difference.
SHARE_TOLERANCE = 0.05


@dataclass
class OverloadStep:
    name: str
    people: int
    # Saves a second that reached the disk.
    saved: float
    # Class -> share of its requests that were refused.
    refused: dict[str, float]
    refusals_per_second: float
    # Of saves, of finishing, and of refusals, in milliseconds.
    p95: float
    finish_p95: float
    refused_p95: float
    # Refusals without Retry-After, and requests without a reply.
    impolite: int
    unanswered: int
    finishes_refused: int
    # Shares of one core: the simulation's, and that of other programs.
    own_cpu: float
    others_cpu: float

    @property
    def saved_per_core(self) -> float:
        """Return the goodput for each core that the simulation left to the stack."""
        return self.saved / max(0.1, CORES - self.own_cpu - self.others_cpu)

    def line(self) -> str:
        shares = " ".join(f"{name} {share:.0%}" for name, share in self.refused.items())
        return (
            f"  {self.name:<7} {self.people:>6} people  saved {self.saved:>6.0f}/s"
            f" (p95 {self.p95:.0f} ms, to finish {self.finish_p95:.0f} ms)"
            f"  refused {self.refusals_per_second:>6.0f}/s"
            f" (p95 {self.refused_p95:.0f} ms): {shares}"
            f"  CPU of the load {self.own_cpu:.2f}, of others {self.others_cpu:.2f}"
        )

    def shortcomings(self, peak: float) -> Iterator[str]:
        share = self.saved / peak
        if share < REQUIRED_GOODPUT:
            yield f"{share:.0%} of the best goodput"
        if self.refused_p95 > REFUSAL_LIMIT * 1000:
            yield f"refused after {self.refused_p95:.0f} ms"
        if self.impolite:
            yield f"{self.impolite} refusals without a time"
        if self.unanswered:
            yield f"{self.unanswered} requests without a reply"
        if self.finishes_refused and self.saved:
            yield f"{self.finishes_refused} could not finish"
        for first, second in itertools.pairwise(CLASSES):
            if self.refused[first] < self.refused[second] - SHARE_TOLERANCE:
                yield f"{second} were shed before {first}"


@dataclass
class OverloadResult:
    steps: list[OverloadStep] = field(default_factory=list)
    # Seconds after the burst until saving was as before; None if it was not.
    back: float | None = None

    @property
    def peak(self) -> float:
        return max(step.saved for step in self.steps)

    def kept(self) -> dict[str, float]:
        """Return each step's share of the best goodput, which is what counts."""
        return {step.name: round(step.saved / self.peak, 3) for step in self.steps}

    def kept_per_core(self) -> dict[str, float]:
        """Return the same per core left to the stack. It excuses nothing.

        The load shares the machine with the stack, and simulates ten times the
        people at several times the cost.
        """
        most = max(step.saved_per_core for step in self.steps)
        return {step.name: round(step.saved_per_core / most, 3) for step in self.steps}

    def why_void(self) -> str:
        others = max(step.others_cpu for step in self.steps)
        if others <= OTHER_PROGRAMS_LIMIT * CORES:
            return ""
        return f"other programs took up to {others:.2f} of {CORES} cores"

    def shortcomings(self) -> list[str]:
        found = [
            f"{step.name}: {shortcoming}"
            for step in self.steps
            for shortcoming in step.shortcomings(self.peak)
        ]
        if self.back is None:
            found.append(f"not as before within {RECOVERY_LIMIT:.0f} s")
        return found

    def described(self) -> dict[str, object]:
        return {
            "steps": [asdict(step) for step in self.steps],
            "peak": self.peak,
            "kept": self.kept(),
            "kept_per_core": self.kept_per_core(),
            "back_after_seconds": self.back,
            "void": self.why_void(),
        }

    def line(self) -> str:
        kept, per_core = (
            ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
            for shares in (self.kept(), self.kept_per_core())
        )
        back = "never" if self.back is None else f"{self.back:.0f} s"
        return (
            f"Of the best goodput: {kept} (per core that the load left: {per_core})."
            f" As before after {back}"
        )


@dataclass
class OverloadCounts:
    """Seconds until requests of each class were served or refused."""

    served: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in CLASSES}
    )
    refused: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in CLASSES}
    )
    impolite: int = 0
    unanswered: int = 0

    def share_refused(self, name: str) -> float:
        refused = len(self.refused[name])
        return refused / max(1, refused + len(self.served[name]))

    def all_refused(self) -> list[float]:
        return [seconds for name in CLASSES for seconds in self.refused[name]]


class Tab:
    """Simulate a tab in which a respondent answers one page after another.

    As in static/js/queue.js: one slot for each page, one save in flight, and
    after a refusal a pause as long as the server asked, and some more. Not as
    there, a retry has a revision of its own: tabs share a respondent and its
    pages, and the older save would only be told that it was superseded.
    """

    __slots__ = (
        "failures",
        "is_gone",
        "is_saving",
        "page",
        "respondent",
        "run",
        "slots",
        "turns",
    )

    def __init__(self, run: OverloadRun, respondent: Respondent, wait: float) -> None:
        self.run = run
        self.respondent = respondent
        self.page = 0
        self.turns = 0
        # Page -> the turn at which it was left.
        self.slots: dict[int, int] = {}
        self.is_saving = False
        self.failures = 0
        self.is_gone = False
        run.engine.later(wait, self._turn_page)

    def _turn_page(self) -> None:
        if self.is_gone:
            return
        self.page = self.page % len(self.run.survey.pages) + 1
        self.turns += 1
        self.slots[self.page] = self.turns
        self._save_next()
        pause = self.run.random.expovariate(1 / THINKING)
        self.run.engine.later(pause, self._turn_page)

    def _save_next(self) -> None:
        if self.is_saving or not self.slots or self.is_gone:
            return
        page, turn = next(iter(self.slots.items()))
        (request,) = save_requests(self.respondent, [page])
        self.is_saving = True

        def receive(exchange: Exchange) -> None:
            receipt = read_receipt(exchange, request.revision)
            if not self.run.count(SAVE, exchange, receipt):
                self.failures += 1
                chance = self.run.random
                longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (self.failures - 1))
                jitter = max(chance.random() * longest, chance.random() * receipt.after)
                self.run.engine.later(receipt.after + jitter, self._try_again)
                return
            self.is_saving = False
            self.failures = 0
            if self.slots.get(page) == turn:
                del self.slots[page]
            self.run.count_saved_page()
            self._save_next()

        self.run.engine.ask(request.data, receive)

    def _try_again(self) -> None:
        self.is_saving = False
        # The page that was tried least comes first.
        if len(self.slots) > 1:
            page = next(iter(self.slots))
            self.slots[page] = self.slots.pop(page)
        self._save_next()


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
        self.counts = OverloadCounts()
        self.tabs: list[Tab] = []
        self.saves = 0
        # Number of the burst, and the share of earlier people who stay after it.
        self.burst = 0
        self.staying = 1.0
        self.respondents = [
            Respondent(code, self.survey, self.target, seed=seed, accept=JSON)
            for _, code in rehearsal.people
        ]

    def run(self) -> OverloadResult:
        self._log_in()
        # A pause for garbage collection would count as the server's, and there
        # are no cycles here that take up memory.
        gc.freeze()
        gc.disable()
        pages = len(self.survey.pages)
        turns = (
            save_requests(saver, [self.random.randint(1, pages)])
            for saver in self.savers
        )
        tally = Crowd(self.engine, turns).run_closed(
            together=TOGETHER, seconds=KNEE_SECONDS
        )
        knee = tally.per_second(SAVE_VIEW)
        print(f"Knee: {knee:.0f} saves a second in a closed loop", flush=True)
        result = OverloadResult()
        before = self._offer("before", CALM, knee, SECONDS)
        print(before.line(), flush=True)
        for times in TIMES:
            step = self._offer(f"{times}x", times, knee, SECONDS)
            result.steps.append(step)
            print(step.line(), flush=True)
        result.back = self._wait_for_recovery(before, knee)
        print(result.line(), flush=True)
        self.engine.close()
        return result

    def count(self, name: str, exchange: Exchange, receipt: Receipt | None) -> bool:
        """Count a reply; return False if the request has to be sent again."""
        seconds = exchange.answered - exchange.scheduled
        if exchange.reply is None:
            self.counts.unanswered += 1
        elif exchange.reply.status in (429, 503):
            self.counts.refused[name].append(seconds)
            self.counts.impolite += not retry_after(exchange.reply)
        elif receipt is None or receipt.kind == "saved" or receipt.error:
            self.counts.served[name].append(seconds)
            return True
        return False

    def count_saved_page(self) -> None:
        """Let another respondent finish after every so many saves."""
        self.saves += 1
        if self.saves % PAGES == 0 and (finisher := next(self.finishers, None)):
            steps = (finisher.review, finisher.finish)
            self._send_each(finisher, (request() for request in steps))

    def _log_in(self) -> None:
        self.engine.at(clock() + LOGIN_SECONDS, self.engine.stop)
        logins = map(login_requests, self.respondents)
        Crowd(self.engine, logins).run_closed(together=8)
        inside = [person for person in self.respondents if person.tag]
        if not inside:
            raise Refusal("Nobody could log in")
        for person in inside:
            person.accept = HTML
        half = len(inside) // 2
        # A respondent who has finished can't save: others do that.
        self.savers = itertools.cycle(inside[:half])
        self.finishers = iter(inside[half:])

    def _send_each(self, respondent: Respondent, requests: Iterator[Request]) -> None:
        """Send requests in turn, each as often as needed, as the busy page does."""
        request = next(requests, None)
        if request is None:
            return
        burst = self.burst

        def receive(exchange: Exchange) -> None:
            if self.count(CLASS_OF_VIEW[request.kind], exchange, None):
                request.check(exchange)
                self._send_each(respondent, requests)
            else:
                wait = retry_after(exchange.reply) or THINKING
                self.engine.later(wait, send_again)

        def send_again() -> None:
            nonlocal burst
            if burst == self.burst or self.random.random() < self.staying:
                burst = self.burst
                self.engine.ask(request.data, receive)

        self.engine.ask(request.data, receive)

    # Steps

    def _offer(
        self, name: str, times: float, knee: float, seconds: float
    ) -> OverloadStep:
        def log_in(due: float) -> None:
            code = next(self.savers).code
            newcomer = Respondent(code, self.survey, self.target)
            self._send_each(newcomer, login_requests(newcomer))

        def open_again(due: float) -> None:
            saver = next(self.savers)
            self._send_each(saver, iter([saver.display()]))

        self.counts = counts = OverloadCounts()
        begin, cpu, others = clock(), time.process_time(), self._cpu_of_others()
        self._resize(round(times * knee * THINKING))
        rate = times * knee / PAGES
        for act, act_rate in ((log_in, rate), (open_again, rate * RETURNING)):
            schedule_arrivals(
                self.engine,
                act,
                rate=act_rate,
                begin=begin,
                seconds=seconds,
                seed=self.seed,
            )
        self.engine.run(until=begin + seconds)
        took = clock() - begin
        refused = counts.all_refused()
        return OverloadStep(
            name=name,
            people=len(self.tabs),
            saved=round(len(counts.served[SAVE]) / took, 1),
            refused={each: round(counts.share_refused(each), 3) for each in CLASSES},
            refusals_per_second=round(len(refused) / took, 1),
            p95=round(percentile(counts.served[SAVE], 95) * 1000, 1),
            finish_p95=round(percentile(counts.served[FINISH], 95) * 1000, 1),
            refused_p95=round(percentile(refused, 95) * 1000, 1),
            impolite=counts.impolite,
            unanswered=counts.unanswered,
            finishes_refused=len(counts.refused[FINISH]),
            own_cpu=round((time.process_time() - cpu) / took, 2),
            others_cpu=round((self._cpu_of_others() - others) / took, 2),
        )

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
            if is_fast and not step.refusals_per_second and not step.unanswered:
                return round(since, 1)
        return None

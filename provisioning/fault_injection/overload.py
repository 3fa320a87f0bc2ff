"""More people than the stack can serve: it has to go on with what it can.

Ten times the load is ten times the people, who do what their browsers do: go
on answering, keep what is not saved, and come again when they are told to.
The knee is what a closed loop of saves gets; at 1x so many people turn their
pages that they ask for just that, others come in, open their survey again,
and finish after their last page. Nobody who stays is forgotten between two
steps, nor after the burst.
The load shares the machine with the stack, and plays ten times the people at
several times the cost. What was saved for each core that it left is printed to
compare with, and excuses nothing: two machines tell. Where other programs took
much of the processor, the run proves nothing.
"""

from __future__ import annotations

import gc
import itertools
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlencode

from provisioning.commands import Refusal
from provisioning.fault_injection.answers import answers_for
from provisioning.fault_injection.crowds import Rehearsal
from provisioning.fault_injection.driver import pages_of
from provisioning.fault_injection.person import FORM
from provisioning.fault_injection.stack import Home
from provisioning.fault_injection.wire import (
    Browser,
    Receipt,
    json_of,
    read_receipt,
    reviewed_in,
    seconds_asked,
)
from provisioning.load.engine import Engine, Exchange, clock
from provisioning.load.schedule import Arrivals
from provisioning.load.target import target_of
from provisioning.percentiles import percentile
from provisioning.processes import cpu_seconds_by_group, machine_cpu_seconds

TIMES = (1, 2, 5, 10)
SECONDS = 12.0
# Saves under way in the closed loop: four for each worker.
TOGETHER = 32
KNEE_TAKES = 6.0
CALM = 0.5
KEPT = 0.9
# A queue of one second, and the time of a save.
SOON = 2.0
BACK = 60.0
WINDOW = 2.0
# Share of all cores that other programs may take; interrupts are a part.
OTHERS = 0.15
CORES = os.cpu_count() or 1

# Seconds between two pages of one person. Real ones take ten times as long,
# and would be ten times as many; the machine that plays them has its limits.
THINKING = 2.0
# Pages of a survey: of so many saves one was somebody's last.
PAGES = 20
# Of those who come in, so many more open what they have begun.
RETURNING = 0.5
# Twice what the stack lets wait; whoever is refused is so at once.
CONNECTIONS = 1500
# Half of them save in as many tabs as it takes, the others finish.
RESPONDENTS = 6000
# As static/js/clock.js.
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
# What can be refused, the first to be shed first.
START, RESUME, SAVE, FINISH = CLASSES = ("starts", "resumes", "saves", "finishes")
# Shares of a few hundred requests tell no less apart.
ALIKE = 0.05


@dataclass
class Step:
    name: str
    people: int
    # Saves a second that reached the disk, and the shares of all requests of
    # a class that were told to come again.
    saved: float
    refused: dict[str, float]
    refusals_per_second: float
    # Of what was saved, of what finished, and of what was refused, in ms.
    p95: float
    finish_p95: float
    refused_p95: float
    # Refusals that did not say when to come again, and requests without reply.
    impolite: int
    unanswered: int
    finishes_refused: int
    # Shares of one core: playing the people, and whatever is neither that nor
    # the stack.
    own_cpu: float
    others_cpu: float

    @property
    def saved_per_core(self) -> float:
        """For each core that playing the people left to the stack."""
        return self.saved / max(0.1, CORES - self.own_cpu - self.others_cpu)


@dataclass
class Overloaded:
    steps: list[Step] = field(default_factory=list)
    # Seconds after the burst until saving was as before; None if it was not.
    back: float | None = None

    @property
    def peak(self) -> float:
        return max(step.saved for step in self.steps)

    def kept(self) -> dict[str, float]:
        """The goodput of saves, as a share of the best: what is required."""
        return {step.name: round(step.saved / self.peak, 3) for step in self.steps}

    def kept_per_core(self) -> dict[str, float]:
        """The same where the people were played by another machine; to compare."""
        most = max(step.saved_per_core for step in self.steps)
        return {step.name: round(step.saved_per_core / most, 3) for step in self.steps}

    def why_void(self) -> str:
        others = max(step.others_cpu for step in self.steps)
        if others <= OTHERS * CORES:
            return ""
        return f"other programs took up to {others:.2f} of {CORES} cores"

    def shortcomings(self) -> list[str]:
        found = [one for step in self.steps for one in self._of_step(step)]
        if self.back is None:
            found.append(f"not as before within {BACK:.0f} s")
        return found

    def described(self) -> dict[str, Any]:
        return {
            "steps": [asdict(step) for step in self.steps],
            "peak": self.peak,
            "kept": self.kept(),
            "kept_per_core": self.kept_per_core(),
            "back_after_seconds": self.back,
            "void": self.why_void(),
        }

    def _of_step(self, step: Step) -> Iterator[str]:
        share = step.saved / self.peak
        if share < KEPT:
            yield f"{step.name}: {share:.0%} of the best goodput"
        if step.refused_p95 > SOON * 1000:
            yield f"{step.name}: refused after {step.refused_p95:.0f} ms"
        if step.impolite:
            yield f"{step.name}: {step.impolite} refusals without a time"
        if step.unanswered:
            yield f"{step.name}: {step.unanswered} requests without a reply"
        if step.finishes_refused and step.saved:
            yield f"{step.name}: {step.finishes_refused} could not finish"
        for first, second in itertools.pairwise(CLASSES):
            if step.refused[first] < step.refused[second] - ALIKE:
                yield f"{step.name}: {second} were shed before {first}"


@dataclass
class Counted:
    taken: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in CLASSES}
    )
    refused: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in CLASSES}
    )
    impolite: int = 0
    unanswered: int = 0

    def share_refused(self, name: str) -> float:
        refused = len(self.refused[name])
        return refused / max(1, refused + len(self.taken[name]))

    def all_refused(self) -> list[float]:
        return [one for name in CLASSES for one in self.refused[name]]


@dataclass(eq=False, slots=True)
class Login:
    """A code, and what it let in."""

    respondent: int
    code: str
    browser: Browser
    next: int = 0
    csrf: str = ""


class Tab:
    """Somebody who answers one page after another.

    As in static/js/queue.js: one slot for each page, one save in flight, and
    whoever was refused waits as long as the server asked and some time more.
    Not as there, a retry has a revision of its own: tabs of one login share its
    pages, and the older save would only be told that it was superseded.
    """

    __slots__ = (
        "failures",
        "flying",
        "is_gone",
        "login",
        "overload",
        "page",
        "slots",
        "turns",
    )

    def __init__(self, overload: Overload, login: Login, wait: float) -> None:
        self.overload = overload
        self.login = login
        self.page = 0
        self.turns = 0
        # Page -> the turn at which it was left.
        self.slots: dict[int, int] = {}
        self.flying = False
        self.failures = 0
        self.is_gone = False
        overload.engine.later(wait, self._turn)

    def _turn(self) -> None:
        if self.is_gone:
            return
        random = self.overload.random
        self.page = self.page % len(self.overload.pages) + 1
        self.turns += 1
        self.slots[self.page] = self.turns
        self._kick()
        self.overload.engine.later(random.expovariate(1 / THINKING), self._turn)

    def _kick(self) -> None:
        if self.flying or not self.slots or self.is_gone:
            return
        page, turn = next(iter(self.slots.items()))
        data = self.overload.save_of(self.login, page)
        self.flying = True
        self.overload.engine.ask(data, lambda done: self._settle(page, turn, done))

    def _settle(self, page: int, turn: int, exchange: Exchange) -> None:
        receipt = read_receipt(exchange, _revision_in(exchange.data))
        if not self.overload.count(SAVE, exchange, receipt):
            self.failures += 1
            self.overload.engine.later(self._pause(receipt.after), self._try_again)
            return
        self.flying = False
        self.failures = 0
        if self.slots.get(page) == turn:
            del self.slots[page]
        self.overload.saved_one()
        self._kick()

    def _pause(self, after: float) -> float:
        random = self.overload.random
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (self.failures - 1))
        return after + max(random.random() * longest, random.random() * after)

    def _try_again(self) -> None:
        self.flying = False
        # The least tried first.
        if len(self.slots) > 1:
            page = next(iter(self.slots))
            self.slots[page] = self.slots.pop(page)
        self._kick()


class Overload:
    def __init__(self, home: Home, rehearsal: Rehearsal, seed: int) -> None:
        target = target_of(home.address)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.engine = Engine(target, connections=min(CONNECTIONS, most - 100))
        self.target = target
        self.servers = {"stack": [home.supervisor_pid]}
        self.pages = pages_of(rehearsal.pages)
        self.seed = seed
        self.random = Random(seed)  # noqa: S311
        self.counted = Counted()
        self.tabs: list[Tab] = []
        self.saves = 0
        # Who waits in line since an earlier burst, and how many of them stay.
        self.burst = 0
        self.staying = 1.0
        self.logins = [
            Login(respondent, code, Browser(target))
            for respondent, code in rehearsal.people
        ]

    def run(self) -> Overloaded:
        self._log_in()
        # Nothing here is a cycle worth stopping for, and a pause would be
        # counted as the server's.
        gc.freeze()
        gc.disable()
        knee = self._knee()
        print(f"Knee: {knee:.0f} saves a second in a closed loop", flush=True)
        found = Overloaded()
        before = self._offer("before", CALM, knee)
        print(_line(before), flush=True)
        for times in TIMES:
            step = self._offer(f"{times}x", times, knee)
            found.steps.append(step)
            print(_line(step), flush=True)
        found.back = self._wait_until_as(before, knee)
        print(_verdict(found), flush=True)
        self.engine.close()
        return found

    # What all of them need

    def count(self, name: str, exchange: Exchange, receipt: Receipt | None) -> bool:
        """Whether it was served; else the caller comes again."""
        counted, seconds = self.counted, exchange.answered - exchange.scheduled
        if exchange.reply is None:
            counted.unanswered += 1
        elif exchange.reply.status in (429, 503):
            counted.refused[name].append(seconds)
            counted.impolite += not seconds_asked(exchange.reply)
        elif receipt is None or receipt.kind == "saved" or receipt.error:
            counted.taken[name].append(seconds)
            return True
        return False

    def save_of(self, login: Login, page: int) -> bytes:
        revision, login.next = login.next, login.next + 1
        answers = answers_for(
            seed=self.seed,
            respondent=login.respondent,
            page=page,
            revision=revision,
            items=self.pages[page],
        )
        return login.browser.save(page, revision, answers)

    def saved_one(self) -> None:
        self.saves += 1
        if self.saves % PAGES == 0:
            self._finish_somebody()

    # Coming in before it begins

    def _log_in(self) -> None:
        waiting = iter(self.logins)

        def next_one() -> None:
            login = next(waiting, None)
            if login is not None:
                self._ask(login, login.browser.get("/"), lambda e: typed(login, e))
            elif self.engine.is_idle:
                self.engine.stop()

        def typed(login: Login, exchange: Exchange) -> None:
            csrf = json_of(exchange.reply).get("csrf", "")
            form = urlencode({"code": login.code, "csrfmiddlewaretoken": csrf})
            post = login.browser.post("/", form.encode(), FORM)
            self._ask(login, post, lambda e: admitted(login, e))

        def admitted(login: Login, exchange: Exchange) -> None:
            get = login.browser.get("/take/")
            self._ask(login, get, lambda e: shown(login, e))

        def shown(login: Login, exchange: Exchange) -> None:
            shell = json_of(exchange.reply)
            login.browser.tag = shell.get("tag", "")
            login.csrf = shell.get("csrf", "")
            login.next = shell.get("revision", 0)
            next_one()

        for _ in range(8):
            next_one()
        self.engine.run(until=clock() + 120)
        inside = [login for login in self.logins if login.next]
        if not inside:
            raise Refusal("Nobody could log in")
        half = len(inside) // 2
        # Whoever has finished saves no more: those who do are others.
        self.savers = itertools.cycle(inside[:half])
        self.finishers = iter(inside[half:])

    def _ask(self, login: Login, data: bytes, done: Callable[[Exchange], None]) -> None:
        def answered(exchange: Exchange) -> None:
            if exchange.reply is not None:
                login.browser.keep_cookies(exchange.reply)
            done(exchange)

        self.engine.ask(data, answered)

    # Beside the saves

    def _until_served(
        self, name: str, data: bytes, done: Callable[[Exchange], None]
    ) -> None:
        """The busy page loads itself again, as often as it must."""
        burst = self.burst

        def answered(exchange: Exchange) -> None:
            if self.count(name, exchange, None):
                done(exchange)
            else:
                wait = seconds_asked(exchange.reply) or THINKING
                self.engine.later(wait, again)

        def again() -> None:
            if burst == self.burst or self.random.random() < self.staying:
                self._until_served(name, data, done)

        self.engine.ask(data, answered)

    def _come_in(self, due: float) -> None:
        """The login page, the code, the survey: two starts and a resume."""
        login = next(self.savers)
        browser = Browser(self.target)

        def typed(exchange: Exchange) -> None:
            if exchange.reply is None:
                return
            browser.keep_cookies(exchange.reply)
            token = browser.cookies.get("csrftoken", "")
            form = urlencode({"code": login.code, "csrfmiddlewaretoken": token})
            post = browser.post("/", form.encode(), FORM, accept="text/html")
            self._until_served(START, post, admitted)

        def admitted(exchange: Exchange) -> None:
            if exchange.reply is None:
                return
            browser.keep_cookies(exchange.reply)
            get = browser.get("/take/", accept="text/html")
            self._until_served(RESUME, get, lambda e: None)

        self._until_served(START, browser.get("/", accept="text/html"), typed)

    def _open_again(self, due: float) -> None:
        get = next(self.savers).browser.get("/take/", accept="text/html")
        self._until_served(RESUME, get, lambda e: None)

    def _finish_somebody(self) -> None:
        login = next(self.finishers, None)
        if login is None:
            return

        def reviewed(exchange: Exchange) -> None:
            token = reviewed_in(exchange.reply)
            form = urlencode({"reviewed": token, "csrfmiddlewaretoken": login.csrf})
            post = login.browser.post(
                "/take/complete/", form.encode(), FORM, accept="text/html"
            )
            self._until_served(FINISH, post, lambda e: None)

        get = login.browser.get("/take/complete/", accept="text/html")
        self._until_served(FINISH, get, reviewed)

    # Steps

    def _knee(self) -> float:
        end = clock() + KNEE_TAKES
        saved = 0

        def again() -> None:
            login = next(self.savers)
            page = self.random.randint(1, len(self.pages))
            if clock() < end:
                self.engine.ask(self.save_of(login, page), answered)

        def answered(exchange: Exchange) -> None:
            nonlocal saved
            saved += read_receipt(exchange, _revision_in(exchange.data)).kind == "saved"
            again()

        for _ in range(TOGETHER):
            again()
        self.engine.run(until=end)
        return saved / KNEE_TAKES

    def _offer(
        self, name: str, times: float, knee: float, seconds: float = SECONDS
    ) -> Step:
        self.counted = counted = Counted()
        begin, cpu, others = clock(), time.process_time(), self._of_others()
        self._be(round(times * knee * THINKING))
        coming = times * knee / PAGES
        for rate, act in (
            (coming, self._come_in),
            (coming * RETURNING, self._open_again),
        ):
            Arrivals(
                self.engine,
                rate=rate,
                begin=begin,
                seconds=seconds,
                act=act,
                seed=self.seed,
            )
        self.engine.run(until=begin + seconds)
        took = clock() - begin
        others = self._of_others() - others
        return Step(
            name=name,
            people=len(self.tabs),
            saved=round(len(counted.taken[SAVE]) / took, 1),
            refused={one: round(counted.share_refused(one), 3) for one in CLASSES},
            refusals_per_second=round(len(counted.all_refused()) / took, 1),
            p95=_p95_ms(counted.taken[SAVE]),
            finish_p95=_p95_ms(counted.taken[FINISH]),
            refused_p95=_p95_ms(counted.all_refused()),
            impolite=counted.impolite,
            unanswered=counted.unanswered,
            finishes_refused=len(counted.refused[FINISH]),
            own_cpu=round((time.process_time() - cpu) / took, 2),
            others_cpu=round(others / took, 2),
        )

    def _of_others(self) -> float:
        """Seconds of processor that neither the stack nor the load has used."""
        ours = cpu_seconds_by_group(self.servers)["stack"] + time.process_time()
        return machine_cpu_seconds() - ours

    def _be(self, people: int) -> None:
        """So many at their pages; whoever is too many closes the laptop."""
        if people < len(self.tabs):
            self.burst += 1
            self.staying = people / len(self.tabs)
        for tab in self.tabs[people:]:
            tab.is_gone = True
        del self.tabs[people:]
        while len(self.tabs) < people:
            wait = self.random.random() * THINKING
            self.tabs.append(Tab(self, next(self.savers), wait))

    def _wait_until_as(self, before: Step, knee: float) -> float | None:
        """As fast as before with the people of before, and nobody refused."""
        began = clock()
        while clock() - began < BACK:
            since = clock() - began
            step = self._offer("after", CALM, knee, WINDOW)
            is_fast = step.p95 <= max(2 * before.p95, 50)
            if is_fast and not step.refusals_per_second and not step.unanswered:
                return round(since, 1)
        return None


def _revision_in(data: bytes) -> int:
    at = data.index(b'"revision":') + 11
    return int(data[at : data.index(b",", at)])


def _p95_ms(seconds: Sequence[float]) -> float:
    if len(seconds) < 2:
        return 0.0
    return round(percentile(seconds, 95) * 1000, 1)


def _line(step: Step) -> str:
    refused = " ".join(f"{name} {share:.0%}" for name, share in step.refused.items())
    return (
        f"  {step.name:<7} {step.people:>6} people  saved {step.saved:>6.0f}/s"
        f" (p95 {step.p95:.0f} ms, to finish {step.finish_p95:.0f} ms)"
        f"  refused {step.refusals_per_second:>6.0f}/s"
        f" (p95 {step.refused_p95:.0f} ms): {refused}"
        f"  CPU of the load {step.own_cpu:.2f}, of others {step.others_cpu:.2f}"
    )


def _verdict(found: Overloaded) -> str:
    kept, per_core = (
        ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        for shares in (found.kept(), found.kept_per_core())
    )
    back = "never" if found.back is None else f"{found.back:.0f} s"
    return (
        f"Of the best goodput: {kept} (per core that the load left: {per_core})."
        f" As before after {back}"
    )

"""Show what still works while a program is down, hung or slow.

Seven actions begin together a moment after the fault, and are repeated until they
are done, as people and browsers do. Each is then compared with what is required.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urljoin

import requests

from provisioning.commands import Refusal, wait_until
from provisioning.measure.load.engine import Engine, clock
from provisioning.measure.load.respondent import (
    Answers,
    RehearsalSurvey,
    Request,
    Respondent,
    login_requests,
    save_requests,
)
from provisioning.measure.load.target import target_of
from provisioning.prove.fault_injection.load_processes import PAGES, Rehearsal
from provisioning.prove.fault_injection.stack import RunningStack

# Seconds between two attempts, and until a browser gives up a request.
PAUSE = 1.0
CALM_SECONDS = 30.0
TIMEOUT = 30.0
AGE = re.compile(r'id="age"[^>]*>\s*([^<]*?)\s*<')
DOWNLOAD = re.compile(r'href="([^"]*/exports/\d+/file/)"')
CONFIRM = re.compile(r'action="[^"]*/confirm/".*?</form>', re.DOTALL)
HIDDEN = re.compile(r'type="hidden" name="([^"]*)" value="([^"]*)"')
APPLIED = re.compile("This roster was applied")


class NotServed(Exception):
    """The server refused, or did not answer."""


@dataclass
class ActionLog:
    """How an action went: its attempts, and when it was accepted and done."""

    name: str
    began: float = field(default_factory=clock)
    # Seconds after the beginning; the failure of each attempt.
    failures: list[tuple[float, str]] = field(default_factory=list)
    # The server has taken the request, and works on it by itself.
    accepted: float | None = None
    done: float | None = None
    # Of an action that is done: what the page said, or how it came about.
    remark: str = ""

    def since_begin(self) -> float:
        return clock() - self.began


# Returns what went wrong, or "".
Step = Callable[[ActionLog], str]


@dataclass
class Action:
    name: str
    steps: list[Step]
    # After this one the person may close the browser.
    accepting: int

    def run(self, seconds: float) -> ActionLog:
        """Take each step as often as it needs, at most for so many seconds."""
        log = ActionLog(self.name)
        for number, step in enumerate(self.steps, start=1):
            while failure := step(log):
                log.failures.append((round(log.since_begin(), 1), failure))
                if log.since_begin() > seconds:
                    return log
                time.sleep(PAUSE)
            if number == self.accepting:
                log.accepted = log.since_begin()
        log.done = log.since_begin()
        return log


# Respondents


def send(respondent: Respondent, request: Request) -> str:
    """Send a request over a new connection; return what went wrong, or ""."""
    data = request.renewed() if request.renewed else request.data
    with closing(Engine(respondent.target, timeout=TIMEOUT)) as engine:
        return request.check(engine.exchange(data))


def visit(
    name: str, respondent: Respondent, *requests: Callable[[], Request]
) -> Action:
    """Send requests in turn, each as often as needed."""

    def step(build: Callable[[], Request]) -> Step:
        return lambda log: send(respondent, build())

    # Built once: a save that is sent again is the same to the byte.
    return Action(name, [step(cache(build)) for build in requests], len(requests))


def log_in(respondent: Respondent) -> None:
    for request in login_requests(respondent):
        # Breakers stay open for some seconds after the fault before.
        if not wait_until(
            lambda: not send(respondent, request),  # noqa: B023
            seconds=CALM_SECONDS,
            pause=PAUSE,
        ):
            raise Refusal("Nobody can log in before the fault")


# Staff


class Staff:
    """The browser of a state administrator."""

    def __init__(self, stack: RunningStack, administration: int) -> None:
        self.stack = stack
        self.administration = administration
        self.cookies: dict[str, str] = {}
        self.log_in()

    def log_in(self) -> None:
        self.cookies = self.stack.application.call("staff_login.cookies_of_state")

    def rates(self) -> Action:
        path = f"rates/?administration={self.administration}"

        def open_page(log: ActionLog) -> str:
            page = self._ask(log, "GET", path)
            age = AGE.search(page.text)
            log.remark = age[1] if age else ""
            return "" if age else "no figures"

        return self._action("rates", [open_page])

    def export(self) -> Action:
        address = ""

        def order(log: ActionLog) -> str:
            nonlocal address
            form = {"administrations": self.administration, "format": "wide"}
            # The survey is open, and files without names are made of its results.
            form |= {"identities": "on", "reason": "A server is stopped meanwhile."}
            address = self._post(log, "exports/new/", form)
            return ""

        def download(log: ActionLog) -> str:
            page = self._ask(log, "GET", address)
            link = DOWNLOAD.search(page.text)
            if link is None:
                return "not ready"
            rows = self._ask(log, "GET", link[1]).text.count("\n")
            log.remark = f"{rows} rows"
            return "" if rows else "empty"

        return self._action("exports", [order, download])

    def roster(self, row: str) -> Action:
        address = ""

        def upload(log: ActionLog) -> str:
            nonlocal address
            address = self._post(
                log,
                f"administrations/{self.administration}/roster/",
                {"complete_for": "changes"},
                {"file": ("roster.csv", row)},
            )
            return ""

        def apply(log: ActionLog) -> str:
            page = self._ask(log, "GET", address).text
            if APPLIED.search(page):
                return ""
            form = CONFIRM.search(page)
            if form is None:
                return "not ready"
            self._post(log, f"{address}confirm/", dict(HIDDEN.findall(form[0])))
            return "confirmed"

        return self._action("roster import", [upload, apply])

    def _action(self, name: str, steps: list[Step]) -> Action:
        def guard(step: Step) -> Step:
            def take(log: ActionLog) -> str:
                try:
                    return step(log)
                except NotServed as refused:
                    return str(refused)

            return take

        return Action(name, [guard(step) for step in steps], accepting=1)

    def _post(
        self,
        log: ActionLog,
        path: str,
        form: dict[str, object],
        files: dict[str, tuple[str, str]] | None = None,
    ) -> str:
        """Post a form, and return the address that it leads to."""
        token = self.cookies.get("staff_csrftoken", "")
        form = {**form, "csrfmiddlewaretoken": token}
        reply = self._ask(log, "POST", path, data=form, files=files)
        if reply.status_code != 302:
            raise NotServed("the form was refused")
        return reply.headers["Location"]

    def _ask(
        self, log: ActionLog, method: str, path: str, **content: Any
    ) -> requests.Response:
        """Return a reply that is what was asked for. Raises NotServed."""
        url = urljoin(f"{self.stack.address}/console/", path)
        headers = {"Referer": url}
        try:
            reply = requests.request(
                method,
                url,
                headers=headers,
                cookies=self.cookies,
                timeout=TIMEOUT,
                allow_redirects=False,
                **content,
            )
        except requests.Timeout:
            raise NotServed("timeout") from None
        except requests.RequestException:
            raise NotServed("cut") from None
        if "/account/login/" in reply.headers.get("Location", ""):
            with suppress(Refusal):
                self.log_in()
            raise NotServed("log in again")
        if reply.status_code >= 400:
            raise NotServed(f"status {reply.status_code}")
        return reply


# Seconds that a program is down or hung: longer than any server waits for another.
FAULT_SECONDS = 15.0
# Within so many seconds after its end everything has to be done.
RECOVERY_SECONDS = 45.0
# Each reply of a slow program comes up to this late.
SLOW_SECONDS, AWAKE_SECONDS = 3.0, 0.2
# People who have answered before, so that exports and rates have something to show.
ANSWERED = 40
# Each fault needs four people.
PEOPLE = 200
HEADER = "district,school,student id,given name,family name,grade"
ROW = "rehearsal,rehearsal-00000,{},Maya,Lopez,05"
STORED = """
SELECT json_object_agg(item_id, value) FROM survey_response WHERE respondent_id = {}
"""
FINISHED = "SELECT completed_at FROM survey_respondent WHERE id = {}"
INVITED = """
SELECT count(*) FROM survey_identity WHERE administration_id = {} AND external_id = '{}'
"""

# From the best to the worst.
WORKS, QUEUED, LATER, NEVER = OUTCOMES = ("works", "queued", "later", "never")


@dataclass(frozen=True)
class Part:
    """Programs that fail together, and the worst that is allowed meanwhile."""

    programs: tuple[str, ...]
    # Action -> outcome; the others have to work.
    worst: Mapping[str, str]


# Nobody may be told of an answer that is not on the disk of the primary, which all
# writes need. Sessions of staff are in it; respondents have a signed cookie too.
RESPONDENTS = dict.fromkeys(("log in", "save page", "resume", "finish"), LATER)
WRITING_STAFF = dict.fromkeys(("exports", "roster import"), LATER)
# Permissions are read from the primary too: a replica may not know yet that a role
# has ended.
STAFF = {"rates": LATER, **WRITING_STAFF}
PARTS = {
    "PostgreSQL": Part(("primary",), {**RESPONDENTS, **STAFF}),
    # Exports are read from the replica alone, so that they never slow down saves.
    "replica": Part(("replica",), {"exports": QUEUED}),
    "pgbouncer": Part(("pgbouncer",), {**RESPONDENTS, **STAFF}),
    "Redis": Part(("redis",), {"log in": LATER}),
    "Memcached": Part(("memcached",), {}),
    "RabbitMQ and Celery": Part(
        ("rabbitmq", "worker", "long_worker", "beat"),
        dict.fromkeys(WRITING_STAFF, QUEUED),
    ),
}


@contextmanager
def slow(stack: RunningStack, *programs: str) -> Iterator[None]:
    """Suspend the programs most of the time, so that a reply takes up to 3 s."""
    over = threading.Event()

    def alternate() -> None:
        while not over.is_set():
            with stack.suspended(*programs):
                over.wait(SLOW_SECONDS)
            over.wait(AWAKE_SECONDS)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


MODES: dict[str, Callable[..., AbstractContextManager[None]]] = {
    "down": RunningStack.stopped,
    "hung": RunningStack.suspended,
    "slow": slow,
}


@dataclass
class Cell:
    """Compare how one action went during a fault with what is required."""

    log: ActionLog
    # Seconds from the action's beginning to the end of the fault.
    healed: float
    required: str

    @property
    def outcome(self) -> str:
        if self.log.done is None:
            return NEVER
        if self.log.done <= self.healed:
            return WORKS
        accepted = self.log.accepted
        return QUEUED if accepted is not None and accepted <= self.healed else LATER

    def summary(self) -> str:
        """Return the outcome, with the seconds until then, or after the fault."""
        done = self.log.done
        if done is None:
            return NEVER
        since = done if self.outcome == WORKS else done - self.healed
        return f"{self.outcome} {since:.1f} s"

    def line(self) -> str:
        counts = Counter(failure for _, failure in self.log.failures)
        remarks = [f"{count} x {failure}" for failure, count in counts.items()]
        if self.log.remark:
            remarks.append(self.log.remark)
        mark = "" if self.is_as_required else "   NOT as required"
        name, summary = self.log.name, self.summary()
        return f"{name:<14}{summary:<16}{', '.join(remarks)}{mark}"

    @property
    def is_as_required(self) -> bool:
        return OUTCOMES.index(self.outcome) <= OUTCOMES.index(self.required)


class MatrixRun:
    def __init__(self, stack: RunningStack, rehearsal: Rehearsal, seed: int) -> None:
        self.stack = stack
        self.administration = rehearsal.administration
        self.survey = RehearsalSurvey.of(rehearsal.described)
        self.items = {
            item["name"]: item["id"]
            for page in rehearsal.described["pages"]
            for item in page["items"]
        }
        self.target = target_of(stack.address)
        self.seed = seed
        self.people = iter(rehearsal.people)
        self.staff = Staff(stack, self.administration)
        # Part and mode -> its cells.
        self.cells: dict[tuple[str, str], list[Cell]] = {}
        # Answers that were acknowledged and are not stored, and so on.
        self.wrong: list[str] = []

    def run(self) -> None:
        for _ in range(ANSWERED):
            self._answer_all(self._next_person()[1])
        self.stack.application.manage("roll_up_rates")
        for name in PARTS:
            for mode in MODES:
                self._break(name, mode)

    def _next_person(self) -> tuple[int, Respondent]:
        number, code = next(self.people)
        return number, Respondent(code, self.survey, self.target, seed=self.seed)

    def _answer_all(self, person: Respondent) -> None:
        log_in(person)
        for request in save_requests(person, range(1, PAGES + 1)):
            if failure := send(person, request):
                raise Refusal(f"Nobody can save before the fault: {failure}")

    def _break(self, name: str, mode: str) -> None:
        part = PARTS[name]
        (_, newcomer), (saving, saver), (_, returning), (finishing, finisher) = (
            self._next_person() for _ in range(4)
        )
        log_in(saver)
        for person in (returning, finisher):
            self._answer_all(person)
        answers = self.survey.draw_answers(1, saver.chance)
        student = f"M{len(self.cells)}"
        entry = (newcomer.login_page, newcomer.login, newcomer.display)
        actions = [
            visit("log in", newcomer, *entry),
            visit("save page", saver, lambda: saver.save(1, answers)),
            visit("resume", returning, returning.display),
            visit("finish", finisher, finisher.review, finisher.finish),
            self.staff.rates(),
            self.staff.export(),
            self.staff.roster(f"{HEADER}\n{ROW.format(student)}\n"),
        ]
        with ThreadPoolExecutor(len(actions)) as pool:
            with MODES[mode](self.stack, *part.programs):
                time.sleep(1.0)
                began, limit = clock(), FAULT_SECONDS + RECOVERY_SECONDS
                courses = [pool.submit(action.run, limit) for action in actions]
                time.sleep(FAULT_SECONDS)
                healed = clock() - began
            cells = [
                Cell(log, healed, part.worst.get(log.name, WORKS))
                for log in (future.result() for future in courses)
            ]
        self.cells[name, mode] = cells
        print(f"{name}, {mode}", flush=True)
        for cell in cells:
            print(f"  {cell.line()}", flush=True)
        self._read_back(f"{name}, {mode}", saving, answers, finishing, student)

    def _read_back(
        self, where: str, saver: int, answers: Answers, finisher: int, student: str
    ) -> None:
        """Compare what was reported as done with the database."""
        expected = {self.items[name]: value for name, value in answers.items()}
        stored = self.stack.query(STORED.format(saver)) or {}
        if {int(item): value for item, value in stored.items()} != expected:
            self.wrong.append(f"{where}: the page that was saved is not stored")
        if not self.stack.query(FINISHED.format(finisher)):
            self.wrong.append(f"{where}: who finished has not finished")
        people = self.stack.query(INVITED.format(self.administration, student))
        if people != 1:
            self.wrong.append(f"{where}: the person of the roster is there {people} x")

    def shortcomings(self) -> list[str]:
        return self.wrong + [
            f"{part}, {mode}: {cell.log.name} {cell.outcome}, not {cell.required}"
            for (part, mode), cells in self.cells.items()
            for cell in cells
            if not cell.is_as_required
        ]

    def described(self) -> dict[str, object]:
        return {
            f"{part}, {mode}": {cell.log.name: cell.summary() for cell in cells}
            for (part, mode), cells in self.cells.items()
        }

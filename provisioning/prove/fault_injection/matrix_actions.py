"""Do the seven actions of the matrix, as browsers do, again and again until done."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urljoin

import requests

from provisioning.commands import Refusal, wait_until
from provisioning.measure.load.engine import Engine, clock
from provisioning.measure.load.respondent import Request, Respondent, login_requests
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
        # Built once: a save that is sent again is the same to the byte.
        built: list[Request] = []

        def take(log: ActionLog) -> str:
            built.extend([] if built else [build()])
            return send(respondent, built[0])

        return take

    return Action(name, [step(build) for build in requests], len(requests))


def _is_served(respondent: Respondent, request: Request) -> bool:
    return not send(respondent, request)


def log_in(respondent: Respondent) -> None:
    for request in login_requests(respondent):
        is_served = partial(_is_served, respondent, request)
        # Breakers stay open for some seconds after the fault before.
        if not wait_until(is_served, seconds=CALM_SECONDS, pause=PAUSE):
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

        return self._action("rates", [open_page], 1)

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

        return self._action("exports", [order, download], 1)

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

        return self._action("roster import", [upload, apply], 1)

    def _action(self, name: str, steps: list[Step], accepting: int) -> Action:
        def guard(step: Step) -> Step:
            def take(log: ActionLog) -> str:
                try:
                    return step(log)
                except NotServed as refused:
                    return str(refused)

            return take

        return Action(name, [guard(step) for step in steps], accepting)

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

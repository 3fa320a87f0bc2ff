"""Send requests to a private application, and keep the time of each."""

from __future__ import annotations

import math
import socket
import statistics
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, repeat
from typing import IO, Any, NamedTuple

from provisioning.commands import ROOT, listen
from provisioning.measure.benchmarks.stack import Application
from provisioning.measure.load.crowd import Person, send
from provisioning.measure.load.engine import Exchange
from provisioning.measure.load.respondent import (
    RehearsalSurvey,
    Request,
    Respondent,
    get_request,
    login_requests,
    save_requests,
)
from provisioning.measure.load.target import Target, target_of
from provisioning.measure.percentiles import percentile
from provisioning.processes import start_process, stop_process

# Requests under way at a time.
TOGETHER = 64


@contextmanager
def served(application: Application, *options: str, **how: Any) -> Iterator[Target]:
    """Serve as `start_server` does, on a port of its own."""
    with listen(0) as listener:
        target = target_of(f"http://127.0.0.1:{listener.getsockname()[1]}")
        server = start_server(application, listener, *options, **how)
    try:
        yield target
    finally:
        stop_process(server, seconds=40)


def start_server(
    application: Application,
    listener: socket.socket,
    *options: str,
    wsgi: str = "settings.wsgi",
    environment: Mapping[str, str] | None = None,
    output: IO[str] | None = None,
) -> subprocess.Popen[bytes]:
    return start_process(
        [str(application.python), "-m", "gunicorn", wsgi]
        + ["--worker-class=gthread", "--threads=8", "--log-level=warning"]
        + ["--no-control-socket", f"--bind=fd://{listener.fileno()}", *options],
        output=output,
        cwd=ROOT,
        env=environment or application.environment,
        pass_fds=(listener.fileno(),),
    )


class TimedReply(NamedTuple):
    # When it was due, on the engine's clock.
    sent: float
    milliseconds: float
    bytes: int

    @property
    def answered(self) -> float:
        return self.sent + self.milliseconds / 1000


def send_requests(
    target: Target,
    people: Sequence[Person],
    *,
    seconds: float = math.inf,
    rate: float = 0,
) -> list[TimedReply]:
    """Send one request of each person at a time, all of them or for some seconds.

    With `rate`, so many a second are due, whenever the replies come; requests without
    a reply are left out. Raises Refusal if a request fails.
    """
    replies: list[TimedReply] = []

    class TimedRequest(Request):
        def check(self, exchange: Exchange) -> str:
            size = len(exchange.reply.body) if exchange.reply else 0
            took = (exchange.answered - exchange.scheduled) * 1000
            replies.append(TimedReply(exchange.scheduled, took, size))
            return Request.check(self, exchange)

    def timed(requests: Person) -> Person:
        for each in requests:
            yield TimedRequest(each.kind, each.data, each.check_reply)

    requests = map(timed, people)
    together = len(people)
    tally = send(target, requests, together=together, rate=rate, seconds=seconds).tally
    if rate:
        for failure in ("cut", "unanswered"):
            del tally.failures[failure]
    tally.refuse_failures()
    return replies


def log_in(
    rehearsal: Mapping[str, Any], codes: Sequence[str], target: Target
) -> list[Person]:
    """Log respondents in; return their saves of all pages, again and again."""
    survey = RehearsalSurvey.of(rehearsal)
    respondents = [Respondent(code, survey, target) for code in codes]
    send_requests(target, in_turns(map(login_requests, respondents)))
    pages = range(1, len(survey.pages) + 1)
    return in_turns(save_requests(each, cycle(pages)) for each in respondents)


def in_turns(people: Iterable[Person]) -> list[Person]:
    """Let people send their requests in turns, at most `TOGETHER` at a time."""
    waiting = deque(people)

    def requests() -> Person:
        while waiting:
            person = waiting.popleft()
            if request := next(person, None):
                # Goes on when the reply is there.
                yield request
                waiting.append(person)

    return [requests() for _ in range(min(len(waiting), TOGETHER))]


def fetch_requests(
    target: Target, path: str, *, status: int = 200, cookie: str = ""
) -> Person:
    """Return requests of one address, again and again."""
    headers = f"Cookie: {cookie}\r\n" if cookie else ""
    return repeat(get_request(target, path, status, headers=headers))


def figures_of(times: Sequence[float], digits: int = 2) -> tuple[str, str, str]:
    figures = statistics.median(times), percentile(times, 95), max(times)
    median, p95, most = (f"{figure:.{digits}f}" for figure in figures)
    return median, p95, most

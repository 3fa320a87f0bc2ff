"""Serve a private application, and time its pages and page saves.

Saves are measured alone, or in turns with and without a job beside them.
"""

from __future__ import annotations

import math
import socket
import statistics
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice, repeat
from typing import IO, Any, NamedTuple

from provisioning.commands import ROOT, Refusal, listen, print_table
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
from provisioning.measure.load.tally import percentile
from provisioning.measure.load.target import Target, target_of
from provisioning.processes import start_process, stop_process

# Of a rehearsal whose only page is saved: as many items as the longest page of the
# demonstration's survey of students.
SIZE = ("--pages=1", "--items=7")
# Requests under way at a time.
TOGETHER = 64
# Of what the machine serves at most: on a full machine, anything else takes from saves.
OFFERED_SHARE = 0.5
SECONDS_FOR_LIMIT = 10


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


def time_pages(
    application: Application, target: Target, paths: Sequence[str], *, times: int = 30
) -> dict[str, float]:
    """Print the times of pages of the console; return their medians in ms."""
    cookies = application.call("staff_login.cookies_of_state")
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    rows, medians = [], {}
    for path in paths:
        requests = fetch_requests(target, path, cookie=cookie)
        replies = send_requests(target, [islice(requests, times)])
        taken = [each.milliseconds for each in replies]
        median, p95, _ = figures_of(taken, 1)
        medians[path] = statistics.median(taken)
        rows.append((path.removeprefix("/console"), median, p95, replies[-1].bytes))
    print_table(("page, ms", "median", "p95", "bytes"), rows)
    return medians


class SavesBeside(NamedTuple):
    """Page saves a second: alone, and while the job ran."""

    alone: float
    during: float
    # Of those that were due while the job ran, how many more were not answered then.
    lost_percent: float


def save_beside(
    job: Callable[[], float],
    *,
    name: str,
    target: Target,
    students: Sequence[Person],
    rounds: int,
    seconds: float,
    prepare: Callable[[int], None] = lambda number: None,
) -> SavesBeside:
    """Print the times of saves at half of the limit, and return how many are made.

    `job` returns its own seconds, so that the start of a command does not count: in
    production a worker is running.
    """

    def timed_job() -> tuple[float, float]:
        took = job()
        ended = time.monotonic()
        return ended - took, ended

    # A warm-up, not counted.
    send_requests(target, students, seconds=5)
    most = send_requests(target, students, seconds=SECONDS_FOR_LIMIT)
    limit = len(most) / SECONDS_FOR_LIMIT
    rate = OFFERED_SHARE * limit
    print(f"{limit:,.0f} saves a second at most; {rate:,.0f} are sent")
    # Without the job and with it: the replies of each round, and its seconds.
    saved: dict[bool, list[tuple[list[TimedReply], float]]] = {False: [], True: []}
    took = []
    for number in range(rounds):
        # In turns, and each of them first in half of the rounds: machines vary.
        for with_job in (False, True) if number % 2 else (True, False):
            with ThreadPoolExecutor(1) as pool:
                if with_job:
                    prepare(number)
                    running = pool.submit(timed_job)
                began = time.monotonic()
                ended = began + seconds
                replies = send_requests(target, students, seconds=seconds, rate=rate)
                if with_job:
                    job_began, job_ended = running.result()
                    took.append(job_ended - job_began)
                    # A longer job goes on when the round is over.
                    began, ended = max(job_began, began), min(job_ended, ended)
            in_time = [each for each in replies if began <= each.answered <= ended]
            saved[with_job].append((in_time, ended - began))
    return _compare_saves(saved, rate, name, statistics.median(took))


def _compare_saves(
    saved: Mapping[bool, Sequence[tuple[list[TimedReply], float]]],
    rate: float,
    name: str,
    took: float,
) -> SavesBeside:
    rows, speeds = [], []
    for with_job, kind in ((False, "alone"), (True, f"beside a {name}")):
        in_rounds = saved[with_job]
        speeds.append(
            statistics.median(len(replies) / lasted for replies, lasted in in_rounds)
        )
        if times := [each.milliseconds for replies, _ in in_rounds for each in replies]:
            rows.append((kind, *figures_of(times)[:2], f"{speeds[-1]:,.1f}"))
    print_table(("saves, ms", "median", "p95", "saves/s"), rows)
    # Also those that were never answered.
    due = rate * sum(lasted for _, lasted in saved[True] if lasted > 0)
    if not due:
        raise Refusal(f"The {name} ran after the saves; try again with more people")
    answered = sum(len(replies) for replies, _ in saved[True])
    saves = SavesBeside(speeds[0], speeds[1], 100 * (1 - answered / due))
    print(
        f"The {name} took {took:.2f} s beside the saves, of which"
        f" {saves.lost_percent:.1f} % were lost."
    )
    return saves

"""Produce load in processes of its own, while the caller measures."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess

from provisioning.commands import Refusal
from provisioning.load.crowd import Crowd, Turn
from provisioning.load.engine import Engine, Exchange, clock
from provisioning.load.respondent import (
    REQUESTS_PER_VISIT,
    RehearsalSurvey,
    Request,
    Respondent,
    login_requests,
    save_requests,
    visit_requests,
)
from provisioning.load.tally import Tally
from provisioning.load.target import Target
from provisioning.processes import end_with_parent

# How many log in at a time before a measurement.
LOGINS_TOGETHER = 16
OUT_OF_PEOPLE = "There are not enough respondents left: raise --respondents"


class Fetcher:
    """A client that requests one address again and again."""

    def __init__(self, kind: str, data: bytes, accepted: Sequence[int]) -> None:
        self.request = Request(kind, data)
        self.accepted = accepted

    def requests(self) -> Iterator[Request]:
        while True:
            yield self.request

    def check(self, request: Request, exchange: Exchange) -> str:
        reply = exchange.reply
        if reply is None:
            return exchange.failure
        return "" if reply.status in self.accepted else f"status {reply.status}"


class Driver:
    """One load process: its respondents, and the measurements they take part in."""

    def __init__(
        self,
        target: Target,
        survey: RehearsalSurvey,
        codes: Iterable[str],
        *,
        seed: int = 0,
    ) -> None:
        self.target = target
        self.survey = survey
        self.seed = seed
        # Respondents who have not logged in yet.
        self.outside = (Respondent(code, survey, target, seed=seed) for code in codes)
        # Logged in, with pages that they have not saved yet.
        self.inside: deque[Turn] = deque()
        self.saves_left = 0
        # Respondents in the middle of their surveys, for `mix`.
        self.room: list[Turn] = []

    def enter(self, saves: int) -> int:
        """Log in as many respondents as so many saves need; return their number."""
        page_count = len(self.survey.pages)
        wanted = -(-max(0, saves - self.saves_left) // page_count)
        people = list(islice(self.outside, wanted))
        if len(people) < wanted:
            raise Refusal(OUT_OF_PEOPLE)
        self._log_in(people)
        pages = range(1, page_count + 1)
        self.inside += [Turn(person, save_requests(person, pages)) for person in people]
        self.saves_left += len(people) * page_count
        return len(people)

    def save(
        self, *, present: int, together: int, warm: float, seconds: float
    ) -> Tally:
        """Save pages in a closed loop, each of them for the first time.

        `present` respondents take turns, so that none of them saves faster
        than nginx allows one session to.
        """

        def turns() -> Iterator[Turn]:
            while self.inside:
                yield self.inside.popleft()

        engine = Engine(self.target)
        crowd = Crowd(engine, turns(), present=present)
        tally = crowd.run_closed(together=together, seconds=seconds, warm=warm)
        engine.close()
        self.saves_left -= engine.asked
        self.inside += crowd.unfinished()
        if crowd.out_of_people:
            raise Refusal(OUT_OF_PEOPLE)
        return tally

    def enter_room(self, present: int) -> int:
        """Log in the respondents that are present when a mix begins."""
        self.room = []
        people = list(islice(self.outside, present))
        self._log_in(people)
        for number, person in enumerate(people):
            requests = visit_requests(person)
            # Each at another stage, as at any moment of a day.
            visit = 2 * len(self.survey.pages) - REQUESTS_PER_VISIT
            deque(islice(requests, number * visit // present), maxlen=0)
            self.room.append(Turn(person, requests))
        return len(people)

    def mix(
        self,
        *,
        together: int,
        warm: float,
        seconds: float,
        rate: float = 0.0,
    ) -> Tally:
        """Take whole surveys, in a closed loop or at a rate."""
        arriving = (Turn(person, visit_requests(person)) for person in self.outside)
        engine = Engine(self.target)
        crowd = Crowd(engine, chain(self.room, arriving), present=len(self.room))
        if rate:
            tally = crowd.run_open(
                rate=rate, seconds=seconds, warm=warm, seed=self.seed
            )
        else:
            tally = crowd.run_closed(together=together, seconds=seconds, warm=warm)
        engine.close()
        # The next part of a soak goes on with them.
        self.room = crowd.unfinished()
        if crowd.out_of_people:
            raise Refusal(OUT_OF_PEOPLE)
        return tally

    def fetch(
        self,
        *,
        target: Target,
        path: str,
        accepted: Sequence[int],
        together: int,
        seconds: float,
    ) -> Tally:
        """Request one address in a closed loop."""
        data = f"GET {path} HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode()
        fetchers = [Fetcher(path, data, accepted) for _ in range(together)]
        engine = Engine(target)
        turns = (Turn(fetcher, fetcher.requests()) for fetcher in fetchers)
        warm = min(1.0, seconds / 4)
        tally = Crowd(engine, turns).run_closed(
            together=together, seconds=seconds, warm=warm
        )
        engine.close()
        return tally

    def _log_in(self, people: Sequence[Respondent]) -> None:
        engine = Engine(self.target)
        turns = (Turn(person, login_requests(person)) for person in people)
        tally = Crowd(engine, turns).run_all(together=LOGINS_TOGETHER)
        engine.close()
        if tally.failed():
            raise Refusal(f"Logging in fails: {tally.failures_by_name()}")


@dataclass(slots=True)
class Drivers:
    """Load processes that do the same thing at the same time."""

    pipes: list[Connection]
    processes: list[ForkProcess]

    @classmethod
    def start(
        cls, count: int, target: Target, survey: RehearsalSurvey, codes: Sequence[str]
    ) -> Drivers:
        # Forked: nothing has to be imported or handed over again.
        context = multiprocessing.get_context("fork")
        drivers = cls([], [])
        for number in range(count):
            ours, theirs = context.Pipe()
            arguments = (theirs, target, survey, codes[number::count], number)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            drivers.pipes.append(ours)
            drivers.processes.append(process)
        return drivers

    def __len__(self) -> int:
        return len(self.pipes)

    def do(
        self,
        method: str,
        *arguments: object,
        meanwhile: Callable[[], None] | None = None,
        **options: object,
    ) -> list[object]:
        """Call a method of `Driver` in all processes. Raises a Refusal of theirs."""
        for pipe in self.pipes:
            pipe.send((method, arguments, options))
        if meanwhile:
            meanwhile()
        results: list[object] = []
        for pipe in self.pipes:
            try:
                results.append(pipe.recv())
            except EOFError:
                raise Refusal(
                    "A load process ended; its error is printed above"
                ) from None
        for result in results:
            if isinstance(result, Refusal):
                raise result
        return results

    def tally(
        self,
        method: str,
        *,
        meanwhile: Callable[[], None] | None = None,
        **options: object,
    ) -> Tally:
        """Call a method that returns a tally, and merge the tallies."""
        results = self.do(method, meanwhile=meanwhile, **options)
        tallies = [result for result in results if isinstance(result, Tally)]
        for other in tallies[1:]:
            tallies[0].merge(other)
        return tallies[0]

    def stop(self) -> None:
        # Closing the pipes is not enough: each process inherited both ends.
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.close()
            process.kill()
            process.join()


def _serve(
    pipe: Connection,
    target: Target,
    survey: RehearsalSurvey,
    codes: Sequence[str],
    seed: int,
) -> None:
    end_with_parent(signal.SIGKILL)()
    # The measuring process decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    driver = Driver(target, survey, codes, seed=seed)
    # A pause for garbage collection would count as the server's, and there
    # are no cycles here that take up memory.
    gc.freeze()
    gc.disable()
    while True:
        try:
            method, arguments, options = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            pipe.send(getattr(driver, method)(*arguments, **options))
        except Refusal as refusal:
            pipe.send(refusal)


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - clock()))

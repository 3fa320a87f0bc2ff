"""Load from processes of its own, while the one that measures looks on."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

from provisioning.commands import Refusal
from provisioning.load.crowd import Crowd, Turn
from provisioning.load.engine import Engine, clock
from provisioning.load.respondent import (
    AROUND,
    Plan,
    Request,
    Respondent,
    answering,
    entering,
    taking,
)
from provisioning.load.tally import Tally
from provisioning.load.target import Target
from provisioning.processes import end_with_parent

# How many log in at once before anything is measured.
ENTERING = 16
OUT_OF_PEOPLE = "There are not enough respondents left: raise --respondents"


class Fetcher:
    """Somebody who asks for one address, again and again."""

    def __init__(self, kind: str, data: bytes, accepted: Sequence[int]) -> None:
        self.request = Request(kind, data)
        self.accepted = accepted

    def steps(self) -> Iterator[Request]:
        while True:
            yield self.request

    def check(self, request: Request, exchange: Any) -> str:
        reply = exchange.reply
        if reply is None:
            return exchange.failure
        return "" if reply.status in self.accepted else f"status {reply.status}"


class Driver:
    """In a process of its own: people, who are logged in or still outside."""

    def __init__(
        self, target: Target, plan: Plan, codes: Iterable[str], *, seed: int = 0
    ) -> None:
        self.target = target
        self.plan = plan
        self.seed = seed
        self.outside = (Respondent(code, plan, target, seed=seed) for code in codes)
        # Logged in, with pages that they have not saved yet.
        self.inside: deque[Turn] = deque()
        self.left = 0
        self.room: list[Turn] = []

    def enter(self, saves: int) -> int:
        """Log in as many people as these saves need; how many came in."""
        wanted = -(-max(0, saves - self.left) // len(self.plan.pages))
        people = list(islice(self.outside, wanted))
        if len(people) < wanted:
            raise Refusal(OUT_OF_PEOPLE)
        self._log_in(people)
        pages = range(1, len(self.plan.pages) + 1)
        self.inside += [Turn(person, answering(person, pages)) for person in people]
        self.left += len(people) * len(self.plan.pages)
        return len(people)

    def save(
        self, *, present: int, together: int, warm: float, seconds: float
    ) -> Tally:
        """Page saves alone, each of a page that was never saved before.

        `present` people take turns, so that nobody saves faster than nginx
        lets one session.
        """
        engine = Engine(self.target)
        crowd = Crowd(engine, self._from_inside(), present=present)
        tally = crowd.run_closed(together=together, seconds=seconds, warm=warm)
        engine.close()
        self.left -= engine.asked
        self.inside += crowd.still_here()
        if crowd.out_of_people:
            raise Refusal(OUT_OF_PEOPLE)
        return tally

    def enter_room(self, present: int) -> int:
        """Log in those who are there already when a mix begins."""
        self.room = []
        people = list(islice(self.outside, present))
        self._log_in(people)
        for number, person in enumerate(people):
            steps = taking(person)
            # Each at another stage, as at any moment of a day.
            behind = number * (2 * len(self.plan.pages) - AROUND) // present
            deque(islice(steps, behind), maxlen=0)
            self.room.append(Turn(person, steps))
        return len(people)

    def mix(
        self,
        *,
        together: int,
        warm: float,
        seconds: float,
        rate: float = 0.0,
    ) -> Tally:
        """Whole people at all their stages: in a closed loop, or at a rate."""
        engine = Engine(self.target)
        crowd = Crowd(engine, self._in_the_room(), present=len(self.room))
        if rate:
            tally = crowd.run_open(
                rate=rate, seconds=seconds, warm=warm, seed=self.seed
            )
        else:
            tally = crowd.run_closed(together=together, seconds=seconds, warm=warm)
        engine.close()
        # Another part may go on with whoever is in the middle of it.
        self.room = crowd.still_here()
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
        """One address as fast as it goes."""
        data = f"GET {path} HTTP/1.1\r\nHost: {target.host}\r\n\r\n".encode()
        fetchers = [Fetcher(path, data, accepted) for _ in range(together)]
        engine = Engine(target)
        turns = (Turn(one, one.steps()) for one in fetchers)
        tally = Crowd(engine, turns).run_closed(
            together=together, seconds=seconds, warm=min(1.0, seconds / 4)
        )
        engine.close()
        return tally

    # Inside

    def _log_in(self, people: Sequence[Respondent]) -> None:
        engine = Engine(self.target)
        turns = (Turn(person, entering(person)) for person in people)
        tally = Crowd(engine, turns).run_all(together=ENTERING)
        engine.close()
        if tally.failed():
            raise Refusal(f"Logging in fails: {tally.failures_by_name()}")

    def _from_inside(self) -> Iterator[Turn]:
        while self.inside:
            yield self.inside.popleft()

    def _in_the_room(self) -> Iterator[Turn]:
        """Whoever is there, and then whoever comes."""
        yield from self.room
        for person in self.outside:
            yield Turn(person, taking(person))


@dataclass(slots=True)
class Drivers:
    """Several drivers that do the same at the same time, each with its people."""

    pipes: list[Connection]
    processes: list[Any]

    @classmethod
    def start(
        cls, count: int, target: Target, plan: Plan, codes: Sequence[str]
    ) -> Drivers:
        # Forked: nothing has to be imported or handed over again.
        context = multiprocessing.get_context("fork")
        pipes, processes = [], []
        for number in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(theirs, target, plan, codes[number::count], number),
                daemon=True,
            )
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        return cls(pipes, processes)

    def __len__(self) -> int:
        return len(self.pipes)

    def do(
        self,
        what: str,
        *arguments: Any,
        meanwhile: Callable[[], None] | None = None,
        **options: Any,
    ) -> list[Any]:
        """The same of all; a Refusal of one is raised here."""
        for pipe in self.pipes:
            pipe.send((what, arguments, options))
        if meanwhile:
            meanwhile()
        answers = [self._answer(pipe) for pipe in self.pipes]
        for answer in answers:
            if isinstance(answer, Refusal):
                raise answer
        return answers

    def tally(self, what: str, **options: Any) -> Tally:
        first, *others = self.do(what, **options)
        for tally in others:
            first.merge(tally)
        return first

    def stop(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()

    def _answer(self, pipe: Connection) -> Any:
        try:
            return pipe.recv()
        except EOFError:
            raise Refusal("The load engine ended; its reason stands above") from None


def _serve(
    pipe: Connection, target: Target, plan: Plan, codes: Sequence[str], seed: int
) -> None:
    end_with_parent(signal.SIGKILL)()
    # The one that measures tells when it is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    driver = Driver(target, plan, codes, seed=seed)
    # Nothing here is a cycle worth stopping for, and a pause would be counted
    # as the server's.
    gc.freeze()
    gc.disable()
    while True:
        try:
            what, arguments, options = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            pipe.send(getattr(driver, what)(*arguments, **options))
        except Refusal as refusal:
            pipe.send(refusal)


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - clock()))

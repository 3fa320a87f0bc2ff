"""Produce load in processes of its own, while the caller measures."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice, repeat
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any

from provisioning.commands import Refusal
from provisioning.measure.load.crowd import Crowd, Person, send
from provisioning.measure.load.engine import clock
from provisioning.measure.load.respondent import (
    REQUESTS_PER_VISIT,
    RehearsalSurvey,
    Respondent,
    get_request,
    login_requests,
    save_requests,
    visit_requests,
)
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import Target
from provisioning.processes import end_with_parent

# How many log in at a time before a measurement.
LOGINS_TOGETHER = 16
OUT_OF_PEOPLE = "There are not enough respondents left: raise --respondents"


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
        self.inside: deque[Person] = deque()
        self.saves_left = 0
        # In the middle of their surveys, for `mix`.
        self.room: deque[Person] = deque()

    def enter(self, saves: int) -> int:
        """Log in as many respondents as so many saves need; return their number."""
        page_count = len(self.survey.pages)
        wanted = -(-max(0, saves - self.saves_left) // page_count)
        respondents = self._log_in(wanted)
        if len(respondents) < wanted:
            raise Refusal(OUT_OF_PEOPLE)
        pages = range(1, page_count + 1)
        self.inside += [save_requests(each, pages) for each in respondents]
        self.saves_left += wanted * page_count
        return wanted

    def save(self, *, present: int, **load: Any) -> Tally:
        """Save pages in a closed loop, each of them for the first time.

        `present` respondents take turns, so that none of them saves faster
        than nginx allows one session to.
        """
        waiting = iter(self.inside)
        crowd = send(self.target, waiting, present=present, **load)
        self.saves_left -= crowd.engine.asked
        self.inside = deque(chain(waiting, crowd.idle))
        return self._tally_of(crowd)

    def enter_room(self, present: int) -> int:
        """Log in the respondents that are present when a mix begins."""
        self.room.clear()
        for number, respondent in enumerate(self._log_in(present)):
            requests = visit_requests(respondent)
            # Each at another stage, as at any moment of a day.
            visit = 2 * len(self.survey.pages) - REQUESTS_PER_VISIT
            deque(islice(requests, number * visit // present), maxlen=0)
            self.room.append(requests)
        return len(self.room)

    def mix(self, **load: Any) -> Tally:
        """Take whole surveys, in a closed loop or at a rate."""
        people = chain(self.room, map(visit_requests, self.outside))
        present = len(self.room)
        crowd = send(self.target, people, present=present, seed=self.seed, **load)
        # The next part of a soak goes on with them.
        self.room = crowd.idle
        return self._tally_of(crowd)

    @staticmethod
    def _tally_of(crowd: Crowd) -> Tally:
        if crowd.out_of_people:
            raise Refusal(OUT_OF_PEOPLE)
        return crowd.tally

    def fetch(
        self, *, target: Target, path: str, accepted: Sequence[int], **load: Any
    ) -> Tally:
        people = repeat(repeat(get_request(target, path, *accepted)))
        return send(target, people, warm=min(1.0, load["seconds"] / 4), **load).tally

    def _log_in(self, count: int) -> list[Respondent]:
        """Log in so many respondents, or as many as there are."""
        respondents = list(islice(self.outside, count))
        logins = map(login_requests, respondents)
        tally = send(self.target, logins, together=LOGINS_TOGETHER).tally
        tally.refuse_failures("Logging in fails")
        return respondents


class Drivers:
    """Load processes that do the same thing at the same time."""

    def __init__(
        self,
        count: int,
        target: Target,
        survey: Any,
        codes: Sequence[str],
        *,
        kind: Callable[..., object] = Driver,
    ) -> None:
        # Forked: nothing has to be imported or handed over again.
        context = multiprocessing.get_context("fork")
        self.pipes: list[Connection] = []
        self.processes: list[ForkProcess] = []
        for number in range(count):
            ours, theirs = context.Pipe()
            driver = kind(target, survey, codes[number::count], seed=number)
            process = context.Process(target=_serve, args=(theirs, driver), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def __len__(self) -> int:
        return len(self.pipes)

    def do(
        self,
        method: str,
        *arguments: object,
        meanwhile: Callable[[], None] | None = None,
        **options: object,
    ) -> list[object]:
        """Call a method of the drivers in all processes. Raises a Refusal of theirs."""
        for pipe in self.pipes:
            pipe.send((method, arguments, options))
        if meanwhile:
            meanwhile()
        results: list[object]
        try:
            results = [pipe.recv() for pipe in self.pipes]
        except EOFError:
            raise Refusal("A load process ended; its error is printed above") from None
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
        merged = Tally(began=math.inf)
        for tally in self.do(method, meanwhile=meanwhile, **options):
            if isinstance(tally, Tally):
                merged.merge(tally)
        return merged

    def stop(self) -> None:
        # Closing the pipes is not enough: each process inherited both ends.
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.close()
            process.kill()
            process.join()


def _serve(pipe: Connection, driver: object) -> None:
    end_with_parent(signal.SIGKILL)()
    # The measuring process decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
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

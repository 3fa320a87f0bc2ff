"""Let people send their requests, in a closed loop or at a rate.

Closed loop: a fixed number of requests is always under way, which finds what
a server can do. Open loop: requests are due by a schedule whatever the server
does, which finds how long people wait.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing

from provisioning.measure.load.engine import (
    TIMEOUT,
    Engine,
    Exchange,
    clock,
    schedule_arrivals,
)
from provisioning.measure.load.respondent import Request
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import Target

# Seconds after an open loop in which late replies are still counted.
DRAIN = 10.0

# The requests that one person has still to send.
Person = Iterator[Request]


class Crowd:
    """Send people's requests; replace a person who has finished or failed."""

    def __init__(
        self, engine: Engine, people: Iterable[Person], *, present: int = 0
    ) -> None:
        """Have `present` people at a time; with 0 one for each request."""
        self.engine = engine
        self.tally = Tally()
        # A request was due, but all people had finished.
        self.out_of_people = False
        self.idle: deque[Person] = deque()
        self._people = iter(people)
        self._last_came = False
        self._present = present
        self._inside = 0
        # When requests were due that no idle person could send.
        self._late: deque[float] = deque()
        self._under_way = 0
        self._is_closed_loop = False
        self._cpu = time.process_time()
        while self._inside < present and (person := self._next_person()):
            self.idle.append(person)

    def run_closed(
        self, *, together: int, seconds: float = math.inf, warm: float = 0.0
    ) -> Tally:
        """Keep `together` requests under way, until time or people run out.

        Those of the first `warm` seconds don't count.
        """
        self._is_closed_loop = True
        self._count(clock() + warm, seconds)
        for _ in range(together):
            self._ask(clock())
        return self._run()

    def run_open(
        self, *, rate: float, seconds: float, warm: float = 0.0, seed: int = 0
    ) -> Tally:
        """Send `rate` requests a second; those of the first `warm` don't count."""
        begin = clock()
        self._count(begin + warm, seconds)

        def give_up() -> None:
            never_sent = sum(due >= self.tally.began for due in self._late)
            self.tally.failures.update(unanswered=never_sent + self._under_way)
            self._late.clear()
            self.engine.stop()

        schedule_arrivals(
            self.engine,
            self._ask,
            rate=rate,
            begin=begin,
            seconds=warm + seconds,
            seed=seed,
        )
        self.engine.at(begin + warm + seconds + DRAIN, give_up)
        return self._run()

    def _count(self, begin: float, seconds: float) -> None:
        """Count requests that are due from `begin` on, for so many seconds."""

        def start_cpu() -> None:
            self._cpu = time.process_time()

        self.tally.began = begin
        self.engine.at(begin, start_cpu)
        self.engine.at(begin + seconds, self._stop_counting)

    def _stop_counting(self) -> None:
        if not self.tally.ended:
            self.tally.ended = clock()
            self.tally.own_cpu = time.process_time() - self._cpu

    def _run(self) -> Tally:
        def is_over() -> bool:
            if self._is_closed_loop and self._last_came and not self.idle:
                return True
            return bool(self.tally.ended) and not self._late

        self.engine.run(idle=is_over)
        self._stop_counting()
        return self.tally

    def _ask(self, due: float) -> None:
        while person := self.idle.popleft() if self.idle else self._next_person():
            if request := next(person, None):
                self._under_way += 1
                self._send(person, request, due)
                return
            self._leave()
        self.out_of_people |= self._last_came
        if not self._is_closed_loop:
            self._late.append(due)

    def _send(self, person: Person, request: Request, due: float) -> None:
        def receive(exchange: Exchange) -> None:
            self._under_way -= 1
            failure = request.check(exchange)
            tally, has_ended = self.tally, bool(self.tally.ended)
            if not failure and exchange.answered >= tally.began and not has_ended:
                tally.in_time[request.kind] += 1
            # Replies that a closed loop still misses are waited for, but not counted.
            is_counted = failure or not self._is_closed_loop or not has_ended
            if is_counted and due >= tally.began:
                tally.add(request.kind, exchange.answered - due, failure)
            # After a failure, what the next request needs may be missing.
            if failure:
                self._leave()
            else:
                self.idle.append(person)
            if self._late:
                self._ask(self._late.popleft())
            elif self._is_closed_loop and not self.tally.ended:
                self._ask(clock())

        self.engine.ask(request.data, receive, scheduled=due)

    def _leave(self) -> None:
        self._inside -= 1
        # A closed room stays full.
        if self._present and (person := self._next_person()):
            self.idle.append(person)

    def _next_person(self) -> Person | None:
        if self._present and self._inside >= self._present:
            return None
        person = next(self._people, None)
        if person is None:
            self._last_came = True
        else:
            self._inside += 1
        return person


def send(
    target: Target,
    people: Iterable[Person],
    *,
    together: int = 1,
    rate: float = 0.0,
    seconds: float = math.inf,
    warm: float = 0.0,
    present: int = 0,
    seed: int = 0,
    connections: int = 256,
    timeout: float = TIMEOUT,
) -> Crowd:
    """Send people's requests; return the crowd with its tally.

    `together` requests at a time, or with `rate` so many a second, whenever the replies
    come.
    """
    with closing(Engine(target, connections=connections, timeout=timeout)) as engine:
        crowd = Crowd(engine, people, present=present)
        if rate:
            crowd.run_open(rate=rate, seconds=seconds, warm=warm, seed=seed)
        else:
            crowd.run_closed(together=together, seconds=seconds, warm=warm)
    return crowd

"""People who take turns, in a closed loop or by arrivals.

Closed loop: so many requests are always under way, each answer lets the next
one go; that finds what a server can do. Open loop: requests are due by a
schedule whatever the server does; that finds how long people wait.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from provisioning.load.engine import Engine, Exchange, clock
from provisioning.load.respondent import Request
from provisioning.load.schedule import Arrivals
from provisioning.load.tally import Tally

Steps = Iterator[Request]
# Nothing is due any more after a run; what hangs is given up then.
DRAIN = 10.0


class Person(Protocol):
    def check(self, request: Request, exchange: Exchange) -> str: ...


@dataclass(slots=True)
class Turn:
    """A person, and what they still have to ask."""

    person: Person
    steps: Steps


class Crowd:
    """Hands out turns; a person who is done, or who failed, is replaced."""

    def __init__(
        self, engine: Engine, turns: Iterable[Turn], *, present: int = 0
    ) -> None:
        """At most `present` people at a time; 0: as many as there are requests."""
        self.engine = engine
        self.tally = Tally()
        # A request was due, and everybody had come and gone.
        self.out_of_people = False
        self._last_came = False
        self._turns = iter(turns)
        self._idle: deque[Turn] = deque()
        self._present = present
        self._inside = 0
        # When they were due: nobody was free to send them.
        self._late: deque[float] = deque()
        self._under_way = 0
        self._counting = False
        self._cpu = time.process_time()
        self._again: Callable[[], None] | None = None
        while self._inside < present and (turn := self._newcomer()):
            self._idle.append(turn)

    def run_closed(self, *, together: int, seconds: float, warm: float = 0.0) -> Tally:
        """`together` requests at any time, until time or people run out."""
        begin = clock() + warm
        self._again = self._ask_next
        self.engine.at(begin, self._begin_counting)
        self.engine.at(begin + seconds, self._end)
        self._run(together)
        return self.tally

    def run_all(self, *, together: int) -> Tally:
        """Until every person has asked everything."""
        self._begin_counting()
        self._again = self._ask_next
        self._run(together)
        return self.tally

    def run_open(
        self, *, rate: float, seconds: float, warm: float = 0.0, seed: int = 0
    ) -> Tally:
        """`rate` requests a second, for `warm` seconds and then counted ones."""
        begin = clock()
        counted = begin + warm
        Arrivals(
            self.engine,
            rate=rate,
            begin=begin,
            seconds=warm + seconds,
            act=lambda due: self._ask(due, due >= counted),
            seed=seed,
        )
        self.engine.at(counted, self._begin_counting)
        self.engine.at(counted + seconds, self._stop_clock)
        self.engine.at(counted + seconds + DRAIN, self._give_up)
        self._run(0)
        return self.tally

    def still_here(self) -> list[Turn]:
        """Whoever may have something left to ask."""
        return list(self._idle)

    # Inside

    def _run(self, together: int) -> None:
        for _ in range(together):
            self._ask_next()
        self.engine.run(idle=self._is_over)
        self._stop_clock()

    def _is_over(self) -> bool:
        """Timers may be left, but nothing that they are for."""
        over = bool(self.tally.ended) and not self._under_way and not self._late
        ran_out = self._last_came and not self._idle and not self._under_way
        return over or (ran_out and self._again is not None)

    def _begin_counting(self) -> None:
        self._counting = True
        self.tally.began = clock()
        self._cpu = time.process_time()

    def _stop_clock(self) -> None:
        if not self.tally.ended:
            self.tally.ended = clock()
            self.tally.own_cpu = time.process_time() - self._cpu

    def _end(self) -> None:
        """Nobody asks any more; who waits for an answer, gets it uncounted."""
        self._stop_clock()
        self._counting = False
        self._again = None

    def _give_up(self) -> None:
        never_sent = sum(due >= self.tally.began for due in self._late)
        for _ in range(never_sent + self._under_way):
            self.tally.add("unanswered", 0.0, "unanswered")
        self._late.clear()
        self.engine.stop()

    def _ask_next(self) -> None:
        self._ask(clock(), self._counting)

    def _ask(self, due: float, counted: bool) -> None:
        asked = self._next_request()
        if asked is None:
            self.out_of_people |= self._last_came
            if self._again is None:
                self._late.append(due)
            return
        turn, request = asked
        self._under_way += 1
        self.engine.ask(
            request.data,
            lambda exchange: self._answered(turn, request, exchange, counted),
            scheduled=due,
        )

    def _next_request(self) -> tuple[Turn, Request] | None:
        while turn := self._idle.popleft() if self._idle else self._newcomer():
            request = next(turn.steps, None)
            if request is not None:
                return turn, request
            self._leave()
        return None

    def _leave(self) -> None:
        self._inside -= 1
        # A room stays full.
        if self._present and (turn := self._newcomer()):
            self._idle.append(turn)

    def _newcomer(self) -> Turn | None:
        if self._present and self._inside >= self._present:
            return None
        turn = next(self._turns, None)
        if turn is None:
            self._last_came = True
        else:
            self._inside += 1
        return turn

    def _answered(
        self, turn: Turn, request: Request, exchange: Exchange, counted: bool
    ) -> None:
        self._under_way -= 1
        failure = turn.person.check(request, exchange)
        if not failure and self._counting and not self.tally.ended:
            self.tally.in_time[request.kind] += 1
        if counted and (self._counting or failure):
            status = exchange.reply.status if exchange.reply else 0
            waited = exchange.answered - exchange.scheduled
            self.tally.add(request.kind, waited, failure, status)
        # Whoever failed may lack what the next step needs: somebody else goes on.
        if failure:
            self._leave()
        else:
            self._idle.append(turn)
        if self._late:
            due = self._late.popleft()
            self._ask(due, due >= self.tally.began > 0)
        elif self._again:
            self._again()

"""Let respondents take turns, in a closed loop or at a rate.

Closed loop: a fixed number of requests is always under way, which finds what
a server can do. Open loop: requests are due by a schedule whatever the server
does, which finds how long people wait.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from provisioning.load.engine import Engine, Exchange, clock, schedule_arrivals
from provisioning.load.respondent import Request
from provisioning.load.tally import Tally

# Seconds after an open loop in which late replies are still counted.
DRAIN = 10.0


class Client(Protocol):
    def check(self, request: Request, exchange: Exchange) -> str: ...


@dataclass(slots=True)
class Turn:
    """A client, and the requests that it has still to send."""

    client: Client
    requests: Iterator[Request]


class Crowd:
    """Send clients' requests; replace a client that has finished or failed."""

    def __init__(
        self, engine: Engine, turns: Iterable[Turn], *, present: int = 0
    ) -> None:
        """Have `present` clients at a time; with 0 one for each request."""
        self.engine = engine
        self.tally = Tally()
        # A request was due, but all clients had finished.
        self.out_of_people = False
        self._last_came = False
        self._turns = iter(turns)
        self._idle: deque[Turn] = deque()
        self._present = present
        self._inside = 0
        # When requests were due that no idle client could send.
        self._late: deque[float] = deque()
        self._under_way = 0
        self._counting = False
        self._cpu = time.process_time()
        self._refill: Callable[[], None] | None = None
        while self._inside < present and (turn := self._next_turn()):
            self._idle.append(turn)

    def run_closed(self, *, together: int, seconds: float, warm: float = 0.0) -> Tally:
        """Keep `together` requests under way, until time or clients run out."""
        begin = clock() + warm
        self._refill = self._ask_now

        def end() -> None:
            # Replies that are still missing are waited for, but not counted.
            self._stop_counting()
            self._counting = False
            self._refill = None

        self.engine.at(begin, self._start_counting)
        self.engine.at(begin + seconds, end)
        return self._run(together)

    def run_all(self, *, together: int) -> Tally:
        """Run until every client has sent all its requests."""
        self._start_counting()
        self._refill = self._ask_now
        return self._run(together)

    def run_open(
        self, *, rate: float, seconds: float, warm: float = 0.0, seed: int = 0
    ) -> Tally:
        """Send `rate` requests a second; those of the first `warm` don't count."""
        begin = clock()
        counted = begin + warm

        def give_up() -> None:
            never_sent = sum(due >= self.tally.began for due in self._late)
            for _ in range(never_sent + self._under_way):
                self.tally.add("unanswered", 0.0, "unanswered")
            self._late.clear()
            self.engine.stop()

        schedule_arrivals(
            self.engine,
            lambda due: self._ask(due, due >= counted),
            rate=rate,
            begin=begin,
            seconds=warm + seconds,
            seed=seed,
        )
        self.engine.at(counted, self._start_counting)
        self.engine.at(counted + seconds, self._stop_counting)
        self.engine.at(counted + seconds + DRAIN, give_up)
        return self._run(0)

    def unfinished(self) -> list[Turn]:
        return list(self._idle)

    # Internals

    def _run(self, together: int) -> Tally:
        def is_over() -> bool:
            if self._under_way:
                return False
            ran_out = self._last_came and not self._idle
            is_ended = bool(self.tally.ended) and not self._late
            return is_ended or (ran_out and self._refill is not None)

        for _ in range(together):
            self._ask_now()
        self.engine.run(idle=is_over)
        self._stop_counting()
        return self.tally

    def _start_counting(self) -> None:
        self._counting = True
        self.tally.began = clock()
        self._cpu = time.process_time()

    def _stop_counting(self) -> None:
        if not self.tally.ended:
            self.tally.ended = clock()
            self.tally.own_cpu = time.process_time() - self._cpu

    def _ask_now(self) -> None:
        self._ask(clock(), self._counting)

    def _ask(self, due: float, counted: bool) -> None:
        request = None
        while turn := self._idle.popleft() if self._idle else self._next_turn():
            request = next(turn.requests, None)
            if request is not None:
                break
            self._leave()
        if turn is None or request is None:
            self.out_of_people |= self._last_came
            if self._refill is None:
                self._late.append(due)
            return
        self._under_way += 1
        sender, sent = turn, request
        self.engine.ask(
            request.data,
            lambda exchange: self._receive(sender, sent, exchange, counted),
            scheduled=due,
        )

    def _leave(self) -> None:
        self._inside -= 1
        # A closed room stays full.
        if self._present and (turn := self._next_turn()):
            self._idle.append(turn)

    def _next_turn(self) -> Turn | None:
        if self._present and self._inside >= self._present:
            return None
        turn = next(self._turns, None)
        if turn is None:
            self._last_came = True
        else:
            self._inside += 1
        return turn

    def _receive(
        self, turn: Turn, request: Request, exchange: Exchange, counted: bool
    ) -> None:
        self._under_way -= 1
        failure = turn.client.check(request, exchange)
        if not failure and self._counting and not self.tally.ended:
            self.tally.in_time[request.kind] += 1
        if counted and (self._counting or failure):
            status = exchange.reply.status if exchange.reply else 0
            seconds = exchange.answered - exchange.scheduled
            self.tally.add(request.kind, seconds, failure, status)
        # A client that failed may lack what its next request needs.
        if failure:
            self._leave()
        else:
            self._idle.append(turn)
        if self._late:
            due = self._late.popleft()
            self._ask(due, due >= self.tally.began > 0)
        elif self._refill:
            self._refill()

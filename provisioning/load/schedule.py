"""When requests are due: arrivals do not wait for answers."""

from __future__ import annotations

import random
from collections.abc import Callable

from provisioning.load.engine import Engine

# epoll waits by whole milliseconds, so that arrivals come in small groups.
# Latency counts from the moment each was due, the wait for its group included.


class Arrivals:
    """Calls `act(due)` at `rate` a second on average, for `seconds`.

    Independent of each other, as people are: the gaps are exponential. With
    `steady` they are all alike.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        rate: float,
        begin: float,
        seconds: float,
        act: Callable[[float], None],
        seed: int = 0,
        steady: bool = False,
    ) -> None:
        self.engine = engine
        self.rate = rate
        self.end = begin + seconds
        self.act = act
        self.steady = steady
        self.offered = 0
        self._chance = random.Random(seed)  # noqa: S311
        self._due = begin
        engine.at(begin, self._arrive)

    def _arrive(self) -> None:
        due = self._due
        if due >= self.end:
            return
        self.offered += 1
        gap = 1.0 if self.steady else self._chance.expovariate(1.0)
        self._due = due + gap / self.rate
        self.engine.at(self._due, self._arrive)
        self.act(due)

"""One process of people: `python -m provisioning.fault_injection.driver ORDERS.json`.

It keeps so many people at work until SIGTERM, then lets them save what waits,
writes that its log is complete, and ends with status 0.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Any

from provisioning.fault_injection.answers import Item, Pages
from provisioning.fault_injection.attempts import AttemptLog
from provisioning.fault_injection.person import Person, Scene
from provisioning.load.engine import Engine
from provisioning.load.engine import clock as engine_clock
from provisioning.load.target import target_of

# Longer than any server takes to come back.
PATIENCE = 60.0
LOOKING = 0.2


class Crowd:
    """So many at once; whoever leaves makes room for the next."""

    def __init__(self, orders: dict[str, Any]) -> None:
        target = target_of(orders["url"])
        self.seats: int = orders["seats"]
        self.people: deque[list[Any]] = deque(orders["people"])
        self.present: set[Person] = set()
        self.log = AttemptLog(Path(orders["log"]))
        self.scene = Scene(
            engine=Engine(target, connections=2 * self.seats),
            log=self.log,
            pages=pages_of(orders["pages"]),
            seed=orders["seed"],
            thinking=self.seats / orders["rate"],
            offset=time.time() - engine_clock(),
        )
        self.deadline = 0.0
        self.is_closing = False

    def run(self) -> bool:
        """Whether everybody got to save what they had."""
        for number in range(self.seats):
            # Not in the same moment: a class takes a while to sit down.
            wait = self.scene.thinking * number / self.seats
            self.scene.engine.later(wait, self._admit_next)
        self._look()
        self.scene.engine.run()
        for exchange in list(self.scene.open):
            self.scene.engine.abandon(exchange)
        self.scene.engine.close()
        if not self.present:
            self.log.complete()
        return not self.present

    def close(self) -> None:
        self.is_closing = True

    def _admit_next(self) -> None:
        if self.is_closing or not self.people:
            return
        respondent, code = self.people.popleft()
        person = Person(self.scene, respondent, code, self._left)
        self.present.add(person)
        person.come()

    def _left(self, person: Person) -> None:
        self.present.discard(person)
        # Who did not finish comes again when everybody else has been here.
        if not person.is_finishing:
            self.people.append([person.respondent, person.code])
        self._admit_next()

    def _look(self) -> None:
        if self.is_closing:
            self.deadline = self.deadline or engine_clock() + PATIENCE
            for person in self.present:
                person.hurry()
            is_quiet = not self.present and not self.scene.open
            if is_quiet or engine_clock() > self.deadline:
                self.scene.engine.stop()
                return
        self.scene.engine.later(LOOKING, self._look)


def pages_of(described: list[dict[str, Any]]) -> Pages:
    return {
        page["n"]: [
            Item(item["id"], item["name"], item["kind"], tuple(item["values"]))
            for item in page["items"]
        ]
        for page in described
    }


def main() -> int:
    crowd = Crowd(json.loads(Path(sys.argv[1]).read_text()))

    def close(number: int, frame: FrameType | None) -> None:
        crowd.close()

    signal.signal(signal.SIGTERM, close)
    # A Ctrl-C is for the command that started this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return 0 if crowd.run() else 1


if __name__ == "__main__":
    sys.exit(main())

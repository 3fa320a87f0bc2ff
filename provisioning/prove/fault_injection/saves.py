"""What is sent, queued and logged of simulated respondents' saves.

Answers follow from seed, respondent, page and revision, so that a log needs no values
and each stored value can be compared with what was sent. Every item is a choice, as in
the survey of a rehearsal. The queue is a browser's, as in static/js/queue.js: one slot
for each page, one save in flight; newer answers of a page replace those that wait.

Each attempt is a line of JSON. It is written when the outcome is known, in one write
that appends, so that a killed process leaves whole lines. A process that ended as
planned says so in a last line; a log without it makes the run void.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from provisioning.measure.load.engine import Engine, Scenario, play
from provisioning.measure.load.respondent import ACKED, Receipt

# Response.State.ANSWERED, which can't be imported without Django's settings.
ANSWERED = "a"

# Item's name -> value.
Answers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a survey: its ID in the database, and its name on the wire."""

    id: int
    name: str
    values: Sequence[str]


Pages = Mapping[int, Sequence[Item]]


@dataclass(frozen=True, slots=True)
class AnswerSource:
    seed: int
    pages: Pages

    @classmethod
    def of(cls, seed: int, described: Mapping[str, Any]) -> AnswerSource:
        """Use the pages that `manage.py open_rehearsal --json` describes."""
        pages = {
            page["n"]: [
                Item(item["id"], item["name"], item["values"]) for item in page["items"]
            ]
            for page in described["pages"]
        }
        return cls(seed, pages)

    def answers(self, respondent: int, page: int, revision: int) -> Answers:
        """Return an answer to every item of the page, as it is sent."""
        items = self.pages[page]
        key = f"{self.seed}:{respondent}:{page}:{revision}"
        drawn = hashlib.shake_128(key.encode()).digest(len(items))
        return {
            item.name: item.values[number % len(item.values)]
            for item, number in zip(items, drawn, strict=True)
        }

    def stored(self, respondent: int, page: int, revision: int) -> dict[int, str]:
        """Return the same by the IDs of the items, as it is stored."""
        answers = self.answers(respondent, page, revision)
        return {item.id: answers[item.name] for item in self.pages[page]}


def fingerprint(answers: Answers) -> str:
    text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(eq=False, slots=True)
class PendingSave:
    page: int
    # Grows with each save of the respondent.
    revision: int
    respondent: int = 0
    # The tab that made it, and the newest revision of the page that it had shown.
    tab: str = ""
    seen: int = 0
    # Fingerprint of the answers.
    answers: str = ""
    body: str = ""
    attempts: int = 0
    was_cut: bool = False


@dataclass(slots=True)
class SaveQueue:
    # Page -> what waits for a receipt.
    waiting: dict[int, PendingSave] = field(default_factory=dict)
    # Until all is saved, also between a failure and the next attempt.
    is_draining: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.waiting and not self.is_draining

    def put(self, save: PendingSave) -> None:
        self.waiting[save.page] = save

    def has(self, save: PendingSave) -> bool:
        return self.waiting.get(save.page) is save

    def remove(self, save: PendingSave) -> None:
        """Remove a save, unless newer answers have replaced it."""
        if self.has(save):
            del self.waiting[save.page]

    def drain(
        self,
        engine: Engine,
        send: Callable[[PendingSave], Generator[bytes | float, Any, bool]],
    ) -> None:
        """Send one save after another, unless that is under way.

        `send` is a scenario that returns whether to go on.
        """

        def scenario() -> Scenario:
            self.is_draining = may_go_on = True
            while may_go_on and self.waiting:
                # The one that was tried least.
                may_go_on = yield from send(
                    min(
                        self.waiting.values(),
                        key=lambda save: (save.attempts, save.revision),
                    )
                )
            self.is_draining = False

        if not self.is_draining:
            play(engine, scenario())


# The page of an attempt to finish.
FINISHING = 0
LAST_LINE = "# complete\n"


@dataclass(frozen=True, slots=True)
class Attempt:
    number: str
    respondent: int
    page: int
    revision: int
    # The tab that sent it, and the newest revision of the page that it had shown.
    tab: str
    seen: int
    # Fingerprint of the answers sent, which follow from the seed.
    answers: str
    sent: float
    answered: float
    # acked, rejected or unknown.
    outcome: str
    # first, retry, double, or late: an older revision sent after a newer one.
    kind: str
    # The status and the error's key, or the failure of the exchange.
    reply: str
    # The revision and the moment that the receipt named; 0 and "" without one.
    receipt: int
    at: str

    @property
    def succeeded(self) -> bool:
        """Return whether the page was saved, or rightly called superseded."""
        return self.outcome == ACKED or self.reply == "409 superseded"

    @property
    def found_stored(self) -> bool:
        """Return whether the receipt is of an earlier sending, to the second."""
        if self.outcome != ACKED or not self.at:
            return False
        return datetime.fromisoformat(self.at).timestamp() + 1 <= self.sent

    @property
    def seconds(self) -> float:
        return self.answered - self.sent

    @classmethod
    def of(
        cls, save: PendingSave, receipt: Receipt, kind: str, times: tuple[float, float]
    ) -> Attempt:
        """Describe a reply, or its absence; `times` are sent and answered."""
        sent, answered = times
        return cls(
            number=f"{save.respondent}-{save.page}-{save.revision}-{save.attempts}",
            respondent=save.respondent,
            page=save.page,
            revision=save.revision,
            tab=save.tab,
            seen=save.seen,
            answers=save.answers,
            sent=round(sent, 6),
            answered=round(answered, 6),
            outcome=receipt.outcome,
            kind=kind,
            reply=receipt.reply,
            receipt=receipt.revision,
            at=receipt.at,
        )

    def line(self) -> str:
        return json.dumps(astuple(self)) + "\n"


class LogReader:
    """Read a log while it grows: whole lines only, each of them once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.completed = False

    def read(self) -> Iterator[Attempt]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            content = file.read()
        end = content.rfind(b"\n") + 1
        self.offset += end
        for line in content[:end].decode().splitlines():
            if line == LAST_LINE.strip():
                self.completed = True
            else:
                yield Attempt(*json.loads(line))

"""Log each attempt to save a page, one line of JSON each.

A line is written when the outcome is known, in one write that appends, so that
a killed process leaves whole lines. A process that ended as planned says so in
a last line; a log without it makes the run void.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path

from provisioning.measure.load.respondent import ACKED, Receipt
from provisioning.prove.fault_injection.saves import PendingSave

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

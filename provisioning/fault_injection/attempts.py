"""Log each attempt to save a page, one line each.

A line is written when the outcome is known, in one write that appends, so that
a killed process leaves whole lines. A process that ended as planned says so in
a last line; a log without it makes the run void.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from provisioning.load.respondent import ACKED

# The page of an attempt to finish.
FINISHING = 0
LAST_LINE = "# complete"
PARSERS: dict[str, Callable[[str], int | float | str]] = {"int": int, "float": float}


@dataclass(frozen=True, slots=True)
class Attempt:
    number: str
    respondent: int
    page: int
    revision: int
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
    # The revision that the receipt named; 0 without a receipt.
    receipt: int
    # The moment that the receipt named.
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

    def line(self) -> str:
        return "\t".join(map(str, astuple(self))) + "\n"

    @classmethod
    def of_line(cls, line: str) -> Attempt:
        parts = zip(fields(cls), line.rstrip("\n").split("\t"), strict=True)
        values: list[Any] = [
            PARSERS.get(str(field.type), str)(text) for field, text in parts
        ]
        return cls(*values)


class AttemptLog:
    """Append to the log of one process."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, attempt: Attempt) -> None:
        self._append(attempt.line())

    def complete(self) -> None:
        self._append(LAST_LINE + "\n")
        os.close(self.file)

    def _append(self, line: str) -> None:
        content = line.encode()
        if os.write(self.file, content) != len(content):
            raise OSError("The attempt log could not be written")


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
            if line == LAST_LINE:
                self.completed = True
            else:
                yield Attempt.of_line(line)

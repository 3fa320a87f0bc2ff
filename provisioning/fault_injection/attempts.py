"""What a driver did: one line for each attempt to save a page.

The line is written when the outcome is known, in one write that appends, so
that a killed driver leaves whole lines. A driver that came to its end says
so in a last line; a log without it makes the run void.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

ACKED = "acked"
REJECTED = "rejected"
UNKNOWN = "unknown"

# An attempt of this page is one to finish, not to save.
FINISHING = 0
LAST_LINE = "# complete"


@dataclass(frozen=True, slots=True)
class Attempt:
    number: str
    respondent: int
    page: int
    revision: int
    # Of the answers as they were sent; the answers follow from the seed.
    answers: str
    sent: float
    answered: float
    outcome: str
    # first, retry, double, or late: an older revision sent after a newer one.
    kind: str
    # The status and the error's key, or what the network did.
    reply: str
    # The revision that the receipt named; 0 without a receipt.
    receipt: int
    # The moment that the receipt named.
    at: str

    converters: ClassVar[dict[str, Any]] = {"int": int, "float": float, "str": str}

    @property
    def succeeded(self) -> bool:
        """Saved, or told rightly that another tab or device was newer."""
        return self.outcome == ACKED or self.reply == "409 superseded"

    @property
    def found_stored(self) -> bool:
        """Its receipt is of an earlier sending (a receipt tells the second)."""
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
        parts = line.rstrip("\n").split("\t")
        types = [cls.converters[str(field.type)] for field in fields(cls)]
        return cls(*(make(part) for make, part in zip(types, parts, strict=True)))


class AttemptLog:
    """Appends to one file, which is one driver's alone."""

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


class Follower:
    """Reads a log while it grows: whole lines only, each of them once."""

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

"""Receive the rows of a binary COPY of PostgreSQL, one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod

# Signature and flags before the first row, and what comes after the last.
HEADER_BYTES = 19
END = b"\xff\xff"


class BinaryRows(ABC):
    """A file to which a binary COPY is written: PostgreSQL sends each row by itself.

    A row is the number of its columns (2 bytes), and of each column the number of
    bytes (4 bytes, -1 for null) and these.
    """

    is_begun = False

    def write(self, data: bytes) -> None:
        if not self.is_begun:
            data, self.is_begun = data[HEADER_BYTES:], True
        if data and data != END:
            self.add(data)

    @abstractmethod
    def add(self, row: bytes) -> None: ...

"""Base of the formats whose columns have a type and a width.

These are known when all cells have been seen. So the cells wait in a file, column by
column for each batch of rows, and are written at the end. Memory stays flat.
"""

from __future__ import annotations

import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Generic, Self, TypeVar, cast

from reports.exports.cells import Cell, Row
from reports.exports.typed.columns import (
    LONGEST_KNOWN,
    MOST_KNOWN,
    Column,
    Contents,
    Described,
)

Encoded = TypeVar("Encoded")
Cells = Sequence[Cell]


class Encoder(dict[Cell, Encoded], Generic[Encoded]):
    """The cells of a column, each distinct one encoded once."""

    def __init__(self, encode: Callable[[Cell], Encoded]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, cell: Cell) -> Encoded:
        encoded = self._encode(cell)
        if len(self) < MOST_KNOWN and (cell is None or len(cell) <= LONGEST_KNOWN):
            self[cell] = encoded
        return encoded


class TypedFile(ABC):
    """A piece is a tuple of cells."""

    def __init__(
        self, path: Path, columns: Sequence[Described], *, title: str, scratch: Path
    ) -> None:
        self.path = path
        self.title = title
        self.described = columns
        self.rows = 0
        # Set when the file is complete.
        self.columns: Sequence[Column] = ()
        self._contents = [
            Contents(frozenset(map(str, column.missing))) for column in columns
        ]
        self._spool = (scratch / "cells").open("w+b")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._spool.close()

    def piece(self, cells: Sequence[Cell]) -> Cells:
        return tuple(cells)

    def write(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        pieces = cast("Sequence[Sequence[Cells]]", rows)
        columns = list(zip(*map(chain.from_iterable, pieces), strict=True))
        for contents, cells in zip(self._contents, columns, strict=True):
            contents.add(cells)
        # A cell that many rows share is stored once.
        pickle.dump(columns, self._spool, protocol=pickle.HIGHEST_PROTOCOL)
        self.rows += len(rows)

    def close(self) -> None:
        """Write the file, and wait until it is on the disk."""
        names = self.names([column.header for column in self.described])
        self.columns = [
            Column(name, about, contents.storage(about.storage), contents)
            for name, about, contents in zip(
                names, self.described, self._contents, strict=True
            )
        ]
        with self.path.open("wb") as file:
            self.write_file(file)
            file.flush()
            os.fsync(file.fileno())
        Path(self._spool.name).unlink()

    def batches(self) -> Iterator[tuple[int, Sequence[Cells]]]:
        """Return a number of rows, and their cells by column, again and again."""
        self._spool.seek(0)
        rows = 0
        while rows < self.rows:
            # This process wrote it, in a folder of its own.
            columns = pickle.load(self._spool)  # noqa: S301
            yield len(columns[0]), columns
            rows += len(columns[0])

    @abstractmethod
    def names(self, headers: Sequence[str]) -> Sequence[str]:
        """Return the names of the columns."""

    @abstractmethod
    def write_file(self, file: IO[bytes]) -> None:
        """Write everything; `columns` and `rows` are known by now."""

"""Read one CSV file of a OneRoster ZIP as rows of the columns that are kept."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from difflib import get_close_matches
from operator import itemgetter
from typing import IO

from django.utils.translation import gettext as _

from survey.people.rosters.columns import clean_header, squeeze
from survey.people.rosters.oneroster.schema import ALIASES, Collection, OneRosterInvalid
from survey.people.rosters.roster_sheets import MOST_COLUMNS
from survey.people.rosters.text_reader import (
    DELIMITERS,
    DOUBLE_QUOTES,
    MOST_ROWS,
    check_windows_1252,
    hides_rows,
    reason_of_csv_error,
)
from survey.people.rosters.unreadable import RosterUnreadable

Opener = Callable[[], AbstractContextManager[IO[bytes]]]


@dataclass
class Header:
    """Where the kept columns of a file are, and what was not understood."""

    # Kept column -> index of the cell.
    indexes: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    width: int = 0


def map_header(collection: Collection, cells: Sequence[str]) -> Header:
    """Find the kept columns in any order, case and usual misspelling."""
    header = Header(width=len(cells))
    known = {squeeze(name): name for name in (*collection.columns, *collection.unused)}
    aliases = {
        alias: name for alias, name in ALIASES.items() if name in collection.columns
    }
    texts = [clean_header(cell) for cell in cells]
    exact = {known.get(squeeze(text)) for text in texts}
    used: set[str] = set()
    for index, text in enumerate(texts):
        squeezed = squeeze(text)
        name, reason = known.get(squeezed), ""
        if not squeezed:
            continue
        if "password" in squeezed:
            reason = _("passwords are never kept")
        elif text.casefold().startswith(("ext:", "ext_", "metadata.")):
            reason = _("a vendor's own column")
        elif name is None:
            name = aliases.get(squeezed) or _similar(squeezed, known)
            if name is None:
                reason = _("it is no column of OneRoster")
            elif name in exact or name in used:
                reason = _("another column is %(name)s") % {"name": name}
            else:
                header.notes.append(
                    _("column '%(text)s' was read as %(name)s")
                    % {"text": text, "name": name}
                )
        elif name in used:
            reason = _("another column is %(name)s") % {"name": name}
        if reason:
            header.notes.append(
                _("column '%(text)s' was ignored: %(reason)s")
                % {"text": text, "reason": reason}
            )
        elif name is not None:
            used.add(name)
            if name in collection.columns:
                header.indexes[name] = index
    return header


def _similar(squeezed: str, known: dict[str, str]) -> str | None:
    if len(squeezed) < 5:
        return None
    matches = get_close_matches(squeezed, known, n=1, cutoff=0.87)
    return known[matches[0]] if matches else None


class CsvFile:
    """A CSV file whose header was read and understood."""

    def __init__(self, collection: Collection, opener: Opener) -> None:
        self.collection = collection
        self._opener = opener
        self._encoding = ""
        with opener() as file:
            start = file.peek(4096)[:4096]  # type: ignore[attr-defined]
            self._encoding, self._delimiter = "utf-8-sig", ","
            if start.startswith((b"\xff\xfe", b"\xfe\xff")):
                self._encoding = "utf-16"
            elif b"\x00" in start:
                raise OneRosterInvalid(
                    _(
                        "%(file_name)s, line 1: contains NUL characters, so it is"
                        " no text, or UTF-16 without its mark. Save it as UTF-8."
                    )
                    % {"file_name": collection.file_name}
                )
        self.header = self._find_header()
        self.notes = self.header.notes
        if self._encoding == "utf-16":
            self.notes.append(_("the file is UTF-16 instead of UTF-8"))
        if self._delimiter != ",":
            name = _(DELIMITERS[self._delimiter])
            self.notes.append(
                _("the cells are separated by %(name)s instead of commas")
                % {"name": name}
            )
        self.rows_read = 0

    def _find_header(self) -> Header:
        """Read the header with the delimiter under which it has most columns."""
        best, first = Header(), ""
        with self._opener() as file:
            text = io.TextIOWrapper(file, self._encoding, "replace", newline="")
            first = text.readline()
        for delimiter in DELIMITERS:
            try:
                cells = next(csv.reader([first], delimiter=delimiter), [])
            except csv.Error:
                continue
            header = map_header(self.collection, cells)
            if len(header.indexes) > len(best.indexes):
                best, self._delimiter = header, delimiter
        name = self.collection.file_name
        if best.width > MOST_COLUMNS:
            raise OneRosterInvalid(
                _("%(name)s has more than %(most_columns)s columns.")
                % {"name": name, "most_columns": MOST_COLUMNS}
            )
        missing = [c for c in self.collection.required if c not in best.indexes]
        if missing:
            shown = " ".join(first[:300].split())
            raise OneRosterInvalid(
                _("%(name)s, line 1: no column %(missing)s. The line is: %(line)s")
                % {
                    "name": name,
                    "missing": ", ".join(missing),
                    "line": shown or _("empty"),
                }
            )
        return best

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the cells of the kept columns; blank where the file has none."""
        name, width = self.collection.file_name, self.header.width
        # One more blank cell stands for every column that the file lacks.
        pick = itemgetter(
            *(self.header.indexes.get(c, width) for c in self.collection.columns)
        )
        key = self.header.indexes["sourcedId"]
        self.rows_read = allowed = 0
        for line, cells in self._cells():
            if len(cells) != width:
                if not any(map(str.strip, cells)):
                    continue
                surplus = len(cells) - width
                # A comma that is not quoted moves all later cells by one, also where
                # only a blank one falls off the end. Commas at the end of every row
                # do no harm.
                allowed = surplus if not self.rows_read else allowed
                if surplus > 0 and (
                    surplus != allowed or any(map(str.strip, cells[width:]))
                ):
                    raise OneRosterInvalid(
                        _(
                            "%(name)s, line %(line)s: more cells than the header"
                            " has. Is a comma not quoted?"
                        )
                        % {"name": name, "line": line()}
                    )
                cells = [*cells, *[""] * width][:width]
            cells.append("")
            if not cells[key].strip():
                if not any(map(str.strip, cells)):
                    continue
                raise OneRosterInvalid(
                    _("%(name)s, line %(line)s, column sourcedId: is missing.")
                    % {"name": name, "line": line()}
                )
            self.rows_read += 1
            yield tuple(map(str.strip, pick(cells)))
        if self.rows_read > MOST_ROWS:
            raise OneRosterInvalid(
                _("%(name)s has more than %(most_rows)s rows.")
                % {"name": name, "most_rows": f"{MOST_ROWS:,}"}
            )

    def _cells(self) -> Iterator[tuple[Callable[[], int], list[str]]]:
        """Yield the cells after the header, with a function for the line's number."""
        name = self.collection.file_name
        with self._opener() as file:
            text = io.TextIOWrapper(file, self._encoding, newline="")
            reader = csv.reader(text, delimiter=self._delimiter, strict=True)

            before = 0

            def line() -> int:
                return reader.line_num

            def is_long() -> bool:
                return reader.line_num > before + 1

            try:
                next(reader, None)
                before = reader.line_num
                for cells in reader:
                    if is_long() and hides_rows(
                        cells, self._delimiter, self.header.width
                    ):
                        raise csv.Error
                    before = reader.line_num
                    yield line, cells
            except csv.Error as error:
                raise OneRosterInvalid(
                    _("%(name)s, line %(line)s: %(reason)s %(advice)s")
                    % {
                        "name": name,
                        "line": before + 1,
                        "reason": _(reason_of_csv_error(error, is_long=is_long())),
                        "advice": _(DOUBLE_QUOTES),
                    }
                ) from error

    def decode_as_windows_1252(self) -> None:
        """Read again as what Excel writes without 'CSV UTF-8'.

        Raises OneRosterInvalid if only a part of the file is.
        """
        try:
            with self._opener() as file:
                check_windows_1252(file)
        except RosterUnreadable as error:
            raise OneRosterInvalid(f"{self.collection.file_name}: {error}") from error
        self._encoding = "cp1252"
        self.notes.append(_("the file is Windows-1252 instead of UTF-8"))

    @property
    def is_utf_8(self) -> bool:
        return self._encoding == "utf-8-sig"

    def line_of(self, column: str, value: str, occurrence: int = 1) -> int:
        """Return the line of a value that was found to be wrong."""
        index = self.header.indexes.get(column)
        if index is None:
            return 1
        for line, cells in self._cells():
            if index < len(cells) and cells[index].strip() == value:
                occurrence -= 1
                if not occurrence:
                    return line()
        return 1

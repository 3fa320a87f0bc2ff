"""Describe an opened roster file: its columns, its rows, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from survey.instrument.spreadsheets.xlsx_rows import SheetRow
from survey.people.rosters.columns import RosterColumns
from survey.people.rosters.layouts import KnownPlace, RosterLayout


@dataclass
class RosterTable:
    columns: RosterColumns
    # Starts at the first row again each time. In OneRoster the column of IDs decides
    # who is one person, so there the rows depend on the layout.
    read: Callable[[RosterLayout], Iterator[SheetRow]]
    # Such as "UTF-8, separated by semicolons"; for the report.
    description: str
    # How the file is read, and what the place that it was uploaded for answers.
    layout: RosterLayout = field(default_factory=RosterLayout)
    known: KnownPlace = field(default_factory=KnownPlace)
    # The file lists changes only: nobody is missing from it.
    is_partial: bool = False
    # What was ignored or read differently; without names of people.
    notes: Sequence[str] = ()
    # What to know of the rows of a workbook, once they were read.
    remarks: Sequence[str] = ()
    # What its IDs are, where their header is not that of the source.
    id_name: str = ""

    @property
    def rows(self) -> Iterator[SheetRow]:
        """Read the rows after the header, one reading at a time.

        The number is the one that a spreadsheet shows next to the row. Blank
        rows are left out; cells are as many as the file has, at least the
        header's.
        """
        return self.read(self.layout)

"""Parse one row of a roster into a person, or into the reasons to reject it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import partial
from typing import NamedTuple

from accounts.csv_injection import unescape_formula
from survey.models import Role
from survey.rosters import field_parsers
from survey.rosters.columns import RosterColumns
from survey.rosters.field_parsers import InvalidCell
from survey.rosters.file_reader import NearlyUniqueSubgroup, TooLarge
from survey.rosters.layouts import KnownPlace

# More than any state has. A column of names read as schools has more.
MOST_SCHOOLS = 20_000
MOST_NOTES = 200
# A subgroup with so many values, most of them of one person, identifies people.
MANY_VALUES = 10


class RosterPerson(NamedTuple):
    """A parsed row, in the columns of the temporary table `roster_row`.

    Dates are ISO or blank.
    """

    row: int
    # Index into `RowParser.places`.
    place: int
    district: str
    external_id: str
    grade: str
    classroom: str
    language: str
    given_name: str
    family_name: str
    email: str
    birth_date: str
    # 3/4/2015 with the day first. Which reading is right is only known when
    # all rows were read.
    birth_date_day_first: str
    # JSON with sorted keys, in the spelling of Django's JSONField.
    attributes: str


class CellRejection(NamedTuple):
    row: int
    column: str
    reason: str
    text: str


class RejectedRow(NamedTuple):
    """The reasons, and the person as far as these two cells were readable."""

    rejections: list[CellRejection]
    district: str = ""
    external_id: str = ""


class RosterPlace(NamedTuple):
    """A district and school as the file writes them."""

    district: str
    district_name: str
    school: str
    school_name: str


class RowParser:
    """Parse rows, and collect the file's schools and notes about blanked cells."""

    def __init__(
        self,
        columns: RosterColumns,
        *,
        role: str,
        languages: Mapping[str, str],
        subgroups: Mapping[str, Sequence[str]],
        today: date,
        known: KnownPlace,
    ) -> None:
        """Parse for one role, with the survey's languages (code -> name).

        `subgroups` are the declared columns and their values. `known` is the place
        of all people in a file without a column for it.
        """
        self.columns = columns
        self._known_place = {
            name: text if name.endswith("_name") else text.casefold()
            for name, text in asdict(known).items()
            if text and name.removesuffix("_name") not in columns.fields
        }
        self.role = role
        self.today = today
        self.places: list[RosterPlace] = []
        # Note -> number of cells that were left blank.
        self.notes: Counter[str] = Counter()
        self._languages = field_parsers.language_names(languages)
        self._place_index: dict[tuple[str | None, ...], int] = {}
        text = field_parsers.parse_text
        parsers: dict[str, Callable[[str], str]] = {
            "district": field_parsers.parse_place_code,
            "district_name": text,
            "school": field_parsers.parse_place_code,
            "school_name": text,
            "role": partial(field_parsers.parse_role, expected=role),
            "external_id": field_parsers.parse_external_id,
            "grade": self._parse_grade,
            "classroom": field_parsers.parse_classroom,
            "language": self._parse_language,
            "given_name": text,
            "family_name": text,
            "name": text,
            "email": field_parsers.parse_email,
        }
        self._parsers = [
            (name, columns.fields[name], parser)
            for name, parser in parsers.items()
            if name in columns.fields
        ]
        self._birth_date_index = columns.fields.get("birth_date")
        # Number of people by value of each subgroup.
        self.subgroup_counts: dict[str, Counter[str]] = {
            name: Counter() for name in columns.attributes
        }
        self._subgroups = [
            (name, index, {value.casefold(): value for value in subgroups[name]})
            for name, index in sorted(columns.attributes.items())
        ]
        self._is_correction = columns.is_correction

    def parse(self, row: int, cells: list[str]) -> RosterPerson | RejectedRow:
        header = self.columns.header
        rejections: list[CellRejection] = []

        def reject(column: str, reason: str, cell: str) -> None:
            cell = cell[: field_parsers.LONGEST_TEXT]
            rejections.append(CellRejection(row, column, reason, cell))

        surplus = cells[len(header) :]
        if any(map(str.strip, surplus)):
            # All cells after the surplus comma are in the wrong column.
            reason = "the row has more cells than the header: is a comma not quoted?"
            reject("", reason, " | ".join(surplus))
            return RejectedRow(rejections)
        if self._is_correction:
            cells = [unescape_formula(cell) for cell in cells]

        values = dict(self._known_place)
        for name, index, parser in self._parsers:
            try:
                values[name] = parser(cells[index])
            except InvalidCell as error:
                reject(header[index], str(error), cells[index])
        birth_dates = "", ""
        if (birth := self._birth_date_index) is not None:
            try:
                birth_dates = field_parsers.parse_birth_date(cells[birth], self.today)
            except InvalidCell as error:
                reject(header[birth], str(error), cells[birth])
        attributes: dict[str, str] = {}
        for name, index, declared in self._subgroups:
            value = declared.get(" ".join(cells[index].split()).casefold())
            if value is not None:
                attributes[name] = value
                self.subgroup_counts[name][value] += 1
            elif cells[index].strip():
                # Without the value: notes are kept longer than the file.
                note = f"{header[index]} has a value that is not declared: left blank"
                self.notes[note] += 1

        get = values.get
        if rejections:
            return RejectedRow(rejections, get("district", ""), get("external_id", ""))
        if "name" in values:
            given_name, family_name = field_parsers.split_name(values["name"])
        else:
            given_name, family_name = get("given_name", ""), get("family_name", "")
        return RosterPerson(
            row,
            self._index_of_place(values, cells),
            values["district"],
            values["external_id"],
            get("grade", ""),
            get("classroom", ""),
            get("language", ""),
            given_name,
            family_name,
            get("email", ""),
            *birth_dates,
            json.dumps(attributes) if attributes else "{}",
        )

    def refuse_nearly_unique_subgroups(self) -> None:
        for name, counts in self.subgroup_counts.items():
            if len(counts) >= MANY_VALUES and 2 * len(counts) > counts.total():
                raise NearlyUniqueSubgroup(
                    f"'{self.columns.heading(name)}' is a subgroup, but most values in"
                    " it belong to one person, so it would show who gave which answers."
                    " Delete the column, or declare fewer values in the administration."
                )

    def _index_of_place(self, values: dict[str, str], cells: list[str]) -> int:
        # Two names of one code are two places, until they are looked up.
        key = (
            values["district"],
            values.get("district_name"),
            values["school"],
            values.get("school_name"),
        )
        index = self._place_index.get(key)
        if index is None:
            index = self._place_index[key] = len(self.places)
            self.places.append(
                RosterPlace(
                    district=values["district"],
                    district_name=values.get("district_name")
                    or self._text(cells, "district"),
                    school=values["school"],
                    school_name=values.get("school_name")
                    or self._text(cells, "school"),
                )
            )
            if len(self.places) > MOST_SCHOOLS:
                raise TooLarge(
                    f"The file names more than {MOST_SCHOOLS:,} schools."
                    f" Check whether '{self.columns.heading('school')}' is the school."
                )
        return index

    def _text(self, cells: list[str], name: str) -> str:
        index = self.columns.fields.get(name)
        return "" if index is None else field_parsers.parse_text(cells[index])

    def _parse_grade(self, cell: str) -> str:
        try:
            return field_parsers.parse_grade(cell)
        except InvalidCell:
            # Only students have a grade; "K-5" in a teacher's row is no reason
            # to reject the teacher.
            if self.role == Role.STUDENT:
                raise
            self._note_blanked("grade", cell, "is not a single grade")
            return ""

    def _parse_language(self, cell: str) -> str:
        language = field_parsers.parse_language(cell, self._languages)
        if language is None:
            self._note_blanked("language", cell, "is not a language of this survey")
        return language or ""

    def _note_blanked(self, name: str, cell: str, reason: str) -> None:
        shown = " ".join(cell.split())[:40]
        note = f"{self.columns.heading(name)} '{shown}' {reason}: left blank"
        if note not in self.notes and len(self.notes) >= MOST_NOTES:
            note = "More cells were left blank"
        self.notes[note] += 1

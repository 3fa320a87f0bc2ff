"""One row of a roster as one person, or the reasons why not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from typing import NamedTuple

from accounts.csv_injection import unescape_formula
from survey.models import Role
from survey.rosters import field_parsers as read
from survey.rosters.columns import Columns
from survey.rosters.field_parsers import Unreadable
from survey.rosters.file_reader import TooLarge

# More than any state has; a column of names in the place of schools has more.
MOST_SCHOOLS = 20_000
MOST_NOTES = 200
# As JSON: rows wait in memory by the thousand.
LONGEST_ATTRIBUTES = 4_000


class Person(NamedTuple):
    """As it is staged in the database; dates are ISO or blank."""

    row: int
    # Index into `PersonReader.places`.
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
    # 3/4/2015 read the other way round. Which of the two holds is known when
    # all rows were seen.
    birth_date_day_first: str
    # JSON with sorted keys, in the spelling of Django's JSONField.
    attributes: str


class Rejection(NamedTuple):
    row: int
    column: str
    reason: str
    text: str


class Refused(NamedTuple):
    """A row that cannot be taken, and whose it is where that can be read."""

    rejections: list[Rejection]
    district: str = ""
    external_id: str = ""


class Place(NamedTuple):
    """A school, as the roster names it."""

    district: str
    district_name: str
    school: str
    school_name: str


class PersonReader:
    """Reads row after row, and collects schools and notes on the way."""

    def __init__(
        self, columns: Columns, *, role: str, languages: Mapping[str, str], today: date
    ) -> None:
        """`languages` are the survey's: code -> name."""
        self.columns = columns
        self.role = role
        self.today = today
        self.places: list[Place] = []
        # What was left blank -> how often.
        self.notes: Counter[str] = Counter()
        self._languages = read.language_names(languages)
        self._place_index: dict[tuple[str, str], int] = {}
        self._readers = [
            (name, columns.fields[name], reader)
            for name, reader in self._known_readers().items()
            if name in columns.fields
        ]
        self._attributes = sorted(columns.attributes.items())
        self._is_correction = columns.is_correction

    def _known_readers(self) -> dict[str, Callable[[str], str]]:
        return {
            "district": read.code_of_place,
            "district_name": read.text_of,
            "school": read.code_of_place,
            "school_name": read.text_of,
            "role": lambda cell: read.role_of(cell, self.role),
            "external_id": read.external_id_of,
            "grade": self._grade,
            "classroom": read.classroom_of,
            "language": self._language,
            "given_name": read.text_of,
            "family_name": read.text_of,
            "name": read.text_of,
            "email": read.email_of,
        }

    def read(self, row: int, cells: list[str]) -> Person | Refused:
        width = len(self.columns.header)
        if len(cells) > width and any(map(str.strip, cells[width:])):
            # Everything after the surplus comma stands in the wrong column.
            reason = "the row has more cells than the header: is a comma not quoted?"
            surplus = _rejection(row, "", reason, " | ".join(cells[width:]))
            return Refused([surplus])
        if self._is_correction:
            cells = [unescape_formula(cell) for cell in cells]
        rejections: list[Rejection] = []
        values: dict[str, str] = {}
        for name, index, reader in self._readers:
            try:
                values[name] = reader(cells[index])
            except Unreadable as error:
                column = self.columns.header[index]
                rejections.append(_rejection(row, column, str(error), cells[index]))
        dates = self._birth_dates(row, cells, rejections)
        attributes = self._read_attributes(row, cells, rejections)
        if rejections:
            district = values.get("district", "")
            return Refused(rejections, district, values.get("external_id", ""))
        return self._person(row, values, dates, attributes, cells)

    def _birth_dates(
        self, row: int, cells: list[str], rejections: list[Rejection]
    ) -> tuple[str, str]:
        index = self.columns.fields.get("birth_date")
        if index is None:
            return "", ""
        try:
            return read.birth_dates_of(cells[index], self.today)
        except Unreadable as error:
            column = self.columns.header[index]
            rejections.append(_rejection(row, column, str(error), cells[index]))
            return "", ""

    def _read_attributes(
        self, row: int, cells: list[str], rejections: list[Rejection]
    ) -> str:
        attributes = {}
        for name, index in self._attributes:
            try:
                value = read.text_of(cells[index])
            except Unreadable as error:
                rejections.append(_rejection(row, name, str(error), cells[index]))
                continue
            if value:
                attributes[name] = value
        text = json.dumps(attributes) if attributes else "{}"
        if len(text) > LONGEST_ATTRIBUTES:
            reason = (
                "the row's further columns come to more than"
                f" {LONGEST_ATTRIBUTES:,} characters"
            )
            rejections.append(_rejection(row, "", reason, ""))
        return text

    def _person(
        self,
        row: int,
        values: dict[str, str],
        dates: tuple[str, str],
        attributes: str,
        cells: list[str],
    ) -> Person:
        if "name" in values:
            values["given_name"], values["family_name"] = read.split_name(
                values["name"]
            )
        get = values.get
        return Person(
            row,
            self._place(values, cells),
            values["district"],
            values["external_id"],
            get("grade", ""),
            get("classroom", ""),
            get("language", ""),
            get("given_name", ""),
            get("family_name", ""),
            get("email", ""),
            *dates,
            attributes,
        )

    def _place(self, values: dict[str, str], cells: list[str]) -> int:
        key = values["district"], values["school"]
        index = self._place_index.get(key)
        if index is None:
            index = self._place_index[key] = len(self.places)
            self.places.append(
                Place(
                    district=key[0],
                    district_name=values.get("district_name")
                    or read.text_of(cells[self.columns.fields["district"]]),
                    school=key[1],
                    school_name=values.get("school_name")
                    or read.text_of(cells[self.columns.fields["school"]]),
                )
            )
            if len(self.places) > MOST_SCHOOLS:
                raise TooLarge(
                    f"The file names more than {MOST_SCHOOLS:,} schools."
                    f" Is '{self.columns.heading('school')}' the school?"
                )
        return index

    def _grade(self, cell: str) -> str:
        try:
            return read.grade_of(cell)
        except Unreadable:
            # Only students have one; a teacher's K-5 is no reason to leave
            # the teacher out.
            if self.role == Role.STUDENT:
                raise
            self._note("grade", cell, "is no single grade")
            return ""

    def _language(self, cell: str) -> str:
        language = read.language_of(cell, self._languages)
        if language is None:
            self._note("language", cell, "is not one of the survey's")
        return language or ""

    def _note(self, name: str, cell: str, reason: str) -> None:
        shown = " ".join(cell.split())[:40]
        note = f"{self.columns.heading(name)} '{shown}' {reason}: left blank"
        if note not in self.notes and len(self.notes) >= MOST_NOTES:
            note = "Further cells were left blank"
        self.notes[note] += 1


def _rejection(row: int, column: str, reason: str, cell: str) -> Rejection:
    return Rejection(row, column, reason, cell[: read.LONGEST_TEXT])

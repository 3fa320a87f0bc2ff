"""Parse one row of a roster into a person, or into the reasons to reject it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import partial
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.csv_injection import unescape_formula
from survey.models import Role
from survey.people.rosters import date_parsers, field_parsers
from survey.people.rosters.blank_districts import DistrictNotFound, DistrictsOfSchools
from survey.people.rosters.column_samples import RepeatableHeader
from survey.people.rosters.columns import RosterColumns
from survey.people.rosters.field_parsers import InvalidCell, MissingCell, value_key
from survey.people.rosters.layouts import KnownPlace, RosterLayout
from survey.people.rosters.presets import all_presets
from survey.people.rosters.unreadable import RosterUnreadable, TooLarge

# More than any state has. A column of names read as schools has more.
MOST_SCHOOLS = 20_000
MOST_NOTES = 200
# A subgroup with so many values, most of them of one person, identifies people.
MANY_VALUES = 10


_IDENTIFYING_FIELDS = frozenset(
    {"district", "district_name", "school", "school_name", "external_id"}
)


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
    # The ID under which earlier rosters list the person, or blank.
    previous_id: str


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
    previous_id: str = ""


class LeftPerson(NamedTuple):
    """A person who has left, in the columns of the temporary table `roster_left`."""

    row: int
    place: int
    district: str
    external_id: str


class UninvitedPerson(NamedTuple):
    """A person who comes later: not invited yet, and not withdrawn."""

    district: str
    external_id: str


class OtherRole(NamedTuple):
    """A row of another role than the administration's."""

    role: str


class RepeatedHeader(NamedTuple):
    """The header once more, as at the top of each page of a report."""

    row: int


ParsedRow = (
    RosterPerson
    | RejectedRow
    | LeftPerson
    | UninvitedPerson
    | OtherRole
    | RepeatedHeader
)


# Notes what is wrong with a cell: its column, the reason, and its text.
Reject = Callable[[str, str, str], None]

LINE_OF_TEXT = gettext_noop(
    "is a line of text, not a person: the other cells are blank"
)
HEADER_REPEATED = gettext_noop("Row that repeats the header: left out")
NO_NAME = gettext_noop("%(heading)s without a letter or digit: left blank")


NOT_ONE_GRADE = gettext_noop(
    "%(heading)s '%(value)s' is not a single grade: left blank"
)
NOT_A_LANGUAGE = gettext_noop(
    "%(heading)s '%(value)s' is not a language of this survey: left blank"
)


class RosterPlace(NamedTuple):
    """A district and school as the file writes them."""

    district: str
    district_name: str
    school: str
    school_name: str


def _parse_place_name(cell: str) -> str:
    text = field_parsers.parse_text(cell)
    return text if field_parsers.has_letter_or_digit(text) else ""


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
        layout: RosterLayout,
        districts: DistrictsOfSchools,
    ) -> None:
        """Parse for one role, with the survey's languages (code -> name).

        `subgroups` are the declared columns and their values. `known` is the place
        of all people in a file without a column for it, and `districts` tell that of
        a row without it.
        """
        self._districts = districts
        preset = all_presets().get(layout.preset)
        self._values = layout.values
        self._lists = preset.lists if preset else ()
        self._day_first = layout.day_first
        if self._day_first is None and preset and preset.month_first:
            self._day_first = False
        self.columns = columns
        self._known_place = {
            name: text if name.endswith("_name") else text.casefold()
            for name, text in asdict(known).items()
            if text and name.removesuffix("_name") not in columns.fields
        }
        self._has_no_district = not {*columns.fields, *self._known_place} & {"district"}
        self.role = role
        self.today = today
        self.places: list[RosterPlace] = []
        # Note -> number of cells that were left blank.
        self.notes: Counter[str] = Counter()
        self._languages = field_parsers.language_names(languages)
        self._place_index: dict[tuple[str | None, ...], int] = {}
        self._parsers = [
            (name, columns.fields[name], parser)
            for name, parser in self._field_parsers().items()
            if name in columns.fields
        ]
        self._birth_date_index = columns.fields.get("birth_date")
        # What is read of people who are not invited.
        self._place_parsers = [
            entry for entry in self._parsers if entry[0] in _IDENTIFYING_FIELDS
        ]
        # Number of people by value of each subgroup.
        self.subgroup_counts: dict[str, Counter[str]] = {
            name: Counter() for name in columns.attributes
        }
        self._subgroups = [
            (name, index, {value_key(value): value for value in subgroups[name]})
            for name, index in sorted(columns.attributes.items())
        ]
        self._header = RepeatableHeader(columns.header)

    def _field_parsers(self) -> dict[str, Callable[[str], str]]:
        return {
            "district": field_parsers.parse_place_code,
            "district_name": _parse_place_name,
            "school": field_parsers.parse_place_code,
            "school_name": _parse_place_name,
            "external_id": field_parsers.parse_external_id,
            "previous_id": field_parsers.parse_previous_id,
            "grade": self._parse_grade,
            "classroom": field_parsers.parse_classroom,
            "language": self._parse_language,
            "given_name": partial(self._parse_name, "given_name"),
            "family_name": partial(self._parse_name, "family_name"),
            "name": partial(self._parse_name, "name"),
            "email": field_parsers.parse_email,
        }

    def parse(self, row: int, cells: list[str]) -> ParsedRow:
        header = self.columns.header
        rejections: list[CellRejection] = []

        def reject(column: str, reason: str, cell: str) -> None:
            cell = cell[: field_parsers.LONGEST_TEXT]
            rejections.append(CellRejection(row, column, reason, cell))

        surplus = cells[len(header) :]
        if any(map(str.strip, surplus)):
            # All cells after the surplus comma are in the wrong column.
            reason = _("the row has more cells than the header: is a comma not quoted?")
            reject("", reason, " | ".join(surplus))
            return RejectedRow(rejections)
        if self._header.is_repeated(cells):
            self.notes[_(HEADER_REPEATED)] += 1
            return RepeatedHeader(row)
        # Files that this product has written: rosters and rejected rows.
        cells = [unescape_formula(cell) if "'" in cell else cell for cell in cells]

        status = field_parsers.ACTIVE
        try:
            role = self._parse_own("role", cells, field_parsers.parse_role)
            if role and role != self.role:
                return OtherRole(role)
            status = self._status_of(cells)
        except InvalidCell as error:
            name, reason = error.args
            index = self.columns.fields[name]
            reject(header[index], reason, cells[index])
        is_active = status == field_parsers.ACTIVE

        values = self._parse_fields(cells, reject, is_active=is_active)
        external_id = values.get("external_id", "")
        is_alone = " " in external_id and sum(map(bool, map(str.strip, cells))) == 1
        if is_alone and len(header) > 1:
            reject(self.columns.heading("external_id"), _(LINE_OF_TEXT), external_id)
        if not is_active and not rejections:
            district, external_id = values["district"], values["external_id"]
            if status == field_parsers.LATER:
                return UninvitedPerson(district, external_id)
            place = self._index_of_place(values, cells)
            return LeftPerson(row, place, district, external_id)
        birth_dates = "", ""
        if (birth := self._birth_date_index) is not None:
            try:
                birth_dates = date_parsers.parse_birth_date(cells[birth], self.today)
            except InvalidCell as error:
                reject(header[birth], str(error), cells[birth])
        attributes = self._parse_subgroups(cells)

        if rejections:
            names = ("district", "external_id", "previous_id")
            ids = (values.get(name, "") for name in names)
            return RejectedRow(rejections, *ids)
        return self._person(row, cells, values, birth_dates, attributes)

    def _parse_fields(
        self, cells: list[str], reject: Reject, *, is_active: bool
    ) -> dict[str, str]:
        """Return what is readable of the columns; people who left need only a place."""
        values = dict(self._known_place)
        blank_district: MissingCell | None = None
        if self._has_no_district:
            blank_district = MissingCell(_("is missing"))
        for name, index, parser in self._parsers if is_active else self._place_parsers:
            cell = cells[index]
            if name in self._lists:
                cell = cell.partition(",")[0]
            if name in self._values:
                cell = self._values[name].get(value_key(cell), cell)
            try:
                values[name] = parser(cell)
            except InvalidCell as error:
                if name == "district" and isinstance(error, MissingCell):
                    blank_district = error
                else:
                    reject(self.columns.header[index], str(error), cells[index])
        if blank_district is not None:
            try:
                values |= self._district_of_school(values, blank_district)
            except InvalidCell as error:
                reject(self.columns.heading("district"), str(error), "")
        return values

    def _person(
        self,
        row: int,
        cells: list[str],
        values: dict[str, str],
        birth_dates: tuple[str, str],
        attributes: dict[str, str],
    ) -> RosterPerson:
        get = values.get
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
            get("previous_id", ""),
        )

    def _district_of_school(
        self, values: Mapping[str, str], blank: MissingCell
    ) -> dict[str, str]:
        """Return the district that the school tells. Raises InvalidCell."""
        if "school" not in values or values.get("district_name"):
            raise blank
        name = values.get("school_name") or values["school"]
        try:
            code, district_name = self._districts.find(values["school"], name)
        except DistrictNotFound as error:
            raise InvalidCell(str(error)) from error
        return {"district": code.casefold(), "district_name": district_name}

    def _parse_subgroups(self, cells: list[str]) -> dict[str, str]:
        attributes: dict[str, str] = {}
        for name, index, declared in self._subgroups:
            value = declared.get(value_key(cells[index]))
            if value is not None:
                attributes[name] = value
                self.subgroup_counts[name][value] += 1
            elif cells[index].strip():
                # Without the value: notes are kept longer than the file.
                header = self.columns.header[index]
                note = _("%(header)s has a value that is not declared: left blank")
                self.notes[note % {"header": header}] += 1
        return attributes

    def _parse_own(
        self, name: str, cells: list[str], parse: Callable[[str], str]
    ) -> str:
        """Parse a cell by the layout's own values first; blank without the column.

        Raises InvalidCell with the field and the reason.
        """
        index = self.columns.fields.get(name)
        if index is None:
            return ""
        ours = self._values.get(name, {}).get(value_key(cells[index]))
        try:
            return parse(ours or cells[index])
        except InvalidCell as error:
            raise InvalidCell(name, str(error)) from error

    def _status_of(self, cells: list[str]) -> str:
        """Return the status, which an exit date that has passed overrules."""
        status = self._parse_own("status", cells, field_parsers.parse_status)
        index = self.columns.fields.get("exit_date")
        if index is None or status == field_parsers.LATER:
            return status or field_parsers.ACTIVE
        try:
            has_left = date_parsers.parse_exit_date(
                cells[index], self.today, day_first=self._day_first
            )
        except InvalidCell as error:
            raise InvalidCell("exit_date", str(error)) from error
        return field_parsers.LEFT if has_left else status or field_parsers.ACTIVE

    def refuse_nearly_unique_subgroups(self) -> None:
        for name, counts in self.subgroup_counts.items():
            if len(counts) >= MANY_VALUES and 2 * len(counts) > counts.total():
                raise RosterUnreadable(
                    _(
                        "'%(heading)s' is a subgroup, but most values in it"
                        " belong to one person, so it would show who gave which"
                        " answers. Delete the column, or declare fewer values in"
                        " the survey round."
                    )
                    % {"heading": self.columns.heading(name)}
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
                    _(
                        "The file names more than %(most_schools)s schools. Check"
                        " whether '%(heading)s' is the school."
                    )
                    % {
                        "most_schools": f"{MOST_SCHOOLS:,}",
                        "heading": self.columns.heading("school"),
                    }
                )
        return index

    def _text(self, cells: list[str], name: str) -> str:
        index = self.columns.fields.get(name)
        if index is None:
            return ""
        cell = cells[index]
        # Of several schools, the person belongs to the first.
        return field_parsers.parse_text(
            cell.partition(",")[0] if name in self._lists else cell
        )

    def _parse_name(self, name: str, cell: str) -> str:
        text = field_parsers.parse_text(cell)
        if text and not field_parsers.has_letter_or_digit(text):
            note = _(NO_NAME) % {"heading": self.columns.heading(name)}
            self.notes[note] += 1
            return ""
        return text

    def _parse_grade(self, cell: str) -> str:
        try:
            return field_parsers.parse_grade(cell)
        except InvalidCell:
            # Only students have a grade; "K-5" in a teacher's row is no reason
            # to reject the teacher.
            if self.role == Role.STUDENT:
                raise
            self._note_blanked("grade", cell, NOT_ONE_GRADE)
            return ""

    def _parse_language(self, cell: str) -> str:
        language = field_parsers.parse_language(cell, self._languages)
        if language is None:
            self._note_blanked("language", cell, NOT_A_LANGUAGE)
        return language or ""

    def _note_blanked(self, name: str, cell: str, reason: str) -> None:
        shown = " ".join(cell.split())[:40]
        note = _(reason) % {"heading": self.columns.heading(name), "value": shown}
        if note not in self.notes and len(self.notes) >= MOST_NOTES:
            note = _("More cells were left blank")
        self.notes[note] += 1

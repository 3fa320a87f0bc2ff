"""Find out from sample rows what the columns of a roster look like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from django.utils import timezone

from survey.people.rosters import date_parsers, field_parsers
from survey.people.rosters.columns import (
    MOST_READ_OF_A_HEADER,
    reason_not_a_subgroup,
    squeeze,
    without_number,
)
from survey.people.rosters.field_parsers import (
    InvalidCell,
    has_letter_or_digit,
    value_key,
)

# In percent of the cells that are not blank.
MOST_CELLS = 90
# Addresses of other people, who must not get anybody's code.
_OF_OTHERS = (
    "parent", "guardian", "mother", "father", "contact", "teacher", "counselor",
)  # fmt: skip


class RepeatableHeader:
    """A header that a report repeats at the top of each page."""

    def __init__(self, header: Sequence[str]) -> None:
        self._spellings = [
            {value_key(text), value_key(without_number(text))} for text in header
        ]

    def is_repeated(self, cells: Sequence[str]) -> bool:
        """Test for a row whose cells are those of the header, or blank."""
        named = 0
        for cell, spellings in zip(cells, self._spellings, strict=False):
            # Of nearly all rows, only the first cell is looked at.
            if cell and (key := value_key(cell[:MOST_READ_OF_A_HEADER])):
                if key not in spellings:
                    return False
                named += 1
        return named > 1


def rows_of_people(
    header: Sequence[str], rows: Iterable[Sequence[str]]
) -> list[Sequence[str]]:
    """Leave out repeated headers, and the dashes that some programs print below."""
    repeatable = RepeatableHeader(header)
    return [
        cells
        for cells in rows
        if any(map(has_letter_or_digit, cells)) and not repeatable.is_repeated(cells)
    ]


@dataclass(frozen=True)
class SampleTable:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def cells(self, text: str) -> list[str]:
        """Return the cells of a column that are not blank."""
        # Also columns without a header have cells.
        if not text or text not in self.header:
            return []
        index = self.header.index(text)
        return [
            cells[index]
            for cells in self.rows
            if index < len(cells) and cells[index].strip()
        ]

    def look_like_fields(self, known: Mapping[str, str]) -> dict[str, str]:
        """Return fields that an unused column looks like, for a person to check."""
        fields: dict[str, str] = {}
        used = set(known.values())
        for text in self.header:
            cells = self.cells(text)
            if not text or text in used or not cells:
                continue
            name = _looks_like(text, cells)
            if name and name not in known and name not in fields:
                fields[name] = text
        if "external_id" not in known and len(ids := self.possible_ids()) == 1:
            fields["external_id"] = ids[0]
        return fields

    def possible_ids(self) -> list[str]:
        """Return the columns with a different code in each row."""
        return [text for text in self.header if text and _are_ids(self.cells(text))]


def _looks_like(header: str, cells: list[str]) -> str:
    squeezed = squeeze(header)
    if any(word in squeezed for word in _OF_OTHERS):
        return ""
    if _share(field_parsers.is_plain_email, cells):
        return "email"
    if _share(_is_birth_date, cells):
        return "birth_date"
    is_grade = "gr" in squeezed or "year" in squeezed
    if is_grade and _share(_is_grade, cells) and not reason_not_a_subgroup(header):
        return "grade"
    return ""


def _share(test: Callable[[str], bool], cells: list[str]) -> bool:
    return 100 * sum(map(test, cells)) >= MOST_CELLS * len(cells)


def _is_grade(cell: str) -> bool:
    try:
        return bool(field_parsers.parse_grade(cell))
    except InvalidCell:
        return False


def _is_birth_date(cell: str) -> bool:
    # A number of five digits is a date of Excel, and much else.
    if cell.strip().isdigit():
        return False
    try:
        return any(date_parsers.parse_birth_date(cell, timezone.localdate()))
    except InvalidCell:
        return False


def _are_ids(cells: list[str]) -> bool:
    texts = [cell.strip() for cell in cells]
    return (
        len(texts) == len(set(texts)) > 1
        and all(
            2 <= len(text) <= 40
            and not any(map(str.isspace, text))
            and any(map(str.isdigit, text))
            and "@" not in text
            for text in texts
        )
        and not _share(_is_birth_date, texts)
    )


def dates_are_unclear(table: SampleTable, fields: Mapping[str, str]) -> bool:
    """Tell whether dates are ambiguous, and none shows whether the day is first."""
    readings = list(_readings(table, fields))
    return not any(None in dates for dates in readings) and any(
        month_first != day_first for month_first, day_first in readings
    )


def day_is_first(table: SampleTable, fields: Mapping[str, str]) -> bool | None:
    """Tell how all dates are written that can be read in one way only."""
    orders = {dates[0] is None for dates in _readings(table, fields) if None in dates}
    return orders.pop() if len(orders) == 1 else None


def _readings(
    table: SampleTable, fields: Mapping[str, str]
) -> Iterator[tuple[date | None, date | None]]:
    """Yield the dates of sample rows as read month first, and day first."""
    today: date = timezone.localdate()
    for name in ("birth_date", "exit_date"):
        for cell in table.cells(fields.get(name, "")):
            with suppress(InvalidCell):
                dates = date_parsers.parse_date(cell, today)
                if any(dates):
                    yield dates

"""Put one collection's objects into a store's tables, and check them there."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from django.utils import timezone
from django.utils.translation import gettext as _

from survey.people.rosters.date_parsers import parse_date
from survey.people.rosters.field_parsers import InvalidCell
from survey.people.rosters.oneroster.schema import DATES, FLAGS, ORG_TYPES, Collection

# `inactive` is what version 1.0 called it.
_DELETED = "'tobedeleted', 'inactive'"


class InvalidValue(ValueError):
    """A value of a collection cannot be used; the caller knows its line."""

    def __init__(
        self, column: str, value: str, reason: str, occurrence: int = 1
    ) -> None:
        super().__init__(reason)
        self.column, self.value, self.occurrence = column, value, occurrence


def is_storable(text: str) -> bool:
    """Test for characters that databases refuse: NUL and lone surrogates."""
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def name_unstorable(collection: str, sourced_id: str, field: str) -> str:
    """Return which field cannot be stored, and what to do."""
    shown = "".join(sign for sign in sourced_id if sign.isprintable())
    return _(
        "%(collection)s, sourcedId '%(shown)s': %(field)s has a character"
        " that cannot be stored (NUL or a lone surrogate). Correct the record"
        " in the student information system, then scan the roster sync again."
    ) % {"collection": collection, "shown": shown[:60], "field": field}


_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ].*)?")
# 06/15/27 is no date of 1927.
_FIRST_YEAR = 1950


def iso_date(text: str, day_first: bool | None = None) -> str:
    """Return a date of a term, role or enrolment; blank if it is not certain.

    3/4/2026 is only certain with `day_first`, 15/6/2026 always.
    """
    if match := _ISO.fullmatch(text):
        text = match[1]
    try:
        dates = parse_date(text, timezone.localdate())
    except InvalidCell:
        return ""
    if all(dates) and day_first is not None:
        dates = (dates[day_first],) * 2
    certain = {*dates} - {None}
    if len(certain) != 1:
        return ""
    [day] = certain
    assert day is not None  # noqa: S101
    if day.year < _FIRST_YEAR:
        day = day.replace(year=day.year + 100)
    return day.isoformat()


def date_order(text: str) -> bool | None:
    """Tell whether a date has the day first; None if it does not show it."""
    with suppress(InvalidCell):
        month_first, day_first = parse_date(text, timezone.localdate())
        if (month_first is None) != (day_first is None):
            return month_first is None
    return None


def create_table(db: sqlite3.Connection, collection: Collection, table: str) -> None:
    columns = ", ".join(
        f"{name} TEXT NOT NULL DEFAULT ''" for name in collection.columns[1:]
    )
    db.execute(
        f"CREATE TABLE {table} (sourcedId TEXT PRIMARY KEY, {columns},"
        " is_contradicted INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID"
    )


def load_rows(
    db: sqlite3.Connection,
    collection: Collection,
    rows: Iterable[Sequence[str]],
    *,
    replace: bool,
) -> list[str]:
    """Replace or merge a collection; return notes about blanked values.

    Raises InvalidValue.
    """
    # Only names of columns that this package defines get into these texts.
    columns = collection.columns
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    current = ", ".join(columns[1:])
    excluded = ", ".join(f"excluded.{name}" for name in columns[1:])
    db.execute("DROP TABLE IF EXISTS incoming")
    create_table(db, collection, "incoming")
    db.executemany(
        f"INSERT INTO incoming ({names}) VALUES ({marks})"  # noqa: S608
        f" ON CONFLICT DO UPDATE SET is_contradicted = 1"
        f" WHERE ({current}) IS NOT ({excluded})",
        rows,
    )
    _check_statuses(db)
    for (value,) in db.execute(
        "SELECT sourcedId FROM incoming WHERE is_contradicted LIMIT 1"
    ):
        raise InvalidValue(
            "sourcedId", value, _("stands in two rows that contradict each other"), 2
        )
    if collection.name == "orgs":
        for (value,) in db.execute(
            "SELECT type FROM incoming WHERE status = ''"
            " AND lower(type) NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
            [json.dumps(ORG_TYPES)],
        ):
            raise InvalidValue(
                "type",
                value,
                _("must be %(org_types)s") % {"org_types": ", ".join(ORG_TYPES)},
            )
    notes = _clean_values(db, collection)
    if replace:
        db.execute(f"DROP TABLE {collection.name}")
        db.execute(f"ALTER TABLE incoming RENAME TO {collection.name}")
        return notes
    # The row of a deleted object may be blank but for its sourcedId.
    updates = ", ".join(
        f"{name} = CASE excluded.status WHEN 'tobedeleted' THEN {name}"
        f" ELSE excluded.{name} END"
        for name in columns[2:]
    )
    db.execute(
        f"INSERT INTO {collection.name} ({names})"  # noqa: S608
        f" SELECT {names} FROM incoming WHERE true"
        f" ON CONFLICT DO UPDATE SET status = excluded.status, {updates}"
    )
    db.execute("DROP TABLE incoming")
    return notes


def _check_statuses(db: sqlite3.Connection) -> None:
    """Refuse unknown statuses: taken for active, they would invite people."""
    for (value,) in db.execute(
        "SELECT DISTINCT status FROM incoming"  # noqa: S608
        f" WHERE lower(status) NOT IN ('', 'active', {_DELETED}) LIMIT 1"
    ):
        raise InvalidValue(
            "status", value, _("must be active, tobedeleted (inactive) or empty")
        )
    db.execute(
        f"UPDATE incoming SET status = CASE WHEN lower(status) IN ({_DELETED})"  # noqa: S608
        " THEN 'tobedeleted' ELSE '' END WHERE status NOT IN ('', 'tobedeleted')"
    )


def _day_is_first(
    db: sqlite3.Connection, columns: Sequence[str], iso: str
) -> bool | None:
    """Find out how a collection writes its dates, if all certain ones agree."""
    db.create_function("date_order", 1, date_order, deterministic=True)
    orders: set[bool] = set()
    for column in columns:
        first = db.execute(
            f"SELECT min(date_order({column})), max(date_order({column}))"  # noqa: S608
            f" FROM incoming WHERE {column} <> '' AND {column} NOT GLOB ?",
            [iso],
        ).fetchone()
        orders |= {bool(order) for order in first if order is not None}
    return orders.pop() if len(orders) == 1 else None


def _clean_values(db: sqlite3.Connection, collection: Collection) -> list[str]:
    """Make dates ISO and flags true or false; blank others, and say so."""
    notes = []
    digits = "-".join(("[0-9]" * 4, "[0-9]" * 2, "[0-9]" * 2))
    dates = [column for column in collection.columns if column in DATES]
    day_first = _day_is_first(db, dates, digits)
    read_date = partial(iso_date, day_first=day_first)
    db.create_function("iso_date", 1, read_date, deterministic=True)
    for column in collection.columns:
        if column in DATES:
            wrong = f"{column} <> '' AND {column} NOT GLOB '{digits}'"
            new = f"iso_date({column})"
            note = _(
                "%(column)s: values that are not dates in the form 2026-08-31 were left"
                " blank (%(blanked)s)"
            )
        elif column in FLAGS and collection.name == "demographics":
            wrong = f"{column} NOT IN ('', 'true', 'false')"
            new = (
                f"CASE WHEN lower({column}) IN ('true', 'false')"
                f" THEN lower({column}) ELSE '' END"
            )
            note = _(
                "%(column)s: values other than true and false were left blank"
                " (%(blanked)s)"
            )
        else:
            continue
        db.execute(
            f"UPDATE incoming SET {column} = {new} WHERE {wrong} AND {new} <> ''"  # noqa: S608
        )
        blanked = db.execute(
            f"UPDATE incoming SET {column} = '' WHERE {wrong}"  # noqa: S608
        ).rowcount
        if blanked:
            notes.append(note % {"column": column, "blanked": f"{blanked:,}"})
    if collection.name == "academicSessions":
        [backward] = db.execute(
            "SELECT count(*) FROM incoming"
            " WHERE endDate <> '' AND startDate > endDate AND status = ''"
        ).fetchone()
        if backward:
            notes.append(
                _(
                    "%(backward)s terms end before they begin: their classes are left"
                    " out"
                )
                % {"backward": f"{backward:,}"}
            )
    return notes

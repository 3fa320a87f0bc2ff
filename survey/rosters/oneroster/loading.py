"""Put one collection's objects into a store's tables, and check them there."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date

from django.utils.translation import gettext as _

from survey.rosters.oneroster.schema import DATES, FLAGS, ORG_TYPES, Collection

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
        " in the student information system, then scan the feed again."
    ) % {"collection": collection, "shown": shown[:60], "field": field}


_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ].*)?")
_EIGHT_DIGITS = re.compile(r"(\d{4})(\d\d)(\d\d)")
_MONTH_FIRST = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")


def iso_date(text: str) -> str:
    """Return a date of a term, role or enrolment; blank if it is not certain."""
    if found := _ISO.fullmatch(text):
        day = found[1]
    elif found := _EIGHT_DIGITS.fullmatch(text):
        day = "-".join(found.groups())
    elif found := _MONTH_FIRST.fullmatch(text):
        month, number, year = found.groups()
        # 3/4/2026 is either in March or in April.
        if int(number) <= 12 and month != number:
            return ""
        day = f"{year}-{int(month):02}-{int(number):02}"
    else:
        return ""
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        return ""


def create_table(db: sqlite3.Connection, collection: Collection, table: str) -> None:
    columns = ", ".join(
        f"{name} TEXT NOT NULL DEFAULT ''" for name in collection.kept[1:]
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
    kept = collection.kept
    names, marks = ", ".join(kept), ", ".join("?" * len(kept))
    others = ", ".join(kept[1:])
    excluded = ", ".join(f"excluded.{name}" for name in kept[1:])
    db.execute("DROP TABLE IF EXISTS incoming")
    create_table(db, collection, "incoming")
    db.executemany(
        f"INSERT INTO incoming ({names}) VALUES ({marks})"  # noqa: S608
        f" ON CONFLICT DO UPDATE SET is_contradicted = 1"
        f" WHERE ({others}) IS NOT ({excluded})",
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
        for name in kept[2:]
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


def _clean_values(db: sqlite3.Connection, collection: Collection) -> list[str]:
    """Make dates ISO and flags true or false; blank others, and say so."""
    notes = []
    db.create_function("iso_date", 1, iso_date, deterministic=True)
    digits = "-".join(("[0-9]" * 4, "[0-9]" * 2, "[0-9]" * 2))
    for column in collection.kept:
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

"""Load the files of a OneRoster ZIP as its manifest says: bulk, delta or absent."""

from __future__ import annotations

import csv
import io
import sqlite3
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.people.rosters.oneroster.archive import MANIFEST, OneRosterArchive
from survey.people.rosters.oneroster.csv_files import CsvFile
from survey.people.rosters.oneroster.loading import InvalidValue, load_rows
from survey.people.rosters.oneroster.schema import (
    COLLECTIONS,
    NOT_NEEDED,
    ROLE_COLUMNS,
    OneRosterInvalid,
)

BULK, DELTA, ABSENT = "bulk", "delta", "absent"
LARGEST_MANIFEST = 2**16
# Collections that say who is invited where. A delta of them needs a base.
_NEEDS_BASE = ("orgs", "users", "roles")
ABSENT_IN_MANIFEST = gettext_noop(
    "%(name)s.csv was ignored: manifest.csv says that it is absent"
)
NOT_IN_MANIFEST = gettext_noop(
    "%(name)s.csv was ignored: manifest.csv does not name it"
)


@dataclass
class LoadReport:
    """What a ZIP contained."""

    # Of OneRoster; empty without a manifest.
    version: str = ""
    # Collection -> "bulk" or "delta".
    modes: dict[str, str] = field(default_factory=dict)
    # Collection -> number of rows.
    rows: dict[str, int] = field(default_factory=dict)
    # What was ignored or read differently, by file.
    notes: list[str] = field(default_factory=list)

    @property
    def is_delta(self) -> bool:
        """Tell whether people who are not in the ZIP stay as they are."""
        return self.modes.get("users") != BULK


def load_archive(
    db: sqlite3.Connection, file: BinaryIO, *, by_hand: bool
) -> LoadReport:
    archive = OneRosterArchive(file)
    report = LoadReport(notes=archive.notes)
    modes = _read_manifest(archive, report, by_hand=by_hand)
    files = {
        name: CsvFile(COLLECTIONS[name], partial(archive.open, name)) for name in modes
    }
    _find_roles(archive, files, modes, report)
    if not by_hand:
        loaded = {name for (name,) in db.execute("SELECT name FROM loaded")}
        for name in _NEEDS_BASE:
            if modes.get(name) == DELTA and name not in loaded:
                raise OneRosterInvalid(
                    _(
                        "%(name)s.csv is a delta, but no complete %(name)s.csv was"
                        " loaded before. Ask for a complete (bulk) export first."
                    )
                    % {"name": name}
                )
    for name, csv_file in files.items():
        notes = _load_file(db, csv_file, replace=modes[name] == BULK)
        report.rows[name] = csv_file.rows_read
        report.notes += [f"{name}.csv: {note}" for note in (*csv_file.notes, *notes)]
        if modes[name] == BULK:
            db.execute("INSERT OR IGNORE INTO loaded VALUES (?)", [name])
    if modes.get("users") == BULK and "roles" not in modes:
        users = files["users"].header.indexes
        if set(ROLE_COLUMNS) <= users.keys():
            # The district's system went back to 1.1.
            db.execute("DELETE FROM roles")
    report.modes = modes
    return report


def _read_manifest(
    archive: OneRosterArchive, report: LoadReport, *, by_hand: bool
) -> dict[str, str]:
    """Return which collections to load in which mode, in the order to load them."""
    present = [name for name in COLLECTIONS if name in archive.entries]
    if MANIFEST not in archive.entries:
        if not by_hand:
            raise OneRosterInvalid(
                _(
                    "The ZIP has no manifest.csv, which says whether the other"
                    " files are complete."
                )
            )
        report.notes.append(
            _("manifest.csv is missing: the files are read as complete")
        )
        return dict.fromkeys(present, BULK)
    properties = _manifest_properties(archive)
    report.version = properties.get("oneroster.version", "")
    modes: dict[str, str] = {}
    for name in (*COLLECTIONS, *NOT_NEEDED):
        mode = properties.get(f"file.{name}".casefold(), "").casefold()
        if mode not in (BULK, DELTA, ABSENT, ""):
            raise OneRosterInvalid(
                _(
                    "manifest.csv, file.%(name)s: '%(mode)s' must be bulk, delta"
                    " or absent."
                )
                % {"name": name, "mode": mode[:40]}
            )
        is_there = name in archive.entries
        if mode in (BULK, DELTA) and not is_there and name in COLLECTIONS:
            raise OneRosterInvalid(
                _(
                    "manifest.csv says that %(name)s.csv is %(mode)s, but the ZIP"
                    " has no %(name)s.csv."
                )
                % {"name": name, "mode": mode}
            )
        if name not in COLLECTIONS:
            continue
        if mode in (BULK, DELTA):
            modes[name] = mode
        elif is_there:
            note = ABSENT_IN_MANIFEST if mode else NOT_IN_MANIFEST
            report.notes.append(_(note) % {"name": name})
    return modes


def _manifest_properties(archive: OneRosterArchive) -> dict[str, str]:
    with archive.open(MANIFEST) as file:
        content = file.read(LARGEST_MANIFEST + 1)
    if len(content) > LARGEST_MANIFEST:
        raise OneRosterInvalid(_("manifest.csv is too large."))
    is_utf_16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = content.decode("utf-16" if is_utf_16 else "utf-8-sig", "replace")
    delimiter = ";" if ";" in text.partition("\n")[0] else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    properties = {
        cells[0].strip().casefold(): cells[1].strip()
        for cells in rows
        if len(cells) >= 2
    }
    if not any(name.startswith("file.") for name in properties):
        raise OneRosterInvalid(
            _(
                "manifest.csv, line 1: no properties of the form file.users,bulk"
                " below the columns propertyName and value."
            )
        )
    return properties


def _find_roles(
    archive: OneRosterArchive,
    files: dict[str, CsvFile],
    modes: dict[str, str],
    report: LoadReport,
) -> None:
    """Load roles.csv where users.csv has no roles, whatever the manifest's version."""
    if "users" not in files:
        return
    missing = [c for c in ROLE_COLUMNS if c not in files["users"].header.indexes]
    if not missing or "roles" in files:
        return
    if "roles" not in archive.entries:
        if modes["users"] == DELTA:
            return
        raise OneRosterInvalid(
            _("users.csv, line 1: no column %(missing)s, and the ZIP has no roles.csv.")
            % {"missing": ", ".join(missing)}
        )
    modes["roles"] = modes["users"]
    files["roles"] = CsvFile(COLLECTIONS["roles"], partial(archive.open, "roles"))
    ignored = {
        _(note) % {"name": "roles"} for note in (ABSENT_IN_MANIFEST, NOT_IN_MANIFEST)
    }
    report.notes[:] = [note for note in report.notes if note not in ignored]
    report.notes.append(_("roles.csv is read like users.csv, which has no roles"))


def _load_file(
    db: sqlite3.Connection, csv_file: CsvFile, *, replace: bool
) -> list[str]:
    collection = csv_file.collection
    try:
        try:
            return load_rows(db, collection, csv_file.rows(), replace=replace)
        except UnicodeDecodeError:
            if not csv_file.is_utf_8:
                raise
            csv_file.decode_as_windows_1252()
            return load_rows(db, collection, csv_file.rows(), replace=replace)
    except InvalidValue as error:
        line = csv_file.line_of(error.column, error.value, error.occurrence)
        raise OneRosterInvalid(
            _("%(file_name)s, line %(line)s, column %(column)s: '%(value)s' %(error)s.")
            % {
                "file_name": collection.file_name,
                "line": line,
                "column": error.column,
                "value": error.value[:60],
                "error": error,
            }
        ) from error
    except UnicodeDecodeError as error:
        raise OneRosterInvalid(
            _("%(file_name)s: the letters cannot be read. Save it as UTF-8.")
            % {"file_name": collection.file_name}
        ) from error

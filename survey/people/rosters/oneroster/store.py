"""Keep the OneRoster data of one district in a private SQLite file.

A night's delta only makes sense together with the nights before, so the data
is kept between scans. Everything is streamed, sorted and joined by SQLite:
memory stays flat whatever the size of the district.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from typing import BinaryIO

from django.utils import timezone
from django.utils.translation import gettext as _

from survey.people.rosters.oneroster import flat_rows
from survey.people.rosters.oneroster.flat_rows import RowOptions
from survey.people.rosters.oneroster.loading import (
    InvalidValue,
    create_table,
    is_storable,
    load_rows,
    name_unstorable,
)
from survey.people.rosters.oneroster.people import user_ids_by_kind
from survey.people.rosters.oneroster.places import read_orgs
from survey.people.rosters.oneroster.schema import (
    COLLECTIONS,
    NOT_NEEDED,
    OneRosterInvalid,
)
from survey.people.rosters.oneroster.zip_loading import LoadReport, load_archive

__all__ = ["LoadReport", "OneRosterInvalid", "OneRosterStore", "RowOptions"]

# Whether a collection was ever loaded as a whole: only then a delta has a base.
_STATE = "CREATE TABLE loaded (name TEXT PRIMARY KEY) WITHOUT ROWID"
# In KiB, within the 250 MB that a worker may use.
_CACHE = 65536


class OneRosterStore:
    """The orgs, users, roles, classes and enrolments of one district."""

    def __init__(self, path: Path) -> None:
        """Open the store, or create an empty one."""
        self.path = path
        self._draft: sqlite3.Connection | None = None
        if not path.exists():
            with self.changes():
                pass

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Store everything that is loaded within, or nothing.

        The changes go to a copy, which takes the store's place at the end. A
        killed worker leaves the copy behind as `.NAME.…`, and the store as it was.
        """
        if self._draft is not None:
            yield
            return
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            if self.path.exists():
                shutil.copyfile(self.path, draft)
            with closing(_connect(draft)) as db:
                # The draft is thrown away after any failure.
                db.execute("PRAGMA journal_mode = OFF")
                db.execute("PRAGMA synchronous = OFF")
                db.execute("PRAGMA locking_mode = EXCLUSIVE")
                db.execute("BEGIN")
                if not self.path.exists():
                    db.execute(_STATE)
                    for collection in COLLECTIONS.values():
                        create_table(db, collection, collection.name)
                self._draft = db
                yield
                db.execute("COMMIT")
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(self.path)
        finally:
            self._draft = None
            draft.unlink(missing_ok=True)

    def load_zip(self, file: BinaryIO, *, by_hand: bool = False) -> LoadReport:
        """Load a ZIP: bulk replaces a collection, delta merges, absent leaves it.

        A person who uploads a file decides what it is complete for, so `by_hand`
        accepts a ZIP without a manifest, and a delta without a base.

        Raises OneRosterInvalid; the store is then as it was.
        """
        with self.changes():
            assert self._draft is not None  # noqa: S101
            return load_archive(self._draft, file, by_hand=by_hand)

    def put(
        self,
        collection: str,
        objects: Iterable[Mapping[str, str]],
        *,
        replace: bool,
    ) -> list[str]:
        """Replace or merge objects of a collection; return notes about blanked values.

        `collection` is the name of the CSV file without its ending, and objects
        are spelled as its rows: lists are joined with commas, `userIds` are
        "{type:id}", and the roles of a user of version 1.2 are objects of
        `roles`. Several calls within `with store.changes():` are stored
        together or not at all.

        Raises OneRosterInvalid.
        """
        if collection in NOT_NEEDED:
            return []
        columns = COLLECTIONS[collection].columns

        def rows() -> Iterator[list[str]]:
            for item in objects:
                if not item.get("sourcedId", "").strip():
                    raise OneRosterInvalid(
                        _("%(collection)s: a sourcedId is missing.")
                        % {"collection": collection}
                    )
                row = [item.get(name, "").strip() for name in columns]
                if not is_storable("".join(row)):
                    named = zip(columns, row, strict=True)
                    field = next(name for name, text in named if not is_storable(text))
                    raise OneRosterInvalid(name_unstorable(collection, row[0], field))
                yield row

        with self.changes():
            db = self._draft
            assert db is not None  # noqa: S101
            try:
                notes = load_rows(db, COLLECTIONS[collection], rows(), replace=replace)
            except InvalidValue as error:
                raise OneRosterInvalid(
                    f"{collection}, {error.column} '{error.value[:60]}': {error}."
                ) from error
            if replace:
                db.execute("INSERT OR IGNORE INTO loaded VALUES (?)", [collection])
        return [f"{collection}: {note}" for note in notes]

    def districts(self) -> list[tuple[str, str]]:
        """Return the codes and names of the districts."""
        with self._reading() as db:
            orgs = read_orgs(db).values()
        return [(org.code, org.name) for org in orgs if org.is_district]

    def header(self, options: RowOptions | None = None) -> list[str]:
        """Return the headers of `rows`."""
        with self._reading() as db:
            return flat_rows.row_format(db, options or RowOptions()).header

    def rows(
        self,
        *,
        roles: AbstractCollection[str],
        identity: str = "sourcedId",
        options: RowOptions | None = None,
        today: date | None = None,
        notes: list[str] | None = None,
    ) -> Iterator[list[str]]:
        """Yield one row per person and role of an administration.

        `identity` is the ID of a person: "sourcedId", "identifier" or
        "userIds:TYPE". Several users with one ID are one person. Further
        `options` must be those of `header`. At the end, people who belong to no
        school are counted in `notes`.
        """
        options = options or RowOptions(identity)
        day = (today or timezone.localdate()).isoformat()
        with self._reading() as db:
            yield from flat_rows.rows(db, options, roles=roles, today=day, notes=notes)

    def identifier_samples(self) -> dict[str, list[str]]:
        """Return three IDs of each kind, for the choice of the one that identifies."""
        samples: dict[str, list[str]] = {"sourcedId": [], "identifier": []}
        with self._reading() as db:
            users = db.execute(
                "SELECT sourcedId, identifier, userIds FROM users LIMIT 1000"
            )
            for sourced_id, identifier, user_ids in users:
                ids = {"sourcedId": sourced_id, "identifier": identifier}
                for kind, value in user_ids_by_kind(user_ids).items():
                    ids[f"userIds:{kind}"] = value
                for kind, value in ids.items():
                    texts = samples.setdefault(kind, [])
                    if value and len(texts) < 3:
                        texts.append(value)
        return samples

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._draft is not None:
            yield self._draft
            return
        with closing(_connect(self.path)) as db:
            yield db


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA temp_store = FILE")
    db.execute(f"PRAGMA cache_size = -{_CACHE}")
    return db

"""Keep the objects of a OneRoster server on disk, and load them into a store.

They are a ZIP with one file of JSON lines per collection: its directory is
written last, so a file that lacks a part cannot be opened.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from survey.people.rosters.feeds.download_types import (
    Download,
    DownloadFailed,
    FeedSource,
    new_file,
)
from survey.people.rosters.feeds.rest_ignored import IgnoredNames
from survey.people.rosters.oneroster import schema

if TYPE_CHECKING:
    from survey.people.rosters.oneroster.store import OneRosterStore

Json = dict[str, Any]

ENDING = ".rest.zip"
# The member with the notes about what was ignored.
IGNORED = "ignored.json"
COLLECTIONS = (
    "orgs",
    "academicSessions",
    "users",
    "classes",
    "enrollments",
    "demographics",
)
# Not needed, or not to be kept; in any case.
DROPPED = {"password", "metadata", "datelastmodified", "resources", "sms", "phone"}
LISTS = {
    "orgs": "orgSourcedIds",
    "agents": "agentSourcedIds",
    "terms": "termSourcedIds",
}
REFERENCES = {
    "parent": "parentSourcedId",
    "school": "schoolSourcedId",
    "class": "classSourcedId",
    "user": "userSourcedId",
    "org": "orgSourcedId",
    "primaryorg": "primaryOrgSourcedId",
}
# In JSON, names may differ from the columns in case ("birthdate" of version 1.1).
COLUMNS = {
    name.casefold(): name
    for collection in schema.COLLECTIONS.values()
    for name in collection.columns
} | {
    "grade": "grades",
    # Of version 1.2, whose CSV files call them otherwise.
    "preferredfirstname": "preferredGivenName",
    "preferredlastname": "preferredFamilyName",
}
# So many roles of a user of version 1.2 are kept. They have no IDs: a delta
# deletes those that a user no longer has by their numbers.
MOST_ROLES = 16


class UnusableAnswer(DownloadFailed):
    """A server's answers contradict each other, or are no OneRoster."""

    def __init__(self, message: str) -> None:
        super().__init__(
            _("%(message)s Nothing of this download is used.") % {"message": message},
            may_retry=True,
        )


class PageWriter:
    """Write objects to a new private file, and find repeated ones."""

    def __init__(self, folder: Path, ignored: IgnoredNames, *, is_delta: bool) -> None:
        self._folder = folder
        self._ignored = ignored
        self._is_delta = is_delta
        self._collection = ""
        self._member: IO[bytes] | None = None
        self._sum = 0
        self._objects = 0
        # Of the collection that was begun last.
        self.count = 0

    def __enter__(self) -> PageWriter:
        with ExitStack() as stack:
            self.path, file = stack.enter_context(new_file(self._folder, ENDING))
            # On disk, so that memory stays flat.
            self._seen = stack.enter_context(closing(sqlite3.connect("")))
            self._seen.execute(
                "CREATE TABLE seen (collection, id, listing,"
                " PRIMARY KEY (collection, id)) WITHOUT ROWID"
            )
            self._archive = stack.enter_context(
                zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._member is not None:
            self._member.close()
            self._member = None
        self._stack.__exit__(*error)

    def begin(self, collection: str) -> None:
        if self._member is not None:
            self._member.close()
        self._collection, self.count = collection, 0
        self._member = self._archive.open(f"{collection}.jsonl", "w", force_zip64=True)

    def write(self, page: Iterable[Json], listing: str) -> None:
        """Write a page. Raises UnusableAnswer if its listing repeats an object.

        People of two schools are in the listings of both, and written once.
        """
        assert self._member is not None  # noqa: S101
        for item in page:
            if self._collection == "demographics" and "userSourcedId" in item:
                # Of version 1.0.
                item.setdefault("sourcedId", item.pop("userSourcedId"))
            identifier = item.get("sourcedId")
            if identifier is None or str(identifier).strip() == "":
                raise UnusableAnswer(
                    _("%(listing)s has an object without a sourcedId.")
                    % {"listing": listing}
                )
            key = (self._collection, str(identifier))
            new = self._seen.execute(
                "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", (*key, listing)
            ).rowcount
            if not new:
                [before] = self._seen.execute(
                    "SELECT listing FROM seen WHERE collection = ? AND id = ?", key
                ).fetchone()
                if before == listing:
                    raise UnusableAnswer(
                        _("%(listing)s repeats %(key)s.")
                        % {"listing": listing, "key": key[1][:60]}
                    )
                continue
            self._ignored.look_at(self._collection, item)
            stored = {
                name: value
                for name, value in item.items()
                if name.casefold() not in DROPPED
            }
            line = json.dumps(stored, sort_keys=True, separators=(",", ":")).encode()
            self._member.write(line + b"\n")
            digest = hashlib.sha256(self._collection.encode() + b" " + line).digest()
            # A sum, because a server may list in another order every night.
            self._sum = (self._sum + int.from_bytes(digest, "big")) % 2**256
            self.count += 1
            self._objects += 1

    def finish(self, source: FeedSource) -> Download:
        """Complete the file, or delete it if nothing changed."""
        assert self._member is not None  # noqa: S101
        self._member.close()
        self._member = None
        if self._is_delta:
            self._archive.writestr("delta", "")
        self._archive.writestr(IGNORED, json.dumps(self._ignored.notes()))
        self._archive.close()
        # After a delta, the next full download must be compared again.
        digest = "" if self._is_delta else f"{self._sum:064x}"
        is_unchanged = not self._objects if self._is_delta else digest == source.digest
        size = self.path.stat().st_size
        downloaded = Download(self.path, size, digest)
        if is_unchanged:
            self.path.unlink()
            downloaded = source.unchanged(size=size)
        return replace(downloaded, is_delta=self._is_delta)


def is_rest(path: Path) -> bool:
    return path.name.endswith(ENDING)


def load_into(store: OneRosterStore, path: Path) -> list[str]:
    """Load a downloaded file into a store, completely or not at all.

    Returns which fields were ignored, and which values were left blank. Raises
    OneRosterInvalid.
    """
    blanked: list[str] = []
    with zipfile.ZipFile(path) as archive, store.changes():
        names = set(archive.namelist())
        replace = "delta" not in names
        for collection in COLLECTIONS:
            name = f"{collection}.jsonl"
            if name not in names:
                continue
            rows = map(as_row, _read(archive, name))
            blanked += store.put(collection, rows, replace=replace)
            if collection == "users":
                blanked += store.put(
                    "roles",
                    (
                        role
                        for user in _read(archive, name)
                        for role in role_rows(user, is_delta=not replace)
                    ),
                    replace=replace,
                )
        # A download of the version before has no notes.
        notes: list[str] = json.loads(archive.read(IGNORED)) if IGNORED in names else []
    return notes + blanked


def _read(archive: zipfile.ZipFile, name: str) -> Iterator[Json]:
    with archive.open(name) as file:
        for line in file:
            yield json.loads(line)


# JSON as the rows of the CSV files


def as_row(item: Json) -> dict[str, str]:
    """Return an object as a row of its CSV file, whose lists and dates differ."""
    row: dict[str, str] = {}
    for name, value in item.items():
        lowered = name.casefold()
        if lowered in REFERENCES and not isinstance(value, list):
            row[REFERENCES[lowered]] = reference(value)
        elif lowered in LISTS:
            row[LISTS[lowered]] = ",".join(filter(None, map(reference, _list(value))))
        elif lowered == "userids":
            row["userIds"] = ",".join(_user_ids(value))
        elif lowered in COLUMNS and not isinstance(value, dict):
            row[COLUMNS[lowered]] = ",".join(filter(None, map(_text, _list(value))))
    return row


def role_rows(user: Json, *, is_delta: bool) -> Iterator[dict[str, str]]:
    """Yield the rows of roles.csv of a user of version 1.2.

    None for a user with the one role of version 1.1: any row would replace it. Raises
    OneRosterInvalid.
    """
    if "roles" not in user or user.get("role"):
        return
    roles = [role for role in _list(user.get("roles")) if isinstance(role, dict)]
    if len(roles) > MOST_ROLES:
        raise schema.OneRosterInvalid(
            _("users, sourcedId '%(sourcedid)s': more than %(most_roles)s roles.")
            % {"sourcedid": str(user["sourcedId"])[:60], "most_roles": MOST_ROLES}
        )
    deleted = str(user.get("status") or "").casefold() not in ("", "active")
    for number in range(MOST_ROLES if is_delta else len(roles)):
        row = {"sourcedId": f"{user['sourcedId']} role {number}"}
        if deleted or number >= len(roles):
            yield row | {"status": "tobedeleted"}
        else:
            row |= as_row(roles[number])
            yield row | {
                "sourcedId": f"{user['sourcedId']} role {number}",
                "userSourcedId": str(user["sourcedId"]),
            }


def reference(value: object) -> str:
    """Return the sourcedId of a reference: {href, sourcedId, type} or a text."""
    if isinstance(value, dict):
        parts = {name.casefold(): part for name, part in value.items()}
        if identifier := _text(parts.get("sourcedid")):
            return identifier
        return _text(parts.get("href")).rstrip("/").rpartition("/")[2]
    return _text(value)


def _user_ids(value: object) -> Iterator[str]:
    for user_id in _list(value):
        if isinstance(user_id, dict) and _text(user_id.get("identifier")):
            yield f"{{{_text(user_id.get('type'))}:{_text(user_id.get('identifier'))}}}"
        elif isinstance(user_id, str) and re.search(r"\S", user_id):
            yield user_id


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _text(value: object) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).strip()
    # Dates of a CSV file have no time.
    return text[:10] if re.match(r"\d{4}-\d\d-\d\dT", text) else text

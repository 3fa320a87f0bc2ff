"""Count the rows that are destroyed, and digest them, table by table.

The digest after a row is SHA-256 of the digest before it and the row as JSON in UTF-8:
the values of its columns, in the order of the table. Before the first row it is the
random key of the destruction, so that nobody can test a guess without it (see
`survey.people.certificates.digests`). So an interrupted job goes on, and whoever has a
backup and the key can calculate it again. Rows come in the order of people's keys and
then of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypedDict

from django.db.models import QuerySet

FETCHED = 2000


class TableTally(TypedDict):
    rows: int
    # In hexadecimal.
    digest: str


class Tallies:
    """The tables of one destruction, as they are stored."""

    def __init__(self, tables: dict[str, TableTally], key: bytes) -> None:
        self.tables = tables
        self.key = key

    def digest_of(self, table: str) -> bytes:
        if table in self.tables:
            return bytes.fromhex(self.tables[table]["digest"])
        return self.key

    def store(self, table: str, rows: int, digest: bytes) -> None:
        """Note `rows` more rows, and the digest after them."""
        if rows:
            before = self.tables[table]["rows"] if table in self.tables else 0
            self.tables[table] = {"rows": before + rows, "digest": digest.hex()}

    def add_rows(self, rows: QuerySet[Any], *order: str) -> None:
        """Add the rows of a table as they are now. 1 statement."""
        meta = rows.model._meta
        names = [field.attname for field in meta.local_concrete_fields]
        values = rows.order_by(*order, "pk").values_list(*names)
        self.add_values(meta.db_table, values.iterator(chunk_size=FETCHED))

    def add_values(self, table: str, values: Iterable[tuple[Any, ...]]) -> None:
        """Add some columns of rows, in this order."""
        digest, count = self.digest_of(table), 0
        for row in values:
            line = json.dumps(
                row, default=_as_text, ensure_ascii=False, separators=(",", ":")
            )
            digest = sha256(digest + line.encode()).digest()
            count += 1
        self.store(table, count, digest)


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return str(value)

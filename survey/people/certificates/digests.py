"""Digests of rows that are destroyed, which nobody can test a guess against.

A plain digest of a short row would be a remainder of the data: whoever has it tries
all answers of a person until it fits. So the key of each destruction is random. It is
stored with the journal beside the backups, and ends with the last backup that has the
rows: see docs/decisions/0195-certificates-of-destruction.md.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import QuerySet

KEY_BYTES = 32


def new_key() -> bytes:
    """Return the key for the digests of one destruction."""
    return secrets.token_bytes(KEY_BYTES)


class RowDigest:
    """The digest of rows of a table, which are added in the order of their keys."""

    def __init__(self, key: bytes) -> None:
        self._mac = hmac.new(key, digestmod="sha256")
        self.rows = 0

    def add(self, row: Iterable[Any]) -> None:
        line = json.dumps(
            list(row), cls=_Encoder, ensure_ascii=False, separators=(",", ":")
        )
        self._mac.update(line.encode() + b"\n")
        self.rows += 1

    def hexdigest(self) -> str:
        return self._mac.hexdigest()


class _Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        if isinstance(o, bytes | memoryview):
            return bytes(o).hex()
        return super().default(o)


def digest_rows(key: bytes, rows: QuerySet[Any]) -> RowDigest:
    """Return the digest of rows, with all of their columns. 1 statement."""
    digest = RowDigest(key)
    names = [field.attname for field in rows.model._meta.local_concrete_fields]
    for row in rows.order_by("pk").values_list(*names).iterator(chunk_size=2000):
        digest.add(row)
    return digest


def combine(key: bytes, digests: Iterable[str]) -> str:
    """Return the digest of a table from those of its parts, in their order."""
    whole = RowDigest(key)
    for digest in digests:
        whole.add([digest])
    return whole.hexdigest()

"""Decode JSON of the database once per process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from json import loads
from typing import Any

from django.db import models

# Layouts of results are some 30 kB each, and a page reads one with every group.
DECODED = 16


class SharedJSONField(models.JSONField):
    """Store large JSON of which a few texts are read again and again.

    Equal texts are the same object in all instances, so its values are never changed
    in place.
    """

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return None if value is None else _decoded(value)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        # The database's column is that of any JSON.
        name, _path, arguments, options = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, options


@lru_cache(maxsize=DECODED)
def _decoded(text: str) -> Any:
    return loads(text)

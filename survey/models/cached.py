"""Cache rows of published surveys in Memcached, without expiry.

Built on django-cache-machine, whose unsafe parts are left out. Invalidation is
not needed: triggers freeze the rows of published surveys, and the filter
excludes drafts, which may still change. Inside a transaction, which may yet be
rolled back, the cache is neither read nor written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from caching.base import CachingManager, CachingModelIterable, CachingQuerySet
from caching.config import NO_CACHE
from django.core.cache import cache
from django.core.exceptions import (
    EmptyResultSet,
    FieldDoesNotExist,
    ValidationError,
)
from django.db import connections, models
from django.db.models import Field, Model
from django.db.models.query import ModelIterable, RawQuerySet


class FrozenIterable(CachingModelIterable):
    """Iterate over the rows, from the cache where possible.

    Rows are stored as lists of their fields' values, because the cache takes
    JSON only. An entry of another shape counts as missing. Readers check the
    contents of a row.
    """

    def __iter__(self) -> Iterator[Model]:
        model = self.queryset.model
        if self.timeout == NO_CACHE or in_transaction():
            yield from ModelIterable.__iter__(self)
            return
        try:
            key = self.query_key()
        except EmptyResultSet:
            return
        rows = unpack(model, self.queryset.db, cache.get(key))
        if not rows:
            rows = list(ModelIterable.__iter__(self))
            # An empty result may come from a lagging replica: do not cache it.
            if rows:
                cache.set(key, pack(rows), timeout=None)
        yield from rows


def pack(rows: list[Model]) -> dict[str, list[object]]:
    """Return rows of one query as names and values that fit into JSON."""
    deferred = rows[0].get_deferred_fields()
    fields = [f for f in rows[0]._meta.concrete_fields if f.attname not in deferred]

    def value(row: Model, field: models.Field[Any, Any]) -> object:
        cell = field.value_from_object(row)
        # Bytes and times become text, which their fields read again.
        is_text = isinstance(field, models.BinaryField | models.DateTimeField)
        return field.value_to_string(row) if is_text and cell is not None else cell

    return {
        "names": [field.attname for field in fields],
        "rows": [[value(row, field) for field in fields] for row in rows],
    }


def unpack(model: type[Model], database: str, entry: object) -> list[Model]:
    """Return the rows of an entry, none if it is no entry of `pack`."""
    if not isinstance(entry, dict) or not isinstance(entry.get("rows"), list):
        return []
    try:
        names = list(entry["names"])
        # Entries have columns only, no relations from other tables.
        fields = [
            cast("Field[Any, Any]", model._meta.get_field(name)) for name in names
        ]
        return [
            model.from_db(
                database,
                names,
                [
                    field.to_python(value)
                    for field, value in zip(fields, row, strict=True)
                ],
            )
            for row in entry["rows"]
        ]
    except (FieldDoesNotExist, KeyError, TypeError, ValidationError, ValueError):
        return []


class FrozenQuerySet(CachingQuerySet):
    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._iterable_class = FrozenIterable

    def forget(self) -> None:
        """Delete this query's cache entry, because its rows are wrong."""
        cache.delete(FrozenIterable(self).query_key())


class FrozenManager(CachingManager):
    """Find published rows only, through the cache.

    `published` is the path to the time of publishing, null in a draft. Query by
    key or for the rows of one survey, because a list of all surveys grows.
    """

    def __init__(self, published: str) -> None:
        super().__init__()
        self.published = published

    def contribute_to_class(self, cls: type[models.Model], name: str) -> None:
        # Without the library's signals, which would use the cache at each save.
        super(CachingManager, self).contribute_to_class(cls, name)

    def get_queryset(self) -> FrozenQuerySet:
        rows = FrozenQuerySet(self.model, using=self._db)
        return rows.filter(**{f"{self.published}__isnull": False})

    def raw(self, *args: object, **kwargs: object) -> RawQuerySet:
        # The library's version would cache drafts as well.
        return super(CachingManager, self).raw(*args, **kwargs)


def in_transaction() -> bool:
    # Like `atomic(durable=True)`, this ignores the transaction of a TestCase.
    return any(
        not vars(block)["_from_testcase"]
        for connection in connections.all(initialized_only=True)
        for block in connection.atomic_blocks
    )

"""Rows of published surveys, kept in Memcached for good.

django-cache-machine finds and names the entries; what is unsafe about it is
left out. Its invalidation is not needed, for triggers freeze these rows; a
draft's row, which may still change, never passes the filter; and inside of a
transaction, which may yet be rolled back, nothing is read from the cache or
put there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from caching.base import CachingManager, CachingModelIterable, CachingQuerySet
from caching.config import NO_CACHE
from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.db import connections, models
from django.db.models.query import ModelIterable


class FrozenIterable(CachingModelIterable):
    """An entry that is not a list of the model's rows counts as none.

    Entries are pickled, as everything is that Django keeps in Memcached but
    plain text and numbers: whoever can write there can run code here. So it
    listens to the stack's own machines only. What a row says is for its
    reader to check.
    """

    def __iter__(self) -> Iterator[Any]:
        model = self.queryset.model
        if self.timeout == NO_CACHE or _in_transaction():
            yield from ModelIterable.__iter__(self)
            return
        try:
            key = self.query_key()
        except EmptyResultSet:
            return
        rows = cache.get(key)
        if not isinstance(rows, list) or any(type(row) is not model for row in rows):
            rows = list(ModelIterable.__iter__(self))
            # An empty answer may be a replica's that lags: it must not stick.
            if rows:
                cache.set(key, rows, timeout=None)
        yield from rows


class FrozenQuerySet(CachingQuerySet):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._iterable_class = FrozenIterable

    def forget(self) -> None:
        """Drop this query's entry: its rows are not what they should be."""
        cache.delete(FrozenIterable(self).query_key())


class FrozenManager(CachingManager):
    """`published` is the path to the moment of publishing, null in a draft.

    Ask by a key, or for the rows of one survey: a list of all surveys grows.
    """

    def __init__(self, published: str) -> None:
        super().__init__()
        self.published = published

    def contribute_to_class(self, cls: type[models.Model], name: str) -> None:
        # Without the library's signals, which ask the cache at each save.
        super(CachingManager, self).contribute_to_class(cls, name)

    def get_queryset(self) -> FrozenQuerySet:
        rows = FrozenQuerySet(self.model, using=self._db)
        return rows.filter(**{f"{self.published}__isnull": False})

    def raw(self, *args: Any, **kwargs: Any) -> Any:
        # The library's would keep drafts as well.
        return super(CachingManager, self).raw(*args, **kwargs)


def _in_transaction() -> bool:
    # As `atomic(durable=True)` does it: a TestCase's own one does not count.
    return any(
        not block._from_testcase  # type: ignore[attr-defined]
        for connection in connections.all(initialized_only=True)
        for block in connection.atomic_blocks
    )

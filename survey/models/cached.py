"""Cache rows of published surveys in Memcached, without expiry.

Built on django-cache-machine, whose unsafe parts are left out. Invalidation is
not needed: triggers freeze the rows of published surveys, and the filter
excludes drafts, which may still change. Inside a transaction, which may yet be
rolled back, the cache is neither read nor written.
"""

from __future__ import annotations

from collections.abc import Iterator

from caching.base import CachingManager, CachingModelIterable, CachingQuerySet
from caching.config import NO_CACHE
from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.db import connections, models
from django.db.models import Model
from django.db.models.query import ModelIterable, RawQuerySet


class FrozenIterable(CachingModelIterable):
    """Iterate over the rows, from the cache where possible.

    An entry that is not a list of the model's rows counts as missing. Entries
    are pickled, like everything that Django stores in Memcached except text
    and numbers: a process that can write there can run code here, which is why
    Memcached listens to the stack's own machines only. Readers check the
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
        rows = cache.get(key)
        if not isinstance(rows, list) or any(type(row) is not model for row in rows):
            rows = list(ModelIterable.__iter__(self))
            # An empty result may come from a lagging replica: do not cache it.
            if rows:
                cache.set(key, rows, timeout=None)
        yield from rows


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

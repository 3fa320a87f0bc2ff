"""Look up this thread's connection to the primary once.

Django's `connection` is a proxy, which looks for a running event loop before each
attribute: four times for each page save, for a fiftieth of a worker's instructions.
"""

from __future__ import annotations

import threading

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper


class _OfThread(threading.local):
    """Python calls `__init__` once in each thread."""

    def __init__(self) -> None:
        self.connection = connections[DEFAULT_DB_ALIAS]


_of_thread = _OfThread()


def primary() -> BaseDatabaseWrapper:
    """Return what `django.db.connection` stands for in this thread.

    For code that no event loop runs: there each task has its own.
    """
    return _of_thread.connection

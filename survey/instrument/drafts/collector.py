"""Pause Python's garbage collector while the rows of a draft are read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Let no collection begin inside: it would go through all rows made so far.

    With 10,000 options, collections take half of the time of a change, and there is
    nothing to collect. The rows are freed by counting references. In several threads,
    the first one to come turns the collector on again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

"""Measure commits, which Django sends past its wrappers of execution."""

from __future__ import annotations

from psycopg2.extensions import connection

from settings.monitoring import stores


class TimedConnection(connection):
    """A connection whose commits count as waiting for the primary."""

    def commit(self) -> None:
        with stores.timed(stores.PRIMARY):
            super().commit()

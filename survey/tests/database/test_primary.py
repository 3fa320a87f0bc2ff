from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from django.db import DEFAULT_DB_ALIAS, connections

from survey.database.primary import primary


def test_each_thread_has_djangos_connection():
    def look():
        return primary(), primary(), connections[DEFAULT_DB_ALIAS]

    first, again, known = look()
    assert first is again is known
    with ThreadPoolExecutor(1) as thread:
        other, other_again, other_known = thread.submit(look).result()
    assert other is other_again is other_known
    assert other is not first

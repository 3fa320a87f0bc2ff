"""SQLite, set up so that a page is on disk before it is called saved."""

from __future__ import annotations

from pathlib import Path


def sqlite_database(path: Path) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # A writer queues at BEGIN instead of failing at its first write.
            "transaction_mode": "IMMEDIATE",
            "timeout": 5,
            # FULL: WAL's default would lose the last pages with the power.
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                "PRAGMA foreign_keys=ON"
            ),
        },
    }

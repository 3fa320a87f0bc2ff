"""Configure SQLite to write to disk before a commit returns."""

from __future__ import annotations

from pathlib import Path


def sqlite_database(path: Path) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # A writer waits at BEGIN instead of failing at its first write.
            "transaction_mode": "IMMEDIATE",
            "timeout": 5,
            # WAL's default (NORMAL) can lose the last commits in a power failure.
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                "PRAGMA foreign_keys=ON"
            ),
        },
    }

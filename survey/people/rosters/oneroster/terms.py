"""Load which classes are over, and the names of homerooms."""

from __future__ import annotations

import sqlite3
from collections import Counter

LONGEST_CLASS = 64
CURRENT, FUTURE, ENDED = 0, 1, 2


def load_classes(db: sqlite3.Connection, today: str) -> None:
    """Fill `ended_class`, and `homeroom_class` with those that are not over.

    A class is over when all its terms are. A term that ends before it begins
    counts as over. Classes of unknown terms are not over.
    """
    terms = {
        term: ENDED
        if deleted or (end and end < max(today, start))
        else FUTURE
        if start > today
        else CURRENT
        for term, start, end, deleted in db.execute(
            "SELECT sourcedId, startDate, endDate, status <> '' FROM academicSessions"
        )
    }
    for table in (
        "ended_class (class TEXT PRIMARY KEY)",
        "homeroom_class (class TEXT PRIMARY KEY, school TEXT, title TEXT, state INT)",
    ):
        db.execute(f"DROP TABLE IF EXISTS temp.{table.partition(' ')[0]}")
        db.execute(f"CREATE TEMP TABLE {table} WITHOUT ROWID")
    # Homerooms are often all called "Homeroom".
    titles = Counter(
        db.execute(
            "SELECT schoolSourcedId, title FROM classes"
            " WHERE lower(classType) = 'homeroom' AND status = ''"
        )
    )
    for row in db.execute(
        "SELECT sourcedId, schoolSourcedId, title, classCode, lower(classType),"
        " termSourcedIds, status FROM classes"
    ):
        (pk, school, title, code, kind, term_ids, status) = row
        states = [
            terms[term.strip()] for term in term_ids.split(",") if term.strip() in terms
        ]
        state = ENDED if status else min(states, default=CURRENT)
        if state == ENDED:
            db.execute("INSERT INTO ended_class VALUES (?)", [pk])
        elif kind == "homeroom":
            if titles[school, title] > 1 and code:
                title = code if code.startswith(title) else f"{title} {code}"
            name = title if 0 < len(title) <= LONGEST_CLASS else code or title
            db.execute(
                "INSERT INTO homeroom_class VALUES (?, ?, ?, ?)",
                [pk, school, name[:LONGEST_CLASS], state],
            )

"""Keep the subgroups of people that a file has no column for.

All subgroups of a person are one value in the database, so that a row with some of
them has to take over the others.
"""

from __future__ import annotations

import json

from django.db import connection

from survey.people.rosters.comparison import Comparison
from survey.people.rosters.staging import UNCHANGED, Staging

# The first condition is fast, and most files have the columns of the one before.
_MERGED = """
    CASE WHEN r.attributes ?| (SELECT names FROM roster_kept) THEN (
        SELECT jsonb_object_agg(key, value) FROM jsonb_each(r.attributes)
        WHERE key = ANY ((SELECT names FROM roster_kept)::text[])
    ) || new.attributes ELSE new.attributes END
    """


def with_unstated_subgroups(c: Comparison) -> str:
    """Return the SQL of a row's subgroups, with those that the file does not state.

    For queries that call the row `new` and its respondent `r`. Subgroups that are no
    longer declared are not taken over.
    """
    unstated = sorted(c.administration.subgroups.keys() - c.columns.attributes.keys())
    if not unstated or not c.columns.attributes:
        return "new.attributes"
    if connection.vendor == "postgresql":
        c.staging.execute("DROP TABLE IF EXISTS roster_kept")
        c.staging.cursor.execute(
            "CREATE TEMPORARY TABLE roster_kept AS SELECT %s::text[] AS names",
            [unstated],
        )
        return _MERGED

    def merge(old: str | None, new: str) -> str:
        earlier = json.loads(old or "{}")
        remaining = {name: earlier[name] for name in unstated if name in earlier}
        # Sorted as those of a row, because texts are compared.
        return json.dumps(remaining | json.loads(new), sort_keys=True)

    connection.connection.create_function("merge_subgroups", 2, merge)
    return "merge_subgroups(r.attributes, new.attributes)"


def store_unstated_subgroups(staging: Staging, merged: str) -> None:
    """Complete the rows of people who change, by the SQL of the function above."""
    if merged == "new.attributes":
        return
    staging.execute(
        f"""
        UPDATE roster_row AS new SET attributes = {merged}
        FROM roster_match AS m
        JOIN {staging.people} AS r ON r.id = m.respondent_id
        WHERE m.row = new.row AND m.change <> '{UNCHANGED}'
        """  # noqa: S608
    )

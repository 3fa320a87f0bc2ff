"""Read when backups, drills and restore points ended, and what is archived."""

from __future__ import annotations

from contextlib import closing

from django.conf import settings
from django.db import connections

from settings.monitoring.answers import NOT_SET_UP, Answer, Sample

BACKUPS = """
SELECT (SELECT extract(epoch FROM max(ended_at)) FROM survey_backuprun
        WHERE kind = 'backup' AND ok) AS backup_timestamp_seconds,
       (SELECT (details->>'certificate_ends')::float FROM survey_backuprun
        WHERE kind = 'backup' ORDER BY ended_at DESC LIMIT 1)
           AS backup_certificate_timestamp_seconds,
       drill.at AS drill_timestamp_seconds,
       drill.ok::int AS drill_ok,
       (SELECT extract(epoch FROM max(ended_at)) FROM survey_backuprun
        WHERE kind = 'point') AS restore_point_timestamp_seconds,
       extract(epoch FROM last_archived_time) AS log_archived_timestamp_seconds,
       failed_count AS log_archive_failures_total
FROM pg_stat_archiver
LEFT JOIN (SELECT extract(epoch FROM ended_at) AS at, ok FROM survey_backuprun
           WHERE kind = 'drill' ORDER BY ended_at DESC LIMIT 1) drill ON true
"""


def read_backups() -> Answer:
    # Imported late: it imports this module.
    from settings.monitoring.dependency_checks import PostgreSQLProbe

    if connections["default"].vendor != "postgresql":
        return NOT_SET_UP
    with closing(PostgreSQLProbe("default")) as server:
        [row] = server.rows(BACKUPS)
    if settings.IS_DISTRIBUTED and row["restore_point_timestamp_seconds"] is None:
        # The program that makes points runs from the first day: it does not work.
        row["restore_point_timestamp_seconds"] = 0
    # What else has never happened has no sample.
    samples: list[Sample] = [
        (name, float(value), ()) for name, value in row.items() if value is not None
    ]
    return Answer(True, "read", samples=samples)

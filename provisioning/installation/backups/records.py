"""Record row counts and checksums of all tables at one point of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, wait_until
from provisioning.installation.postgresql import run_sql

# Rows in any order. A partitioned table is one, with its partitions.
COUNT_TABLES = """
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET extra_float_digits = 1;
SET statement_timeout = 0;
SELECT format('SELECT %1$L, count(*), coalesce(sum(hashtextextended(t::text, 0)), 0)'
              ' FROM %1$s t', c.oid::regclass)
FROM pg_class c
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
  AND NOT relispartition
ORDER BY relname \\gexec
"""
# The replica stands still for some milliseconds, for a snapshot of exactly this
# point, and goes on while the tables are read.
AT_ONE_POINT = f"""
SELECT pg_wal_replay_pause();
DO $$ BEGIN
    FOR attempt IN 1..1000 LOOP
        EXIT WHEN pg_get_wal_replay_pause_state() = 'paused';
        PERFORM pg_sleep(0.01);
    END LOOP;
    ASSERT pg_get_wal_replay_pause_state() = 'paused', 'the replica does not pause';
END $$;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT 'lsn', pg_last_wal_replay_lsn(),
       to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
SELECT pg_wal_replay_resume();
{COUNT_TABLES}
COMMIT;
"""
# A recovery to a time or a point ends at the next transaction after it, so there has
# to be one. The file of the log is archived when it is full, or switched.
SWITCH_LOG = """
SELECT pg_current_xact_id() \\g /dev/null
SELECT pg_walfile_name(pg_switch_wal());
"""


def count_tables(run: Path, port: int = 5432) -> dict[str, list[str]]:
    """Return the rows and the checksum of each table."""
    rows = run_sql(COUNT_TABLES, run=run, port=port, failing="Tables can't be counted")
    return {table: figures for table, *figures in rows}


def record_replica(run: Path, port: int) -> dict[str, Any]:
    """Count the tables on a replica while it replays, at a point that it names."""
    try:
        (_, lsn, at), *rows = run_sql(
            AT_ONE_POINT, run=run, port=port, failing="No record of the tables"
        )
    finally:
        run_sql(
            "SELECT pg_wal_replay_resume()",
            run=run,
            port=port,
            failing="The replica's replay can't be resumed",
        )
    return {"lsn": lsn, "at": at, "tables": {name: list(it) for name, *it in rows}}


def archive_log(*, seconds: float = 120, **primary: Any) -> str:
    """Have all of the primary's log up to now archived; return its last file."""
    [[file]] = run_sql(SWITCH_LOG, **primary, failing="The log can't be switched")
    archived = f"SELECT last_archived_wal >= '{file}' FROM pg_stat_archiver"  # noqa: S608
    if not wait_until(
        lambda: run_sql(archived, **primary) == [["t"]], seconds=seconds, pause=0.2
    ):
        raise Refusal(f"The log ({file}) is not archived within {seconds:.0f} s")
    return file


def differences(
    recorded: dict[str, list[str]], counted: dict[str, list[str]]
) -> list[str]:
    """Return a sentence for each table that is not as recorded."""
    sentences = []
    for name in sorted({*recorded, *counted}):
        before, after = recorded.get(name), counted.get(name)
        if before == after:
            continue
        if before is None or after is None:
            sentences.append(f"{name} {'is missing' if before else 'was not there'}")
        elif before[0] != after[0]:
            sentences.append(f"{name} has {after[0]} rows instead of {before[0]}")
        else:
            sentences.append(f"{name} has other content")
    return sentences

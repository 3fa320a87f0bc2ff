"""Checks of PostgreSQL and of what is stored in it; no answer is read."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal
from provisioning.installation.backups.repository import Repository, pgbackrest
from provisioning.installation.doctor.findings import (
    ERROR,
    NOTE,
    WARNING,
    Facts,
    Finding,
    Server,
    Unavailable,
    age,
    call,
    size,
)
from provisioning.installation.postgresql import DATABASE, postgresql_programs
from provisioning.monitoring import thresholds
from provisioning.monitoring.thresholds import DAY

# Autovacuum begins at 200 million transactions, PostgreSQL stops near 2 billion.
XIDS_WARNING, XIDS_ERROR = 500_000_000, 1_500_000_000
CONNECTIONS_USED = 0.8
# Of the log, that a replica has not read; see max_slot_wal_keep_size.
SLOT_BYTES = 4 * 10**9

SERVER = """
SELECT json_build_object(
    'connections', (SELECT count(*) FROM pg_stat_activity
                    WHERE backend_type = 'client backend'),
    'most', current_setting('max_connections')::int,
    'off', (SELECT coalesce(json_agg(name), '[]') FROM pg_settings
            WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
            AND setting = 'off'),
    'xids', (SELECT max(age(datfrozenxid)) FROM pg_database),
    'checksum_failures', (SELECT coalesce(sum(checksum_failures), 0)
                          FROM pg_stat_database),
    'collations', (SELECT coalesce(json_agg(name), '[]') FROM (
        SELECT datname AS name FROM pg_database
        WHERE datcollversion <> pg_database_collation_actual_version(oid)
        UNION ALL SELECT collname FROM pg_collation
        WHERE collversion <> pg_collation_actual_version(oid)) changed),
    'standbys', (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'),
    'lag', (SELECT coalesce(max(extract(epoch FROM replay_lag)), 0)
            FROM pg_stat_replication),
    'slots', (SELECT coalesce(json_agg(json_build_array(slot_name, active,
            coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0),
            coalesce(wal_status, ''))), '[]') FROM pg_replication_slots),
    'archive_fails', (SELECT last_failed_time > coalesce(last_archived_time,
                                                         '-infinity')
                      FROM pg_stat_archiver))
"""
RUNS = """
SELECT json_build_object(
    'backup_age', (SELECT extract(epoch FROM now() - max(ended_at))
                   FROM survey_backuprun WHERE kind = 'backup' AND ok),
    'certificate_ends', (SELECT (details->>'certificate_ends')::float
                         FROM survey_backuprun WHERE kind = 'backup'
                         ORDER BY ended_at DESC LIMIT 1),
    'drill', (SELECT json_build_array(ok, extract(epoch FROM now() - ended_at))
              FROM survey_backuprun WHERE kind = 'drill'
              ORDER BY ended_at DESC LIMIT 1))
"""
# Times and counts; no subject of a job and no address. An e-mail to staff may wait for
# an hour: it is tried again after two, four and eight minutes.
WORK = """
SELECT json_build_object(
    'waits', (SELECT extract(epoch FROM now() - min(created_at)) FROM survey_job
              WHERE state = 'waiting' AND (heartbeat_at IS NULL
                                           OR heartbeat_at <= now()
                                           - interval '30 seconds')),
    'waiting', (SELECT count(*) FROM survey_job WHERE state = 'waiting'),
    'running', (SELECT count(*) FROM survey_job WHERE state = 'running'
                AND heartbeat_at > now() - interval '30 seconds'),
    'survey_day', (SELECT to_char(ends_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
                   FROM survey_surveyday WHERE ended_at IS NULL AND ends_at > now()),
    'emails', (SELECT count(*) FROM accounts_letter
               WHERE created_at < now() - interval '1 hour'),
    'email_waits', (SELECT extract(epoch FROM now() - min(created_at))
                    FROM accounts_letter))
"""
MIGRATIONS = """
SELECT json_agg(json_build_array(app, name)) FROM django_migrations
WHERE app IN ('accounts', 'survey', 'reports')
"""


def ask(server: Server, query: str, *, instance: str = "primary") -> Any:
    """Return the JSON that a query makes.

    Raises Unavailable with PostgreSQL's reason.
    """
    port = re.search(
        r"^port = (\d+)",
        (server.home / "etc" / instance / "server.conf").read_text(),
        re.M,
    )
    status, printed = call(
        [postgresql_programs(server.home / "data" / instance) / "psql"]
        + ["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"]
        + [f"--host={server.home / 'run'}", f"--port={port[1] if port else 5432}"]
        + ["--username=postgres", f"--dbname={DATABASE}", f"--command={query}"],
        env={
            "PGCONNECT_TIMEOUT": "4",
            "PGOPTIONS": "-c statement_timeout=5s -c default_transaction_read_only=on",
        },
    )
    if status:
        raise Unavailable(printed)
    return json.loads(printed or "null")


def read_postgresql(server: Server) -> Facts:
    try:
        return {"problem": "", **ask(server, SERVER)}
    except Unavailable as error:
        return {"problem": str(error)}


def judge_postgresql(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["problem"]:
        yield Finding(
            "postgresql.down",
            ERROR,
            f"PostgreSQL does not answer, so no page is saved: {facts['problem']}",
            f"{server.command}/stack logs primary; is the disk full? If it can't be"
            " started: docs/guides/failover.md",
        )
        return
    if facts["off"]:
        yield Finding(
            "postgresql.durability",
            ERROR,
            f"{', '.join(facts['off'])} is off: saved pages may be lost by a crash",
            "ALTER SYSTEM RESET ALL and reload; for single roles:"
            " docs/decisions/0081-readyz-asks-the-pool.md",
        )
    if facts["connections"] > CONNECTIONS_USED * facts["most"]:
        yield Finding(
            "postgresql.connections",
            WARNING,
            f"{facts['connections']} of {facts['most']} connections are in use",
            "which programs hold them: SELECT usename, state, count(*) FROM"
            " pg_stat_activity GROUP BY 1, 2",
        )
    yield from judge_stored_rows(facts)
    if facts["archive_fails"]:
        yield Finding(
            "backup.archive",
            ERROR,
            "The log of the database can't be archived: what happens now can't be"
            " restored to the minute",
            f"{server.command}/stack logs backup: is the place of the backups away or"
            " full?",
        )


def judge_stored_rows(facts: Facts) -> Iterator[Finding]:
    if facts["xids"] > XIDS_WARNING:
        yield Finding(
            "postgresql.wraparound",
            ERROR if facts["xids"] > XIDS_ERROR else WARNING,
            f"The oldest transaction is {facts['xids']:,} old: at 2 billion PostgreSQL"
            " takes no writes",
            "end old sessions and prepared transactions, and drop old slots; then"
            " vacuumdb --all --freeze when few people answer",
        )
    if facts["checksum_failures"]:
        yield Finding(
            "postgresql.checksums",
            ERROR,
            f"{facts['checksum_failures']} pages of the database were read damaged",
            "the disk is failing: promote the replica (docs/guides/failover.md), or"
            " restore the last backup on another machine",
        )
    if facts["collations"]:
        yield Finding(
            "postgresql.collation",
            WARNING,
            "The system's rules of sorting have changed since the indexes were made:"
            f" {', '.join(facts['collations'])}",
            f"REINDEX DATABASE {DATABASE}, then ALTER DATABASE {DATABASE} REFRESH"
            " COLLATION VERSION, when few people answer:"
            " docs/guides/postgresql-upgrade.md",
        )


def read_replica(server: Server) -> Facts:
    facts: Facts = ask(server, SERVER)
    try:
        facts["is_paused"] = ask(
            server, "SELECT to_json(pg_is_wal_replay_paused())", instance="replica"
        )
    except (Unavailable, OSError, Refusal):
        facts["is_paused"] = False
    return facts


def judge_replica(server: Server, facts: Facts) -> Iterator[Finding]:
    if server.has_replica and not facts["standbys"]:
        yield Finding(
            "replica.gone",
            ERROR,
            "The second copy of the database gets nothing: no replica is connected",
            f"{server.command}/stack logs replica; if it can't follow any more, delete"
            f" {server.home}/data/replica and run install (or stack up) again",
        )
    elif facts["is_paused"] or facts["lag"] > thresholds.REPLICA_LAG:
        behind = "is paused" if facts["is_paused"] else f"is {age(facts['lag'])} behind"
        yield Finding(
            "replica.lag",
            WARNING,
            f"The second copy of the database {behind}: results and exports are old",
            "if it is paused: SELECT pg_wal_replay_resume() there; otherwise its disk,"
            " or a long export: pg_stat_activity",
        )
    for name, is_active, behind, status in facts["slots"]:
        if not is_active and name != "replica" or behind > SLOT_BYTES:
            yield Finding(
                "replica.slot",
                WARNING,
                f"The slot {name} keeps {size(behind)} of the log"
                f"{'' if is_active else ', and nobody reads it'}",
                f"if no replica needs it: SELECT pg_drop_replication_slot('{name}')",
            )
        elif status in ("unreserved", "lost"):
            yield Finding(
                "replica.slot",
                WARNING,
                f"The replica of the slot {name} has missed a part of the log",
                f"delete {server.home}/data/replica, and run install (or stack up)"
                " again: it is copied anew",
            )


def read_backups(server: Server) -> Facts:
    """Read the records, and the repository, which needs no PostgreSQL."""
    try:
        repository = Repository.of_stack(server.home)
    except Refusal:
        return {"is_off": True}
    created = server.home / "data" / "primary" / "PG_VERSION"
    facts: Facts = {
        "is_off": False,
        "database_age": time.time() - created.stat().st_mtime,
        **read_place(server, repository),
    }
    try:
        facts |= ask(server, RUNS)
    except (Unavailable, Refusal):
        # By the repository alone.
        last = facts["last"]
        facts |= {"backup_age": time.time() - last if last else None}
        facts |= {"drill": [True, 0], "certificate_ends": None}
    return facts


def read_place(server: Server, repository: Repository) -> Facts:
    status, printed = call(
        pgbackrest(
            repository.config, "info", "--output=json", stanza=repository.stanza
        ),
        user=repository.user,
    )
    facts: Facts = {"problem": "", "last": 0, "full": None}
    if status:
        facts["problem"] = printed
    else:
        [stanza, *_] = json.loads(printed) or [{"backup": [], "status": {"code": 1}}]
        ends = [each["timestamp"]["stop"] for each in stanza["backup"]]
        facts["last"] = max(ends, default=0)
        # 2: no backup yet.
        if stanza["status"]["code"] not in (0, 2):
            facts["problem"] = stanza["status"].get("message", "unknown")
    path = re.search(r"^repo1-path = (.+)", repository.config.read_text(), re.M)
    is_here = "repo1-host" not in repository.config.read_text()
    if path and is_here and (folder := Path(path[1])).exists():
        disk = os.statvfs(folder)
        facts["full"] = [
            str(folder),
            disk.f_bavail * disk.f_frsize,
            disk.f_blocks * disk.f_frsize,
        ]
    return facts


def judge_backups(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["is_off"]:
        yield Finding(
            "backup.none",
            ERROR if server.is_installed else NOTE,
            "No backups are made",
            "docs/guides/backups.md",
        )
        return
    if facts["problem"]:
        yield Finding(
            "backup.unreadable",
            ERROR,
            f"The backups can't be read: {facts['problem']}",
            "is their place mounted, and has anyone moved the keys or files? Until"
            f" they can: {server.command}/stack backup --full",
        )
    if facts["full"] and facts["full"][1] < thresholds.DISK_FREE * facts["full"][2]:
        folder, free, _ = facts["full"]
        yield Finding(
            "backup.full",
            ERROR,
            f"The place of the backups, {folder}, has {size(free)} left",
            "enlarge it, or keep backups for fewer days: --set backup_retention_days=N",
        )
    last = facts["backup_age"]
    if (facts["database_age"] if last is None else last) > thresholds.BACKUP_AGE * DAY:
        since = "has ever succeeded" if last is None else f"for {age(last)}"
        yield Finding(
            "backup.old",
            ERROR,
            f"No backup {since}" if last is None else f"No backup was made {since}",
            f"{server.command}/stack logs backup, then {server.command}/stack backup",
        )
    yield from judge_drill(server, facts)
    ends = facts["certificate_ends"]
    if ends and ends - time.time() < thresholds.BACKUP_CERTIFICATE_ENDS * DAY:
        yield Finding(
            "backup.certificate",
            WARNING,
            "The certificate of the backups ends within"
            f" {thresholds.BACKUP_CERTIFICATE_ENDS} days",
            f"{server.command}/install (or stack up) renews it; docs/guides/backups.md",
        )


def judge_drill(server: Server, facts: Facts) -> Iterator[Finding]:
    passed, since = facts["drill"] or (None, facts["database_age"])
    late = since > thresholds.DRILL_AGE * DAY
    if passed and not late or passed is None and not late:
        return
    problem = (
        "A restore has never been tried"
        if passed is None
        else f"The last restore was tried {age(since)} ago"
        if passed
        else "The last restore that was tried failed"
    )
    yield Finding(
        "backup.drill",
        WARNING,
        f"{problem}: whether the backups help is not known",
        f"{server.command}/run drill_restore --stack",
    )


def read_work(server: Server) -> Facts:
    facts: Facts = ask(server, WORK)
    return facts


def judge_work(server: Server, facts: Facts) -> Iterator[Finding]:
    waits = facts["waits"] or 0
    if facts["survey_day"]:
        yield Finding(
            "jobs.survey_day",
            NOTE,
            f"A survey day is on until {facts['survey_day']} UTC: exports, scores and"
            " roster syncs wait",
            f"to end it earlier: {server.command}/stack manage survey_day off",
        )
    elif waits > thresholds.JOBS_WAIT * 60 and not facts["running"]:
        yield Finding(
            "jobs.wait",
            WARNING,
            f"{facts['waiting']} jobs wait, the oldest for {age(waits)}, and none runs",
            f"{server.command}/stack logs worker; they start by themselves once a"
            " worker does",
        )
    if facts["emails"]:
        yield Finding(
            "mail.queue",
            WARNING,
            f"{facts['emails']} e-mails to staff wait, the oldest for"
            f" {age(facts['email_waits'])}",
            f"{server.command}/stack logs worker says what the mail server answers;"
            " they are sent by themselves once it takes them",
        )


def read_versions(server: Server) -> Facts:
    """Compare migrations of the release with those of the database, by their names."""
    release = (server.home / "current").resolve()
    root = release if server.is_installed else Path(__file__).parents[3]
    paths = [
        path
        for app in ("accounts", "survey", "reports")
        for path in (root / app / "migrations").glob("0*.py")
    ]
    on_disk = {f"{path.parents[1].name}.{path.stem}" for path in paths}
    applied = {f"{app}.{name}" for app, name in ask(server, MIGRATIONS) or []}
    # Names that a joined migration replaces are applied, and on no disk.
    known = set(re.findall(r"\w+", "".join(path.read_text() for path in paths)))
    released = server.home / "released"
    return {
        "missing": sorted(on_disk - applied),
        "newer": sorted(
            name for name in applied - on_disk if name.partition(".")[2] not in known
        ),
        "current": release.name,
        "released": released.read_text().strip() if released.exists() else "",
        "is_installed": server.is_installed,
    }


def judge_versions(server: Server, facts: Facts) -> Iterator[Finding]:
    next_try = f"run {server.command}/install (or stack up) again: it goes on"
    if facts["missing"]:
        yield Finding(
            "version.schema",
            ERROR,
            "The database is older than the release: it lacks"
            f" {', '.join(facts['missing'][:3])}",
            next_try,
        )
    if facts["newer"]:
        yield Finding(
            "version.schema",
            WARNING,
            f"The database has {', '.join(facts['newer'][:3])}, of a newer release",
            "old code reads new tables; once it works, install the newer release again",
        )
    if facts["is_installed"] and facts["released"] not in ("", facts["current"]):
        yield Finding(
            "version.release",
            WARNING,
            f"{facts['current']} serves, and {facts['released']} was released last: an"
            " installation was interrupted",
            next_try,
        )

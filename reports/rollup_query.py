"""Everybody of some administrations, counted on the replica by one statement."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.utils import timezone

from accounts.models import School
from reports.models import Curve
from survey.database.replica.health import REPLICA
from survey.database.replica.reports import reports_database
from survey.models import Administration, Role

HOUR = 3600
# How long to wait for the replica to replay what was just written.
PATIENCE = 1.0
# Neither a page turn's time nor its memory, in which all groups have to fit.
COUNTING = "SET LOCAL statement_timeout = '50s'; SET LOCAL work_mem = '128MB'"

# One scan for three counts: by grade, by hour of starting, by hour of finishing;
# `kind` tells them apart. The hours become one text for each place here: as
# rows they would be half a million for Python to take apart each minute.
POSTGRESQL = """
WITH counted AS MATERIALIZED (
    SELECT administration_id, school_id, grouping(grade, {started}, {finished}) AS kind,
           grade, coalesce({started}, {finished}) AS hour,
           count(*)::int AS eligible, count(started_at)::int AS started,
           count(completed_at)::int AS finished,
           count(*) FILTER (WHERE completed_at >= %s) AS today,
           max(started_at) AS last
    FROM survey_respondent
    WHERE administration_id = ANY(%s) AND withdrawn_at IS NULL
    GROUP BY GROUPING SETS (
        (administration_id, school_id, grade),
        (administration_id, school_id, {started}),
        (administration_id, school_id, {finished})
    )
), hours AS (
    SELECT administration_id, school_id, district_id,
           extract(epoch FROM hour)::bigint AS hour,
           sum(CASE WHEN kind = {starts} THEN started ELSE 0 END) AS started,
           sum(CASE WHEN kind = {finishes} THEN finished ELSE 0 END) AS finished
    FROM counted JOIN accounts_school ON accounts_school.id = school_id
    WHERE kind <> {grades} AND hour IS NOT NULL
    GROUP BY GROUPING SETS (
        (administration_id, school_id, hour),
        (administration_id, district_id, hour),
        (administration_id, hour)
    )
)
SELECT administration_id, school_id, NULL::bigint, grade,
       eligible, started, finished, today, last, NULL::text
FROM counted WHERE kind = {grades}
UNION ALL
SELECT administration_id, school_id, district_id, NULL, NULL, NULL, NULL, NULL, NULL,
       '[' || string_agg(
           '[' || hour || ',' || started || ',' || finished || ']', ',' ORDER BY hour
       ) || ']'
FROM hours GROUP BY administration_id, school_id, district_id
"""
POSTGRESQL_HOUR = "date_bin('1 hour', {column}, '{origin}')"

SQLITE = """
WITH invited AS (
    SELECT * FROM survey_respondent
    WHERE administration_id IN ({ids}) AND withdrawn_at IS NULL
)
SELECT administration_id, school_id, {grades}, grade, NULL,
       count(*), count(started_at), count(completed_at),
       count(CASE WHEN completed_at >= %s THEN 1 END), max(started_at)
FROM invited GROUP BY 1, 2, 4
UNION ALL
SELECT administration_id, school_id, {starts}, NULL, {started},
       count(*), count(*), 0, 0, NULL
FROM invited WHERE started_at IS NOT NULL GROUP BY 1, 2, 5
UNION ALL
SELECT administration_id, school_id, {finishes}, NULL, {finished},
       count(*), 0, count(*), 0, NULL
FROM invited WHERE completed_at IS NOT NULL GROUP BY 1, 2, 5
"""
SQLITE_HOUR = (
    "(CAST(strftime('%%s', {column}) AS integer) - {offset}) / 3600 * 3600 + {offset}"
)
# What `grouping` says: a bit for each column that the row is not grouped by.
BY_GRADE, BY_START, BY_FINISH = 0b011, 0b101, 0b110

Place = tuple[str, int]
Rows = Sequence[tuple[Any, ...]]


@dataclass(slots=True)
class InSchool:
    eligible: int = 0
    started: int = 0
    finished: int = 0
    finished_today: int = 0
    last_started_at: datetime | None = None


@dataclass(slots=True)
class Counted:
    """One administration's figures, before they are written."""

    schools: dict[int, InSchool] = field(default_factory=dict)
    grades: dict[tuple[int, str], tuple[int, int, int]] = field(default_factory=dict)
    # As `Curve.hours` has them.
    curves: dict[Place, str] = field(default_factory=dict)

    def add(self, school: int, grade: str, numbers: Sequence[Any]) -> None:
        """One grade: eligible, started, finished, today, last start."""
        eligible, started, finished, today, last = numbers
        found = self.schools.setdefault(school, InSchool())
        found.eligible += eligible
        found.started += started
        found.finished += finished
        found.finished_today += today
        if last is not None:
            moment = _moment(last)
            found.last_started_at = max(moment, found.last_started_at or moment)
        self.grades[school, grade] = (eligible, started, finished)


def reading_alias() -> str:
    """Where to count: in the reports' database, or on a replica known by name."""
    alias = reports_database()
    if alias == DEFAULT_DB_ALIAS and REPLICA in connections.databases:
        return REPLICA
    return alias


def give_a_sign() -> None:
    """See that the replica has something new to replay, and wait for that.

    How old it is can only be told from the last commit that it has replayed:
    when nobody saves anything, an hour ago, though it lacks nothing. So this
    commits a message that no table holds.
    """
    alias = reading_alias()
    if connections[alias].vendor != "postgresql" or alias == DEFAULT_DB_ALIAS:
        return
    # The reports' pool may lead to the primary, which lags behind nobody.
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        if not cursor.fetchone()[0]:
            return
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [now] = cursor.fetchone()
        cursor.execute("SELECT pg_logical_emit_message(true, 'rates', '')")
    deadline = time.monotonic() + PATIENCE
    with connections[alias].cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute("SELECT pg_last_xact_replay_timestamp() >= %s", [now])
            if cursor.fetchone()[0]:
                return
            time.sleep(0.02)


def count(chosen: Sequence[Administration]) -> tuple[datetime, dict[int, Counted]]:
    """All figures, and the moment that they are true for."""
    alias = reading_alias()
    database = connections[alias]
    ids = [one.pk for one in chosen]
    found = {pk: Counted() for pk in ids}
    if database.vendor == "postgresql":
        with transaction.atomic(using=alias), database.cursor() as cursor:
            cursor.execute(COUNTING)
            # Before the snapshot of the counting, so that it promises no more.
            as_of = _moment_of(cursor)
            cursor.execute(_postgresql(), [_midnight(as_of), ids])
            _sort_postgresql(cursor.fetchall(), found)
    else:
        as_of = timezone.now()
        midnight = database.ops.adapt_datetimefield_value(_midnight(as_of))
        with database.cursor() as cursor:
            cursor.execute(_sqlite(len(ids)), [*ids, midnight])
            _sort_sqlite(cursor.fetchall(), found)
    for one in chosen:
        if one.role == Role.TEACHER:
            found[one.pk].grades.clear()
    return as_of, found


def _moment_of(cursor: Any) -> datetime:
    cursor.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_xact_replay_timestamp()"
        " ELSE clock_timestamp() END"
    )
    [moment] = cursor.fetchone()
    return moment


def _midnight(moment: datetime) -> datetime:
    """When the local day of this moment began."""
    local = timezone.localtime(moment)
    return local.replace(hour=0, minute=0, second=0, microsecond=0)


def _offset() -> int:
    """Seconds by which local hours begin after those of UTC: mostly none."""
    difference = timezone.localtime().utcoffset() or timedelta()
    return -int(difference.total_seconds()) % HOUR


def _postgresql() -> str:
    origin = datetime.fromtimestamp(_offset(), UTC).isoformat()
    hours = {
        name: POSTGRESQL_HOUR.format(column=column, origin=origin)
        for name, column in (("started", "started_at"), ("finished", "completed_at"))
    }
    return POSTGRESQL.format(
        **hours, grades=BY_GRADE, starts=BY_START, finishes=BY_FINISH
    )


def _sqlite(count: int) -> str:
    return SQLITE.format(
        ids=", ".join(["%s"] * count),
        grades=BY_GRADE,
        starts=BY_START,
        finishes=BY_FINISH,
        started=SQLITE_HOUR.format(column="started_at", offset=_offset()),
        finished=SQLITE_HOUR.format(column="completed_at", offset=_offset()),
    )


def _sort_postgresql(rows: Rows, found: dict[int, Counted]) -> None:
    for administration, school, district, grade, *numbers, hours in rows:
        counted = found[administration]
        if hours is None:
            counted.add(school, grade, numbers)
        elif school is not None:
            counted.curves[Curve.Level.SCHOOL, school] = hours
        elif district is not None:
            counted.curves[Curve.Level.DISTRICT, district] = hours
        else:
            counted.curves[Curve.Level.ALL, 0] = hours


def _sort_sqlite(rows: Rows, found: dict[int, Counted]) -> None:
    districts = dict(School.objects.values_list("pk", "district"))
    # Administration and place -> beginning of the hour -> [started, finished].
    sums: dict[tuple[int, Place], dict[int, list[int]]] = {}
    for administration, school, kind, grade, hour, *numbers in rows:
        if kind == BY_GRADE:
            found[administration].add(school, grade, numbers)
            continue
        for place in (
            (Curve.Level.SCHOOL, school),
            (Curve.Level.DISTRICT, districts[school]),
            (Curve.Level.ALL, 0),
        ):
            of_place = sums.setdefault((administration, place), {})
            both = of_place.setdefault(hour, [0, 0])
            both[0] += numbers[1]
            both[1] += numbers[2]
    for (administration, where), hours in sums.items():
        text = ",".join(f"[{hour},{s},{f}]" for hour, (s, f) in sorted(hours.items()))
        found[administration].curves[where] = f"[{text}]"


def _moment(value: datetime | str) -> datetime:
    """As either database returns it to a plain cursor."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)

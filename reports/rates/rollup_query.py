"""Count the people of several administrations on the replica, in one statement."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from accounts.models import School
from reports.models import Curve
from reports.rates.counting_groups import count_waiting
from survey.database.replica.health import REPLICA
from survey.database.replica.reports import reports_database
from survey.models import Administration, Denominator, OptOut, Respondent, Role

HOUR = 3600
# Seconds to wait for the replica to replay what was just written.
REPLAY_TIMEOUT = 1.0
# More time and memory than a page may use: all groups have to fit into it.
LIMITS = "SET LOCAL statement_timeout = '50s'; SET LOCAL work_mem = '128MB'"

# People who began with an open code count once they have an answer: until then it
# may have been a look at the first page, or a program. One look-up for each of these
# people: with EXISTS, the planner may read all responses instead.
# People who have declined stay invited, as refusals do in the rates of AAPOR, and
# have not finished. People count in their `CountedGroup` if they have one. The table
# is small, so the join costs each other person one look-up in a hash table.
PEOPLE = """
    SELECT r.administration_id, r.started_at,
           CASE WHEN r.declined_at IS NULL THEN r.completed_at END AS completed_at,
           CASE WHEN c.respondent_id IS NULL THEN r.school_id ELSE c.school_id END
           AS school_id,
           CASE WHEN c.respondent_id IS NULL THEN r.grade ELSE c.grade END AS grade
    FROM survey_respondent r
    LEFT JOIN survey_countedgroup c
           ON c.respondent_id = r.id AND c.administration_id {in_frozen}
    WHERE r.administration_id {in_chosen}
      AND (r.open_code_id IS NULL OR (
          SELECT 1 FROM survey_response x
          WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
          LIMIT 1
      ) IS NOT NULL)
      AND (c.school_id IS NOT NULL
           OR c.respondent_id IS NULL AND r.withdrawn_at IS NULL)
"""

# One scan makes three counts: by grade, by hour of starting and by hour of
# finishing; `kind` says which of them a row belongs to. The hours of a place
# are joined into one text here, because they would be half a million rows for
# Python to read each minute.
POSTGRESQL = """
WITH people AS ({people}), counted AS MATERIALIZED (
    SELECT administration_id, school_id, grouping(grade, {started}, {finished}) AS kind,
           grade, coalesce({started}, {finished}) AS hour,
           count(*)::int AS eligible, count(started_at)::int AS started,
           count(completed_at)::int AS finished,
           count(*) FILTER (WHERE completed_at >= %s) AS today,
           max(started_at) AS last
    FROM people
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
WITH people AS ({people})
SELECT administration_id, school_id, {grades}, grade, NULL,
       count(*), count(started_at), count(completed_at),
       count(CASE WHEN completed_at >= %s THEN 1 END), max(started_at)
FROM people GROUP BY 1, 2, 4
UNION ALL
SELECT administration_id, school_id, {starts}, NULL, {started},
       count(*), count(*), 0, 0, NULL
FROM people WHERE started_at IS NOT NULL GROUP BY 1, 2, 5
UNION ALL
SELECT administration_id, school_id, {finishes}, NULL, {finished},
       count(*), 0, count(*), 0, NULL
FROM people WHERE completed_at IS NOT NULL GROUP BY 1, 2, 5
"""
SQLITE_HOUR = (
    "(CAST(strftime('%%s', {column}) AS integer) - {offset}) / 3600 * 3600 + {offset}"
)
# Results of `grouping()`: one bit for each column a row is not grouped by.
BY_GRADE, BY_START, BY_FINISH = 0b011, 0b101, 0b110

# Curve.Level, and the key of the school or district (0 for all).
Place = tuple[str, int]


@dataclass(slots=True)
class SchoolRateCounts:
    eligible: int = 0
    started: int = 0
    finished: int = 0
    finished_today: int = 0
    last_started_at: datetime | None = None


@dataclass(slots=True)
class AdministrationCounts:
    """The figures of one administration, before they are stored."""

    schools: dict[int, SchoolRateCounts] = field(default_factory=dict)
    # School and grade -> eligible, started, finished.
    grades: dict[tuple[int, str], tuple[int, int, int]] = field(default_factory=dict)
    # In the format of `Curve.hours`.
    curves: dict[Place, str] = field(default_factory=dict)
    # School -> people who have opted out, who are not among the eligible.
    opted_out: dict[int, int] = field(default_factory=dict)
    # School -> people whose consent is missing, who are not among them either.
    awaiting_consent: dict[int, int] = field(default_factory=dict)
    # School -> people whose change of the roster does not count yet.
    waiting: dict[int, int] = field(default_factory=dict)

    def add(self, school: int, grade: str, numbers: Sequence[Any]) -> None:
        """Add a grade: eligible, started, finished, finished today, last start."""
        eligible, started, finished, today, last = numbers
        school_counts = self.schools.setdefault(school, SchoolRateCounts())
        school_counts.eligible += eligible
        school_counts.started += started
        school_counts.finished += finished
        school_counts.finished_today += today
        if last is not None:
            # SQLite's cursor returns a text in UTC.
            if isinstance(last, str):
                last = datetime.fromisoformat(last)
            moment = last if last.tzinfo else last.replace(tzinfo=UTC)
            school_counts.last_started_at = max(
                moment, school_counts.last_started_at or moment
            )
        self.grades[school, grade] = (eligible, started, finished)


def counting_database() -> str:
    """Return the alias to count on: the reports' database, or else the replica."""
    alias = reports_database()
    if alias == DEFAULT_DB_ALIAS and REPLICA in connections.databases:
        return REPLICA
    return alias


def refresh_replica_timestamp() -> None:
    """Commit something for the replica to replay, and wait until it has.

    The age of a replica is only known from the last commit it has replayed: if
    nothing is saved for an hour, it seems an hour old although nothing is
    missing. So this commits a logical message, which is in no table.
    """
    alias = counting_database()
    if connections[alias].vendor != "postgresql" or alias == DEFAULT_DB_ALIAS:
        return
    # The pool for reports may lead to the primary, which is always current.
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        if not cursor.fetchone()[0]:
            return
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [now] = cursor.fetchone()
        cursor.execute("SELECT pg_logical_emit_message(true, 'rates', '')")
    deadline = time.monotonic() + REPLAY_TIMEOUT
    with connections[alias].cursor() as cursor:
        while time.monotonic() < deadline:
            cursor.execute("SELECT pg_last_xact_replay_timestamp() >= %s", [now])
            if cursor.fetchone()[0]:
                return
            # Usually the replica is only milliseconds behind.
            time.sleep(0.02)


def count(
    administrations: Sequence[Administration],
) -> tuple[datetime, dict[int, AdministrationCounts]]:
    """Return when the figures were true, and the figures by administration."""
    counts = {
        administration.pk: AdministrationCounts() for administration in administrations
    }
    frozen = has_frozen_groups(administrations)
    if connections[counting_database()].vendor == "postgresql":
        as_of = _count_postgresql(counts, frozen)
    else:
        as_of = _count_sqlite(counts, frozen)
    for key, by_school in count_waiting(frozen, counting_database()).items():
        counts[key].waiting = by_school
    # Nobody's answers show in opt-outs: they do not wait, as changes of the roster do.
    place = ("respondent__administration", "respondent__school")
    current = OptOut.objects.using(counting_database()).filter(
        ended_at=None, respondent__administration__in=list(counts)
    )
    opted_out = current.order_by().values_list(*place)
    for key, school, people in opted_out.annotate(people=Count("respondent")):
        counts[key].opted_out[school] = people
    for key, school, people in _opted_out_numbers(administrations):
        counts[key].opted_out[school] = people
    with_consent = [
        administration.pk
        for administration in administrations
        if administration.requires_consent
    ]
    for key, school, people in _awaiting_consent(with_consent):
        counts[key].awaiting_consent[school] = people
    for administration in administrations:
        # Grades of teachers are too small to be of use, and starts have none.
        is_count = administration.denominator == Denominator.COUNT
        if administration.role == Role.TEACHER or is_count:
            counts[administration.pk].grades.clear()
    return as_of, counts


def _opted_out_numbers(
    administrations: Sequence[Administration],
) -> QuerySet[Respondent, tuple[Any, ...]]:
    """Count who has opted out where `OptOut` was destroyed with names; else nobody."""
    destroyed = [
        administration.pk
        for administration in administrations
        if administration.identities_destroyed_at is not None
    ]
    if not destroyed:
        return Respondent.objects.none().values_list()
    people = Respondent.objects.using(counting_database()).filter(
        administration__in=destroyed,
        opted_out_at__isnull=False,
        awaits_consent=False,
        erased_at=None,
    )
    places = people.order_by().values_list("administration", "school")
    return places.annotate(people=Count("pk"))


def _awaiting_consent(
    administrations: Sequence[int],
) -> QuerySet[Respondent, tuple[Any, ...]]:
    """Count people whose consent is missing; no statement if none is required."""
    people = Respondent.objects.using(counting_database()).filter(
        awaits_consent=True, administration__in=administrations
    )
    by_school = people.order_by().values_list("administration", "school")
    return by_school.annotate(people=Count("pk"))


def has_frozen_groups(administrations: Iterable[Administration]) -> list[int]:
    """Return the administrations in which roster changes count later.

    Elsewhere the list of people shows who has finished.
    """
    return [
        administration.pk
        for administration in administrations
        if administration.is_completion_confidential
    ]


def _count_postgresql(
    counts: dict[int, AdministrationCounts], frozen: Sequence[int]
) -> datetime:
    origin = datetime.fromtimestamp(_hour_offset(), UTC).isoformat()
    statement = POSTGRESQL.format(
        people=PEOPLE.format(in_frozen="= ANY(%s)", in_chosen="= ANY(%s)"),
        started=POSTGRESQL_HOUR.format(column="started_at", origin=origin),
        finished=POSTGRESQL_HOUR.format(column="completed_at", origin=origin),
        grades=BY_GRADE,
        starts=BY_START,
        finishes=BY_FINISH,
    )
    alias = counting_database()
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(LIMITS)
        # Read before the snapshot of the counting, so that the figures are
        # never older than they claim to be.
        cursor.execute(
            "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_xact_replay_timestamp()"
            " ELSE clock_timestamp() END"
        )
        [as_of] = cursor.fetchone()
        cursor.execute(statement, [list(frozen), list(counts), _midnight(as_of)])
        rows = cursor.fetchall()
    # Rows of grades have no hours; rows of hours have the key of their place.
    for administration, school, district, grade, *numbers, hours in rows:
        counted = counts[administration]
        if hours is None:
            counted.add(school, grade, numbers)
        elif school is not None:
            counted.curves[Curve.Level.SCHOOL, school] = hours
        elif district is not None:
            counted.curves[Curve.Level.DISTRICT, district] = hours
        else:
            counted.curves[Curve.Level.ALL, 0] = hours
    return cast("datetime", as_of)


def _count_sqlite(
    counts: dict[int, AdministrationCounts], frozen: Sequence[int]
) -> datetime:
    offset = _hour_offset()
    statement = SQLITE.format(
        people=PEOPLE.format(
            in_frozen=f"IN ({', '.join(['%s'] * len(frozen)) or 'NULL'})",
            in_chosen=f"IN ({', '.join(['%s'] * len(counts))})",
        ),
        grades=BY_GRADE,
        starts=BY_START,
        finishes=BY_FINISH,
        started=SQLITE_HOUR.format(column="started_at", offset=offset),
        finished=SQLITE_HOUR.format(column="completed_at", offset=offset),
    )
    database = connections[counting_database()]
    as_of = timezone.now()
    # A plain cursor does not adapt times to SQLite's texts.
    midnight = database.ops.adapt_datetimefield_value(_midnight(as_of))
    with database.cursor() as cursor:
        cursor.execute(statement, [*frozen, *counts, midnight])
        rows = cursor.fetchall()
    districts = dict(School.objects.values_list("pk", "district"))
    # Administration and place -> beginning of the hour -> [started, finished].
    sums: dict[tuple[int, Place], dict[int, list[int]]] = {}
    for administration, school, kind, grade, hour, *numbers in rows:
        if kind == BY_GRADE:
            counts[administration].add(school, grade, numbers)
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
        counts[administration].curves[where] = f"[{text}]"
    return as_of


def _midnight(moment: datetime) -> datetime:
    """Return the beginning of this moment's day in the state."""
    local = timezone.localtime(moment, timezone.get_default_timezone())
    return local.replace(hour=0, minute=0, second=0, microsecond=0)


def _hour_offset() -> int:
    """Return by how many seconds the state's hours begin after those of UTC.

    0 nearly everywhere, 1800 in India.
    """
    local = timezone.localtime(timezone=timezone.get_default_timezone())
    difference = local.utcoffset() or timedelta()
    return -int(difference.total_seconds()) % HOUR

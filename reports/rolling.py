"""Response rates, counted once a minute for everybody who looks.

The counting reads the replica, one statement for all administrations that are
due. What came out differently from the last time is written to the primary in
one transaction: the board never shows half of a roll-up, and nobody counts
when a page is saved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import F, Max, Model, Q, Sum
from django.utils import timezone

from accounts.models import School
from reports.models import Curve, GradeRate, RollUp, SchoolRate
from reports.thresholds import needed
from survey.administrations import schools_offered
from survey.models import Administration, Job, Role
from survey.replica.health import REPLICA
from survey.replica.reports import reports_database

log = logging.getLogger(__name__)

# After closing, pages that were begun in time still arrive; see taking.saving.
AFTER_CLOSING = timedelta(minutes=15)
# How often to count what is not open, for rosters that come in by a command;
# those of the console end a job, after which they are counted at once.
BEFORE_OPENING_EVERY = timedelta(hours=1)
CLOSED_EVERY = timedelta(days=1)
ROSTER_JOB = "roster.apply"

# Any number that no other advisory lock of ours has.
LOCK = 7_105_002
HOUR = 3600
# Rows in one statement.
BATCH = 2000
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


@dataclass(frozen=True, slots=True)
class Rolled:
    """What one roll-up did."""

    administrations: int = 0
    rows_changed: int = 0
    counting: float = 0.0
    seconds: float = 0.0


def reading_alias() -> str:
    """Where to count: in the reports' database, or on a replica known by name."""
    alias = reports_database()
    if alias == DEFAULT_DB_ALIAS and REPLICA in connections.databases:
        return REPLICA
    return alias


def roll_up(administrations: Sequence[Administration] | None = None) -> Rolled:
    """Count what is due, or these, and write what changed.

    Does nothing while another process rolls up. Raises OperationalError where
    the replica is away: the figures then stay as they are and grow old, which
    the board says.
    """
    began = time.monotonic()
    _give_a_sign()
    with _only_one() as mine:
        asked = due() if administrations is None else administrations
        chosen = _in_order(asked) if mine else []
        if not chosen:
            return Rolled(seconds=time.monotonic() - began)
        as_of, counted = _count(chosen)
        counting = time.monotonic() - began
        with transaction.atomic():
            changed = _write(chosen, counted, as_of)
    took = time.monotonic() - began
    log.info("rolled up %s administrations in %.2f s", len(chosen), took)
    return Rolled(len(chosen), changed, counting, took)


def due(now: datetime | None = None) -> list[Administration]:
    """Those that are open, and others that may have changed since their last."""
    now = now or timezone.now()
    rosters = Job.objects.filter(kind=ROSTER_JOB, state=Job.State.DONE).aggregate(
        last=Max("ended_at")
    )["last"]
    last = F("roll_up__as_of")
    never = Q(roll_up=None)
    is_open = Q(opens_at__lte=now, closes_at__gt=now - AFTER_CLOSING)
    upcoming = Q(opens_at__gt=now, roll_up__as_of__lte=now - BEFORE_OPENING_EVERY)
    closed = Q(closes_at__lte=now, roll_up__as_of__lte=now - CLOSED_EVERY)
    not_final = Q(
        closes_at__lte=now - AFTER_CLOSING, closes_at__gt=last - AFTER_CLOSING
    )
    asked = never | is_open | upcoming | closed | not_final
    if rosters:
        asked |= Q(roll_up__as_of__lte=rosters)
    return list(Administration.objects.filter(asked).order_by("pk"))


def _in_order(administrations: Sequence[Administration]) -> list[Administration]:
    """Parents last: their threshold needs the number of students."""
    return sorted(administrations, key=lambda one: one.role == Role.PARENT)


@contextmanager
def _only_one() -> Iterator[bool]:
    """Whether this process may; the lock ends with its transaction."""
    if connection.vendor != "postgresql":
        # One process works off the jobs there. A transaction would keep every
        # page save waiting while the people are counted.
        yield True
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        [mine] = cursor.fetchone()
        yield mine


# Counting -------------------------------------------------------------------


def _give_a_sign() -> None:
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


def _count(chosen: Sequence[Administration]) -> tuple[datetime, dict[int, Counted]]:
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


# Writing --------------------------------------------------------------------


def _write(
    chosen: Sequence[Administration], counted: Mapping[int, Counted], as_of: datetime
) -> int:
    """How many rows changed."""
    known = dict(
        RollUp.objects.filter(administration__in=chosen).values_list("pk", "as_of")
    )
    changed = 0
    for administration in chosen:
        # A replica that was exchanged for one further behind.
        if as_of < known.get(administration.pk, as_of):
            continue
        changed += _write_one(administration, counted[administration.pk])
    now = timezone.now()
    RollUp.objects.bulk_create(
        [
            RollUp(administration=one, as_of=as_of, written_at=now)
            for one in chosen
            if as_of >= known.get(one.pk, as_of)
        ],
        update_conflicts=True,
        unique_fields=["administration"],
        update_fields=["as_of", "written_at"],
    )
    return changed


def _write_one(administration: Administration, counted: Counted) -> int:
    students = _students(administration)
    rates = {}
    for school, district in _schools_of(administration, counted).items():
        one = counted.schools.get(school) or InSchool()
        of_parents = students.get(school)
        rates[(school,)] = (
            district,
            one.eligible,
            one.started,
            one.finished,
            one.finished_today,
            one.last_started_at,
            of_parents,
            needed(administration.role, one.eligible, of_parents),
        )
    curves = {place: (hours,) for place, hours in counted.curves.items()}
    return (
        _bring_up_to_date(SchoolRate, administration, RATE, rates)
        + _bring_up_to_date(GradeRate, administration, GRADE, counted.grades)
        + _bring_up_to_date(Curve, administration, CURVE, curves)
    )


def _schools_of(administration: Administration, counted: Counted) -> dict[int, int]:
    """School -> district, where people are invited and where they could be."""
    offered = schools_offered(
        administration.district,
        administration.districts.all(),
        administration.schools.all(),
    )
    found = dict(offered.values_list("pk", "district"))
    elsewhere = School.objects.filter(pk__in=counted.schools.keys() - found.keys())
    return found | dict(elsewhere.values_list("pk", "district"))


def _students(administration: Administration) -> dict[int, int]:
    """How many students each school has, for the parents' threshold.

    In the students' administrations of the same wave; outside of waves, in
    those whose window overlaps.
    """
    if administration.role != Role.PARENT:
        return {}
    related = Administration.objects.filter(
        role=Role.STUDENT, wave=administration.wave_id
    )
    if administration.wave_id is None:
        related = related.filter(
            opens_at__lt=administration.closes_at, closes_at__gt=administration.opens_at
        )
    rates = SchoolRate.objects.filter(administration__in=related)
    return dict(rates.values_list("school").annotate(Sum("eligible")))


@dataclass(frozen=True, slots=True)
class Columns:
    """By which a row is found, and what is written into it."""

    key: tuple[str, ...]
    values: tuple[str, ...]


RATE = Columns(
    ("school_id",),
    (
        "district_id",
        "eligible",
        "started",
        "finished",
        "finished_today",
        "last_started_at",
        "students",
        "needed",
    ),
)
GRADE = Columns(("school_id", "grade"), ("eligible", "started", "finished"))
CURVE = Columns(("level", "place_id"), ("hours",))


def _bring_up_to_date(
    model: type[Model],
    administration: Administration,
    columns: Columns,
    wanted: Mapping[Any, tuple[Any, ...]],
) -> int:
    """Write those rows that differ, and delete those that are no more.

    Compared as plain tuples: making a model's instance of each of 40,000 rows
    took longer than all the rest.
    """
    mine = model._default_manager.filter(administration=administration)
    names, split = (*columns.key, *columns.values, "id"), len(columns.key)
    known = {
        row[:split]: row[split:]
        for row in mine.values_list(*names).iterator(chunk_size=BATCH)
    }
    changed = []
    for key, values in wanted.items():
        stood = known.pop(key, None)
        if stood is None or stood[:-1] != values:
            row = dict(zip(columns.key, key, strict=True))
            row |= dict(zip(columns.values, values, strict=True))
            changed.append(model(administration_id=administration.pk, **row))
    model._default_manager.bulk_create(
        changed,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["administration_id", *columns.key],
        update_fields=columns.values,
    )
    gone = [row[-1] for row in known.values()]
    mine.filter(pk__in=gone).delete()
    return len(changed) + len(gone)

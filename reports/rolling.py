"""Response rates, counted once a minute for everybody who looks.

The counting reads the replica, one statement for all administrations that are
due. What came out differently from the last time is written to the primary in
one transaction: the board never shows half of a roll-up, and nobody counts
when a page is saved.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar

from django.db import connection, connections, transaction
from django.db.models import F, Max, Model, Q, Sum
from django.utils import timezone

from accounts.models import School
from reports.models import Curve, GradeRate, RollUp, SchoolRate
from reports.thresholds import needed
from survey.models import Administration, Job, Role
from survey.replica.health import REPLICA

log = logging.getLogger(__name__)

# After closing, pages that were begun in time still arrive; see taking.saving.
AFTER_CLOSING = timedelta(minutes=15)
# How often to count what is not open, for rosters that come in by a command;
# those of the console end a job, after which they are counted at once.
BEFORE_OPENING_EVERY = timedelta(hours=1)
CLOSED_EVERY = timedelta(days=1)
ROSTER_JOBS = "roster."

# Any number that no other advisory lock of ours has.
LOCK = 7_105_002
HOUR = 3600
# Rows in one statement.
BATCH = 2000
# How long to wait for the replica to replay what was just written.
PATIENCE = 1.0
# Neither a page turn's time nor its memory: 36,000 groups fit in the latter.
COUNTING = "SET LOCAL statement_timeout = '50s'; SET LOCAL work_mem = '64MB'"

# The last three columns of the key tell which of the three groups a row is:
# a grade, an hour of starts, or an hour of finishes. One scan for all.
POSTGRESQL = """
SELECT administration_id, school_id, grouping(grade, {started}, {finished}),
       grade, {started}, {finished},
       count(*), count(started_at), count(completed_at),
       count(*) FILTER (WHERE completed_at >= %s), max(started_at)
FROM survey_respondent
WHERE administration_id = ANY(%s) AND withdrawn_at IS NULL
GROUP BY GROUPING SETS (
    (administration_id, school_id, grade),
    (administration_id, school_id, {started}),
    (administration_id, school_id, {finished})
)
"""
POSTGRESQL_HOUR = "date_bin('1 hour', {column}, '{origin}')"

SQLITE = """
WITH invited AS (
    SELECT * FROM survey_respondent
    WHERE administration_id IN ({ids}) AND withdrawn_at IS NULL
)
SELECT administration_id, school_id, {grades}, grade, NULL, NULL,
       count(*), count(started_at), count(completed_at),
       count(CASE WHEN completed_at >= %s THEN 1 END), max(started_at)
FROM invited GROUP BY 1, 2, 4
UNION ALL
SELECT administration_id, school_id, {starts}, NULL, {started}, NULL,
       count(*), count(*), 0, 0, NULL
FROM invited WHERE started_at IS NOT NULL GROUP BY 1, 2, 5
UNION ALL
SELECT administration_id, school_id, {finishes}, NULL, NULL, {finished},
       count(*), count(*), count(*), 0, NULL
FROM invited WHERE completed_at IS NOT NULL GROUP BY 1, 2, 6
"""
SQLITE_HOUR = (
    "(CAST(strftime('%%s', {column}) AS integer) - {offset}) / 3600 * 3600 + {offset}"
)
# What `grouping` says: a bit for each column that the row is not grouped by.
BY_GRADE, BY_START, BY_FINISH = 0b011, 0b101, 0b110

Place = tuple[str, int]
M = TypeVar("M", bound=Model)


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
    # Place -> beginning of the hour -> [started, finished].
    curves: dict[Place, dict[int, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: [0, 0]))
    )


@dataclass(frozen=True, slots=True)
class Rolled:
    """What one roll-up did."""

    administrations: int = 0
    rows_changed: int = 0
    counting: float = 0.0
    seconds: float = 0.0


def reading_alias() -> str:
    """Where to count: on the replica, where there is one."""
    return REPLICA if REPLICA in connections.databases else "default"


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
    rosters = Job.objects.filter(
        kind__startswith=ROSTER_JOBS, state=Job.State.DONE
    ).aggregate(last=Max("ended_at"))["last"]
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
    if connections[alias].vendor != "postgresql" or alias == "default":
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
    if database.vendor == "postgresql":
        with transaction.atomic(using=alias), database.cursor() as cursor:
            cursor.execute(COUNTING)
            # Before the snapshot of the counting, so that it promises no more.
            as_of = _moment_of(cursor)
            cursor.execute(_postgresql(), [_midnight(as_of), ids])
            rows = cursor.fetchall()
    else:
        as_of = timezone.now()
        midnight = database.ops.adapt_datetimefield_value(_midnight(as_of))
        with database.cursor() as cursor:
            cursor.execute(_sqlite(len(ids)), [*ids, midnight])
            rows = cursor.fetchall()
    return as_of, _sorted_out(rows, chosen)


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
    return POSTGRESQL.format(**hours)


def _sqlite(count: int) -> str:
    return SQLITE.format(
        ids=", ".join(["%s"] * count),
        grades=BY_GRADE,
        starts=BY_START,
        finishes=BY_FINISH,
        started=SQLITE_HOUR.format(column="started_at", offset=_offset()),
        finished=SQLITE_HOUR.format(column="completed_at", offset=_offset()),
    )


def _sorted_out(
    rows: Sequence[tuple[Any, ...]], chosen: Sequence[Administration]
) -> dict[int, Counted]:
    found = {one.pk: Counted() for one in chosen}
    without_grades = {one.pk for one in chosen if one.role == Role.TEACHER}
    for administration, school, by, grade, start, finish, *numbers in rows:
        counted = found[administration]
        eligible, started, finished, today, last = numbers
        if by == BY_GRADE:
            _add(counted.schools.setdefault(school, InSchool()), *numbers)
            if administration not in without_grades:
                counted.grades[school, grade] = (eligible, started, finished)
        elif by == BY_START and start is not None:
            counted.curves[Curve.Level.SCHOOL, school][_seconds(start)][0] += started
        elif by == BY_FINISH and finish is not None:
            counted.curves[Curve.Level.SCHOOL, school][_seconds(finish)][1] += finished
    return found


def _add(
    school: InSchool, eligible: int, started: int, finished: int, today: int, last: Any
) -> None:
    school.eligible += eligible
    school.started += started
    school.finished += finished
    school.finished_today += today
    if last is not None:
        moment = _moment(last)
        school.last_started_at = max(moment, school.last_started_at or moment)


def _moment(value: datetime | str) -> datetime:
    """As either database returns it to a plain cursor."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _seconds(hour: datetime | int) -> int:
    return hour if isinstance(hour, int) else int(hour.timestamp())


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
    districts = _schools_of(administration, counted)
    _add_places(counted, districts)
    students = _students(administration)
    rates = [
        SchoolRate(
            administration=administration,
            school_id=school,
            district_id=district,
            **_figures(counted.schools.get(school, InSchool())),
            students=students.get(school),
        )
        for school, district in districts.items()
    ]
    for rate in rates:
        rate.needed = needed(administration.role, rate.eligible, rate.students)
    grades = [
        GradeRate(
            administration=administration,
            school_id=school,
            grade=grade,
            eligible=eligible,
            started=started,
            finished=finished,
        )
        for (school, grade), (eligible, started, finished) in counted.grades.items()
    ]
    curves = [
        Curve(
            administration=administration,
            level=level,
            place_id=place,
            hours=[[hour, *numbers] for hour, numbers in sorted(hours.items())],
        )
        for (level, place), hours in counted.curves.items()
    ]
    return (
        _bring_up_to_date(SchoolRate, administration, rates, ("school_id",))
        + _bring_up_to_date(GradeRate, administration, grades, ("school_id", "grade"))
        + _bring_up_to_date(Curve, administration, curves, ("level", "place_id"))
    )


def _figures(school: InSchool) -> dict[str, Any]:
    return {name: getattr(school, name) for name in InSchool.__slots__}


def _schools_of(administration: Administration, counted: Counted) -> dict[int, int]:
    """School -> district, where people are invited and where they could be."""
    schools, districts = administration.schools, administration.districts
    if schools.exists() or districts.exists():
        offered = Q(pk__in=schools.values("pk")) | Q(
            district__in=districts.values("pk")
        )
    elif administration.district_id is not None:
        offered = Q(district=administration.district_id)
    else:
        offered = Q()
    found = dict(School.objects.filter(offered).values_list("pk", "district"))
    elsewhere = School.objects.filter(pk__in=counted.schools.keys() - found.keys())
    return found | dict(elsewhere.values_list("pk", "district"))


def _add_places(counted: Counted, districts: Mapping[int, int]) -> None:
    """The curves of districts, and that of all, from those of schools."""
    for (_, school), hours in list(counted.curves.items()):
        district = counted.curves[Curve.Level.DISTRICT, districts[school]]
        everywhere = counted.curves[Curve.Level.ALL, 0]
        for hour, (started, finished) in hours.items():
            for sums in (district[hour], everywhere[hour]):
                sums[0] += started
                sums[1] += finished


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


def _bring_up_to_date(
    model: type[M],
    administration: Administration,
    rows: Sequence[M],
    key: Sequence[str],
) -> int:
    """Write those rows that differ, and delete those that are no more."""
    own = {"id", "administration_id", *key}
    columns = [one.attname for one in model._meta.concrete_fields]
    values = [name for name in columns if name not in own]
    mine = model._default_manager.filter(administration=administration)
    read_key, read_values = attrgetter(*key), attrgetter(*values)
    names = (*key, "id", *values)
    known = {}
    for found in mine.values_list(*names).iterator(chunk_size=BATCH):
        place = found[: len(key)]
        known[place if len(key) > 1 else place[0]] = found[len(key) :]
    changed = []
    for row in rows:
        stood = known.pop(read_key(row), None)
        wanted = read_values(row)
        if stood is None or stood[1:] != (wanted if len(values) > 1 else (wanted,)):
            changed.append(row)
    model._default_manager.bulk_create(
        changed,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["administration_id", *key],
        update_fields=values,
    )
    gone = [pk for pk, *_ in known.values()]
    mine.filter(pk__in=gone).delete()
    return len(changed) + len(gone)

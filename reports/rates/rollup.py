"""Count response rates once a minute and store what changed.

All administrations that are due are counted on the replica in one statement.
Rows that differ from the last roll-up are written to the primary in one
transaction, so pages never show half of a roll-up, and saving a survey page
counts nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import connection, transaction
from django.db.models import Exists, F, Max, Model, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from accounts.models import School
from accounts.place_settings import Thresholds
from reports.models import Curve, GradeRate, RollUp, SchoolRate
from reports.rates import rollup_query
from reports.rates.counting_groups import CountingGroups, let_changes_count
from reports.rates.rollup_query import AdministrationCounts, SchoolRateCounts
from reports.rates.thresholds import needed
from survey.database import advisory_locks
from survey.fieldwork.administrations import schools_listed
from survey.models import Administration, Denominator, Job, Role, SchoolCount

log = logging.getLogger(__name__)
Key = TypeVar("Key", bound=tuple[object, ...])

# After closing, pages that were started in time still arrive.
AFTER_CLOSING = timedelta(minutes=15)
# How often administrations are counted that are not open, for rosters applied
# by a command. Rosters applied in the console end a job, and are counted at
# the next roll-up.
BEFORE_OPENING_EVERY = timedelta(hours=1)
CLOSED_EVERY = timedelta(days=1)
ROSTER_JOB = "roster.apply"

# Rows in one statement.
BATCH = 2000


@dataclass(frozen=True, slots=True)
class RollUpResult:
    """The outcome of a roll-up. `counting` is a part of `seconds`."""

    administrations: int = 0
    rows_changed: int = 0
    counting: float = 0.0
    seconds: float = 0.0


def roll_up(administrations: Sequence[Administration] | None = None) -> RollUpResult:
    """Count these administrations (or all that are due) and store what changed.

    Does nothing while another process rolls up. Raises OperationalError if the
    replica is away: the figures then stay as they are, and the pages say how
    old they are.
    """
    start = time.monotonic()
    # Parents last: their threshold needs the number of students.
    chosen = sorted(
        due() if administrations is None else administrations,
        key=lambda administration: administration.role == Role.PARENT,
    )
    # Committed before the counting, and not under its lock: repeating it changes
    # nothing.
    roll_ups = RollUp.objects.filter(administration__in=chosen)
    before = dict(roll_ups.values_list("pk", "groups_as_of"))
    groups = {
        administration.pk: let_changes_count(
            administration, before.get(administration.pk)
        )
        for administration in chosen
    }
    rollup_query.refresh_replica_timestamp()
    # The lock is held while counting as well: two processes that count at
    # once would take the replica's time twice for the same figures.
    with _exclusive() as is_alone:
        if not is_alone or not chosen:
            return RollUpResult(seconds=time.monotonic() - start)
        as_of, counts = rollup_query.count(chosen)
        counting = time.monotonic() - start
        with transaction.atomic():
            changed = _store(chosen, counts, as_of, groups)
    seconds = time.monotonic() - start
    log.info("Rolled up %s administrations in %.2f s", len(chosen), seconds)
    return RollUpResult(len(chosen), changed, counting, seconds)


@contextmanager
def _exclusive() -> Iterator[bool]:
    """Hold the lock of the roll-up; yield False if another process has it."""
    if connection.vendor != "postgresql":
        # On SQLite one process does all background work. A transaction would
        # block every page save while the people are counted.
        yield True
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [advisory_locks.ROLLUP])
        [is_alone] = cursor.fetchone()
        yield is_alone


def due(now: datetime | None = None) -> list[Administration]:
    """Return open administrations, and others that may have changed since."""
    now = now or timezone.now()
    last_roster = Job.objects.filter(kind=ROSTER_JOB, state=Job.State.DONE).aggregate(
        last=Max("ended_at")
    )["last"]
    last = F("roll_up__as_of")
    never_counted = Q(roll_up=None)
    is_open = Q(opens_at__lte=now, closes_at__gt=now - AFTER_CLOSING)
    upcoming = Q(opens_at__gt=now, roll_up__as_of__lte=now - BEFORE_OPENING_EVERY)
    closed = Q(closes_at__lte=now, roll_up__as_of__lte=now - CLOSED_EVERY)
    # Last counted when pages could still arrive.
    not_final = Q(
        closes_at__lte=now - AFTER_CLOSING, closes_at__gt=last - AFTER_CLOSING
    )
    condition = never_counted | is_open | upcoming | closed | not_final
    if last_roster:
        condition |= Q(roll_up__as_of__lte=last_roster)
    supplied = SchoolCount.objects.filter(
        administration=OuterRef("pk"), at__gte=OuterRef("roll_up__as_of")
    )
    condition |= Q(Exists(supplied))
    return list(Administration.objects.filter(condition).order_by("pk"))


# Storing ---------------------------------------------------------------------


def _store(
    chosen: Sequence[Administration],
    counts: Mapping[int, AdministrationCounts],
    as_of: datetime,
    groups: Mapping[int, CountingGroups],
) -> int:
    """Write what changed, and return how many rows that were."""
    stored = {
        roll_up.pk: roll_up
        for roll_up in RollUp.objects.filter(administration__in=chosen)
    }
    # Figures may be older than the stored ones if the replica was replaced by
    # one that is further behind.
    newer = [
        administration
        for administration in chosen
        if administration.pk not in stored or as_of >= stored[administration.pk].as_of
    ]
    now, changed, roll_ups = timezone.now(), 0, []
    supplied = supplied_counts(newer)
    thresholds = {
        role: Thresholds(role)
        for role in {administration.role for administration in newer}
    }
    for administration in newer:
        rows_changed = _store_administration(
            administration,
            counts[administration.pk],
            supplied,
            _percents(administration, thresholds[administration.role], as_of),
        )
        changed += rows_changed
        groups_as_of = groups[administration.pk].as_of
        if as_of >= administration.opens_at and groups[administration.pk].is_complete:
            _store_sizes_at_opening(administration, is_first=groups_as_of is None)
            groups_as_of = groups_as_of or as_of
        last = None if rows_changed else stored.get(administration.pk)
        roll_ups.append(
            RollUp(
                administration=administration,
                as_of=as_of,
                written_at=now,
                changed_at=last.changed_at if last else as_of,
                groups_as_of=groups_as_of,
            )
        )
    RollUp.objects.bulk_create(
        roll_ups,
        update_conflicts=True,
        unique_fields=["administration"],
        update_fields=["as_of", "written_at", "changed_at", "groups_as_of"],
    )
    return changed


def _store_sizes_at_opening(administration: Administration, *, is_first: bool) -> None:
    """Keep how many people are in each group, which decides what is hidden."""
    rates = SchoolRate.objects.filter(administration=administration, eligible__gt=0)
    if not is_first:
        # Schools whose first roster came after the opening.
        rates = rates.filter(at_opening=0)
    if schools := list(rates.values_list("school", flat=True)):
        for model in (SchoolRate, GradeRate):
            rows = model._default_manager.filter(administration=administration)
            rows.filter(school__in=schools).update(at_opening=F("eligible"))


def supplied_counts(
    administrations: Sequence[Administration],
) -> dict[tuple[int, int], tuple[str, int]]:
    """Return what schools supplied, by administration and school: unit and number.

    1 statement, or none if all have rosters.
    """
    without_roster = [
        administration.pk
        for administration in administrations
        if administration.denominator == Denominator.COUNT
    ]
    if not without_roster:
        return {}
    rows = SchoolCount.objects.current().filter(administration__in=without_roster)
    return {
        (key, school): (unit, number)
        for key, school, unit, number in rows.values_list(
            "administration", "school", "unit", "count"
        )
    }


def _store_administration(
    administration: Administration,
    counts: AdministrationCounts,
    supplied: Mapping[tuple[int, int], tuple[str, int]],
    percent_of: Callable[[int, int], int | None],
) -> int:
    counted = {school for key, school in supplied if key == administration.pk}
    counted |= (
        counts.schools.keys() | counts.opted_out.keys() | counts.awaiting_consent.keys()
    )
    districts = _schools_with_rates(administration, counted)
    students = students_by_school(administration)
    is_count = administration.denominator == Denominator.COUNT
    is_module = administration.module_of_id is not None
    if is_module:
        supplied = rates_of_followed_round(administration)
    grades = grades_of_followed_round(administration, counts.grades)
    rates: dict[tuple[int], tuple[object, ...]] = {}
    for school, district in districts.items():
        percent = percent_of(school, district)
        of_school = counts.schools.get(school) or SchoolRateCounts()
        eligible, unit = of_school.eligible, ""
        if is_count or is_module:
            unit, eligible = supplied.get((administration.pk, school), ("", 0))
            if unit == SchoolCount.Unit.STUDENTS:
                students[school] = eligible
        rates[(school,)] = (
            district,
            eligible,
            unit,
            counts.opted_out.get(school, 0),
            counts.awaiting_consent.get(school, 0),
            counts.waiting.get(school, 0),
            of_school.started,
            of_school.finished,
            of_school.finished_today,
            of_school.last_started_at,
            students.get(school),
            percent,
            needed(
                administration.role,
                eligible,
                students.get(school),
                is_count=is_count,
                percent=percent,
            ),
        )
    curves = {place: (hours,) for place, hours in counts.curves.items()}
    return (
        synchronise(SchoolRate, administration, SCHOOL_COLUMNS, rates)
        + synchronise(GradeRate, administration, GRADE_COLUMNS, grades)
        + synchronise(Curve, administration, CURVE_COLUMNS, curves)
    )


def _schools_with_rates(
    administration: Administration, counted: set[int]
) -> dict[int, int]:
    """Return schools with people or a count, and those that could still invite some.

    With their districts. 2 statements.
    """
    listed = schools_listed(administration, timezone.now())
    districts = dict(listed.values_list("pk", "district"))
    elsewhere = School.objects.filter(pk__in=counted - districts.keys())
    return districts | dict(elsewhere.values_list("pk", "district"))


def rates_of_followed_round(
    module: Administration,
) -> dict[tuple[int, int], tuple[str, int]]:
    """Return whom a module's round has invited, as `supplied_counts` does.

    The respondents of a module are those who came so far: they are no denominator. 1
    statement.
    """
    rates = SchoolRate.objects.filter(
        administration=module.module_of_id, district=module.district_id
    )
    return {
        (module.pk, school): (unit, eligible)
        for school, unit, eligible in rates.values_list("school", "unit", "eligible")
    }


def grades_of_followed_round(
    administration: Administration,
    grades: dict[tuple[int, str], tuple[int, int, int]],
) -> dict[tuple[int, str], tuple[int, int, int]]:
    """Return grades with the people a module's round has invited. At most 1 statement.

    Whoever has changed the grade since counts in the one of before: there may be more
    than were invited.
    """
    if administration.module_of_id is None:
        return grades
    invited = GradeRate.objects.filter(
        administration=administration.module_of_id,
        school__district=administration.district_id,
    )
    eligible = {
        (school, grade): number
        for school, grade, number in invited.values_list("school", "grade", "eligible")
    }
    counted = {}
    for key in eligible.keys() | grades.keys():
        _came, started, finished = grades.get(key, (0, 0, 0))
        counted[key] = (max(eligible.get(key, 0), started), started, finished)
    return counted


def _percents(
    administration: Administration, thresholds: Thresholds, as_of: datetime
) -> Callable[[int, int], int | None]:
    """Return the threshold of a school and its district.

    Closed administrations keep the threshold that they had. 1 statement for these.
    """
    if as_of < administration.closes_at + AFTER_CLOSING:
        return thresholds.of
    rates = SchoolRate.objects.filter(administration=administration)
    stored = dict(rates.values_list("school", "percent"))
    if not stored:
        return thresholds.of
    return lambda school, district: stored.get(school)


def students_by_school(administration: Administration) -> dict[int, int]:
    """Return each school's number of students, for the threshold of parents.

    Taken from the students' rosters of the same wave, or without a wave from
    those whose window overlaps. Empty for other roles.
    """
    if administration.role != Role.PARENT:
        return {}
    rates = SchoolRate.objects.filter(administration__in=student_rounds(administration))
    # Students whose consent is missing have parents who can answer.
    people = Sum(F("eligible") + F("awaiting_consent"))
    return dict(rates.values_list("school").annotate(people=people))


def student_rounds(administration: Administration) -> QuerySet[Administration]:
    """Return the rounds with the students of the schools of this one."""
    related = Administration.objects.filter(
        role=Role.STUDENT,
        # The students of a module are those of the state's round.
        module_of=None,
        wave=administration.wave_id,
        denominator=Denominator.ROSTER,
    )
    if administration.wave_id is None:
        related = related.filter(
            opens_at__lt=administration.closes_at, closes_at__gt=administration.opens_at
        )
    return related


@dataclass(frozen=True, slots=True)
class SyncedColumns:
    """The columns that identify a row, and those that are written."""

    key: tuple[str, ...]
    values: tuple[str, ...]


SCHOOL_COLUMNS = SyncedColumns(
    ("school_id",),
    (
        "district_id",
        "eligible",
        "unit",
        "opted_out",
        "awaiting_consent",
        "waiting",
        "started",
        "finished",
        "finished_today",
        "last_started_at",
        "students",
        "percent",
        "needed",
    ),
)
GRADE_COLUMNS = SyncedColumns(
    ("school_id", "grade"), ("eligible", "started", "finished")
)
CURVE_COLUMNS = SyncedColumns(("level", "place_id"), ("hours",))


def synchronise(
    model: type[Model],
    administration: Administration,
    columns: SyncedColumns,
    wanted: Mapping[Key, tuple[object, ...]],
) -> int:
    """Make the stored rows equal to `wanted`; return how many rows changed.

    Rows are compared as plain tuples: making model instances of 40,000 rows
    took longer than all the rest.
    """
    stored = model._default_manager.filter(administration=administration)
    names, split = (*columns.key, *columns.values, "id"), len(columns.key)
    before = {
        row[:split]: row[split:]
        for row in stored.values_list(*names).iterator(chunk_size=BATCH)
    }
    changed = []
    for key, values in wanted.items():
        row = before.pop(key, None)
        if row is None or row[:-1] != values:
            fields = dict(zip(columns.key, key, strict=True))
            fields |= dict(zip(columns.values, values, strict=True))
            changed.append(model(administration_id=administration.pk, **fields))
    model._default_manager.bulk_create(
        changed,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["administration_id", *columns.key],
        update_fields=columns.values,
    )
    gone = [row[-1] for row in before.values()]
    stored.filter(pk__in=gone).delete()
    return len(changed) + len(gone)

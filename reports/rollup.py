"""Response rates, counted once a minute for everybody who looks.

All administrations that are due are counted on the replica. What came out
differently from the last time is written to the primary in one transaction:
the board never shows half of a roll-up, and nobody counts when a page is
saved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Max, Model, Q, Sum
from django.utils import timezone

from accounts.models import School
from reports import rollup_query
from reports.models import Curve, GradeRate, RollUp, SchoolRate
from reports.rollup_query import Counted, InSchool
from reports.thresholds import needed
from survey.administrations import schools_offered
from survey.database import advisory_locks
from survey.models import Administration, Job, Role

log = logging.getLogger(__name__)

# After closing, pages that were begun in time still arrive; see taking.saving.
AFTER_CLOSING = timedelta(minutes=15)
# How often to count what is not open, for rosters that come in by a command;
# those of the console end a job, after which they are counted at once.
BEFORE_OPENING_EVERY = timedelta(hours=1)
CLOSED_EVERY = timedelta(days=1)
ROSTER_JOB = "roster.apply"

# Rows in one statement.
BATCH = 2000


@dataclass(frozen=True, slots=True)
class Rolled:
    """What one roll-up did."""

    administrations: int = 0
    rows_changed: int = 0
    counting: float = 0.0
    seconds: float = 0.0


def roll_up(administrations: Sequence[Administration] | None = None) -> Rolled:
    """Count what is due, or these, and write what changed.

    Does nothing while another process rolls up. Raises OperationalError where
    the replica is away: the figures then stay as they are and grow old, which
    the board says.
    """
    began = time.monotonic()
    rollup_query.give_a_sign()
    with _only_one() as mine:
        asked = due() if administrations is None else administrations
        chosen = _in_order(asked) if mine else []
        if not chosen:
            return Rolled(seconds=time.monotonic() - began)
        as_of, counted = rollup_query.count(chosen)
        seconds = time.monotonic() - began
        with transaction.atomic():
            changed = _write(chosen, counted, as_of)
    took = time.monotonic() - began
    log.info("rolled up %s administrations in %.2f s", len(chosen), took)
    return Rolled(len(chosen), changed, seconds, took)


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
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [advisory_locks.ROLLUP])
        [mine] = cursor.fetchone()
        yield mine


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

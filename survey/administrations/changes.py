"""Administrations are opened, changed, closed and reopened, and by whom.

A page save reads the window in its own statement, so a change holds for the
very next one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import AuditEntry, District, School, User
from accounts.permissions import Permissions
from survey.administrations import refusals
from survey.administrations.plans import Plan, plan_of, record, said
from survey.administrations.queries import may_manage, may_manage_what_is_of
from survey.administrations.refusals import ChangedMeanwhile, WouldHarm
from survey.database import advisory_locks
from survey.models import Administration, PublishedSurvey, Wave

# Opening


def open_administration(
    *,
    name: str,
    published: PublishedSurvey,
    role: str,
    opens_at: datetime,
    closes_at: datetime,
    wave: Wave | None = None,
    district: District | None = None,
    districts: Collection[District] = (),
    schools: Collection[School] = (),
    coordinators_see_finished: bool = False,
    by: User | str | None = None,
    request: HttpRequest | None = None,
) -> Administration:
    """Offer a published survey to one role from `opens_at` to `closes_at`.

    It is the state's, or that of `district`, and offered in `districts` and
    `schools`, or everywhere its owner reaches. `by` is a user who may, or the
    name of a command; made-up ones, for a demonstration or a rehearsal, name
    nobody and are not recorded.

    Raises PermissionDenied, and ValidationError for what cannot be: a name
    that is taken, a window that ends before it begins, a place of somebody
    else's. Busy when the database cannot make room at this moment.
    """
    if isinstance(by, User) and not may_manage_what_is_of(
        Permissions(by), district.pk if district else None
    ):
        raise PermissionDenied
    administration = Administration(
        name=name,
        published=published,
        role=role,
        opens_at=opens_at,
        closes_at=closes_at,
        wave=wave,
        district=district,
        coordinators_see_finished=coordinators_see_finished,
    )
    refusals.check_window(opens_at, closes_at)
    refusals.check_finished_may_be_seen(role, coordinators_see_finished)
    refusals.check_wave(district, wave)
    refusals.check_places(district, districts, schools)
    refusals.check_name(name)
    administration.full_clean()
    with (
        refusals.giving_up(),
        refusals.name_taken_meanwhile(name),
        transaction.atomic(),
    ):
        refusals.check_survey(district, published)
        administration.save(force_insert=True)
        administration.districts.set(districts)
        administration.schools.set(schools)
        if by is not None:
            record("open administration", administration, by, request, before=None)
        # Last, for what it locks is locked until the end.
        _add_partition(administration.pk)
    return administration


def _add_partition(administration_id: int) -> None:
    """On PostgreSQL, by a function that runs as the owner: migration 0008."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT survey_add_partition(%s)", [administration_id])


# Changing


def change_administration(
    *,
    administration: Administration,
    to: Plan,
    seen: int | None,
    by: User | str,
    request: HttpRequest | None = None,
    confirmed: str = "",
) -> Administration:
    """Change whatever differs from `to`; returns it as it is afterwards.

    `seen` is the count of its changes that whoever asks has looked at.
    `confirmed` is its name, where they had to type it.

    Raises PermissionDenied, and with a sentence for each field WouldHarm,
    NeedsTyping, ChangedMeanwhile, Busy, ValidationError.
    """
    with refusals.giving_up(), transaction.atomic():
        current = _locked(administration, by=by, seen=seen)
        before = plan_of(current)
        if to == before:
            return current
        if _matters_to_rosters(before) != _matters_to_rosters(to):
            _wait_for_rosters(current)
        refusals.check_change(current, before, to, confirmed)
        for name in _columns():
            setattr(current, name, getattr(to, name))
        current.districts.set(to.districts)
        current.schools.set(to.schools)
        _save(current, "change administration", by, request, before)
    return current


def close_administration(
    *,
    administration: Administration,
    seen: int | None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Administration:
    """Close it now. Nobody can start any more; a page that was begun may
    arrive for ten minutes."""
    with refusals.giving_up(), transaction.atomic():
        current = _locked(administration, by=by, seen=seen)
        now = timezone.now()
        state = current.state_at(now)
        if state == Administration.State.PLANNED:
            raise WouldHarm(
                f"It has not begun: it opens on {said(current.opens_at)}. Change its"
                " window instead."
            )
        if state == Administration.State.CLOSED:
            raise WouldHarm(f"It is closed already, since {said(current.closes_at)}.")
        before = plan_of(current)
        current.closes_at = now
        _save(current, "close administration", by, request, before)
    return current


def reopen_administration(
    *,
    administration: Administration,
    closes_at: datetime,
    seen: int | None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Administration:
    """Take answers again until `closes_at`: from who was in the middle, and
    from who has not started."""
    with refusals.giving_up(), transaction.atomic():
        current = _locked(administration, by=by, seen=seen)
        now = timezone.now()
        if current.state_at(now) != Administration.State.CLOSED:
            raise WouldHarm(
                f"It is not closed: it takes answers until {said(current.closes_at)}."
            )
        if closes_at <= now:
            raise ValidationError({"closes_at": "That is over already."})
        refusals.check_window(current.opens_at, closes_at)
        before = plan_of(current)
        current.closes_at = closes_at
        _save(current, "reopen administration", by, request, before)
    return current


def _columns() -> list[str]:
    return [
        one.name for one in fields(Plan) if one.name not in ("districts", "schools")
    ]


def _locked(
    administration: Administration, *, by: User | str, seen: int | None
) -> Administration:
    """As it stands now, and nobody else changes it until the end. Page saves
    and rosters read this row without such a lock, and do not wait."""
    known = Administration.objects.select_related(
        "published__survey", "wave", "district"
    ).defer("published__definition", "published__survey__source")
    current = known.select_for_update(of=("self",), no_key=True).get(
        pk=administration.pk
    )
    if isinstance(by, User) and not may_manage(Permissions(by), current):
        raise PermissionDenied
    if seen is not None and seen != current.changes:
        raise ChangedMeanwhile(_what_happened(current))
    return current


def _matters_to_rosters(plan: Plan) -> tuple[Any, ...]:
    return plan.published, plan.role, plan.districts, plan.schools


def _wait_for_rosters(administration: Administration) -> None:
    """Otherwise people could be invited behind the question whether anybody
    was. By the lock that two rosters use: see survey.rosters.staging."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, %s)",
                [advisory_locks.ROSTER, administration.pk],
            )


def _what_happened(administration: Administration) -> str:
    last = AuditEntry.objects.filter(
        kind=administration._meta.label_lower, subject_id=administration.pk
    ).first()
    again = (
        "Nothing of yours was kept: look at how it stands now, and change it again if"
        " that is still needed."
    )
    if last is None:
        return f"Somebody else changed it while you had this page open. {again}"
    changed = "; ".join(
        f"{name}: {last.before.get(name, 'nothing')} became {value}"
        for name, value in last.after.items()
    )
    return (
        f"{last.by} changed it on {said(last.at)}, while you had this page open"
        f" ({changed}). {again}"
    )


def _save(
    administration: Administration,
    action: str,
    by: User | str,
    request: HttpRequest | None,
    before: Plan,
) -> None:
    administration.changes += 1
    administration.full_clean()
    administration.save(update_fields=[*_columns(), "changes"])
    record(action, administration, by, request, before=before)

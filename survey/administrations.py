"""Administrations: opened, changed, closed and reopened, and by whom.

Whatever would harm one that is running is refused here, with a sentence for
the person; the pages and the command only pass it on. A page save reads the
window in its own statement, so a change holds for the very next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import slugify

from accounts import audit
from accounts.models import AuditEntry, District, School, User
from accounts.permissions import Capability, Permissions
from survey.models import Administration, PublishedSurvey, Respondent, Role, Wave
from survey.rosters.staging import PostgreSQLStaging
from survey.surveys import is_offerable, offerable_for
from survey.taking.saving import GRACE

MOST_NAMED = 10
LONGEST_NAME = 64
# Beyond it a date is a slip of the hand.
FARTHEST = timedelta(days=5 * 366)
EARLIEST_YEAR = 2000
# PostgreSQL's, for a lock that was not to be had in time.
LOCK_NOT_AVAILABLE = "55P03"


class AdministrationNotFound(LookupError):
    """Says which ones there are."""


class WouldHarm(ValidationError):
    """The change would harm a running administration; says how."""


class NeedsTyping(ValidationError):
    """Its name has to be typed first; says what for."""


class ChangedMeanwhile(ValidationError):
    """Somebody else changed it since; says who, and what."""


class Busy(ValidationError):
    """Something else holds what this needs; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that can be changed of an administration."""

    published: PublishedSurvey
    role: str
    wave: Wave | None
    districts: frozenset[District]
    schools: frozenset[School]
    opens_at: datetime
    closes_at: datetime
    coordinators_see_finished: bool


def administration_called(name: str) -> Administration:
    """With its published survey; raises AdministrationNotFound."""
    known = Administration.objects.order_by("-opens_at")
    found = known.select_related("published").filter(name=name).first()
    if found is None:
        names = ", ".join(known.values_list("name", flat=True)[:MOST_NAMED])
        raise AdministrationNotFound(
            f"No administration is called {name}. There"
            f" {f'are these: {names}' if names else 'is none yet: open one first'}."
        )
    return found


def administrations_for(
    permissions: Permissions, capability: Capability
) -> QuerySet[Administration]:
    """Those that are offered in a place where somebody has the capability."""
    places = permissions.places(capability)
    known = Administration.objects.all()
    if places.state:
        return known
    if not places:
        return known.none()
    own_schools = School.objects.filter(
        Q(district__in=places.districts) | Q(pk__in=places.schools)
    )
    # Also of a coordinator's district: it may be offered in all its schools.
    own_districts = District.objects.filter(
        Q(pk__in=places.districts) | Q(schools__in=places.schools)
    )
    everywhere = Q(districts=None, schools=None)
    return known.filter(
        pk__in=known.filter(
            everywhere & (Q(district=None) | Q(district__in=own_districts))
            | Q(districts__in=own_districts)
            | Q(schools__in=own_schools)
        ).values("pk")
    )


def may_manage(permissions: Permissions, administration: Administration) -> bool:
    """Change its window and its people's survey, and close it."""
    return may_manage_what_is_of(permissions, administration.district_id)


def may_manage_what_is_of(permissions: Permissions, district_id: int | None) -> bool:
    """Of a district, or by None of the state."""
    places = permissions.places(Capability.MANAGE_SURVEYS)
    return places.state if district_id is None else places.has_district(district_id)


def surveys_to_offer(permissions: Permissions) -> QuerySet[PublishedSurvey]:
    """With what is to be read of them: neither definition nor workbook."""
    return (
        offerable_for(permissions)
        .select_related("survey")
        .defer("definition", "survey__source")
        .order_by("survey__name", "-published_at")
    )


def schools_offered(
    owner: District | None, districts: Iterable[District], schools: Iterable[School]
) -> QuerySet[School]:
    """Where neither is named, it is all of the owner's."""
    whole, single = [one.pk for one in districts], [one.pk for one in schools]
    if whole or single:
        return School.objects.filter(Q(district__in=whole) | Q(pk__in=single))
    if owner is not None:
        return School.objects.filter(district=owner)
    return School.objects.all()


def plan_of(administration: Administration) -> Plan:
    """As it stands. 2 statements, for its places."""
    return Plan(
        published=administration.published,
        role=administration.role,
        wave=administration.wave,
        districts=frozenset(administration.districts.all()),
        schools=frozenset(administration.schools.select_related("district")),
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
        coordinators_see_finished=administration.coordinators_see_finished,
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """How many of the invited are where; withdrawn ones are nowhere."""

    not_started: int
    in_the_middle: int
    finished: int


def standing(administration: Administration) -> Standing:
    """1 statement, over all of them."""
    invited = administration.respondents.filter(withdrawn_at=None)
    counted = invited.aggregate(
        invited=Count("pk"), started=Count("started_at"), finished=Count("completed_at")
    )
    return Standing(
        not_started=counted["invited"] - counted["started"],
        in_the_middle=counted["started"] - counted["finished"],
        finished=counted["finished"],
    )


def somebody_was_invited(administration: Administration) -> bool:
    return administration.respondents.exists()


def somebody_has_started(administration: Administration) -> bool:
    return administration.respondents.exclude(started_at=None).exists()


def suggest_name(*, role: str, wave: str = "", district: District | None = None) -> str:
    """Made of the owner, the wave and the role, and not taken yet."""
    parts = (district.code if district else "", wave, f"{role}s" if role else "")
    whole = slugify(" ".join(parts))[: LONGEST_NAME - 4].strip("-_") or "survey"
    taken = set(
        Administration.objects.filter(name__startswith=whole).values_list(
            "name", flat=True
        )
    )
    free = (f"{whole}-{n}" if n > 1 else whole for n in range(1, len(taken) + 2))
    return next(name for name in free if name not in taken)


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
    _check_window(opens_at, closes_at)
    _check_finished_may_be_seen(role, coordinators_see_finished)
    _check_wave(district, wave)
    _check_places(district, districts, schools)
    _check_name(name)
    administration.full_clean()
    with _giving_up(), _name_taken_meanwhile(name), transaction.atomic():
        _check_survey(district, published)
        administration.save(force_insert=True)
        administration.districts.set(districts)
        administration.schools.set(schools)
        if by is not None:
            _record("open administration", administration, by, request, before=None)
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
    with _giving_up(), transaction.atomic():
        current = _locked(administration, by=by, seen=seen)
        before = plan_of(current)
        if to == before:
            return current
        if _matters_to_rosters(before) != _matters_to_rosters(to):
            _wait_for_rosters(current)
        _check_change(current, before, to, confirmed)
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
    with _giving_up(), transaction.atomic():
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
    with _giving_up(), transaction.atomic():
        current = _locked(administration, by=by, seen=seen)
        now = timezone.now()
        if current.state_at(now) != Administration.State.CLOSED:
            raise WouldHarm(
                f"It is not closed: it takes answers until {said(current.closes_at)}."
            )
        if closes_at <= now:
            raise ValidationError({"closes_at": "That is over already."})
        _check_window(current.opens_at, closes_at)
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
                [PostgreSQLStaging.LOCK, administration.pk],
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
    _record(action, administration, by, request, before=before)


# What is refused


def _check_change(
    current: Administration, before: Plan, to: Plan, confirmed: str
) -> None:
    now = timezone.now()
    _check_stays_comparable(current, before, to)
    if to.published != before.published:
        _check_survey(current.district, to.published)
    _check_finished_may_be_seen(to.role, to.coordinators_see_finished)
    if to.wave != before.wave:
        _check_wave(current.district, to.wave)
    if (to.districts, to.schools) != (before.districts, before.schools):
        _check_places(current.district, to.districts, to.schools)
        _check_nobody_is_left_out(current, before, to)
    if (to.opens_at, to.closes_at) != (before.opens_at, before.closes_at):
        _check_beginning(current, to)
        _check_end(current, to, now, confirmed)
        _check_window(to.opens_at, to.closes_at)


def _check_survey(owner: District | None, published: PublishedSurvey) -> None:
    """The state offers any; a district the state's and its own."""
    of = published.survey.district_id
    if owner is not None and of not in (None, owner.pk):
        raise ValidationError(
            {"published": f"{owner} has no such survey. Choose another."}
        )
    if not is_offerable(published):
        raise ValidationError(
            {
                "published": f"{published.survey} is retired: nobody new is asked by"
                " it. Choose another version, or bring it back first."
            }
        )


def _check_stays_comparable(current: Administration, before: Plan, to: Plan) -> None:
    changed = [
        name
        for name, one in (("role", "role"), ("published", "survey"))
        if getattr(before, name) != getattr(to, name)
    ]
    if not changed or not somebody_was_invited(current):
        return
    reasons = {
        "role": "People were invited as they stand on their rosters, so whom it asks"
        " can't be changed any more. Open another administration for the others.",
        "published": "People were invited to this survey, and answers to two surveys"
        " can't stand side by side. A mistake in its wording is mended by a corrected"
        " version of the survey; for another one, open another administration.",
    }
    raise WouldHarm({name: reasons[name] for name in changed})


def _check_beginning(current: Administration, to: Plan) -> None:
    if to.opens_at != current.opens_at and somebody_has_started(current):
        raise WouldHarm(
            {
                "opens_at": "Somebody has started, so its beginning stays"
                f" {said(current.opens_at)}."
            }
        )


def _check_end(
    current: Administration, to: Plan, now: datetime, confirmed: str
) -> None:
    if to.closes_at == current.closes_at:
        return
    if current.closes_at <= now:
        raise WouldHarm(
            {
                "closes_at": f"It closed on {said(current.closes_at)}. To take answers"
                " again, reopen it."
            }
        )
    if to.closes_at <= now:
        raise WouldHarm(
            {
                "closes_at": "That is over already. To end it at once, use Close now,"
                " which says what becomes of those who are in the middle."
            }
        )
    shortened = to.closes_at < min(current.closes_at, now + GRACE)
    if shortened and current.opens_at <= now and confirmed != current.name:
        raise NeedsTyping(
            {
                "confirmed": "It would close within ten minutes, while people answer."
                f" If that is meant, type its name: {current.name}"
            }
        )


def _check_window(opens_at: datetime, closes_at: datetime) -> None:
    latest = timezone.now() + FARTHEST
    for name, moment in (("opens_at", opens_at), ("closes_at", closes_at)):
        if moment.year < EARLIEST_YEAR or moment.year > latest.year:
            raise ValidationError(
                {name: f"Use a date between {EARLIEST_YEAR} and {latest.year}."}
            )
    if closes_at <= opens_at:
        raise ValidationError(
            {
                "closes_at": "It has to close after it opens: it would open on"
                f" {said(opens_at)} and close on {said(closes_at)}."
            }
        )


def _check_finished_may_be_seen(role: str, seen: bool) -> None:
    if seen and role == Role.TEACHER:
        raise ValidationError(
            {
                "coordinators_see_finished": "Never for teachers: they were told that"
                " nobody in their school learns who has answered."
            }
        )


def _check_wave(owner: District | None, wave: Wave | None) -> None:
    if wave is not None and wave.district_id not in (None, owner and owner.pk):
        raise ValidationError(
            {"wave": "A wave holds the administrations of its owner. Choose another."}
        )


def _check_places(
    owner: District | None,
    districts: Collection[District],
    schools: Collection[School],
) -> None:
    if owner is None:
        return
    outside = [str(one) for one in districts if one.pk != owner.pk]
    outside += [str(one) for one in schools if one.district_id != owner.pk]
    if outside:
        raise ValidationError(
            {
                "places": f"An administration of {owner} is offered there alone, and"
                f" not in {_listed(outside)}."
            }
        )


def _check_nobody_is_left_out(current: Administration, before: Plan, to: Plan) -> None:
    """By the schools, not by two million respondents."""
    invited = Respondent.objects.filter(administration=current, school=OuterRef("pk"))
    remaining = schools_offered(current.district, to.districts, to.schools)
    taken_away = (
        schools_offered(current.district, before.districts, before.schools)
        .exclude(pk__in=remaining.values("pk"))
        .filter(Exists(invited))
        .order_by("name")
    )
    names = [str(one) for one in taken_away[: MOST_NAMED + 1]]
    if names:
        raise WouldHarm(
            {
                "places": f"People of {_listed(names)} are invited, so"
                f" {'it' if len(names) == 1 else 'they'} can't be taken away. Withdraw"
                " them by the roster first, if they are not to be asked."
            }
        )


def _listed(names: list[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[:MOST_NAMED])} and others"
    return " and ".join((", ".join(names[:-1]), names[-1]) if names[1:] else names)


def _check_name(name: str) -> None:
    if Administration.objects.filter(name=name).exists():
        raise ValidationError({"name": _taken(name)})


def _taken(name: str) -> str:
    return f"There is an administration called {name} already. Choose another name."


@contextmanager
def _name_taken_meanwhile(name: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        _check_name(name)
        raise Busy(
            "Something that it needs was deleted meanwhile. Load this page anew."
        ) from error


@contextmanager
def _giving_up() -> Iterator[None]:
    """Says in words that a lock was not to be had; the role's timeout ends the
    wait, and that of the function which makes the partition."""
    try:
        yield
    except OperationalError as error:
        if getattr(error.__cause__, "pgcode", None) != LOCK_NOT_AVAILABLE:
            raise
        raise Busy(
            "The database is busy with something that must not be disturbed, such as"
            " a roster that is being applied. Nothing was changed: try again in a"
            " minute."
        ) from error


# What is written down


def said(moment: datetime) -> str:
    """In local time, with the name of its zone: "March 1, 2027, 8 a.m. CST"."""
    local = timezone.localtime(moment)
    return f"{date_format(local, 'DATETIME_FORMAT')} {local.tzname()}"


def _record(
    action: str,
    administration: Administration,
    by: User | str,
    request: HttpRequest | None,
    *,
    before: Plan | None,
) -> None:
    old = _written(before) if before else {}
    new = _written(plan_of(administration))
    differs = [name for name in new if old.get(name) != new[name]]
    audit.record(
        action,
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        before={name: old[name] for name in differs if name in old},
        after={name: new[name] for name in differs},
    )


def _written(plan: Plan) -> Mapping[str, Any]:
    return {
        "survey": str(plan.published.survey),
        "role": str(plan.role),
        "wave": str(plan.wave) if plan.wave else "none",
        "offered in": [
            *sorted(one.code for one in plan.districts),
            *sorted(f"{one.district.code}/{one.code}" for one in plan.schools),
        ]
        or "all of its owner's schools",
        "opens": said(plan.opens_at),
        "closes": said(plan.closes_at),
        "coordinators see who has finished": plan.coordinators_see_finished,
    }

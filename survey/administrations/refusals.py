"""What would harm an administration, in a sentence for the person who asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import IntegrityError, OperationalError
from django.db.models import Exists, OuterRef
from django.utils import timezone

from accounts.models import District, School
from survey.administrations.plans import Plan, said
from survey.administrations.queries import (
    MOST_NAMED,
    schools_offered,
    somebody_has_started,
    somebody_was_invited,
)
from survey.definitions.ownership import is_offerable
from survey.models import Administration, PublishedSurvey, Respondent, Role, Wave
from survey.taking.storage import GRACE

# Beyond it a date is a slip of the hand.
FARTHEST = timedelta(days=5 * 366)
EARLIEST_YEAR = 2000
# PostgreSQL's, for a lock that was not to be had in time.
LOCK_NOT_AVAILABLE = "55P03"


class WouldHarm(ValidationError):
    """The change would harm a running administration; says how."""


class NeedsTyping(ValidationError):
    """Its name has to be typed first; says what for."""


class ChangedMeanwhile(ValidationError):
    """Somebody else changed it since; says who, and what."""


class Busy(ValidationError):
    """Something else holds what this needs; nothing was changed."""


def check_change(
    current: Administration, before: Plan, to: Plan, confirmed: str
) -> None:
    now = timezone.now()
    _check_stays_comparable(current, before, to)
    if to.published != before.published:
        check_survey(current.district, to.published)
    check_finished_may_be_seen(to.role, to.coordinators_see_finished)
    if to.wave != before.wave:
        check_wave(current.district, to.wave)
    if (to.districts, to.schools) != (before.districts, before.schools):
        check_places(current.district, to.districts, to.schools)
        _check_nobody_is_left_out(current, before, to)
    if (to.opens_at, to.closes_at) != (before.opens_at, before.closes_at):
        _check_beginning(current, to)
        _check_end(current, to, now, confirmed)
        check_window(to.opens_at, to.closes_at)


def check_survey(owner: District | None, published: PublishedSurvey) -> None:
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


def check_window(opens_at: datetime, closes_at: datetime) -> None:
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


def check_finished_may_be_seen(role: str, seen: bool) -> None:
    if seen and role == Role.TEACHER:
        raise ValidationError(
            {
                "coordinators_see_finished": "Never for teachers: they were told that"
                " nobody in their school learns who has answered."
            }
        )


def check_wave(owner: District | None, wave: Wave | None) -> None:
    if wave is not None and wave.district_id not in (None, owner and owner.pk):
        raise ValidationError(
            {"wave": "A wave holds the administrations of its owner. Choose another."}
        )


def check_places(
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
    invited = Respondent.objects.filter(
        administration=current, school=OuterRef("pk"), withdrawn_at=None
    )
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


def check_name(name: str) -> None:
    if Administration.objects.filter(name=name).exists():
        raise ValidationError({"name": _taken(name)})


def _taken(name: str) -> str:
    return f"There is an administration called {name} already. Choose another name."


@contextmanager
def name_taken_meanwhile(name: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        check_name(name)
        raise Busy(
            "Something that it needs was deleted meanwhile. Load this page anew."
        ) from error


@contextmanager
def giving_up() -> Iterator[None]:
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

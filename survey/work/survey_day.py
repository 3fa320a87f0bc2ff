"""Let work wait that is not urgent, for the hours in which a whole state answers.

A person begins a survey day, and says when it ends. Meanwhile workers take no jobs of
the kinds that `waits` (`jobs.runnable_jobs`), and only invitations of the e-mails to
respondents are sent. What runs already runs to its end. Nothing has to happen for a
survey day to be over: its end is part of each query.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any

from django.core.cache import caches
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Q
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.time_zones import zone_of
from survey.models.survey_day import SurveyDay

# Who forgets to end one loses a night's exports, and no more.
LONGEST = timedelta(hours=24)
KEY = "survey_day"


def is_off() -> Q:
    """Return a condition for rows of any table: no survey day is on. No statement."""
    return Q(~Exists(SurveyDay.objects.current()))


def current() -> SurveyDay | None:
    """1 statement."""
    return SurveyDay.objects.current().select_related("by").first()


def next_time(clock: time, *, zone: tzinfo | None = None) -> datetime:
    """Return when clocks of the state show this time next.

    Where they show it twice, as in autumn, the first that is ahead. Where they leave
    it out, as in spring, when it would be.
    """
    zone, now = zone or zone_of(None), timezone.now()
    today = now.astimezone(zone).date()
    moments = [
        datetime.combine(today + timedelta(days=days), clock.replace(fold=fold), zone)
        for days in (0, 1)
        for fold in (0, 1)
    ]
    # Comparing moments of one zone would compare what its clocks show.
    ahead = [moment.astimezone(UTC) for moment in moments]
    shown = [
        moment
        for moment in ahead
        if moment > now and moment.astimezone(zone).time() == clock
    ]
    return min(shown or [moment for moment in ahead if moment > now])


@transaction.atomic
def begin(
    *,
    ends_at: datetime,
    reason: str,
    by: User | str,
    request: HttpRequest | None = None,
) -> SurveyDay:
    """Begin a survey day, and record it.

    Raises ValidationError if one is on, or this one would end too late or too early.
    """
    if not timedelta(0) < ends_at - timezone.now() <= LONGEST:
        raise ValidationError(_("Enter an end within the next 24 hours."))
    over = SurveyDay.objects.filter(ended_at=None, ends_at__lte=Now())
    over.update(ended_at=F("ends_at"))
    try:
        with transaction.atomic():
            day = SurveyDay.objects.create(
                ends_at=ends_at, reason=reason, by=by if isinstance(by, User) else None
            )
    except IntegrityError:
        raise ValidationError(
            _("A survey day is on already. End it first, then begin another one.")
        ) from None
    audit.record(
        "begin survey day",
        by=by,
        request=request,
        subject=day,
        after={"ends_at": ends_at.isoformat(), "reason": reason},
    )
    transaction.on_commit(refresh)
    return day


@transaction.atomic
def end(*, by: User | str, request: HttpRequest | None = None) -> bool:
    """End the survey day, and record it; return False if none is on."""
    day = current()
    # Of two people at once, one ends it.
    ended = day and SurveyDay.objects.current().filter(pk=day.pk)
    if not ended or not ended.update(ended_at=Now()):
        return False
    audit.record("end survey day", by=by, request=request, subject=day)
    transaction.on_commit(refresh)
    return True


def refresh() -> None:
    """Store the end in the cache, for pages. 1 statement.

    Also called every quarter of a minute, for a cache that was away.
    """
    day = current()
    if day is None:
        caches["lists"].delete(KEY)
    else:
        caches["lists"].set(KEY, day.ends_at.timestamp(), LONGEST.total_seconds())


def shown_end() -> datetime | None:
    """Return when the survey day ends that is on, as pages show it. No statement."""
    seconds: Any = caches["lists"].get(KEY)
    if not isinstance(seconds, int | float) or seconds <= timezone.now().timestamp():
        return None
    return datetime.fromtimestamp(seconds, UTC)

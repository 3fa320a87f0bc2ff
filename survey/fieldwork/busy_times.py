"""Tell whether people answer now, or soon: no time to upgrade the server."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from survey.models import Administration, Respondent, SurveyDay

# People who start or finish within it are answering: a survey takes 20 minutes.
ANSWERING = timedelta(hours=1)


def reasons_to_wait(now: datetime, *, hours: int) -> list[str]:
    """Return a sentence for each administration that a restart could disturb.

    Those in which somebody started or finished within the last hour, and those that
    open within so many hours. A night in the middle of a window is none: nobody
    answers. Before them, a survey day that a person has begun. 3 statements.
    """
    reasons = [
        f"a survey day is on until {timezone.localtime(day.ends_at):%Y-%m-%d %H:%M}"
        for day in SurveyDay.objects.current()
    ]
    recently = Q(started_at__gte=now - ANSWERING) | Q(completed_at__gte=now - ANSWERING)
    busy = set(
        Respondent.objects.filter(
            recently,
            administration__opens_at__lte=now,
            administration__closes_at__gt=now,
        )
        .values_list("administration_id", flat=True)
        .distinct()
    )
    soon = Q(opens_at__gt=now, opens_at__lte=now + timedelta(hours=hours))
    for administration in (
        Administration.objects.filter(soon | Q(pk__in=busy))
        .only("name", "opens_at", "closes_at")
        .order_by("opens_at", "pk")
    ):
        if administration.pk in busy:
            reasons.append(f"people answer {administration.name} now")
        else:
            opens = timezone.localtime(administration.opens_at)
            reasons.append(f"{administration.name} opens at {opens:%Y-%m-%d %H:%M}")
    return reasons

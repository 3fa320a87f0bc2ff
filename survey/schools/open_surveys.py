"""List the surveys that are open at a school, for its public page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from accounts.models import SchoolListing
from survey.models import Administration
from survey.taking.published import Published, published_survey


@dataclass(frozen=True)
class OpenSurvey:
    published: Published
    role: str
    closes_at: datetime


def open_surveys(listing: SchoolListing) -> list[OpenSurvey]:
    """Return the open surveys, the first to close first. 1 statement when warm."""
    now = timezone.now()
    everywhere = Q(schools=None, districts=None)
    own = Q(district=None) | Q(district=listing.district_id)
    found = (
        Administration.objects.filter(opens_at__lte=now, closes_at__gt=now)
        .filter(
            everywhere & own | Q(schools=listing.pk) | Q(districts=listing.district_id)
        )
        .order_by("closes_at", "pk")
        .distinct()
        .values_list("published__digest", "role", "closes_at", "pk")
    )
    return [
        OpenSurvey(published_survey(digest), role, closes_at)
        for digest, role, closes_at, _ in found
    ]

"""List the surveys that are open at a school, for its public page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.models import PlaceSettings, SchoolListing
from survey.models import Administration, Denominator, OpenCode
from survey.people.access_codes import format_code
from survey.taking.published import Published, published_survey


@dataclass(frozen=True)
class OpenSurvey:
    published: Published
    role: str
    closes_at: datetime
    # Whether it is begun with a school's code, and not with a login card.
    for_anyone: bool
    # As on posters; empty: the school does not publish one.
    code: str
    # The short name of the administration, if its questions are on a public page.
    questions: str


def questions_are_public() -> Q:
    """Return which administrations show their questions to everybody.

    The state has to allow it; a district can hide those of its own, and the owner
    each.
    """
    rows = PlaceSettings.objects.all()
    return Q(
        Exists(rows.filter(public_questions=True)),
        ~Exists(rows.filter(hides_questions=True, district=OuterRef("district"))),
        public_questions=True,
    )


def open_surveys(listing: SchoolListing, language: str) -> list[OpenSurvey]:
    """Return the open surveys, the first to close first. 2 statements when warm.

    Of several published codes of a survey, one in this language is preferred.
    """
    now = timezone.now()
    everywhere = Q(schools=None, districts=None)
    may_offer = Q(district=None) | Q(district=listing.district_id)
    rows = (
        Administration.objects.filter(opens_at__lte=now, closes_at__gt=now)
        # People come to a module from the state's survey alone.
        .filter(module_of=None)
        .filter(
            everywhere & may_offer
            | Q(schools=listing.pk)
            | Q(districts=listing.district_id)
        )
        .annotate(shows_questions=questions_are_public())
        .order_by("closes_at", "pk")
        .distinct()
        .values_list(
            *("published__digest", "role", "closes_at", "denominator", "pk", "name"),
            "shows_questions",
        )
    )
    codes = _published_codes(listing, now, language)
    return [
        OpenSurvey(
            published_survey(digest),
            role,
            closes_at,
            denominator == Denominator.COUNT,
            codes.get(pk, ""),
            name if is_public else "",
        )
        for digest, role, closes_at, denominator, pk, name, is_public in rows
    ]


def _published_codes(
    listing: SchoolListing, now: datetime, language: str
) -> dict[int, str]:
    """Return the code of each administration with which one can begin now."""
    rows: Iterable[tuple[int, str, str]] = (
        OpenCode.objects.filter(school=listing.pk, revoked_at=None)
        .exclude(published_code="")
        .filter(Q(opens_at=None) | Q(opens_at__lte=now))
        .filter(Q(closes_at=None) | Q(closes_at__gt=now))
        .order_by("pk")
        .values_list("administration_id", "language", "published_code")
    )
    # The last one of an administration counts.
    ordered = sorted(rows, key=lambda row: (row[1] == language, row[1] == ""))
    return {pk: format_code(code) for pk, _, code in ordered}

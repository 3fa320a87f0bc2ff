"""Find the public pages of a user's own schools."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from accounts.permissions import Capability, Permissions
from reports.models import PublishedPlace
from reports.models.publications import public_condition
from reports.publishing.page import without_directions
from reports.releases.levels import LEVELS, STATE
from survey.models import Administration


@dataclass(slots=True)
class OwnPages:
    """The public pages of one survey round, and of the own schools in it."""

    administration: int
    titles: dict[str, str] = field(default_factory=dict)
    # Names and addresses.
    schools: list[tuple[str, str]] = field(default_factory=list)

    @property
    def all_schools(self) -> str:
        return reverse("published_state", args=[self.administration])

    def title(self, language: str) -> str:
        return self.titles.get(language) or next(iter(self.titles.values()), "")


def own_pages(
    permissions: Permissions,
    administrations: Collection[int] | QuerySet[Administration, Any],
) -> dict[int, OwnPages]:
    """Return the pages of what is public, by administration. At most 1 statement.

    None for users who see all answers in the console.
    """
    if permissions.has(Capability.SEE_RESPONSES):
        return {}
    schools = permissions.places(Capability.SEE_RATES).schools
    level, key = STATE
    rows = PublishedPlace.objects.filter(
        public_condition("publication__"),
        Q(level=level, place_id=key) | Q(level=LEVELS.SCHOOL, place_id__in=schools),
        publication__administration__in=administrations,
    ).order_by("-publication__administration__closes_at", "-publication", "name")
    pages: dict[int, OwnPages] = {}
    for pk, titles, row_level, place, name in rows.values_list(
        "publication__administration",
        "publication__frame__titles",
        "level",
        "place_id",
        "name",
    ):
        page = pages.setdefault(pk, OwnPages(pk, titles))
        if row_level == LEVELS.SCHOOL:
            address = reverse("published_school", args=[pk, place])
            page.schools.append((without_directions(name), address))
    return pages

"""Decide whose scores a user may see."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from accounts.models import District, School
from accounts.permissions import Permissions, Places
from reports.results.access import capability_for
from survey.models import Administration

MAX_KEY = 2**63


def places_with_scores(
    permissions: Permissions, administration: Administration
) -> Places:
    return permissions.places(capability_for(administration))


def districts_with_scores(
    permissions: Permissions, administration: Administration
) -> QuerySet[District]:
    """Return the districts that the user sees as a whole."""
    return permissions.districts(capability_for(administration))


def school_or_404(
    permissions: Permissions, administration: Administration, pk: int
) -> School:
    if pk >= MAX_KEY:
        raise Http404
    schools = permissions.schools(capability_for(administration))
    return get_object_or_404(schools.select_related("district"), pk=pk)

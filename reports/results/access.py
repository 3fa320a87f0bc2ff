"""Decide who may see the results of which administrations and places."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone

from accounts.models import School
from accounts.permissions import Capability, Permissions
from reports.rates.thresholds import ThresholdProgress
from reports.rates.visible_rates import rates_for, school_line
from reports.releases.levels import LEVELS, Place
from survey.fieldwork.administrations import administrations_for
from survey.models import Administration


def results_for(permissions: Permissions) -> QuerySet[Administration]:
    """Return the administrations whose results the user may see.

    Users who see responses see the results after an administration has closed. All
    others see them when they are shared.
    """
    seen = administrations_for(permissions, Capability.SEE_RESPONSES).values("pk")
    is_over = Q(closes_at__lte=timezone.now(), pk__in=seen)
    return administrations_for(permissions, Capability.SEE_RESULTS).filter(
        Q(results_roll_up__shared_at__isnull=False) | is_over
    )


def has_unshared_results(permissions: Permissions) -> bool:
    """Test if surveys of the user's places have results that are not shared yet."""
    return (
        administrations_for(permissions, Capability.SEE_RESULTS)
        .filter(closes_at__lte=timezone.now())
        .filter(results_roll_up__isnull=False, results_roll_up__shared_at=None)
        .exists()
    )


def administration_or_404(permissions: Permissions, pk: int) -> Administration:
    """Return an administration whose results the user may see, for its title too."""
    return get_object_or_404(
        results_for(permissions)
        .select_related("published__survey", "wave", "district")
        .select_related("results_roll_up", "roll_up", "scoring")
        .defer("published__definition", "published__survey__source"),
        pk=pk,
    )


def is_shared(administration: Administration) -> bool:
    roll_up = getattr(administration, "results_roll_up", None)
    return bool(roll_up and roll_up.shared_at)


def capability_for(administration: Administration) -> Capability:
    """Return what is needed in a place to see its results."""
    if is_shared(administration):
        return Capability.SEE_RESULTS
    return Capability.SEE_RESPONSES


def threshold_of(
    permissions: Permissions, administration: Administration, school: School
) -> ThresholdProgress | None:
    """Return the progress of a school toward its threshold; None if it is unknown.

    1 statement.
    """
    rate = rates_for(permissions, administration).filter(school=school).first()
    return school_line(rate, administration).threshold if rate else None


def sees_groups(permissions: Permissions, place: Place) -> bool:
    """Test if the user may see scores by group of a place with several schools.

    As results by group: only users who see all responses of it.
    """
    seen = permissions.places(Capability.SEE_RESPONSES)
    level, key = place
    return seen.state or level == LEVELS.DISTRICT.value and seen.has_district(key)

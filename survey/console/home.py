"""The first page of the console: what stands open, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.access import staff
from accounts.console.navigation import entries_for
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.administrations import administrations_for
from survey.models import Administration, Respondent

MOST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Task:
    """An administration that is open or planned, and what comes next."""

    administration: Administration
    # There is somebody on its roster, in the places that are seen.
    has_people: bool
    manages_rosters: bool
    sees_people: bool
    sees_responses: bool


@staff
@require_safe
def console_home(request: StaffRequest) -> HttpResponse:
    """3 statements: who is asking, what stands open for them, and where people
    are invited already."""
    permissions: Permissions = request.permissions
    return render(
        request,
        "survey/console/home.html",
        {
            "entries": entries_for(permissions),
            "memberships": permissions.memberships,
            "tasks": _tasks(permissions),
        },
    )


def _tasks(permissions: Permissions) -> list[Task]:
    standing = (
        administrations_for(permissions, C.SEE_RATES)
        .filter(closes_at__gt=timezone.now())
        .select_related("wave")
        .order_by("opens_at", "name")
    )
    return [
        Task(
            administration=one,
            has_people=has_people,
            manages_rosters=permissions.has(C.MANAGE_ROSTERS),
            sees_people=permissions.has(C.SEE_IDENTITIES),
            sees_responses=permissions.has(C.SEE_RESPONSES),
        )
        for one, has_people in _with_people(permissions, list(standing[:MOST_SHOWN]))
    ]


def _with_people(
    permissions: Permissions, administrations: list[Administration]
) -> list[tuple[Administration, bool]]:
    """Whether somebody is on its roster, for each of these. 1 statement.

    Each is named in the statement by its key: by another row's, the database
    would expect people in every one, and read all of two million to find none.
    """
    if not administrations:
        return []
    people = Respondent.objects.filter(school__in=permissions.schools(C.SEE_RATES))
    one_row = Administration.objects.filter(pk=administrations[0].pk)
    [found] = one_row.order_by().values_list(
        *(Exists(people.filter(administration=one.pk)) for one in administrations)
    )
    return list(zip(administrations, found, strict=True))

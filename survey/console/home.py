"""The console's home page: open and planned surveys, with their next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Case, Exists, When
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

MAX_TASKS = 6
# Open and planned administrations from which those tasks are chosen.
MAX_CONSIDERED = 24


@dataclass(frozen=True, slots=True)
class HomeTask:
    """An open or planned administration, and the next steps of this user."""

    administration: Administration
    # Whether people are invited in the user's own schools.
    has_people: bool
    manages_rosters: bool
    sees_people: bool
    sees_responses: bool


@staff
@require_safe
def console_home(request: StaffRequest) -> HttpResponse:
    """Show the home page. 3 statements: memberships, administrations, people."""
    permissions = request.permissions
    own = permissions.places(C.SEE_RATES).districts
    administrations = list(
        administrations_for(permissions, C.SEE_RATES)
        .filter(closes_at__gt=timezone.now())
        .annotate(own_first=Case(When(district__in=own, then=0), default=1))
        .select_related("published__survey", "wave")
        .defer("published__definition", "published__survey__source")
        .order_by("own_first", "opens_at", "name")[:MAX_CONSIDERED]
    )
    have_people = have_people_in_own_schools(permissions, administrations)
    tasks = [
        HomeTask(
            administration=administration,
            has_people=has_people,
            manages_rosters=permissions.has(C.MANAGE_ROSTERS),
            sees_people=permissions.has(C.SEE_IDENTITIES),
            sees_responses=permissions.has(C.SEE_RESPONSES),
        )
        for administration, has_people in zip(administrations, have_people, strict=True)
    ]
    # A new survey of the state, without people here yet, comes after those with
    # people and those of the own district.
    tasks.sort(
        key=lambda task: (
            not (task.has_people or task.administration.district_id in own),
            task.administration.opens_at,
            task.administration.name,
        )
    )
    return render(
        request,
        "survey/console/home.html",
        {
            "entries": entries_for(permissions),
            "memberships": permissions.memberships,
            "tasks": tasks[:MAX_TASKS],
        },
    )


def have_people_in_own_schools(
    permissions: Permissions, administrations: Sequence[Administration]
) -> Sequence[bool]:
    """Return for each administration whether people are invited. 1 statement."""
    if not administrations:
        return []
    people = Respondent.objects.on_roster().filter(
        school__in=permissions.schools(C.SEE_RATES)
    )
    # The keys are in the statement as numbers. With a reference to another
    # row, the planner would expect people in every administration, and read
    # two million rows to find that a new one has none.
    one_row = Administration.objects.filter(pk=administrations[0].pk)
    [found] = one_row.order_by().values_list(
        *(
            Exists(people.filter(administration=administration.pk))
            for administration in administrations
        )
    )
    return found

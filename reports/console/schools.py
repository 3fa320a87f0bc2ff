"""List the schools of a user, with their coordinators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.forms import ChoiceField, Form
from accounts.http import StaffRequest
from accounts.models import Membership, School
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from accounts.staff import members_for

COORDINATOR = Membership.Role.COORDINATOR


class SchoolFilterForm(Form):
    show = ChoiceField(
        label=_("Show"),
        required=False,
        choices=(
            ("", _("All schools")),
            ("no-coordinator", _("Schools without a coordinator")),
        ),
    )


@needs(C.SEE_RATES)
@require_safe
def school_list(request: StaffRequest) -> HttpResponse:
    """List schools. 2 statements; 3 for users who manage staff."""
    permissions = request.permissions
    schools = permissions.schools(C.SEE_RATES).select_related("district")
    manages_staff = permissions.has(C.MANAGE_STAFF)
    filters = SchoolFilterForm(request.GET) if manages_staff else None
    if filters and filters.is_valid() and filters.cleaned_data["show"]:
        memberships = Membership.objects.current().filter(
            role=COORDINATOR, school=OuterRef("pk")
        )
        schools = schools.filter(~Exists(memberships), closed_at=None)
    listing: Listing[School] = Listing(
        request,
        schools,
        search=("name", "code", "district__name"),
        sorts={
            "name": ("name",),
            "district": ("district__name", "name"),
            "code": ("code",),
        },
    )
    coordinators = coordinators_of(permissions, listing.page.object_list)
    return listing.render(
        "reports/school_list.html",
        {
            "schools": [
                (school, coordinators.get(school.pk, ())) for school in listing.page
            ],
            "filter_form": filters,
            "manages_staff": manages_staff,
            "manages_rosters": permissions.has(C.MANAGE_ROSTERS),
            "may_import": permissions.places(C.MANAGE_ROSTERS).state,
        },
    )


def coordinators_of(
    permissions: Permissions, schools: Iterable[School]
) -> dict[int | None, list[Membership]]:
    """Return the coordinators of schools, for users who manage staff there.

    1 statement, none for others.
    """
    if not permissions.has(C.MANAGE_STAFF):
        return {}
    memberships = members_for(permissions).filter(
        role=COORDINATOR, school__in=[school.pk for school in schools]
    )
    coordinators: dict[int | None, list[Membership]] = defaultdict(list)
    for membership in memberships:
        coordinators[membership.school_id].append(membership)
    return coordinators

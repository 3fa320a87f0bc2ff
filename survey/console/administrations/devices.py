"""The devices on which many access codes were used."""

from __future__ import annotations

from django.db.models import Count, Max, Min
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.fieldwork.administrations import administrations_for
from survey.models import DeviceLogin

# A family's computer, or one of a classroom, sees a few people.
MANY_CODES = 6
MOST_SHOWN = 100


@needs(C.SEE_AUDIT)
@require_safe
def administration_devices(request: StaffRequest, pk: int) -> HttpResponse:
    """List the devices on which many codes of the user's schools were used."""
    administrations = administrations_for(request.permissions, C.SEE_AUDIT)
    administration = get_object_or_404(
        administrations.select_related("published__survey").defer(
            "published__definition", "published__survey__source"
        ),
        pk=pk,
    )
    logins = DeviceLogin.objects.filter(administration=administration)
    if not request.permissions.places(C.SEE_AUDIT).state:
        schools = request.permissions.schools(C.SEE_AUDIT)
        logins = logins.filter(respondent__school__in=schools)
    # Nothing about single people: neither who they are nor when each came.
    devices = (
        logins.values("device")
        .annotate(
            codes=Count("respondent_id"),
            school=Min("respondent__school__name"),
            schools=Count("respondent__school", distinct=True),
            first=Min("first_at"),
            last=Max("first_at"),
        )
        .filter(codes__gte=MANY_CODES)
    )
    return render(
        request,
        "survey/console/administration_devices.html",
        {
            "administration": administration,
            "many": MANY_CODES,
            "devices": devices.order_by("-codes", "device")[:MOST_SHOWN],
            "most": MOST_SHOWN,
        },
    )

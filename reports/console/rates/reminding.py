"""Remind coordinators of schools below their threshold: what is sent, and to whom."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Capability, Permissions
from reports.rates import visible_rates
from reports.rates.coordinator_reminders import reminder_for, send_reminder
from reports.rates.rate_lines import is_open
from survey.models import Administration


@needs(Capability.MANAGE_STAFF)
def rates_remind(request: StaffRequest, pk: int) -> HttpResponse:
    """Say who gets an e-mail, and send it when the user has agreed."""
    permissions = request.permissions
    administration = _open_administration_or_404(permissions, pk)
    data = request.POST if request.method == "POST" else request.GET
    district = _district_or_404(permissions, data.get("district", ""))
    route = "rates_district" if district else "rates_schools"
    back = reverse(route, args=[district.pk] if district else [])
    back += f"?administration={administration.pk}&state=below"
    if request.method == "POST":
        with transaction.atomic():
            # Two who press the button at once are one after the other.
            Administration.objects.select_for_update(no_key=True).get(pk=pk)
            reminder = reminder_for(permissions, administration, district)
            send_reminder(request, administration, district, reminder)
        messages.success(request, _sent_in_words(len(reminder.schools_by_email)))
        return redirect(back)
    context = {
        "administration": administration,
        "district": district,
        "reminder": reminder_for(permissions, administration, district),
        "back": back,
    }
    return render(request, "reports/rates_remind.html", context)


def _sent_in_words(people: int) -> str:
    if not people:
        return _("No e-mail was sent.")
    return ngettext(
        "%(people)s coordinator gets an e-mail.",
        "%(people)s coordinators get an e-mail.",
        people,
    ) % {"people": f"{people:,}"}


def _open_administration_or_404(permissions: Permissions, pk: int) -> Administration:
    for administration in visible_rates.administrations_with_rates(permissions):
        if administration.pk == pk and is_open(administration):
            return administration
    raise Http404


def _district_or_404(permissions: Permissions, text: str) -> District | None:
    if not text:
        return None
    places = permissions.places(Capability.MANAGE_STAFF)
    if text.isascii() and text.isdecimal() and len(text) < 19:
        district = District.objects.filter(pk=text).first()
        if district and places.has_district(district.pk):
            return district
    raise Http404

"""The console's pages to rename, close and reopen a school or district."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.place_changes import (
    LONGEST_NAME,
    MANAGE,
    close_place,
    may_change_place,
    rename_place,
    reopen_place,
)
from survey.console.settings.scope import (
    about_place,
    place_or_404,
    settings_address,
)
from survey.models import Administration, OpenCode, Respondent


class RenameForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=LONGEST_NAME,
        error_messages={"required": gettext_lazy("Enter the new name.")},
    )


@needs(MANAGE)
def settings_rename(request: StaffRequest, place: str) -> HttpResponse:
    target = _own_place_or_404(request, place)
    data = request.POST if request.method == "POST" else None
    form = RenameForm(data, initial={"name": target.name})
    if form.is_bound and form.is_valid():
        name = form.cleaned_data["name"]
        try:
            changed = rename_place(target, name=name, by=request.user, request=request)
        except ValidationError as error:
            form.add_error("name", error)
        else:
            done = _("The name was changed.") if changed else _("Nothing was changed.")
            messages.success(request, done)
            return redirect(settings_address(target))
    context = {**about_place(request, target), "form": form}
    return render(request, "survey/console/settings_rename.html", context)


@needs(MANAGE)
def settings_close(request: StaffRequest, place: str) -> HttpResponse:
    """Say what closing or reopening a place means, and do it."""
    target = _own_place_or_404(request, place)
    refusal = ""
    if request.method == "POST":
        is_closed = "reopen" in request.POST
        act = reopen_place if is_closed else close_place
        try:
            act(target, by=request.user, request=request)
        except ValidationError as error:
            refusal = error.messages[0]
        else:
            done = (
                _("%(place)s is open again.")
                if is_closed
                else _("%(place)s is closed.")
            )
            messages.success(request, done % {"place": target})
            return redirect(settings_address(target))
    schools = School.objects.filter(pk=target.pk)
    if isinstance(target, District):
        schools = target.schools.filter(closed_at=None)
    codes = OpenCode.objects.filter(
        school__in=schools,
        revoked_at=None,
        administration__closes_at__gt=timezone.now(),
    )
    context = {
        **about_place(request, target),
        "is_district": isinstance(target, District),
        "refusal": refusal,
        "schools": schools.count(),
        "invited": _invited(schools),
        "has_codes": codes.exists(),
    }
    return render(
        request,
        "survey/console/settings_close.html",
        context,
        status=409 if refusal else 200,
    )


def _invited(schools: QuerySet[School]) -> list[tuple[Administration, int]]:
    """Return the open and planned administrations with people there. 2 statements."""
    people = Respondent.objects.on_roster().filter(
        school__in=schools,
        withdrawn_at=None,
        administration__closes_at__gt=timezone.now(),
    )
    counts = dict(
        people.order_by().values_list("administration").annotate(people=Count("pk"))
    )
    administrations = (
        Administration.objects.filter(pk__in=counts)
        .select_related("published__survey")
        .defer("published__definition", "published__survey__source")
        .order_by("closes_at", "pk")
    )
    return [(row, counts[row.pk]) for row in administrations]


def _own_place_or_404(request: StaffRequest, key: str) -> District | School:
    place = place_or_404(request, key, MANAGE)
    if place is None or not may_change_place(request.permissions, place):
        raise Http404
    return place

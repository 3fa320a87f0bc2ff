"""The pages to list, add, rename and delete waves."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.administrations.forms import OwnerForm
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.waves import (
    MAX_NAME_LENGTH,
    create_wave,
    delete_wave,
    may_manage_wave,
    rename_wave,
    waves_for,
)
from survey.models import Wave


class WaveForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME_LENGTH,
        help_text=gettext_lazy("Such as Spring 2027."),
        error_messages={"required": gettext_lazy("Enter a name, such as Spring 2027.")},
    )


class NewWaveForm(OwnerForm, WaveForm):
    owner = forms.TypedChoiceField(label=gettext_lazy("Owner"), coerce=int)


@needs(C.MANAGE_SURVEYS)
@require_safe
def wave_list(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    # Other districts' administrations in a wave are not counted.
    visible = administrations_for(permissions, C.SEE_RATES).values("pk")
    listing = Listing(
        request,
        waves_for(permissions)
        .select_related("district")
        .annotate(used=Count("administrations", filter=Q(administrations__in=visible))),
        search=("name", "district__name"),
        sorts={"newest": ("-pk",), "name": ("name",), "owner": ("district__name",)},
    )
    editable = {wave.pk for wave in listing.page if may_manage_wave(permissions, wave)}
    return listing.render("survey/console/wave_list.html", {"own": editable})


@needs(C.MANAGE_SURVEYS)
def wave_create(request: StaffRequest) -> HttpResponse:
    form = NewWaveForm(request.POST or None, permissions=request.permissions)
    if form.is_bound and form.is_valid():
        try:
            wave = create_wave(
                name=form.cleaned_data["name"],
                district=form.owners[form.cleaned_data.get("owner", 0)],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(
                request,
                _("%(wave)s was added. You can choose it when you open a survey round.")
                % {"wave": wave},
            )
            return redirect("wave_list")
    return render(request, "survey/console/wave_create.html", {"form": form})


@needs(C.MANAGE_SURVEYS)
def wave_rename(request: StaffRequest, pk: int) -> HttpResponse:
    wave = _own_wave_or_404(request, pk)
    form = WaveForm(request.POST or None, initial={"name": wave.name})
    if form.is_bound and form.is_valid():
        try:
            rename_wave(
                wave=wave,
                name=form.cleaned_data["name"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(
                request, _("The season was renamed to %(wave)s.") % {"wave": wave}
            )
            return redirect("wave_list")
    return render(
        request, "survey/console/wave_rename.html", {"form": form, "wave": wave}
    )


@needs(C.MANAGE_SURVEYS)
def wave_delete(request: StaffRequest, pk: int) -> HttpResponse:
    wave = _own_wave_or_404(request, pk)
    problems: list[str] = []
    if request.method == "POST":
        try:
            delete_wave(wave=wave, by=request.user, request=request)
        except ValidationError as error:
            problems = error.messages
        else:
            messages.success(request, _("%(wave)s was deleted.") % {"wave": wave})
            return redirect("wave_list")
    return render(
        request,
        "survey/console/wave_delete.html",
        {"wave": wave, "problems": problems, "used": wave.administrations.count()},
    )


def _own_wave_or_404(request: StaffRequest, pk: int) -> Wave:
    permissions = request.permissions
    wave = get_object_or_404(waves_for(permissions), pk=pk)
    if not may_manage_wave(permissions, wave):
        raise Http404
    return wave

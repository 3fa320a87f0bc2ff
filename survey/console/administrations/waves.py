"""Waves: what they are called, and whose they are."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.administrations import administrations_for
from survey.console.administrations.forms import owners_for
from survey.models import Wave
from survey.waves import (
    LONGEST_NAME,
    create_wave,
    delete_wave,
    may_manage_wave,
    rename_wave,
    waves_for,
)


class WaveForm(forms.Form):
    name = forms.CharField(max_length=LONGEST_NAME, help_text="Such as Spring 2027.")


class NewWaveForm(WaveForm):
    owner = forms.TypedChoiceField(label="Whose it is", coerce=int)

    def __init__(
        self, *args: object, permissions: Permissions, **options: object
    ) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        # By their places in the list; nobody has to choose among one.
        self.owners = owners_for(permissions)
        if len(self.owners) == 1:
            del self.fields["owner"]
        else:
            owner: forms.TypedChoiceField = self.fields["owner"]  # type: ignore[assignment]
            owner.choices = list(enumerate(map(str, self.owners)))


@needs(C.MANAGE_SURVEYS)
@require_safe
def wave_list(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    listing = Listing(
        request,
        _counted(permissions),
        search=("name", "district__name"),
        sorts={"newest": ("-pk",), "name": ("name",), "owner": ("district__name",)},
    )
    own = {one.pk for one in listing.page if may_manage_wave(permissions, one)}
    return listing.render("survey/console/wave_list.html", {"own": own})


@needs(C.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
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
            messages.success(request, f"{wave} is there. Open administrations in it.")
            return redirect("wave_list")
    return render(request, "survey/console/wave_create.html", {"form": form})


@needs(C.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def wave_rename(request: StaffRequest, pk: int) -> HttpResponse:
    wave = _own(request, pk)
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
            messages.success(request, f"The wave is called {wave} now.")
            return redirect("wave_list")
    return render(
        request, "survey/console/wave_rename.html", {"form": form, "wave": wave}
    )


@needs(C.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def wave_delete(request: StaffRequest, pk: int) -> HttpResponse:
    wave = _own(request, pk)
    problems: list[str] = []
    if request.method == "POST":
        try:
            delete_wave(wave=wave, by=request.user, request=request)
        except ValidationError as error:
            problems = error.messages
        else:
            messages.success(request, f"{wave} was deleted.")
            return redirect("wave_list")
    return render(
        request,
        "survey/console/wave_delete.html",
        {"wave": wave, "problems": problems, "used": wave.administrations.count()},
    )


def _counted(permissions: Permissions) -> QuerySet[Wave]:
    """With the number of its administrations that somebody may see."""
    seen = administrations_for(permissions, C.SEE_RATES).values("pk")
    return (
        waves_for(permissions)
        .select_related("district")
        .annotate(used=Count("administrations", filter=Q(administrations__in=seen)))
    )


def _own(request: StaffRequest, pk: int) -> Wave:
    permissions = request.permissions
    wave = get_object_or_404(waves_for(permissions), pk=pk)
    if not may_manage_wave(permissions, wave):
        raise Http404
    return wave

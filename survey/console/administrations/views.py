"""Which survey is offered to whom, and when: seen, opened, changed, closed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.administrations import (
    administrations_for,
    change_administration,
    close_administration,
    may_manage,
    open_administration,
    reopen_administration,
    said,
    standing,
    surveys_to_offer,
)
from survey.console.administrations.forms import (
    ChangeForm,
    OpeningForm,
    ReopeningForm,
    SeenForm,
    survey_in_words,
    time_zone_in_words,
)
from survey.models import Administration
from survey.models.administration import SOON
from survey.waves import wave_called

State = Administration.State
# In a page's list of places.
MOST_SHOWN = 50


class FilterForm(forms.Form):
    state = forms.ChoiceField(
        required=False,
        label="Window",
        choices=[
            ("", "Any"),
            *((one.value, one.label) for one in State),
        ],
    )


@needs(C.SEE_RATES)
@require_safe
def administration_list(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    rows = _in_state(
        _listed(administrations_for(permissions, C.SEE_RATES)),
        request.GET.get("state", ""),
    )
    listing = Listing(
        request,
        rows,
        search=("name", "wave__name", "published__survey__name"),
        sorts={
            # No column's: what begins or began last stands first.
            "newest": ("-opens_at",),
            "name": ("name",),
            "wave": ("wave__name", "name"),
            "survey": ("published__survey__name", "name"),
            "role": ("role", "name"),
            "opens": ("opens_at",),
            "closes": ("closes_at",),
        },
    )
    return listing.render(
        "survey/console/administration_list.html",
        {
            "filter_form": FilterForm(request.GET),
            "filtered": bool(request.GET.get("state")),
            "may_open": permissions.has(C.MANAGE_SURVEYS),
            "time_zone": time_zone_in_words(),
        },
    )


@needs(C.SEE_RATES)
@require_safe
def administration_detail(request: StaffRequest, pk: int) -> HttpResponse:
    permissions = request.permissions
    administration = _seen_by(permissions, pk)
    districts, schools, elsewhere = _places_in_sight(permissions, administration)
    return render(
        request,
        "survey/console/administration_detail.html",
        {
            "administration": administration,
            "survey": survey_in_words(administration.published),
            "survey_address": _survey_address(permissions, administration),
            "districts": districts[:MOST_SHOWN],
            "schools": schools[:MOST_SHOWN],
            "elsewhere": elsewhere,
            "may_manage": may_manage(permissions, administration),
            "links": _links(permissions, administration),
            "time_zone": time_zone_in_words(),
        },
    )


@needs(C.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def administration_open(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    form = OpeningForm(request.POST or None, permissions=permissions)
    if form.is_bound and _is_asked_again(request):
        form.complains_not_yet()
    elif form.is_bound and form.is_valid():
        try:
            administration = _opened(request, form)
        except ValidationError as error:
            form.complain(error)
        else:
            messages.success(
                request,
                f"{administration} is planned: it opens on"
                f" {said(administration.opens_at)}. Invite people to it next."
                if administration.state == State.PLANNED
                else f"{administration} is open. Invite people to it next.",
            )
            return redirect("administration_detail", administration.pk)
    context = {
        "form": form,
        "surveys": surveys_to_offer(permissions).exists(),
        "everywhere": _everywhere(form.chosen_owner()),
    }
    return render(request, "survey/console/administration_open.html", context)


@needs(C.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def administration_change(request: StaffRequest, pk: int) -> HttpResponse:
    permissions = request.permissions
    administration = _managed_by(permissions, pk)
    form = ChangeForm(
        request.POST or None, permissions=permissions, administration=administration
    )
    if form.is_bound and _is_asked_again(request):
        form.complains_not_yet()
    elif form.is_bound and form.is_valid():
        try:
            change_administration(
                administration=administration,
                to=form.plan(),
                seen=form.cleaned_data["seen"],
                confirmed=form.cleaned_data["confirmed"].strip(),
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            form.complain(error)
        else:
            messages.success(request, f"{administration} was changed.")
            return redirect("administration_detail", pk)
    context = {
        "form": form,
        "administration": administration,
        "everywhere": _everywhere(administration.district),
    }
    return render(request, "survey/console/administration_change.html", context)


@needs(C.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def administration_close(request: StaffRequest, pk: int) -> HttpResponse:
    administration = _managed_by(request.permissions, pk)
    form = SeenForm(request.POST or None, initial={"seen": administration.changes})
    if form.is_bound and form.is_valid():
        try:
            close_administration(
                administration=administration,
                seen=form.cleaned_data["seen"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            _complain(form, error)
        else:
            messages.success(request, f"{administration} is closed.")
            return redirect("administration_detail", pk)
    context = {
        "form": form,
        "administration": administration,
        "standing": standing(administration),
    }
    return render(request, "survey/console/administration_close.html", context)


@needs(C.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def administration_reopen(request: StaffRequest, pk: int) -> HttpResponse:
    administration = _managed_by(request.permissions, pk)
    form = ReopeningForm(request.POST or None, initial={"seen": administration.changes})
    if form.is_bound and form.is_valid():
        try:
            reopened = reopen_administration(
                administration=administration,
                closes_at=form.cleaned_data["closes_at"],
                seen=form.cleaned_data["seen"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            _complain(form, error)
        else:
            messages.success(
                request,
                f"{administration} is open again, until {said(reopened.closes_at)}.",
            )
            return redirect("administration_detail", pk)
    context = {
        "form": form,
        "administration": administration,
        "standing": standing(administration),
    }
    return render(request, "survey/console/administration_reopen.html", context)


# What somebody may see


def _seen_by(permissions: Permissions, pk: int) -> Administration:
    return get_object_or_404(
        administrations_for(permissions, C.SEE_RATES)
        .select_related("published__survey", "wave", "district")
        .defer("published__definition", "published__survey__source"),
        pk=pk,
    )


def _managed_by(permissions: Permissions, pk: int) -> Administration:
    administration = _seen_by(permissions, pk)
    if not may_manage(permissions, administration):
        raise Http404
    return administration


def _listed(rows: QuerySet[Administration]) -> QuerySet[Administration]:
    return (
        rows.select_related("published__survey", "wave", "district")
        .defer("published__definition", "published__survey__source")
        .annotate(
            district_count=_count_of(Administration.districts.through),
            school_count=_count_of(Administration.schools.through),
        )
    )


def _count_of(through: Any) -> Coalesce:
    counted = (
        through.objects.filter(administration=OuterRef("pk"))
        .order_by()
        .values("administration")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return Coalesce(Subquery(counted), 0)


def _in_state(rows: QuerySet[Administration], state: str) -> QuerySet[Administration]:
    now = timezone.now()
    if state == State.PLANNED:
        return rows.filter(opens_at__gt=now)
    if state == State.CLOSED:
        return rows.filter(closes_at__lte=now)
    begun = rows.filter(opens_at__lte=now)
    if state == State.CLOSES_SOON:
        return begun.filter(closes_at__gt=now, closes_at__lte=now + SOON)
    if state == State.OPEN:
        return begun.filter(closes_at__gt=now + SOON)
    return rows


def _places_in_sight(
    permissions: Permissions, administration: Administration
) -> tuple[list[District], list[School], int]:
    """Where it is offered; of other districts' places only how many. 4 statements."""
    districts, schools = administration.districts, administration.schools
    own_districts = list(
        districts.filter(pk__in=permissions.districts(C.SEE_RATES).values("pk"))
    )
    own_schools = list(
        schools.filter(
            pk__in=permissions.schools(C.SEE_RATES).values("pk")
        ).select_related("district")
    )
    everything = districts.count() + schools.count()
    elsewhere = everything - len(own_districts) - len(own_schools)
    return own_districts, own_schools, elsewhere


def _links(
    permissions: Permissions, administration: Administration
) -> list[tuple[str, str, str]]:
    """Address, name and purpose of the pages that are there for this user."""
    rates, people, rosters, responses = (
        permissions.has(one)
        for one in (C.SEE_RATES, C.SEE_IDENTITIES, C.MANAGE_ROSTERS, C.SEE_RESPONSES)
    )
    pk = administration.pk
    offered = (
        (
            rates,
            f"{reverse('rates_board')}?administration={pk}",
            "Response rates",
            "Who has started and finished, school by school.",
        ),
        (
            people,
            reverse("people_list", args=[pk]),
            "People",
            "Find a person, print a lost card again, or give a new code.",
        ),
        (
            people,
            reverse("cards_list", args=[pk]),
            "Login cards",
            "Print the cards by which people begin.",
        ),
        (
            rosters,
            reverse("roster_upload", args=[pk]),
            "Upload a roster",
            "Invite people, or bring their rosters up to date.",
        ),
        (
            rosters,
            f"{reverse('roster_list')}?administration={pk}",
            "Its rosters",
            "What was uploaded so far, and what became of it.",
        ),
        (
            responses,
            f"{reverse('export_new')}?administrations={pk}",
            "Export",
            "Download the responses.",
        ),
    )
    return [tuple(rest) for is_there, *rest in offered if is_there]  # type: ignore[misc]


def _survey_address(permissions: Permissions, administration: Administration) -> str:
    if not permissions.has(C.MANAGE_SURVEYS):
        return ""
    return reverse("survey_detail", args=[administration.published.survey_id])


# Opening


def _is_asked_again(request: StaffRequest) -> bool:
    """To find places, or to have it named: nothing is saved yet."""
    return "again" in request.POST


def _opened(request: StaffRequest, form: OpeningForm) -> Administration:
    typed = form.cleaned_data
    owner = form.chosen_owner()
    districts, schools = typed["places"]
    about: dict[str, Any] = {"by": request.user, "request": request}
    with transaction.atomic():
        wave = typed["wave"]
        if typed["new_wave"]:
            try:
                wave = wave_called(name=typed["new_wave"], district=owner, **about)
            except ValidationError as error:
                raise ValidationError({"new_wave": error.messages}) from error
        return open_administration(
            name=typed["name"],
            published=typed["published"],
            role=typed["role"],
            opens_at=typed["opens_at"],
            closes_at=typed["closes_at"],
            wave=wave,
            district=owner,
            districts=districts,
            schools=schools,
            coordinators_see_finished=typed["coordinators_see_finished"],
            **about,
        )


def _everywhere(owner: District | None) -> str:
    return f"every school of {owner}" if owner else "every school of the state"


def _complain(form: forms.Form, error: ValidationError) -> None:
    if not hasattr(error, "error_dict"):
        form.add_error(None, error)
        return
    for name, errors in error.error_dict.items():
        form.add_error(name if name in form.fields else None, errors)

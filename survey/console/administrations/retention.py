"""How long a survey round's data are kept, who holds them, and destroying them."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from accounts.place_settings import levels_of
from survey.console.administrations.forms import show_errors
from survey.fieldwork.administrations.checks import DatabaseBusy
from survey.fieldwork.administrations.queries import (
    MAX_NAME_LENGTH,
    administration_or_404,
    may_manage,
)
from survey.models import (
    Administration,
    DataKind,
    Destruction,
    DestructionCertificate,
    Job,
    LegalHold,
)
from survey.people.erasing.words import TABLES
from survey.people.retention import destroy
from survey.people.retention.counting import count_data, request_count
from survey.people.retention.hold_changes import lift_hold, may_hold, place_hold
from survey.people.retention.holds import OnHold, hold_on
from survey.people.retention.orders import (
    DestructionRefused,
    order_destruction,
    reason_not_to_destroy,
)
from survey.people.retention.periods import change_retention
from survey.people.retention.terms import MAX_DAYS, limits_of, term_lines

SHORTEST_REASON = 10
DAYS_ERRORS = dict.fromkeys(
    ("min_value", "max_value", "invalid"),
    gettext_lazy("Enter a whole number of days from 1 to 36500."),
)


def days_field(label: Any, help_text: Any = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        help_text=help_text,
        min_value=1,
        max_value=MAX_DAYS,
        required=False,
        error_messages=DAYS_ERRORS,
    )


class RetentionForm(forms.Form):
    identities_days = days_field(
        gettext_lazy("Days until names and access codes are destroyed")
    )
    answers_days = days_field(gettext_lazy("Days until answers are destroyed"))


class HoldForm(forms.Form):
    place = forms.ChoiceField(
        label=gettext_lazy("Whose people does it cover?"), widget=forms.RadioSelect
    )
    holder = forms.CharField(
        label=gettext_lazy("Who holds the data?"),
        max_length=200,
        help_text=gettext_lazy(
            "An office that others can ask, such as Office of the general counsel."
        ),
    )
    reason = forms.CharField(
        label=gettext_lazy("Why?"),
        max_length=500,
        help_text=gettext_lazy(
            "Such as the name of a case. Others read it when something can’t be"
            " deleted. Don’t name a respondent."
        ),
    )

    def __init__(
        self, *args: Any, places: list[tuple[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        field = cast("forms.ChoiceField", self.fields["place"])
        field.choices = places
        self.initial.setdefault("place", places[0][0])


class LiftForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Why is it lifted?"),
        max_length=500,
        error_messages={"required": gettext_lazy("Say why it is lifted.")},
    )


class DestroyForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Why?"),
        min_length=SHORTEST_REASON,
        max_length=500,
        help_text=gettext_lazy(
            "The record of the destruction says it. Don’t name a respondent."
        ),
        error_messages={
            "required": gettext_lazy("Say in a sentence why."),
            "min_length": gettext_lazy("Say in a sentence why."),
        },
    )
    confirmed = forms.CharField(
        label=gettext_lazy("Short name, to confirm"),
        max_length=MAX_NAME_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
        error_messages={"required": gettext_lazy("Type the short name to confirm.")},
    )

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = name
        hint = _("Type %(name)s") % {"name": name}
        self.fields["confirmed"].help_text = hint

    def clean_confirmed(self) -> str:
        typed: str = self.cleaned_data["confirmed"]
        if typed.strip() != self.name:
            words = _("To confirm, type its short name: %(name)s")
            raise forms.ValidationError(words % {"name": self.name})
        return typed


def visible_round_or_404(request: StaffRequest, pk: int) -> Administration:
    """Return a round that administrators of its places may hold. 1 statement."""
    return administration_or_404(request.permissions, pk, C.MANAGE_SURVEYS)


def owned_round_or_404(request: StaffRequest, pk: int) -> Administration:
    administration = visible_round_or_404(request, pk)
    if not may_manage(request.permissions, administration):
        raise Http404
    return administration


def posted(request: StaffRequest) -> QueryDict | None:
    """Return what was sent, also if every field is empty; None without a form."""
    return request.POST if request.method == "POST" else None


@needs(C.MANAGE_SURVEYS)
def administration_retention(request: StaffRequest, pk: int) -> HttpResponse:
    """Show how long data are kept, what holds them, and change the periods."""
    administration = visible_round_or_404(request, pk)
    manages = may_manage(request.permissions, administration)
    if request.method == "POST" and not manages:
        raise Http404
    periods = getattr(administration, "retention", None)
    initial = {
        f"{kind}_days": periods.days(kind) if periods else None
        for kind in DataKind.values
    }
    form = RetentionForm(posted(request), initial=initial)
    if form.is_bound and form.is_valid():
        days = {kind: form.cleaned_data[f"{kind}_days"] for kind in DataKind.values}
        try:
            changed = change_retention(
                administration, days, by=request.user, request=request
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            done = (
                _("The periods were saved.") if changed else _("Nothing was changed.")
            )
            messages.success(request, done)
            return redirect("administration_retention", pk)
    holds = administration.holds.visible_to(request.permissions)
    # Also those of districts that the user does not see, without naming them.
    current = LegalHold.objects.current().of_rounds([pk])
    held = set(current.values_list("district", flat=True))
    context = {
        "administration": administration,
        "may_manage": manages,
        "form": form,
        "terms": term_lines(administration),
        "limits": [(kind.label, limits_of(kind, levels_of(None))) for kind in DataKind]
        if manages
        else (),
        "holds": [
            (hold, may_hold(request.permissions, hold.district_id))
            for hold in holds.select_related("placed_by", "lifted_by", "district")
        ],
        "is_held": bool(held),
        "holds_everybody": None in held,
    }
    return render(request, "survey/console/administration_retention.html", context)


@needs(C.MANAGE_SURVEYS)
def administration_hold(request: StaffRequest, pk: int) -> HttpResponse:
    """Place a hold of the state, or of a district that takes part."""
    administration = visible_round_or_404(request, pk)
    places = hold_places(request.permissions, administration)
    if not places:
        raise Http404
    choices = [(key, name) for key, (name, _district) in places.items()]
    form = HoldForm(posted(request), places=choices)
    if form.is_bound and form.is_valid():
        _name, district = places[form.cleaned_data["place"]]
        try:
            place_hold(
                administration,
                holder=form.cleaned_data["holder"],
                reason=form.cleaned_data["reason"],
                district=district,
                by=request.user,
                request=request,
            )
        except DatabaseBusy as error:
            show_errors(form, error)
        else:
            messages.success(request, _("The data are on hold."))
            return redirect("administration_retention", pk)
    return render(
        request,
        "survey/console/administration_hold.html",
        {"administration": administration, "form": form},
    )


def hold_places(
    permissions: Permissions, administration: Administration
) -> dict[str, tuple[str, District | None]]:
    """Return for whom a user may place a hold: the state, or own districts."""
    if permissions.places(C.MANAGE_SURVEYS).state:
        return {"state": (_("Everybody in this survey round"), None)}
    districts = permissions.districts(C.MANAGE_SURVEYS).order_by("name", "pk")
    if administration.district_id is not None:
        districts = districts.filter(pk=administration.district_id)
    words = _("People of %(district)s")
    return {
        str(district.pk): (words % {"district": district}, district)
        for district in districts
    }


@needs(C.MANAGE_SURVEYS)
def administration_hold_lift(request: StaffRequest, pk: int, hold: int) -> HttpResponse:
    administration = visible_round_or_404(request, pk)
    holds = administration.holds.visible_to(request.permissions)
    placed = get_object_or_404(
        holds.select_related("district", "administration__published__survey"), pk=hold
    )
    if not may_hold(request.permissions, placed.district_id):
        raise Http404
    form = LiftForm(posted(request))
    # A page that was open while somebody else lifted it.
    if placed.lifted_at is not None and form.is_bound:
        messages.info(request, _("This hold was lifted before."))
        return redirect("administration_retention", pk)
    if form.is_bound and form.is_valid():
        lift_hold(
            placed,
            reason=form.cleaned_data["reason"],
            by=request.user,
            request=request,
        )
        messages.success(request, _("The hold was lifted."))
        return redirect("administration_retention", pk)
    return render(
        request,
        "survey/console/administration_hold_lift.html",
        {"administration": administration, "hold": placed, "form": form},
    )


@needs(C.MANAGE_SURVEYS)
def administration_destroy(request: StaffRequest, pk: int, kind: str) -> HttpResponse:
    """Count what would be destroyed, and destroy it once confirmed."""
    if kind not in DataKind.values:
        raise Http404
    administration = owned_round_or_404(request, pk)
    if request.method == "POST" and "count" in request.POST:
        request_count(administration, kind, by=request.user)
        return redirect("administration_destroy", pk, kind)
    form = DestroyForm(posted(request), name=administration.name)
    refusal = ""
    if form.is_bound and form.is_valid():
        try:
            order_destruction(
                administration,
                kind,
                by=request.user,
                reason=form.cleaned_data["reason"],
                request=request,
            )
        except (DestructionRefused, OnHold) as refused:
            refusal = str(refused)
        else:
            return redirect("administration_destroy", pk, kind)
    rows = administration.destructions.filter(kind=kind).select_related("by")
    latest = rows.without_counts().first() or rows.first()
    certificates = DestructionCertificate.objects.visible_to(request.permissions)
    is_running = latest is not None and latest.state == Destruction.State.RUNNING
    context = {
        "administration": administration,
        "kind": DataKind(kind),
        "form": form,
        "hold": hold_on([pk]),
        "reason": refusal or reason_not_to_destroy(administration, kind),
        "latest": latest,
        "pause": destroy.reason_to_pause(latest) if latest and is_running else "",
        "certificate": certificates.filter(
            destruction__administration=administration, kind=kind
        ).first(),
        "job": job_of(latest, request) if latest else None,
        "tables": described_tables(latest) if latest else (),
    }
    status = 409 if refusal else 200
    template = "survey/console/administration_destroy.html"
    return render(request, template, context, status=status)


def job_of(destruction: Destruction, request: StaffRequest) -> Job | None:
    """Return the user's own job, whose progress the page may show."""
    kinds = (destroy.KIND, count_data.name)
    jobs = Job.objects.filter(
        kind__in=kinds, subject_id=destruction.pk, by=request.user
    )
    return jobs.order_by("-pk").first()


def described_tables(destruction: Destruction) -> list[tuple[str, int, str]]:
    """Return what each table has, its rows and their digest."""
    return [
        (str(TABLES.get(name, name)), table["rows"], table.get("digest", ""))
        for name, table in sorted(destruction.tables.items())
    ]

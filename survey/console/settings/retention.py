"""How long the state or a district keeps data, and what was destroyed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from accounts.place_settings import change_settings, levels_of, own_values
from survey.console.administrations.retention import (
    RetentionForm,
    days_field,
    posted,
)
from survey.console.settings.scope import about_place, place_or_404
from survey.models import DataKind, Destruction, LegalHold
from survey.people.retention.periods import check_days
from survey.people.retention.terms import Limits, limits_of

DAYS = tuple(f"{kind}_days" for kind in DataKind.values)
LIMITS = tuple(
    f"{kind}_{limit}_days" for kind in DataKind.values for limit in ("least", "most")
)


class PlaceRetentionForm(RetentionForm):
    def __init__(self, *args: Any, limits: dict[str, Limits], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.limits = limits

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        for kind in DataKind.values:
            try:
                check_days(cleaned.get(f"{kind}_days"), self.limits_of(kind))
            except ValidationError as error:
                self.add_error(f"{kind}_days", error)
        return cleaned

    def limits_of(self, kind: str) -> Limits:
        return self.limits[kind]


class StateRetentionForm(PlaceRetentionForm):
    identities_least_days = days_field(
        gettext_lazy("Names and access codes: shortest period, in days")
    )
    identities_most_days = days_field(
        gettext_lazy("Names and access codes: longest period, in days")
    )
    answers_least_days = days_field(gettext_lazy("Answers: shortest period, in days"))
    answers_most_days = days_field(gettext_lazy("Answers: longest period, in days"))

    def clean(self) -> dict[str, object]:
        cleaned = super().clean()
        for kind in DataKind.values:
            limits = self.limits_of(kind)
            if limits.least and limits.most and limits.least > limits.most:
                self.add_error(
                    f"{kind}_most_days",
                    _("The longest period is shorter than the shortest one."),
                )
        return cleaned

    def limits_of(self, kind: str) -> Limits:
        """Return the limits of the form itself."""
        least, most = (f"{kind}_{limit}_days" for limit in ("least", "most"))
        return Limits(self.cleaned_data.get(least), self.cleaned_data.get(most))


@needs(C.MANAGE_SURVEYS)
def settings_retention(request: StaffRequest, place: str) -> HttpResponse:
    """Change the periods of a place's rounds; list what was destroyed, and holds."""
    target = place_or_404(request, place, C.MANAGE_SURVEYS)
    if isinstance(target, School):
        raise Http404
    names = DAYS if target is not None else (*DAYS, *LIMITS)
    form_class = PlaceRetentionForm if target is not None else StateRetentionForm
    levels = levels_of(None)
    form = form_class(
        posted(request),
        initial=own_values(target, *names),
        limits={kind: limits_of(kind, levels) for kind in DataKind.values},
    )
    if form.is_bound and form.is_valid():
        changed = change_settings(
            "change retention settings",
            place=target,
            values={name: form.cleaned_data[name] for name in names},
            by=request.user,
            request=request,
        )
        done = _("The periods were saved.") if changed else _("Nothing was changed.")
        messages.success(request, done)
        return redirect("settings_retention", place)
    destroyed = Destruction.objects.visible_to(request.permissions).without_counts()
    holds = LegalHold.objects.visible_to(request.permissions).filter(lifted_at=None)
    if target is not None:
        destroyed = destroyed.filter(administration__district=target)
        holds = holds.filter(district=target)
    titles = "administration__published__survey"
    listing: Listing[Destruction] = Listing(
        request,
        destroyed.select_related(titles, "by").defer(
            "administration__published__definition", f"{titles}__source"
        ),
        search=("administration__name", "administration__published__survey__title"),
        sorts={"newest": ("-ordered_at",), "name": ("administration__name",)},
    )
    context = {
        **about_place(request, target),
        "form": form,
        "holds": holds.select_related(titles, "district", "placed_by")[:50],
    }
    return listing.render("survey/console/settings_retention.html", context)

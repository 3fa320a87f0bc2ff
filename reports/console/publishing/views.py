"""Publish results in the console: preview what everybody would see, and withdraw."""

from __future__ import annotations

from django.contrib import messages
from django.db import DEFAULT_DB_ALIAS
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.permissions import Capability, Permissions
from reports.console.publishing.forms import PublishForm, WithdrawForm
from reports.models import Publication
from reports.publishing.freezing import STATE, Freezer, FrozenPlace, basis_of
from reports.publishing.page import PublicPage
from reports.publishing.publications import (
    PublicationRefused,
    reason_not_to_publish,
    request_publication,
    withdraw,
)
from reports.results.access import administration_or_404
from reports.results.reading import LEVELS
from reports.school_report.report import report_language_for
from survey.administrations import administrations_for
from survey.models import Administration

# Schools that the page offers to preview.
MOST_OFFERED = 200


def to_publish_or_404(permissions: Permissions, pk: int) -> Administration:
    allowed = administrations_for(permissions, Capability.PUBLISH_RESULTS)
    if not allowed.filter(pk=pk).exists():
        raise Http404
    return administration_or_404(permissions, pk)


@needs(Capability.PUBLISH_RESULTS)
@require_http_methods(["GET", "HEAD", "POST"])
def publishing(request: StaffRequest, pk: int) -> HttpResponse:
    """Show what is published, and publish the results of an administration."""
    administration = to_publish_or_404(request.permissions, pk)
    refused = reason_not_to_publish(administration)
    basis = basis_of(administration)
    if request.method == "POST":
        form = PublishForm(request.POST)
        if form.is_valid():
            try:
                request_publication(
                    administration=administration,
                    basis=form.cleaned_data["basis"],
                    embargo_until=form.cleaned_data["embargo_until"],
                    by=request.user,
                    request=request,
                )
            except PublicationRefused as error:
                form.add_error(None, str(error))
            else:
                return redirect("publishing", pk)
    else:
        form = PublishForm(initial={"basis": basis})
    # From the primary: the worker may have finished a moment ago.
    publications = list(
        administration.publications.using(DEFAULT_DB_ALIAS)
        .select_related("published_by", "withdrawn_by", "job")
        .order_by("-pk")
    )
    current = next((one for one in publications if one.withdrawn_at is None), None)
    is_failed = bool(current and not current.published_at) and bool(
        current and (current.job is None or current.job.is_over)
    )
    offers = not refused and (current is None or is_failed)
    schools = []
    if offers:
        lines = Freezer(administration).reached.values()
        schools = sorted((line.school for line in lines), key=lambda one: one.name)
    context = {
        "administration": administration,
        "form": form,
        "refused": refused,
        "offers": offers,
        "publications": [one for one in publications if one.published_at],
        "unfinished": current if current and not current.published_at else None,
        "schools": schools[:MOST_OFFERED],
        "schools_count": len(schools),
    }
    return render(request, "reports/publishing.html", context)


@needs(Capability.PUBLISH_RESULTS)
@require_safe
def publishing_preview(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the public page of the state or a school, as it would be frozen now."""
    administration = to_publish_or_404(request.permissions, pk)
    if reason_not_to_publish(administration):
        raise Http404
    freezer = Freezer(administration)
    asked = request.GET.get("school", "")
    if asked:
        chosen = [line for key, line in freezer.reached.items() if str(key) == asked]
        if not chosen:
            raise Http404
        shown = {
            (LEVELS.SCHOOL.value, chosen[0].school.pk),
            (LEVELS.DISTRICT.value, chosen[0].school.district_id),
            STATE,
        }
    places = list(freezer.places())
    schools = sum(1 for place in places if place.level == LEVELS.SCHOOL.value)
    if asked:
        places = [one for one in places if (one.level, one.place_id) in shown]
    page = _page_of(freezer, places, schools, in_school=bool(asked))
    with translation.override(page.frame_language):
        html = render_to_string(
            "reports/public/place.html",
            {
                "page": page,
                "pk": pk,
                "is_preview": True,
                "language": page.language,
                "frame_language": page.frame_language,
                "direction": page.direction,
            },
        )
    return HttpResponse(html)


def _page_of(
    freezer: Freezer, places: list[FrozenPlace], schools: int, *, in_school: bool
) -> PublicPage:
    """Return the page of the only school, or of the state."""
    levels = [LEVELS.SCHOOL.value, LEVELS.DISTRICT.value, STATE[0]]
    if not in_school:
        levels = [STATE[0]]
    chosen = [place for level in levels for place in places if place.level == level]
    if not chosen or chosen[0].level != levels[0]:
        raise Http404
    frame = freezer.frame(schools)
    language = language_to_read(frame["languages"])
    with translation.override(report_language_for(language)):
        return PublicPage(frame, language, chosen)


@needs(Capability.PUBLISH_RESULTS)
@require_http_methods(["GET", "HEAD", "POST"])
def publishing_withdraw(
    request: StaffRequest, pk: int, publication: int
) -> HttpResponse:
    """Withdraw published results, with a reason."""
    administration = to_publish_or_404(request.permissions, pk)
    found = get_object_or_404(
        Publication.objects.using(DEFAULT_DB_ALIAS),
        pk=publication,
        administration=administration,
        withdrawn_at=None,
        published_at__isnull=False,
    )
    form = WithdrawForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        withdraw(
            found,
            because=form.cleaned_data["because"],
            by=request.user,
            request=request,
        )
        messages.success(
            request, _("Withdrawn. Within a minute, nobody sees these results.")
        )
        return redirect("publishing", pk)
    context = {"administration": administration, "publication": found, "form": form}
    return render(request, "reports/publishing_withdraw.html", context)

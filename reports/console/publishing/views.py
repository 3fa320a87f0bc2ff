"""Publish results in the console: preview what everybody would see, and withdraw."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import messages
from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.folded_text import fold
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from reports.console.publishing.forms import PublishForm, WithdrawForm
from reports.models import Publication
from reports.publishing.freezing import basis_of
from reports.publishing.last_time import place_last_time
from reports.publishing.links import PreviewLinks, own_name
from reports.publishing.page import PublicPage
from reports.publishing.preview import Preview
from reports.publishing.publications import (
    PublicationRefused,
    reason_not_to_publish,
    request_publication,
    withdraw,
)
from reports.publishing.views import searched_text, with_addresses
from reports.rates.visible_rates import schools_with_reports
from reports.releases.levels import LEVELS, STATE, Place
from reports.results.access import administration_or_404
from reports.school_report.report import report_language_for
from survey.fieldwork.administrations import administrations_for
from survey.models import Administration
from survey.taking.published import published_survey

# Of a key in an address.
MOST_DIGITS = 18


def to_publish_or_404(permissions: Permissions, pk: int) -> Administration:
    allowed = administrations_for(permissions, Capability.PUBLISH_RESULTS)
    if not allowed.filter(pk=pk).exists():
        raise Http404
    return administration_or_404(permissions, pk)


@needs(Capability.PUBLISH_RESULTS)
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
    current = next(
        (
            publication
            for publication in publications
            if publication.withdrawn_at is None
        ),
        None,
    )
    is_failed = bool(current and not current.published_at) and bool(
        current and (current.job is None or current.job.is_over)
    )
    offers = not refused and (current is None or is_failed)
    languages = []
    if offers:
        languages = published_survey(administration.published_id).languages
    context = {
        "administration": administration,
        "form": form,
        "refused": refused,
        "offers": offers,
        "publications": [
            publication for publication in publications if publication.published_at
        ],
        "unfinished": current if current and not current.published_at else None,
        "languages": [
            (code, own_name(code), PreviewLinks(pk, code).state()) for code in languages
        ],
        "schools_count": schools_with_reports(administration).count() if offers else 0,
    }
    return render(request, "reports/publishing.html", context)


@needs(Capability.PUBLISH_RESULTS)
@require_safe
def publishing_preview(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the public page of a place as it would be frozen now, in any language.

    `school` or `district` in the address is its key; without both it is the state,
    where `q` finds schools.
    """
    administration = to_publish_or_404(request.permissions, pk)
    if reason_not_to_publish(administration):
        raise Http404
    preview = Preview(administration)
    level, key = _asked(request.GET)
    places = preview.places(level, key)
    if not places:
        raise Http404
    frame = preview.frame()
    language = request.GET.get("language", "")
    if language not in frame["languages"]:
        language = language_to_read(frame["languages"])
    links = PreviewLinks(pk, language)
    parameters = {} if places[0].level == STATE[0] else {level: key}
    context: dict[str, object] = {
        "pk": pk,
        # For the administrator, who may not read the language of the page.
        "preview": {
            "language": translation.get_language(),
            "title": _("Preview"),
            "note": _("Preview. Nobody else can see this page."),
            "back": _("Back to publishing"),
        },
        "language": language,
        "languages": [
            {
                "code": code,
                "name": own_name(code),
                "address": PreviewLinks(pk, code).to(**parameters),
            }
            for code in frame["languages"]
        ],
        "chosen": f"?language={language}",
    }
    with translation.override(report_language_for(language)):
        before = place_last_time(administration.pk, level, key)
        page = PublicPage(frame, language, places, before)
        context |= {
            "page": page,
            "frame_language": page.frame_language,
            "direction": page.direction,
            **with_addresses(page, links, _names(request, preview, level, key)),
        }
        html = render_to_string("reports/public/place.html", context)
    return HttpResponse(html)


def _asked(query: QueryDict) -> Place:
    """Return the place that the address asks for; Http404 if it is no key."""
    for level in (LEVELS.SCHOOL.value, LEVELS.DISTRICT.value):
        if asked := query.get(level, ""):
            if not asked.isascii() or not asked.isdigit():
                raise Http404
            return level, int(asked[:MOST_DIGITS])
    return STATE


def _names(
    request: StaffRequest, preview: Preview, level: str, key: int
) -> dict[str, object]:
    """Return names and keys of the places that the page links to."""

    def by_name(rows: QuerySet[Any], keys: Collection[int]) -> list[tuple[str, int]]:
        return list(
            rows.filter(pk__in=keys).order_by("name", "pk").values_list("name", "pk")
        )

    schools = preview.schools
    if level == LEVELS.DISTRICT.value:
        return {"schools": by_name(School.objects.all(), schools.get(key, []))}
    if level == LEVELS.SCHOOL.value:
        return {}
    names: dict[str, object] = {"districts": by_name(District.objects.all(), schools)}
    if text := searched_text(request):
        rows = School.objects.all()
        for word in (fold(text) or "").split():
            rows = rows.filter(name__folded__contains=word)
        every = [school for keys in schools.values() for school in keys]
        names |= {"text": text, "found": by_name(rows, every)}
    return names


@needs(Capability.PUBLISH_RESULTS)
def publishing_withdraw(
    request: StaffRequest, pk: int, publication: int
) -> HttpResponse:
    """Withdraw published results, with a reason."""
    administration = to_publish_or_404(request.permissions, pk)
    row = get_object_or_404(
        Publication.objects.using(DEFAULT_DB_ALIAS),
        pk=publication,
        administration=administration,
        withdrawn_at=None,
        published_at__isnull=False,
    )
    form = WithdrawForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        withdraw(
            row,
            because=form.cleaned_data["because"],
            by=request.user,
            request=request,
        )
        messages.success(
            request, _("Withdrawn. Within a minute, nobody sees these results.")
        )
        return redirect("publishing", pk)
    context = {"administration": administration, "publication": row, "form": form}
    return render(request, "reports/publishing_withdraw.html", context)

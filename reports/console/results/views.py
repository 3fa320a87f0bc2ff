"""Results in the console: how people answered each item."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.http import StaffRequest, attachment, csv_response
from accounts.permissions import Capability
from reports.charts.chart_svg import chart_svg
from reports.console.results.csv_rows import HEADER, csv_rows
from reports.console.results.page import ResultsPage
from reports.models import ResultsRollUp
from reports.publishing.own_schools import own_pages
from reports.releases.rollup import attributes_of
from reports.results.access import (
    administration_or_404,
    has_unshared_results,
    results_for,
)
from reports.results.job import DESTROYED, request_results
from reports.suppression.explanation import hidden_figures
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.administrations.queries import own_administration_or_404
from survey.fieldwork.open_codes.figures import crowded_periods, watched_codes
from survey.models import Administration


@needs(Capability.SEE_RESULTS)
@require_safe
def results_list(request: StaffRequest) -> HttpResponse:
    """List the administrations whose results the user may see.

    2 statements; for users of single schools, 1 more for public results.
    """
    permissions = request.permissions
    administrations = (
        results_for(permissions)
        .select_related("published__survey", "wave", "district", "results_roll_up")
        .defer("published__definition", "published__survey__source")
        .order_by("-closes_at", "name")
    )
    listed = {administration.pk for administration in administrations}
    of_user = administrations_for(permissions, Capability.SEE_RESULTS)
    public_pages = own_pages(permissions, of_user.values("pk"))
    language = get_language() or ""
    context = {
        "administrations": administrations,
        "published": [
            (pages.title(language), pages)
            for pk, pages in public_pages.items()
            if pk not in listed
        ],
        "are_unshared": not listed and has_unshared_results(permissions),
    }
    return render(request, "reports/results_list.html", context)


@needs(Capability.SEE_RESULTS)
@require_safe
def results_page(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the scores and answers of one place, beside those of the places around it.

    9 statements: the administration and earlier ones, its measures, the place, its
    district's schools, the groups and their figures. Of a district 1 to 3 more for
    its small schools, and of it and the state 1 for the response rate; with open codes
    1 to 3; and with scores 7, or 10 of a school.
    """
    page = ResultsPage.of(request, pk)
    if item := request.GET.get("svg"):
        return _chart_file(request, page, item)
    codes = watched_codes(request.permissions, page.administration)
    crowded = crowded_periods(codes).values()
    context = {
        "page": page,
        "crowded": crowded,
        "crowded_starts": sum(period.starts for period in crowded),
        "crowded_answered": sum(period.answered for period in crowded),
    }
    return render(request, "reports/results.html", context)


def _chart_file(request: StaffRequest, page: ResultsPage, item: str) -> HttpResponse:
    """Answer with a chart of the page as a file."""
    content = chart_svg(page.chart_of(item))
    record(
        "download results",
        by=request.user,
        request=request,
        subject=page.administration,
        school=page.school,
        district=page.district,
    )
    return attachment(
        content.encode(),
        filename=f"{slugify(page.administration.name)}-{slugify(item)}.svg",
        content_type="image/svg+xml",
    )


@needs(Capability.SEE_RESULTS)
@require_safe
def results_hidden(request: StaffRequest, pk: int) -> HttpResponse:
    """Explain which numbers are hidden from the user. 2 statements."""
    administration = administration_or_404(request.permissions, pk)
    sees_all = request.permissions.has(Capability.SEE_RESPONSES)
    # Since then, a larger one may have been set.
    roll_up = getattr(administration, "results_roll_up", None)
    applied = roll_up and roll_up.minimum_group
    sentences = hidden_figures(
        applied or administration.minimum_group,
        "all" if sees_all else "school",
        has_groups=len(attributes_of(administration)) > 1,
    )
    context = {"administration": administration, "sentences": sentences}
    return render(request, "reports/results_hidden.html", context)


@needs(Capability.SEE_RESULTS)
@require_safe
def results_csv(request: StaffRequest, pk: int) -> HttpResponse:
    page = ResultsPage.of(request, pk)
    record(
        "download results",
        by=request.user,
        request=request,
        subject=page.administration,
        school=page.school,
        district=page.district,
    )
    name = f"{page.administration.name}-results.csv"
    return csv_response([HEADER, *csv_rows(page)], filename=name)


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def results_share(request: StaffRequest, pk: int) -> HttpResponse:
    """Share results with the coordinators of the schools, or stop sharing them."""
    administration = own_administration_or_404(
        request.permissions, pk, with_modules=True
    )
    roll_up = get_object_or_404(ResultsRollUp, pk=administration.pk)
    shares = request.POST.get("share") == "yes"
    if shares and roll_up.released_at is None:
        # Figures that coordinators see twice, before and after few people answered,
        # would be the answers of these people.
        text = _(
            "Results can be shared once the survey round has closed and its answers"
            " are counted."
        )
        messages.error(request, text)
        return redirect("results_list")
    changed = ResultsRollUp.objects.filter(
        pk=roll_up.pk, shared_at__isnull=shares
    ).update(shared_at=timezone.now() if shares else None)
    if changed:
        record(
            "share results" if shares else "stop sharing results",
            by=request.user,
            request=request,
            subject=administration,
        )
    if shares:
        text = _("Schools that reached their threshold can see their results now.")
    else:
        text = _("Coordinators can no longer see the results.")
    messages.success(request, text)
    return redirect("results_page", pk)


@needs(Capability.PUBLISH_RESULTS)
@require_POST
def results_release(request: StaffRequest, pk: int) -> HttpResponse:
    """Request a new release, after people or answers have changed."""
    administration = administration_or_404(request.permissions, pk)
    if administration.state != Administration.State.CLOSED:
        text = _("Results are counted once the survey round has closed.")
        messages.error(request, text)
    elif administration.answers_destroyed_at is not None:
        messages.error(request, _(DESTROYED))
    else:
        request_results(administration, by=request.user)
        record(
            "request new results",
            by=request.user,
            request=request,
            subject=administration,
        )
        text = _("The answers are being counted. This page shows them in some minutes.")
        messages.success(request, text)
    return redirect("results_page", pk)

"""Show the quality of measures, and decide about items that have drifted."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.http import StaffRequest, csv_response
from accounts.permissions import Capability
from reports.console.scores.quality import (
    RELEASE,
    DecisionForm,
    QualityPage,
    csv_rows,
)
from reports.scores.drift import DecisionRefused, anchor_item, release_item
from reports.scores.job import request_scores
from reports.technical.requests import request_technical_report
from survey.fieldwork.administrations import DatabaseBusy
from survey.work.requested_files import QuotaExceeded


@needs(Capability.SEE_RESPONSES)
@require_safe
def scores_quality(request: StaffRequest, pk: int) -> HttpResponse:
    page = QualityPage.of(request, pk)
    return render(request, "reports/scores_quality.html", {"page": page})


@needs(Capability.SEE_RESPONSES)
@require_safe
def scores_quality_csv(request: StaffRequest, pk: int) -> HttpResponse:
    page = QualityPage.of(request, pk)
    record(
        "download scores",
        by=request.user,
        request=request,
        subject=page.administration,
        district=page.administration.district,
    )
    filename = f"quality-of-measures-{page.administration.name}.csv"
    return csv_response(csv_rows(page), filename=filename)


@needs(Capability.SEE_RESPONSES)
@require_POST
def scores_quality_report(request: StaffRequest, pk: int) -> HttpResponse:
    """Request the technical report, and lead to the export that it is."""
    page = QualityPage.of(request, pk)
    if not page.may_request_report:
        raise Http404
    try:
        export = request_technical_report(
            administration=page.administration, by=request.user, request=request
        )
    except QuotaExceeded as refused:
        messages.error(request, str(refused))
        return redirect("scores_quality", pk)
    return redirect("export_detail", export.pk)


@needs(Capability.MANAGE_SURVEYS)
def scores_quality_item(
    request: StaffRequest, pk: int, measure: str, item: str
) -> HttpResponse:
    """Release an anchored item, or anchor a released one again, with a reason."""
    page = page_to_decide_or_404(request, pk)
    of_measure, line = page.lines_or_404(measure, item)
    form = DecisionForm(
        request.POST if request.method == "POST" else None,
        initial={"decision": line.decision},
    )
    if form.is_valid():
        releases = form.cleaned_data["decision"] == RELEASE
        decide = release_item if releases else anchor_item
        try:
            decide(
                administration=page.administration,
                measure=measure,
                item=item,
                because=form.cleaned_data["because"],
                by=request.user,
                request=request,
            )
        except (DecisionRefused, DatabaseBusy) as refused:
            messages.error(request, str(refused))
        else:
            words = (
                _("%(item)s is released. The scores are being calculated again.")
                if releases
                else _("%(item)s is anchored. The scores are being calculated again.")
            )
            messages.success(request, words % {"item": item})
        return redirect("scores_quality", pk)
    if not line.decision:
        raise Http404
    context = {
        "page": page,
        "measure": of_measure,
        "line": line,
        "form": form,
        "releases": line.decision == RELEASE,
    }
    return render(request, "reports/scores_quality_item.html", context)


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def scores_quality_calculate(request: StaffRequest, pk: int) -> HttpResponse:
    """Start the calculation again that has failed after a decision."""
    page = page_to_decide_or_404(request, pk)
    if page.is_outdated:
        with transaction.atomic():
            request_scores(page.administration, by=request.user, recalculate=True)
            record(
                "calculate scores again",
                by=request.user,
                request=request,
                subject=page.administration,
                district=page.administration.district,
            )
    return redirect("scores_quality", pk)


def page_to_decide_or_404(request: StaffRequest, pk: int) -> QualityPage:
    page = QualityPage.of(request, pk)
    if not page.may_decide:
        raise Http404
    return page

"""Start, confirm and cancel scans in the console, and show one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from survey.console.feeds.scope import MANAGE, feed_or_404
from survey.console.feeds.stage_rows import stage_row
from survey.console.rosters.views import TOTAL_LABELS
from survey.models import FeedScan, RosterFeed
from survey.people.rosters.feeds import scans
from survey.people.rosters.uploads import WrongNumberTyped

Reason = FeedScan.Reason


@needs(MANAGE)
@require_POST
def feed_scan_start(request: StaffRequest, pk: int) -> HttpResponse:
    return _start(request, pk, Reason.NOW)


@needs(MANAGE)
@require_POST
def feed_try(request: StaffRequest, pk: int) -> HttpResponse:
    return _start(request, pk, Reason.TRY)


def _start(request: StaffRequest, pk: int, reason: Reason) -> HttpResponse:
    feed = feed_or_404(request, pk)
    try:
        scan = scans.start_scan(feed, reason=reason, by=request.user, request=request)
    except scans.ScanConflict as error:
        messages.error(request, str(error))
        return redirect("feed_detail", pk)
    return redirect("feed_scan", pk, scan.pk)


@needs(MANAGE)
@require_safe
def feed_scan(request: StaffRequest, pk: int, scan: int) -> HttpResponse:
    feed = feed_or_404(request, pk)
    return _show(request, feed, _scan_or_404(feed, scan))


@needs(MANAGE)
@require_POST
def feed_scan_confirm(request: StaffRequest, pk: int, scan: int) -> HttpResponse:
    feed = feed_or_404(request, pk)
    chosen = _scan_or_404(feed, scan)
    typed = request.POST.get("typed", "")
    try:
        scans.confirm_scan(
            chosen,
            by=request.user,
            seen=request.POST.get("seen", ""),
            typed=typed,
            request=request,
        )
    except WrongNumberTyped as wrong:
        return _show(request, feed, chosen, typed=typed[:200], error=str(wrong))
    except scans.ScanConflict as error:
        messages.error(request, str(error))
    return redirect("feed_scan", pk, scan)


@needs(MANAGE)
@require_POST
def feed_scan_cancel(request: StaffRequest, pk: int, scan: int) -> HttpResponse:
    feed = feed_or_404(request, pk)
    try:
        scans.cancel_scan(_scan_or_404(feed, scan), by=request.user, request=request)
        messages.success(request, _("The scan was cancelled."))
    except scans.ScanConflict as error:
        messages.error(request, str(error))
    return redirect("feed_scan", pk, scan)


def _scan_or_404(feed: RosterFeed, pk: int) -> FeedScan:
    known = feed.scans.using(feed._state.db).select_related("by", "confirmed_by")
    return get_object_or_404(known, pk=pk)


def _show(
    request: StaffRequest,
    feed: RosterFeed,
    scan: FeedScan,
    *,
    typed: str = "",
    error: str = "",
) -> HttpResponse:
    """3 statements: stages, uploads, and the administrations' surveys."""
    uploads = list(
        scan.uploads.select_related("administration__published__survey").defer(
            "administration__published__definition",
            "administration__published__survey__source",
        )
    )
    stages = list(scan.stages.all())
    context = {
        "feed": feed,
        "scan": scan,
        "stages": [stage_row(stage, scan) for stage in stages],
        "notes": [note for stage in stages for note in stage.notes.splitlines()],
        "figures": [
            (upload, [upload.report.get(name, 0) for name in TOTAL_LABELS])
            for upload in uploads
        ],
        "labels": list(TOTAL_LABELS.values()),
        "withdrawn": sum(upload.withdrawn for upload in uploads),
        "must_be_typed": any(upload.must_be_typed for upload in uploads),
        "typed": typed,
        "error": error,
    }
    return render(request, "survey/console/feed_scan.html", context)

"""Progress of a background job, for the user who started it."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from accounts import audit
from accounts.access import staff
from accounts.http import StaffRequest
from survey.models import Job
from survey.work import jobs


@staff
@require_safe
def job_progress(request: StaffRequest, pk: int) -> HttpResponse:
    """Return the progress; htmx requests it every second. 1 statement."""
    job = get_object_or_404(Job, pk=pk, by=request.user)
    response = render(request, "console/_job.html", {"job": job})
    if job.is_over:
        # The page itself shows the result.
        response["HX-Refresh"] = "true"
    return response


@staff
@require_POST
def job_cancel(request: StaffRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(Job, pk=pk, by=request.user)
    with transaction.atomic():
        # A second click is not logged again.
        if jobs.request_cancel(job):
            audit.record(
                "cancel job",
                by=request.user,
                request=request,
                subject=job,
                after={"kind": job.kind, "of": job.subject_id},
                **audit.place_of(request.user),
            )
    # The button is on several pages, and leads back to its own.
    referer = request.headers.get("Referer", "")
    is_own_page = url_has_allowed_host_and_scheme(referer, {request.get_host()})
    return redirect(referer if is_own_page else "console_home")

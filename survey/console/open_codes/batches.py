"""The pages to create open codes for all schools at once."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.administrations.forms import show_errors
from survey.console.open_codes.forms import OpenCodeForm
from survey.console.open_codes.scope import schools_for
from survey.fieldwork.administrations.queries import administration_or_404
from survey.fieldwork.open_codes.batches import (
    order_codes,
    schools_without_code,
    start_creating,
)
from survey.models import Administration, OpenCodeBatch
from survey.work.job_turns import TooManyJobs

MOST_SHOWN = 5


@needs(C.MANAGE_ROSTERS)
def open_codes_all(request: StaffRequest, pk: int) -> HttpResponse:
    """Order a code for each school that has none."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    places = request.permissions.places(C.MANAGE_ROSTERS)
    if not places.state and not places.districts:
        raise Http404
    form = OpenCodeForm(request.POST or None, administration=administration)
    if form.is_bound and form.is_valid():
        try:
            batch = order_codes(
                administration=administration,
                by=request.user,
                options=form.options(),
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        except TooManyJobs as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("open_codes_batch", pk, batch.pk)
    rows = OpenCodeBatch.objects.filter(administration=administration, by=request.user)
    return render(
        request,
        "survey/console/open_codes_all.html",
        {
            "administration": administration,
            "form": form,
            "schools": schools_for(request, administration).count(),
            "missing": schools_without_code(
                administration, request.permissions
            ).count(),
            "batches": rows[:MOST_SHOWN],
        },
    )


@needs(C.MANAGE_ROSTERS)
@require_safe
def open_codes_batch(request: StaffRequest, pk: int, batch: int) -> HttpResponse:
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code_batch = _batch_or_404(request, administration, batch)
    return render(
        request,
        "survey/console/open_codes_batch.html",
        {"administration": administration, "batch": code_batch, "job": code_batch.job},
    )


@needs(C.MANAGE_ROSTERS)
@require_POST
def open_codes_batch_again(request: StaffRequest, pk: int, batch: int) -> HttpResponse:
    """Create the codes that are missing after a failure."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code_batch = _batch_or_404(request, administration, batch)
    # A second click finds the job running, and starts no other.
    if code_batch.job is None or code_batch.job.is_over:
        start_creating(code_batch, by=request.user)
    return redirect("open_codes_batch", pk, code_batch.pk)


def _batch_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> OpenCodeBatch:
    # The job uses the permissions of the user who ordered it.
    rows = OpenCodeBatch.objects.filter(administration=administration, by=request.user)
    return get_object_or_404(rows.select_related("job"), pk=pk)

"""The console's page for choosing the columns of an uploaded roster."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.rosters.column_form import ColumnsForm
from survey.console.rosters.views import _uploads
from survey.models import RosterUpload
from survey.people.rosters import uploads
from survey.people.rosters.upload_state import UploadConflict, record_action
from survey.work.job_turns import TooManyJobs, refuse_many


@needs(Capability.MANAGE_ROSTERS)
def roster_columns(request: StaffRequest, pk: int) -> HttpResponse:
    upload = get_object_or_404(_uploads(request), pk=pk)
    if not uploads.columns_can_change(upload):
        messages.error(
            request,
            _("The columns can't be changed now. Status of this roster: %(state)s.")
            % {"state": upload.get_state_display()},
        )
        return redirect("roster_detail", pk)
    form = ColumnsForm(upload, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            refuse_many(request.user)
            uploads.choose_columns(
                upload,
                form.chosen_layout(),
                place=(form.district, form.school),
                by=request.user,
                request=request,
            )
        except TooManyJobs as refused:
            form.add_error(None, str(refused))
        except UploadConflict as conflict:
            messages.error(request, str(conflict))
            return redirect("roster_detail", pk)
        else:
            return redirect("roster_detail", pk)
    # The samples have names.
    record_action("see roster samples", upload, by=request.user, request=request)
    return render(
        request,
        "survey/console/roster_columns.html",
        {
            "upload": upload,
            "form": form,
            "abandoned_at": upload.uploaded_at + RosterUpload.CONFIRMED_WITHIN,
        },
    )

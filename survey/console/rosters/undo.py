"""The console's page for undoing an applied roster."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.rosters.views import _uploads
from survey.models import RosterChange
from survey.people.rosters.undo import (
    CAN_BE_UNDONE,
    count_changes,
    reason_not_to_undo,
    start_undo,
)
from survey.people.rosters.upload_state import UploadConflict

NOT_APPLIED = gettext_noop(
    "Only an applied roster can be undone. Status of this roster: {state}."
)


@needs(Capability.MANAGE_ROSTERS)
def roster_undo(request: StaffRequest, pk: int) -> HttpResponse:
    """Show what undoing would change, and start it."""
    upload = get_object_or_404(_uploads(request), pk=pk)
    if request.method == "POST":
        try:
            start_undo(upload, by=request.user, request=request)
        except UploadConflict as conflict:
            messages.error(request, str(conflict))
        return redirect("roster_detail", pk)
    reason = (
        reason_not_to_undo(upload)
        if upload.state in CAN_BE_UNDONE
        else _(NOT_APPLIED).format(state=upload.get_state_display())
    )
    changes, change = count_changes(upload), RosterChange.Change
    return render(
        request,
        "survey/console/roster_undo.html",
        {
            "upload": upload,
            "reason": reason,
            "figures": [
                (_("removed"), changes[change.ADDED]),
                (_("changed back"), changes[change.CHANGED] + changes[change.MOVED]),
                (_("withdrawn again"), changes[change.BACK]),
                (_("brought back"), changes[change.WITHDRAWN]),
            ],
            "removed": changes[change.ADDED],
        },
    )

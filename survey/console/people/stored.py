"""Request the file with all that is stored about a person, and download it."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from accounts import audit
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.people.erasing import erasable_person_or_404
from survey.console.people.opt_outs import AskedForm
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import PersonFile
from survey.work.requested_files import (
    QuotaExceeded,
    order,
    own_file_or_404,
    refuse_above_quota,
    send,
)


@needs(C.MANAGE_ROSTERS)
def people_stored(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Say what the file is for, order it, and list those that the user ordered."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = erasable_person_or_404(request, administration, respondent)
    first = AskedForm.first_values(administration)
    form = AskedForm(request.POST or None, initial=first)
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                refuse_above_quota(request.user)
                requested = order(
                    PersonFile(
                        by=request.user,
                        respondent=person,
                        requested_by=form.cleaned_data["requested_by"],
                        requested_on=form.cleaned_data["requested_on"],
                    )
                )
                audit.record(
                    "ask for a file about a person",
                    by=request.user,
                    request=request,
                    subject=person,
                    school=person.school,
                    after=requested.audit_facts(),
                )
        except QuotaExceeded as exceeded:
            messages.error(request, str(exceeded))
        return redirect("people_stored", pk, person.pk)
    files = PersonFile.objects.filter(by=request.user, respondent=person)
    return render(
        request,
        "survey/console/people_stored.html",
        {
            "administration": administration,
            "person": person,
            "identity": person.identity,
            "form": form,
            "files": files.select_related("job")[:5],
        },
    )


@needs(C.MANAGE_ROSTERS)
@require_GET
def people_stored_file(
    request: StaffRequest, pk: int, respondent: int, file: int
) -> HttpResponseBase:
    """Send a file to the user who ordered it, and record that as a disclosure."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = erasable_person_or_404(request, administration, respondent)
    requested = own_file_or_404(
        PersonFile.objects.filter(respondent=person).select_related("respondent"),
        request,
        file,
        is_allowed=lambda _: True,
    )
    return send(
        requested,
        request,
        action="download a file about a person",
        as_name=f"person-{person.pk}",
    )

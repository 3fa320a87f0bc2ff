"""Erase one person, or the people of a list, and show what became of an order."""

from __future__ import annotations

from datetime import date

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import audit, forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.checked_files import FilePages, check_file
from survey.console.people.opt_outs import AskedForm
from survey.console.people.scope import record_look, respondent_or_404
from survey.console.table_files import TableField
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import (
    Administration,
    DestructionCertificate,
    Erasure,
    Job,
    Respondent,
)
from survey.models.erasure import ERASES
from survey.people.erasing.erase import (
    KIND,
    ErasureConflict,
    ErasureRequest,
    order_erasure,
    rows_deleted,
)
from survey.people.erasing.stored import records_of
from survey.people.erasing.words import TABLES
from survey.people.opt_outs.list_file import LIST_HEADER, MOST_ROWS, check_list


class EraseForm(AskedForm):
    reason = forms.ChoiceField(
        label=gettext_lazy("Why?"),
        choices=Erasure.Reason.choices,
        widget=forms.RadioSelect,
    )

    @property
    def erasure(self) -> ErasureRequest:
        names = ("requested_on", "requested_by", "reason")
        return ErasureRequest(**{name: self.cleaned_data[name] for name in names})


class EraseOneForm(EraseForm):
    confirmed = forms.CharField(
        label=gettext_lazy("To confirm, type the ID of this person"),
        max_length=128,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: object, external_id: str, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.external_id = external_id

    def clean_confirmed(self) -> str:
        typed: str = self.cleaned_data["confirmed"]
        if typed.strip() != self.external_id:
            raise forms.ValidationError(_("This is not the ID of this person."))
        return typed


class LeaversForm(EraseForm):
    file = TableField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            "CSV or Excel, with one row for each person to erase and their student or"
            " staff ID."
        ),
        too_large=gettext_lazy(
            "The file is larger than 4 MB. Upload only people to erase."
        ),
    )

    field_order = ("file", "requested_by", "requested_on", "reason")


LEAVERS = FilePages(
    upload="people_leavers",
    under="people_list",
    under_name=gettext_lazy("People"),
    title=gettext_lazy("Erase the people of a list"),
    checked_title=gettext_lazy("Check whom to erase"),
)


def erasable_person_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> Respondent:
    """Return a person with a name, of a district in which the user may erase."""
    person = respondent_or_404(request, administration, pk)
    places = request.permissions.places(*ERASES)
    identity = getattr(person, "identity", None)
    if identity is None or not places.has_district(identity.district_id):
        raise Http404
    return person


@needs(C.MANAGE_ROSTERS)
def people_erase(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Say what erasing this person means, and order it once confirmed."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = erasable_person_or_404(request, administration, respondent)
    external_id = person.identity.external_id
    if request.method == "POST":
        form = EraseOneForm(request.POST, external_id=external_id)
        if form.is_valid():
            try:
                erasure = order_erasure(
                    [person.pk], form.erasure, by=request.user, request=request
                )
            except ErasureConflict as conflict:
                messages.error(request, str(conflict))
                return redirect("people_list", pk)
            return redirect("erasure_detail", erasure.pk)
    else:
        first = {**EraseForm.first_values(administration), "reason": "request"}
        form = EraseOneForm(initial=first, external_id=external_id)
        record_look(request, person, administration)
    records = records_of(person)
    rounds = Administration.objects.filter(
        pk__in=set(records.records.values()) if records else ()
    )
    return render(
        request,
        "survey/console/people_erase.html",
        {
            "administration": administration,
            "person": person,
            "identity": person.identity,
            "form": form,
            "rounds": rounds.select_related("published__survey").order_by("-opens_at"),
        },
    )


@needs(C.MANAGE_ROSTERS)
@require_safe
def erasure_detail(request: StaffRequest, erasure: int) -> HttpResponse:
    """Show what became of an order: how far it is, and what was deleted."""
    orders = Erasure.objects.visible_to(request.permissions)
    order = get_object_or_404(orders.select_related("district", "by"), pk=erasure)
    jobs = Job.objects.filter(kind=KIND, subject_id=order.pk)
    return render(
        request,
        "survey/console/erasure_detail.html",
        {
            "erasure": order,
            # Not its two files.
            "certificate": DestructionCertificate.objects.filter(erasure=order)
            .defer("document", "pdf")
            .first(),
            "job": jobs.order_by("-pk").first(),
            "deleted": [
                (TABLES[table], rows)
                for table, rows in rows_deleted(order).items()
                if rows
            ],
        },
    )


@needs(C.MANAGE_ROSTERS)
def people_leavers(request: StaffRequest, pk: int) -> HttpResponse:
    """Check a list, and show whom it would erase; nothing is stored."""
    administration = erasing_administration_or_404(request, pk)
    if request.method == "POST":
        form = LeaversForm(request.POST, request.FILES)
    else:
        first = {"requested_by": "school", "reason": "left"}
        form = LeaversForm(
            initial={**LeaversForm.first_values(administration), **first}
        )
    schools = request.permissions.schools(*ERASES)
    if administration.district_id is not None:
        schools = schools.filter(district=administration.district_id)
    report = check_file(
        form,
        LIST_HEADER,
        lambda table: check_list(
            table,
            administration,
            schools,
            request.permissions.places(*ERASES),
            kind="",
        ),
    )
    if report is None:
        orders = Erasure.objects.visible_to(request.permissions)
        return LEAVERS.render_form(
            request,
            administration,
            form,
            most=MOST_ROWS,
            orders=orders.select_related("district")[:10],
        )
    if report.people:
        audit.record(
            "look at people",
            by=request.user,
            request=request,
            subject=administration,
            district=report.people[0].school.district,
            after={"list to erase": True, "people": len(report.people)},
        )
    return LEAVERS.render_checked(
        request,
        administration,
        report,
        changes=report.people,
        problems=report.problems,
        content={
            "people": [person.pk for person in report.people],
            "on": form.erasure.requested_on.isoformat(),
            "by": form.erasure.requested_by,
            "reason": form.erasure.reason,
        },
        is_danger=True,
    )


def erasing_administration_or_404(request: StaffRequest, pk: int) -> Administration:
    """Return an administration to users who may erase people somewhere."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    if not request.permissions.places(*ERASES):
        raise Http404
    return administration


@needs(C.MANAGE_ROSTERS)
@require_POST
def people_leavers_save(request: StaffRequest, pk: int) -> HttpResponse:
    """Order the erasing of the people of a list that was checked, all or none."""
    administration = erasing_administration_or_404(request, pk)
    checked = LEAVERS.confirmed_content(request, administration)
    if checked is None:
        return redirect("people_leavers", administration.pk)
    asked = ErasureRequest(
        requested_on=date.fromisoformat(checked["on"]),
        requested_by=checked["by"],
        reason=checked["reason"],
    )
    try:
        erasure = order_erasure(
            checked["people"], asked, by=request.user, request=request
        )
    except ErasureConflict as conflict:
        messages.error(request, str(conflict))
        return redirect("people_leavers", administration.pk)
    return redirect("erasure_detail", erasure.pk)

"""Upload a list of people who opt out: check it, then confirm.

Lists of consents have the same steps: see `consents`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import audit
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from survey.console.checked_files import MOST_SHOWN, FilePages, check_file
from survey.console.people.opt_outs import RequestForm
from survey.console.table_files import TableField
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import Administration, ListedId
from survey.models.listed_id import ListedIdQuerySet
from survey.people.opt_outs.list_file import (
    LIST_HEADER,
    MOST_ROWS,
    check_list,
)
from survey.people.opt_outs.listed_ids import EarlyId, remove_id, save_list
from survey.people.opt_outs.records import OptOutConflict, Request

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class OptOutListForm(RequestForm):
    file = TableField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy(
            "CSV or Excel, with one row for each person who opts out and their"
            " student or staff ID."
        ),
        too_large=gettext_lazy(
            "The file is larger than 4 MB. Upload only people who opt out."
        ),
    )

    field_order = ("file", "requested_by", "requested_on", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPages(FilePages):
    kind: str
    form: type[OptOutListForm]
    # In the audit log.
    viewed: str
    # What was done, by `number`: people who changed, and IDs for later rosters.
    saved_message: StrOrPromise
    kept_message: StrOrPromise
    under: str = "people_list"
    under_name: StrOrPromise = gettext_lazy("People")
    # Whether the page of a checked list warns of its effects.
    is_danger: bool = False


OPT_OUTS = ListPages(
    kind=ListedId.Kind.OPT_OUT,
    form=OptOutListForm,
    upload="people_opt_outs",
    title=gettext_lazy("Upload opt-outs"),
    checked_title=gettext_lazy("Check opt-outs"),
    is_danger=True,
    viewed="list of opt-outs",
    saved_message=ngettext_lazy(
        "%(people)s person has opted out, and their access codes no longer work."
        " Take back the login cards that were handed out.",
        "%(people)s people have opted out, and their access codes no longer work."
        " Take back the login cards that were handed out.",
        "number",
    ),
    kept_message=ngettext_lazy(
        "%(ids)s ID is kept: a roster that lists these people opts them out.",
        "%(ids)s IDs are kept: a roster that lists these people opts them out.",
        "number",
    ),
)


@needs(C.MANAGE_ROSTERS)
def people_opt_outs(request: StaffRequest, pk: int) -> HttpResponse:
    """Check a list, and show whom it would opt out; nothing is stored."""
    return upload_list(
        request,
        administration_or_404(request.permissions, pk, C.SEE_IDENTITIES),
        OPT_OUTS,
    )


def upload_list(
    request: StaffRequest, administration: Administration, pages: ListPages
) -> HttpResponse:
    if request.method == "POST":
        form = pages.form(request.POST, request.FILES)
    else:
        form = pages.form(initial=pages.form.first_values(administration))
    report = check_file(
        form,
        LIST_HEADER,
        lambda table: check_list(
            table,
            administration,
            _schools(request, administration),
            request.permissions.places(C.SEE_IDENTITIES, C.MANAGE_ROSTERS),
            pages.kind,
        ),
    )
    if report is None:
        waiting = _listed(request, administration).count()
        return pages.render_form(
            request, administration, form, most=MOST_ROWS, kept=waiting
        )
    shows_progress = not administration.is_completion_confidential
    if report.people:
        places = {person.school for person in report.people}
        audit.record(
            "look at people",
            by=request.user,
            request=request,
            subject=administration,
            school=places.pop() if len(places) == 1 else None,
            after={pages.viewed: True, "people": len(report.people[:MOST_SHOWN])},
        )
    return pages.render_checked(
        request,
        administration,
        report,
        changes=report.people,
        problems=report.problems,
        content={
            "people": [
                [person.pk, person.started_at is not None if shows_progress else None]
                for person in report.people
            ],
            "early": report.early,
            "on": form.asked.requested_on.isoformat(),
            "by": form.asked.requested_by,
            "reason": form.asked.reason,
        },
        early=report.early[:MOST_SHOWN],
        is_danger=pages.is_danger and bool(report.people),
        started=len(report.started) if shows_progress else 0,
        shows_progress=shows_progress,
    )


def _schools(request: StaffRequest, administration: Administration) -> QuerySet[School]:
    schools = request.permissions.schools(C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    if administration.district_id is not None:
        schools = schools.filter(district=administration.district_id)
    return schools


@needs(C.MANAGE_ROSTERS)
@require_POST
def people_opt_outs_save(request: StaffRequest, pk: int) -> HttpResponse:
    """Opt out the people of a list that was checked, all or none."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    return save_checked(request, administration, OPT_OUTS)


def save_checked(
    request: StaffRequest, administration: Administration, pages: ListPages
) -> HttpResponse:
    checked = pages.confirmed_content(request, administration)
    if checked is None:
        return redirect(pages.upload, administration.pk)
    early = [EarlyId(*early_id) for early_id in checked["early"]]
    try:
        people = save_list(
            dict(checked["people"]),
            early,
            Request(
                requested_on=date.fromisoformat(checked["on"]),
                requested_by=checked["by"],
                reason=checked["reason"],
            ),
            administration=administration,
            schools=_schools(request, administration),
            by=request.user,
            kind=pages.kind,
            request=request,
        )
    except OptOutConflict as conflict:
        messages.error(request, str(conflict))
        return redirect(pages.upload, administration.pk)
    if people or not early:
        saved = pages.saved_message % {"number": people, "people": f"{people:,}"}
        messages.success(request, saved)
    if not early:
        return redirect("people_list", administration.pk)
    message = pages.kept_message % {"number": len(early), "ids": f"{len(early):,}"}
    messages.success(request, message)
    return redirect("people_listed", administration.pk)


@needs(C.MANAGE_ROSTERS)
@require_safe
def people_listed(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the IDs of lists that are not on the roster yet."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    listing: Listing[ListedId] = Listing(
        request,
        _listed(request, administration).select_related("district", "school", "by"),
        search=("external_id",),
        sorts={
            "id": ("external_id",),
            "place": ("district__name", "school__name", "external_id"),
            "recorded": ("-recorded_at", "external_id"),
        },
    )
    return listing.render(
        "survey/console/people_listed.html", {"administration": administration}
    )


@needs(C.MANAGE_ROSTERS)
@require_POST
def people_listed_remove(request: StaffRequest, pk: int, listed: int) -> HttpResponse:
    """Let the person with an ID take part, once a roster lists them."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    row = get_object_or_404(_listed(request, administration), pk=listed)
    remove_id(row, by=request.user, request=request)
    messages.success(request, _("The ID was removed."))
    return redirect("people_listed", pk)


def _listed(request: StaffRequest, administration: Administration) -> ListedIdQuerySet:
    rows = ListedId.objects.filter(administration=administration).waiting()
    return rows.visible_to(request.permissions)

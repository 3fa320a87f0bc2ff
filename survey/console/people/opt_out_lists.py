"""Upload a list of people who opt out: check it, then confirm.

Lists of consents have the same steps: see `consents`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import BinaryIO, cast

from django.contrib import messages
from django.core import signing
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts import audit
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from survey.console.people.opt_outs import RequestForm
from survey.console.table_files import TableField
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import Administration, ListedId, Respondent
from survey.models.listed_id import ListedIdQuerySet
from survey.people.opt_outs.list_file import (
    MOST_ROWS,
    REQUIRED,
    ListReport,
    check_list,
    list_header,
)
from survey.people.opt_outs.listed_ids import EarlyId, remove_id, save_list
from survey.people.opt_outs.records import OptOutConflict, Request
from survey.people.rosters.file_reader import RosterUnreadable, open_any_table

SALT = "survey.opt_outs.checked"
# A checked list can be confirmed for an hour.
VALID_FOR = 60 * 60
# People and problems on the page of a checked list.
MOST_SHOWN = 200


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


@dataclass(frozen=True, slots=True)
class ListPages:
    """What the pages of one kind of list differ in."""

    kind: str
    form: type[OptOutListForm]
    route: str
    template: str
    checked_template: str
    # In the audit log.
    viewed: str


OPT_OUTS = ListPages(
    kind=ListedId.Kind.OPT_OUT,
    form=OptOutListForm,
    route="people_opt_outs",
    template="survey/console/people_opt_outs.html",
    checked_template="survey/console/people_opt_outs_checked.html",
    viewed="list of opt-outs",
)


@needs(C.MANAGE_ROSTERS)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
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
        if form.is_valid():
            try:
                report = _check(request, administration, form, pages.kind)
            except RosterUnreadable as error:
                form.add_error("file", str(error))
            else:
                return _show_checked(request, administration, form.asked, report, pages)
    else:
        form = pages.form(initial=pages.form.first_values(administration))
    return render(
        request,
        pages.template,
        {
            "administration": administration,
            "form": form,
            "most": MOST_ROWS,
            "kept": _listed(request, administration).count(),
        },
    )


def _check(
    request: StaffRequest,
    administration: Administration,
    form: OptOutListForm,
    kind: str,
) -> ListReport:
    content = cast(BinaryIO, form.cleaned_data["file"].file)
    schools = _schools(request, administration)
    places = request.permissions.places(C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    with open_any_table(content, list_header, REQUIRED) as table:
        return check_list(table, administration, schools, places, kind)


def _schools(request: StaffRequest, administration: Administration) -> QuerySet[School]:
    schools = request.permissions.schools(C.SEE_IDENTITIES, C.MANAGE_ROSTERS)
    if administration.district_id is not None:
        schools = schools.filter(district=administration.district_id)
    return schools


def _show_checked(
    request: StaffRequest,
    administration: Administration,
    asked: Request,
    report: ListReport,
    pages: ListPages,
) -> HttpResponse:
    shows_progress = not administration.is_completion_confidential

    def started(person: Respondent) -> bool | None:
        return person.started_at is not None if shows_progress else None

    checked = {
        "administration": administration.pk,
        "kind": pages.kind,
        "user": request.user.pk,
        "people": [[person.pk, started(person)] for person in report.people],
        "early": report.early,
        "on": asked.requested_on.isoformat(),
        "by": asked.requested_by,
        "reason": asked.reason,
    }
    shown = report.people[:MOST_SHOWN]
    places = {person.school for person in report.people}
    if shown:
        audit.record(
            "look at people",
            by=request.user,
            request=request,
            subject=administration,
            school=places.pop() if len(places) == 1 else None,
            after={pages.viewed: True, "people": len(shown)},
        )
    return render(
        request,
        pages.checked_template,
        {
            "administration": administration,
            "report": report,
            "people": shown,
            "early": report.early[:MOST_SHOWN],
            "problems": report.problems[:MOST_SHOWN],
            "most_shown": MOST_SHOWN,
            "started": len(report.started) if shows_progress else 0,
            "shows_progress": shows_progress,
            # Signed, so that those who opt out are those who were shown.
            "checked": signing.dumps(checked, salt=SALT, compress=True),
        },
    )


@needs(C.MANAGE_ROSTERS)
@never_cache
@require_POST
def people_opt_outs_save(request: StaffRequest, pk: int) -> HttpResponse:
    """Opt out the people of a list that was checked, all or none."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    checked = save_checked(request, administration, OPT_OUTS)
    if isinstance(checked, HttpResponse):
        return checked
    number, ids = checked
    if number or not ids:
        done = ngettext(
            "%(people)s person has opted out, and their access codes no longer work."
            " Take back the login cards that were handed out.",
            "%(people)s people have opted out, and their access codes no longer work."
            " Take back the login cards that were handed out.",
            number,
        )
        messages.success(request, done % {"people": f"{number:,}"})
    if ids:
        done = ngettext(
            "%(ids)s ID is kept: a roster that lists these people opts them out.",
            "%(ids)s IDs are kept: a roster that lists these people opts them out.",
            ids,
        )
        messages.success(request, done % {"ids": f"{ids:,}"})
        return redirect("people_listed", pk)
    return redirect("people_list", pk)


def save_checked(
    request: StaffRequest, administration: Administration, pages: ListPages
) -> tuple[int, int] | HttpResponse:
    """Return how many people changed and how many IDs are kept, or a redirection."""
    try:
        text = request.POST.get("checked", "")
        checked = signing.loads(text, salt=SALT, max_age=VALID_FOR)
    except signing.BadSignature:
        checked = {}
    wanted = (administration.pk, pages.kind, request.user.pk)
    if tuple(checked.get(key) for key in ("administration", "kind", "user")) != wanted:
        messages.error(request, _("This page is too old. Upload the file again."))
        return redirect(pages.route, administration.pk)
    asked = Request(
        requested_on=date.fromisoformat(checked["on"]),
        requested_by=checked["by"],
        reason=checked["reason"],
    )
    try:
        number = save_list(
            dict(checked["people"]),
            [EarlyId(*early_id) for early_id in checked["early"]],
            asked,
            administration=administration,
            schools=_schools(request, administration),
            by=request.user,
            kind=pages.kind,
            request=request,
        )
    except OptOutConflict as conflict:
        messages.error(request, str(conflict))
        return redirect(pages.route, administration.pk)
    return number, len(checked["early"])


@needs(C.MANAGE_ROSTERS)
@never_cache
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
@never_cache
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

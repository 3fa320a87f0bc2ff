"""The console's pages for uploading, checking and confirming rosters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy, pgettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.console.listing import Listing
from accounts.http import StaffRequest, attachment, csv_response
from accounts.permissions import Capability, Permissions
from survey.console.rosters.effect import effect_of
from survey.console.rosters.forms import (
    COMPLETE_FOR_LABELS,
    RosterForm,
    place_name,
)
from survey.console.rosters.report_groups import report_groups
from survey.console.rosters.school_options import (
    SchoolOptions,
    chosen_schools,
    school_options,
)
from survey.fieldwork.administrations import administrations_for, subgroup_label
from survey.fieldwork.login_cards.card_sets import administrations_with_cards
from survey.models import Administration, Denominator, RosterUpload
from survey.models.roster import RosterUploadQuerySet
from survey.people.rosters import uploads
from survey.people.rosters.file_summary import field_label
from survey.people.rosters.presets import all_presets
from survey.people.rosters.school_choices import may_choose_schools
from survey.people.rosters.scope import NO_ROSTER, RosterRefused
from survey.people.rosters.template import XLSX, template_rows, xlsx_template
from survey.people.rosters.upload_state import UploadConflict
from survey.people.rosters.uploads import WrongNumberTyped
from survey.work.files import download
from survey.work.job_turns import TooManyJobs

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MANAGE = Capability.MANAGE_ROSTERS
CompleteFor = RosterUpload.CompleteFor
State = RosterUpload.State
# Administrations to choose from on the list page.
MOST_SHOWN = 12
# Digits of a primary key in an address.
LONGEST_KEY = 18
TOTAL_LABELS = {
    "added": gettext_lazy("added"),
    "changed": gettext_lazy("changed"),
    "moved": gettext_lazy("moved"),
    "back": gettext_lazy("returning"),
    "withdrawn": pgettext_lazy("people", "withdrawn"),
    "unchanged": gettext_lazy("unchanged"),
    "rejected": gettext_lazy("rejected rows"),
}
# By the state of an upload; empty: of those that are not over.
CORRECTED_ROWS = {
    State.APPLIED: gettext_lazy(
        "This file has corrected rows only, so nobody was withdrawn."
    ),
    State.CANCELLED: gettext_lazy(
        "This file has corrected rows only, so nobody would have been withdrawn."
    ),
    "": gettext_lazy("This file has corrected rows only, so nobody will be withdrawn."),
}
WITHOUT_ID = {
    State.APPLIED: ngettext_lazy(
        "%(rows)s row lacks an ID, so nobody was withdrawn.",
        "%(rows)s rows lack an ID, so nobody was withdrawn.",
        "number",
    ),
    State.CANCELLED: ngettext_lazy(
        "%(rows)s row lacks an ID, so nobody would have been withdrawn.",
        "%(rows)s rows lack an ID, so nobody would have been withdrawn.",
        "number",
    ),
    "": ngettext_lazy(
        "%(rows)s row lacks an ID, so nobody will be withdrawn.",
        "%(rows)s rows lack an ID, so nobody will be withdrawn.",
        "number",
    ),
}
SCHOOL_NUMBERS = (
    "people",
    "withdrawn",
    "added",
    "changed",
    "moved",
    "moved_away",
    "back",
    "unchanged",
)


@needs(MANAGE)
@require_safe
def roster_list(request: StaffRequest) -> HttpResponse:
    """List uploads, and open administrations to upload for. 3 statements."""
    visible = _uploads(request).listed().defer("samples")
    key = request.GET.get("administration", "")
    is_filtered = key.isascii() and key.isdecimal() and len(key) <= LONGEST_KEY
    if is_filtered:
        visible = visible.filter(administration=int(key))
    listing = Listing(
        request,
        visible,
        search=(
            "name",
            "administration__name",
            "administration__published__survey__title",
            "by__email",
        ),
        sorts={
            "uploaded": ("-uploaded_at",),
            "name": ("name",),
            "administration": ("administration__name",),
            "state": ("state",),
        },
    )
    current = _administrations(request).filter(
        closes_at__gt=timezone.now(), denominator=Denominator.ROSTER
    )
    return listing.render(
        "survey/console/roster_list.html",
        {
            "administrations": (
                [] if listing.is_part else current.order_by("opens_at")[:MOST_SHOWN]
            ),
            "is_filtered": is_filtered,
            "confirmed_within": RosterUpload.CONFIRMED_WITHIN.days,
            "may_import_schools": request.permissions.places(MANAGE).state,
            "may_merge": request.permissions.has(Capability.MANAGE_STAFF),
        },
    )


@needs(MANAGE)
def roster_upload(request: StaffRequest, pk: int) -> HttpResponse:
    administration = get_object_or_404(_administrations(request), pk=pk)
    form = RosterForm(
        request.POST or None,
        request.FILES or None,
        permissions=request.permissions,
        administration=administration,
        asks_sheet="sheet" in request.GET,
    )
    if request.method == "POST" and form.is_valid():
        try:
            upload = uploads.receive(
                administration=administration,
                file=form.cleaned_data["file"],
                complete_for=form.cleaned_data["complete_for"],
                district=form.cleaned_data["district"],
                school=form.cleaned_data["school"],
                sheet=form.cleaned_data["sheet"],
                reading=form.cleaned_data["reading"],
                by=request.user,
                request=request,
            )
        except (
            TooManyJobs,
            RosterRefused,
            uploads.TooManyFiles,
        ) as refused:
            form.add_error(None, str(refused))
        else:
            is_unclear = upload.state == RosterUpload.State.MAPPING
            return redirect(
                "roster_columns" if is_unclear else "roster_detail", upload.pk
            )
    return render(
        request,
        "survey/console/roster_upload.html",
        {
            "administration": administration,
            "no_roster": NO_ROSTER
            if administration.denominator == Denominator.COUNT
            else "",
            "form": form,
            "corrected": _waiting_upload(request, administration),
            "subgroups": [subgroup_label(name) for name in administration.subgroups],
            "is_one_school": all(school for _district, school in form.places.values()),
            # The whole state, without district and school, is no limit.
            "place": ", ".join(
                place_name(place) for place in form.places.values() if any(place)
            ),
        },
    )


def _waiting_upload(
    request: StaffRequest, administration: Administration
) -> RosterUpload | None:
    """Return the roster whose rejected rows are corrected, if it is not applied yet."""
    key = request.GET.get("corrects", "")
    if not (key.isascii() and key.isdecimal() and len(key) <= LONGEST_KEY):
        return None
    waiting = _uploads(request).filter(administration=administration, scan=None)
    return waiting.filter(pk=int(key), state=State.CHECKED).first()


@needs(MANAGE)
@require_safe
def roster_template(request: StaffRequest, pk: int, ending: str) -> HttpResponse:
    administration = get_object_or_404(_administrations(request), pk=pk)
    # The example names one of the user's own schools; any other would be added.
    schools = request.permissions.schools(MANAGE).select_related("district")
    if administration.district_id is not None:
        schools = schools.filter(district=administration.district_id)
    rows = template_rows(administration, schools.order_by("name", "pk").first())
    filename = f"roster-{administration.name}.{ending}"
    if ending == "csv":
        return csv_response(rows, filename=filename)
    return attachment(xlsx_template(rows), filename=filename, content_type=XLSX)


@needs(MANAGE)
@require_safe
def roster_detail(request: StaffRequest, pk: int) -> HttpResponse:
    return _render_detail(request, get_object_or_404(_uploads(request), pk=pk))


def _render_detail(
    request: StaffRequest,
    upload: RosterUpload,
    *,
    typed: str = "",
    error: str = "",
    options: list[SchoolOptions] | None = None,
) -> HttpResponse:
    """3 statements: the job, one page of schools, and their number.

    Up to 2 more for the `options` of unknown schools, and those that were chosen;
    1 more for an applied roster.
    """
    job = uploads.latest_job(upload)
    listing = Listing(
        request,
        upload.schools.all(),
        search=("name", "district_name"),
        sorts={
            "name": ("name",),
            "district": ("district_name", "name"),
            **{name: (name, "name") for name in SCHOOL_NUMBERS},
        },
    )
    if options is None:
        options = school_options(upload, permissions=request.permissions)
    report = upload.report
    return listing.render(
        "survey/console/roster_detail.html",
        {
            "upload": upload,
            "job": job,
            # The job failed, its worker died, or it was cancelled before it started.
            "has_stopped": upload.state in ("checking", "applying", "failed")
            and upload.scan is None
            and (job is None or job.is_over),
            "mapping": [
                (report["columns"][name], field_label(name))
                for name in report.get("order_of_columns", ())
            ],
            "totals": _totals(report),
            "effect": effect_of(upload),
            "abandoned_at": upload.uploaded_at + RosterUpload.CONFIRMED_WITHIN,
            **_school_answers(upload, options),
            "no_withdrawal_reason": _no_withdrawal_reason(upload),
            "complete_for": COMPLETE_FOR_LABELS[CompleteFor(upload.complete_for)],
            **_confirmation(upload),
            "makes_all_cards": _makes_all_cards(request.permissions, upload),
            "columns_can_change": uploads.columns_can_change(upload),
            "columns_key": uploads.columns_key(upload),
            "layout_title": _layout_title(upload),
            **report_groups(report),
            "new_districts": report.get("districts_created", ()),
            "typed": typed,
            "error": error,
        },
    )


def _confirmation(upload: RosterUpload) -> dict[str, bool]:
    """Return whether the user may confirm the roster, and why not."""
    is_to_decide = upload.state == State.CHECKED and upload.scan is None
    is_for_other_roles = uploads.is_for_other_roles(upload)
    # A file without people can still withdraw everybody of its district.
    has_no_rows = (
        is_to_decide and not upload.report.get("rows") and not upload.withdrawn
    )
    return {
        "is_for_other_roles": is_for_other_roles,
        "has_no_rows": has_no_rows,
        "is_to_confirm": is_to_decide and not is_for_other_roles and not has_no_rows,
    }


def _school_answers(
    upload: RosterUpload, options: list[SchoolOptions]
) -> dict[str, object]:
    """Return which schools could be meant, and which were chosen: 1 statement."""
    return {
        "options": options,
        "unanswered": sum(option.must_be_answered for option in options),
        "elsewhere": sum(option.is_elsewhere for option in options),
        "is_searched": any(option.searched for option in options),
        "chosen_schools": chosen_schools(upload),
        "may_choose_schools": may_choose_schools(upload),
    }


def _makes_all_cards(permissions: Permissions, upload: RosterUpload) -> bool:
    """Check if one button can make the cards of all schools that were uploaded.

    Not where cards were made before: the new people may be few. 1 statement, once
    the roster is applied.
    """
    if upload.state != State.APPLIED or upload.school_id is not None:
        return False
    places = permissions.places(Capability.SEE_IDENTITIES)
    if not places.state and upload.district_id not in places.districts:
        return False
    return not administrations_with_cards(permissions, [upload.administration_id])


def _totals(report: Mapping[str, int]) -> list[tuple[StrOrPromise, int]]:
    """Return labels and numbers of people, each of whom is in one number.

    None of them is 0.
    """
    numbers = {name: report.get(name, 0) for name in TOTAL_LABELS}
    # The report counts them as changed too.
    numbers["changed"] -= numbers["moved"] + numbers["back"]
    labels = TOTAL_LABELS.items()
    return [(label, numbers[name]) for name, label in labels if numbers[name]]


def _layout_title(upload: RosterUpload) -> str:
    """Return the name of the system whose export the file is, or nothing."""
    name = upload.layout.get("preset", "")
    if name == "groundswell":
        return _("Groundswell template")
    preset = all_presets().get(name)
    return preset.title if preset else ""


def _no_withdrawal_reason(upload: RosterUpload) -> str:
    """Explain why nobody is withdrawn although the uploader asked for it."""
    if upload.complete_for == CompleteFor.CHANGES:
        return ""
    if upload.report.get("is_correction"):
        return str(CORRECTED_ROWS.get(upload.state, CORRECTED_ROWS[""]))
    rows = upload.report.get("nameless")
    if not rows:
        return ""
    text = WITHOUT_ID.get(upload.state, WITHOUT_ID[""])
    lacking = text % {"number": rows, "rows": f"{rows:,}"}
    advice = _(
        "To withdraw people who have left, correct the IDs and upload the whole file"
        " again."
    )
    return f"{lacking} {advice}"


@needs(MANAGE)
@require_safe
def roster_rejected(request: StaffRequest, pk: int) -> HttpResponse:
    upload = get_object_or_404(_uploads(request), pk=pk)
    _record_access(request, upload, "see rejected rows")
    listing = Listing(
        request,
        upload.rejections.all(),
        search=("column", "reason", "text"),
        sorts={
            "row": ("row", "pk"),
            "column": ("column", "row"),
            "reason": ("reason",),
        },
    )
    return listing.render("survey/console/roster_rejected.html", {"upload": upload})


@needs(MANAGE)
@require_safe
def roster_rejected_file(request: StaffRequest, pk: int) -> HttpResponseBase:
    upload = get_object_or_404(_uploads(request), pk=pk)
    if not upload.rejected_file:
        raise Http404
    _record_access(request, upload, "download rejected rows")
    stem = slugify(upload.name.rpartition(".")[0]) or "roster"
    return download(
        upload.rejected_file,
        as_name=f"{stem}-rejected.csv",
        content_type="text/csv; charset=utf-8",
    )


@needs(MANAGE)
@require_POST
def roster_confirm(request: StaffRequest, pk: int) -> HttpResponse:
    upload = get_object_or_404(_uploads(request), pk=pk)
    typed = request.POST.get("typed", "")
    try:
        uploads.confirm(
            upload,
            by=request.user,
            seen=request.POST.get("seen", ""),
            typed=typed,
            columns=request.POST.get("columns"),
            request=request,
        )
    except WrongNumberTyped as wrong:
        return _render_detail(request, upload, typed=typed[:200], error=str(wrong))
    except UploadConflict as error:
        messages.error(request, str(error))
    return redirect("roster_detail", pk)


@needs(MANAGE)
@require_POST
def roster_cancel(request: StaffRequest, pk: int) -> HttpResponse:
    upload = get_object_or_404(_uploads(request), pk=pk)
    try:
        uploads.cancel(upload, by=request.user, request=request)
        messages.success(request, _("Roster cancelled. Nothing was changed."))
    except UploadConflict as error:
        messages.error(request, str(error))
    return redirect("roster_detail", pk)


@needs(MANAGE)
@require_POST
def roster_again(request: StaffRequest, pk: int) -> HttpResponse:
    upload = get_object_or_404(_uploads(request), pk=pk)
    try:
        uploads.start_again(upload, by=request.user, request=request)
    except UploadConflict as error:
        messages.error(request, str(error))
    return redirect("roster_detail", pk)


def _administrations(request: StaffRequest) -> QuerySet[Administration]:
    """Return the administrations to upload for, with what their titles need."""
    rows = administrations_for(request.permissions, MANAGE)
    return rows.select_related("published__survey").defer(
        "published__definition", "published__survey__source"
    )


def _uploads(request: StaffRequest) -> RosterUploadQuerySet:
    """Return the uploads that the user may see, with their administrations' titles."""
    visible = RosterUpload.objects.visible_to(request.permissions)
    return visible.select_related(
        "administration__published__survey",
        "by",
        "confirmed_by",
        "district",
        "school__district",
        "undo__by",
        "layout_choice__by",
        "scan__feed",
    ).defer(
        "scan__feed__credentials",
        "scan__feed__options",
        "administration__published__definition",
        "administration__published__survey__source",
    )


def _record_access(request: StaffRequest, upload: RosterUpload, action: str) -> None:
    """Write an audit entry: rejected cells can be names."""
    record(
        action,
        by=request.user,
        request=request,
        subject=upload,
        school=upload.school,
        district=upload.district,
        after={"rejected": upload.rejected},
    )

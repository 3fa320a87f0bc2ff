"""The pages that name the people whom a roster would withdraw."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Case, QuerySet, When
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.audit import record
from accounts.console.listing import Listing
from accounts.http import Cell, StaffRequest, csv_response
from accounts.models import School
from accounts.permissions import Capability as C
from survey.models import Respondent, RosterMissing, RosterUpload

# In one file; more are downloaded school by school.
MOST_IN_A_FILE = 50_000
State = RosterUpload.State
BY_NAME = ("identity__family_name", "identity__given_name")
MARKED, MISSING = "marked as left", "not in the file"


@needs(C.SEE_IDENTITIES)
@require_safe
def roster_missing(request: StaffRequest, pk: int) -> HttpResponse:
    """List the schools that would lose people, or the people of the only one."""
    upload = _upload_or_404(request, pk)
    if upload.school_id is not None:
        return roster_missing_school(request, pk, upload.school_id)
    listing = Listing(
        request,
        upload.schools.filter(
            withdrawn__gt=0,
            school__in=request.permissions.schools(C.SEE_IDENTITIES),
        ),
        search=("name", "district_name"),
        sorts={
            "name": ("name",),
            "district": ("district_name", "name"),
            "withdrawn": ("-withdrawn", "name"),
            "people": ("-people", "name"),
        },
    )
    return listing.render(
        "survey/console/roster_missing_schools.html",
        {"upload": upload, "fits_in_a_file": upload.withdrawn <= MOST_IN_A_FILE},
    )


@needs(C.SEE_IDENTITIES)
@require_safe
def roster_missing_school(
    request: StaffRequest, pk: int, school_id: int
) -> HttpResponse:
    """List the people of one school."""
    upload = _upload_or_404(request, pk)
    school = _school_or_404(request, school_id)
    listing: Listing[Respondent] = Listing(
        request,
        _people(request, upload).filter(school=school),
        search=(*(f"{name}__folded" for name in BY_NAME), "identity__external_id"),
        sorts={
            "name": BY_NAME,
            "id": ("identity__external_id",),
            "grade": ("grade", "classroom", *BY_NAME),
            "class": ("classroom", *BY_NAME),
            "reason": ("-has_left", *BY_NAME),
        },
    )
    _record(request, upload, "see people to withdraw", school, len(listing.page))
    return listing.render(
        "survey/console/roster_missing.html",
        {
            "upload": upload,
            "school": school,
            "counted": upload.schools.filter(school=school).first(),
            "shows_progress": not upload.administration.is_completion_confidential,
        },
    )


@needs(C.SEE_IDENTITIES)
@require_safe
def roster_missing_file(
    request: StaffRequest, pk: int, school_id: int | None = None
) -> HttpResponse:
    """Download the people of one school, or all of them."""
    upload = _upload_or_404(request, pk)
    school = None if school_id is None else _school_or_404(request, school_id)
    people = _people(request, upload).select_related("identity", "school__district")
    if school is not None:
        people = people.filter(school=school)
    elif upload.withdrawn > MOST_IN_A_FILE:
        messages.error(
            request,
            _(
                "One file holds at most %(most_in_a_file)s people. Choose a"
                " school and download its people."
            )
            % {"most_in_a_file": f"{MOST_IN_A_FILE:,}"},
        )
        return redirect("roster_missing", pk)
    shows_progress = not upload.administration.is_completion_confidential
    rows: list[list[Cell]] = [
        ["District", "School", "ID", "Family name", "Given name", "Grade", "Class"]
    ]
    rows[0] += ["Reason", *(["Started"] if shows_progress else [])]
    for person in people.order_by("school__name", *BY_NAME, "pk"):
        identity = person.identity
        rows.append(
            [
                person.school.district.name,
                person.school.name,
                identity.external_id,
                identity.family_name,
                identity.given_name,
                person.grade,
                person.classroom,
                MARKED if vars(person)["has_left"] else MISSING,
                *(["yes" if person.started_at else "no"] if shows_progress else []),
            ]
        )
    _record(request, upload, "download people to withdraw", school, len(rows) - 1)
    stem = slugify(school.name if school else upload.name.rpartition(".")[0])
    return csv_response(rows, filename=f"{stem or 'roster'}-to-withdraw.csv")


def _upload_or_404(request: StaffRequest, pk: int) -> RosterUpload:
    """Return an upload that can be confirmed; afterwards there is no list."""
    uploads = RosterUpload.objects.visible_to(request.permissions)
    uploads = uploads.select_related("administration__published__survey", "school")
    return get_object_or_404(
        uploads.defer(
            "administration__published__definition",
            "administration__published__survey__source",
        ).filter(state__in=(State.CHECKED, State.APPLYING, State.FAILED)),
        pk=pk,
    )


def _school_or_404(request: StaffRequest, pk: int) -> School:
    schools = request.permissions.schools(C.SEE_IDENTITIES)
    return get_object_or_404(schools.select_related("district"), pk=pk)


def _people(request: StaffRequest, upload: RosterUpload) -> QuerySet[Respondent]:
    """Return the people to withdraw who are now at a school of the user."""
    # Nothing here refers to a person row by row: a Citus cluster refuses it.
    missing = RosterMissing.objects.filter(upload=upload).values("respondent")
    has_left = When(pk__in=missing.filter(has_left=True), then=True)
    return (
        Respondent.objects.filter(
            pk__in=missing,
            administration=upload.administration_id,
            withdrawn_at=None,
            school__in=request.permissions.schools(C.SEE_IDENTITIES),
        )
        .annotate(has_left=Case(has_left, default=False))
        .select_related("identity")
    )


def _record(
    request: StaffRequest,
    upload: RosterUpload,
    action: str,
    school: School | None,
    people: int,
) -> None:
    """Write an audit entry that the administrators of the place can see."""
    record(
        action,
        by=request.user,
        request=request,
        subject=upload,
        school=school or upload.school,
        district=None if school else upload.district,
        after={"people": people},
    )

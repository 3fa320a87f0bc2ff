"""Download the current roster of a school, or of all of a user's schools."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_safe

from accounts import audit
from accounts.access import needs
from accounts.http import Cell, StaffRequest, csv_response
from accounts.permissions import Capability as C
from survey.console.people.scope import schools_for, selected_school
from survey.fieldwork.administrations.queries import (
    administration_or_404,
    invited_people,
)
from survey.models import Administration, Respondent, Role

# The file is made while the browser waits.
MOST_PEOPLE = 50_000
TOO_MANY = gettext_noop(
    "A file has at most %(most)s people. Choose a school first, and download its"
    " roster."
)
# As in the template of rosters, so that the file can be corrected and uploaded.
ID_HEADERS = {
    Role.STUDENT: "Student ID",
    Role.TEACHER: "Staff ID",
    Role.PARENT: "Parent ID",
}


@needs(C.SEE_IDENTITIES)
@require_safe
def people_roster(request: StaffRequest, pk: int) -> HttpResponse:
    """Send a CSV file of the people who are invited now. It shows no progress."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    school = selected_school(request)
    schools = schools_for(request, administration)
    if school:
        schools = schools.filter(pk=school.pk)
    # Of people whose names were deleted, nothing is left to list.
    people = invited_people(administration).filter(
        school__in=schools, identity__isnull=False
    )
    number = people.count()
    if number > MOST_PEOPLE:
        messages.error(request, _(TOO_MANY) % {"most": f"{MOST_PEOPLE:,}"})
        return redirect("people_list", pk)
    places = request.permissions.places(C.SEE_IDENTITIES)
    district = None
    if not places.state and len(places.districts) == 1:
        district = request.permissions.districts(C.SEE_IDENTITIES).first()
    audit.record(
        "download a roster",
        by=request.user,
        request=request,
        subject=administration,
        school=school,
        district=district,
        after={"people": number},
    )
    name = slugify(school.name) if school else "all-schools"
    return csv_response(
        _rows(administration, people),
        filename=f"roster-{administration.name}-{name}.csv",
    )


def _rows(
    administration: Administration, people: QuerySet[Respondent]
) -> Iterator[list[Cell]]:
    subgroups = list(administration.subgroups)
    yield [
        *("District", "School", ID_HEADERS[Role(administration.role)]),
        *("Given name", "Family name", "Grade", "Class", "Birth date"),
        *("E-mail", "Language", *subgroups),
    ]
    ordered = people.select_related("identity", "school__district").order_by(
        "school__district__code",
        "school__code",
        "grade",
        "classroom",
        "identity__family_name",
        "identity__given_name",
        "pk",
    )
    for person in ordered:
        identity = person.identity
        born = identity.birth_date.isoformat() if identity.birth_date else ""
        yield [
            *(person.school.district.code, person.school.code, identity.external_id),
            *(identity.given_name, identity.family_name, person.grade),
            *(person.classroom, born, identity.email, person.language),
            *(str(person.attributes.get(name) or "") for name in subgroups),
        ]

"""Rows without a district belong to the only school of their name or code."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.models import School
from survey.models import Respondent
from survey.people.rosters.blank_districts import (
    NO_SCHOOL,
    ONLY_CODE,
    SEVERAL_SCHOOLS,
    DistrictsOfSchools,
)
from survey.people.rosters.scope import RosterScope
from survey.tests.rosters.roster_console import (
    ALI,
    HEADER,
    MAYA,
    NOOR,
    counts,
    person,
    reasons,
)

pytestmark = pytest.mark.django_db


def without_district(row, school=None):
    _district, written, rest = row.split(",", 2)
    return f",{school or written},{rest}"


def test_a_school_that_is_unique_is_found_without_its_district(
    staff, administration, console_of
):
    state = console_of(staff.state)
    rows = (
        without_district(MAYA),
        without_district(ALI, "LINCOLN"),
        without_district(NOOR),
    )
    # Two people have one ID, in two districts.
    state.apply(administration, HEADER, *rows)
    assert person("00123").school == person("00124").school == staff.lincoln
    assert person("00123", "lakeside").school == staff.roosevelt
    # The same people as in a file with districts.
    upload = state.upload(administration, HEADER, MAYA, ALI, NOOR)
    assert counts(upload) == {"unchanged": 3}
    upload = state.upload(administration, HEADER, MAYA, *rows[1:])
    assert counts(upload) == {"unchanged": 3}


def test_several_schools_of_one_name_need_the_district(
    staff, administration, console_of
):
    School.objects.create(district=staff.lakeside, code="l2", name="Lincoln")
    state = console_of(staff.state)
    upload = state.upload(administration, HEADER, without_district(MAYA, "Lincoln"))
    # One has it as its code too: a code in the column of names tells nothing.
    assert reasons(upload) == [(2, "district", str(SEVERAL_SCHOOLS))]


def test_a_code_alone_does_not_tell_the_district(staff, administration, console_of):
    """Another district may have a closed or new school with the same code."""
    School.objects.create(district=staff.lakeside, code="105", name="Cedar High")
    state = console_of(staff.state)
    upload = state.upload(administration, HEADER, without_district(MAYA, "105"))
    assert reasons(upload) == [(2, "district", str(ONLY_CODE))]
    header = f"{HEADER},school_name"
    upload = state.upload(
        administration, header, f"{without_district(MAYA, '105')},Maple Academy"
    )
    assert reasons(upload) == [(2, "district", str(ONLY_CODE))]
    # The twin: with the name of the school.
    upload = state.upload(
        administration, header, f"{without_district(MAYA, '105')},Cedar High"
    )
    assert counts(upload) == {"added": 1}


def test_a_closed_school_of_the_same_name_needs_the_district(
    staff, administration, console_of
):
    School.objects.create(
        district=staff.lakeside,
        code="l3",
        name="Lincoln School",
        closed_at=timezone.now(),
    )
    School.objects.filter(pk=staff.lincoln.pk).update(name="Lincoln School", code="x1")
    state = console_of(staff.state)
    row = without_district(MAYA, "Lincoln School")
    upload = state.upload(administration, HEADER, row)
    assert reasons(upload) == [(2, "district", str(SEVERAL_SCHOOLS))]


def test_a_misspelt_school_is_shown_with_the_blank_district(
    staff, administration, console_of
):
    state = console_of(staff.state)
    rows = without_district(MAYA, "Lincon"), without_district(ALI, "Lyceum")
    upload = state.upload(administration, HEADER, *rows)
    assert reasons(upload) == [
        (2, "district", f"{NO_SCHOOL}. Did you mean the school Lincoln?"),
        (3, "district", str(NO_SCHOOL)),
    ]
    assert not Respondent.objects.exists()


def test_schools_outside_the_upload_are_neither_found_nor_named(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    rows = without_district(MAYA, "Roosevelt"), without_district(ALI, "Rosevelt")
    upload = dana.upload(administration, HEADER, *rows)
    assert [reason for _, _, reason in reasons(upload)] == [str(NO_SCHOOL)] * 2
    # The twin: the state is told.
    upload = console_of(staff.state).upload(administration, HEADER, *rows)
    assert counts(upload) == {"added": 1, "rejected": 1}
    assert "Roosevelt" in reasons(upload)[0][2]


def test_people_who_left_are_found_without_their_district(
    staff, administration, console_of
):
    state = console_of(staff.state)
    state.apply(administration, HEADER, MAYA, ALI)
    upload = state.upload(
        administration,
        f"{HEADER},status",
        f"{without_district(MAYA)},withdrawn",
        complete_for="changes",
    )
    assert upload.withdrawn == 1


NO_DISTRICT = HEADER.removeprefix("district,")


def without_column(*rows):
    return [row.split(",", 1)[1] for row in rows]


def test_a_file_without_a_column_of_districts_is_read_by_its_schools(
    staff, administration, console_of
):
    state = console_of(staff.state)
    rows = without_column(MAYA, ALI, NOOR)
    upload = state.apply(administration, NO_DISTRICT, *rows, place="state")
    assert counts(upload) == {"added": 3}
    assert person("00123").school == person("00124").school == staff.lincoln
    assert person("00123", "lakeside").school == staff.roosevelt
    # The same people as in a file with districts.
    upload = state.upload(administration, HEADER, MAYA, ALI, NOOR, place="state")
    assert counts(upload) == {"unchanged": 3}


def test_a_district_that_a_school_does_not_tell_is_asked_for(
    staff, administration, console_of
):
    state = console_of(staff.state)
    rows = without_column(MAYA, NOOR.replace("roosevelt", "Lyceum"))
    upload = state.upload(administration, NO_DISTRICT, *rows, place="state")
    assert (upload.state, upload.samples["questions"]) == ("mapping", ["district"])
    columns = {"external_id": "student ID", "school": "school", "grade": "grade"}
    address = f"/console/rosters/{upload.pk}/columns/"
    state.post(address, **columns, everyone_district="schools")
    upload.refresh_from_db()
    assert counts(upload) == {"added": 1, "rejected": 1}
    assert reasons(upload) == [(3, "district", str(NO_SCHOOL))]
    assert not School.objects.filter(name="Lyceum").exists()
    # It was said for these headers, and is shown where it can be changed.
    form = state.get(address).context["form"]
    assert form["everyone_district"].value() == "schools"


def test_a_school_of_several_districts_is_not_guessed(
    staff, administration, console_of
):
    School.objects.create(district=staff.lakeside, code="l2", name="Lincoln")
    state = console_of(staff.state)
    rows = without_column(MAYA, NOOR)
    upload = state.upload(administration, NO_DISTRICT, *rows, place="state")
    assert (upload.state, upload.samples["questions"]) == ("mapping", ["district"])


def test_an_unknown_column_that_names_districts_is_asked_about(
    staff, administration, console_of, monkeypatch
):
    """Maya's school is a new one in another district, with a known name."""
    state = console_of(staff.state)
    file = f"Bezirk,{NO_DISTRICT}", MAYA.replace("riverside", staff.lakeside.name)
    upload = state.upload(administration, *file, place="state")
    assert (upload.state, upload.samples["questions"]) == ("mapping", ["district"])
    # The twin: only the columns that are known are looked at.
    tell_all = DistrictsOfSchools.tell_all
    monkeypatch.setattr(
        DistrictsOfSchools,
        "tell_all",
        lambda self, schools, unused: tell_all(self, schools, ()),
    )
    state.apply(administration, *file, place="state")
    assert person("00123").school == staff.lincoln


@pytest.mark.parametrize("schools", [1, 3])
def test_schools_are_read_once(staff, schools, django_assert_num_queries):
    districts = DistrictsOfSchools(RosterScope())
    names = ("Lincoln", "Roosevelt", "Washington")[:schools]
    with django_assert_num_queries(2):
        codes_and_names = {districts.find(name.casefold(), name) for name in names}
    assert ("riverside", "Riverside") in codes_and_names

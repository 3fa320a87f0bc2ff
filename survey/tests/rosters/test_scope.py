"""Limit rosters to the schools of the uploader and of the administration."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import District, Membership, School
from survey.models import RosterUpload
from survey.people.rosters.scope import (
    NOT_OFFERED,
    NOT_YOURS,
    OTHER_SCHOOL,
)
from survey.tests.rosters.roster_console import (
    HEADER,
    MAYA,
    NOOR,
    ZOE,
    counts,
    errors_of,
    person,
    reasons,
)
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db


def test_a_coordinator_may_name_only_their_own_school(
    staff, administration, console_of
):
    upload = console_of(staff.chen).upload(
        administration,
        HEADER,
        MAYA,
        ZOE,
        NOOR,
        ZOE.replace("washington", "nowhere").replace("125", "126"),
    )
    assert reasons(upload) == [(row, "school", NOT_YOURS) for row in (3, 4, 5)]
    assert counts(upload) == {"added": 1, "rejected": 3}
    assert School.objects.count() == 3


def test_a_coordinator_of_two_schools_chooses_one(staff, administration, console_of):
    Membership.objects.create(
        user=staff.chen, role="coordinator", school=staff.washington
    )
    chen = console_of(staff.chen)
    address = f"/console/administrations/{administration.pk}/roster/"
    assert b"Washington, Riverside" in chen.get(address).content
    here = f"school-{staff.washington.pk}"
    upload = chen.upload(administration, HEADER, MAYA, ZOE, place=here)
    assert upload.school == staff.washington
    assert counts(upload) == {"added": 1, "rejected": 1}
    response = chen.post(
        address,
        file=SimpleUploadedFile("r.csv", f"{HEADER}\n{NOOR}".encode()),
        complete_for="schools",
        place=f"school-{staff.roosevelt.pk}",
    )
    assert "place" in errors_of(response)


def test_a_coordinator_cannot_withdraw_people_of_a_district(
    staff, administration, console_of
):
    response = console_of(staff.chen).post(
        f"/console/administrations/{administration.pk}/roster/",
        file=SimpleUploadedFile("r.csv", f"{HEADER}\n{MAYA}".encode()),
        complete_for="districts",
    )
    assert "complete_for" in errors_of(response)
    assert not RosterUpload.objects.exists()


def test_a_district_can_add_schools_and_the_state_districts(
    staff, administration, console_of
):
    new_school = MAYA.replace("lincoln", "adams")
    new_district = NOOR.replace("lakeside", "hilltop")
    upload = console_of(staff.dana).apply(
        administration, HEADER, new_school, new_district, NOOR
    )
    assert counts(upload) == {"added": 1, "rejected": 2}
    assert School.objects.get(code="adams").district == staff.riverside
    assert not District.objects.filter(code="hilltop").exists()

    upload = console_of(staff.state).upload(administration, HEADER, new_district)
    assert not District.objects.filter(code="hilltop").exists()
    page = (
        console_of(staff.state).get(f"/console/rosters/{upload.pk}/").content.decode()
    )
    assert "1 new district will be added: hill" in page
    # It could be the school of that name in another district.
    [question] = upload.report["school_questions"]
    address = f"/console/rosters/{upload.pk}/schools/"
    console_of(staff.state).post(address, **{f"school-{question['key']}": "0"})
    console_of(staff.state).confirm(upload)
    assert District.objects.get(code="hilltop").schools.get().code == "roosevelt"


def test_rows_of_schools_outside_the_administration_are_rejected(
    staff, administration, console_of
):
    administration.schools.add(staff.lincoln)
    upload = console_of(staff.dana).upload(
        administration, HEADER, MAYA, ZOE, ZOE.replace("washington", "adams")
    )
    assert reasons(upload)[0] == (3, "school", NOT_OFFERED)
    assert counts(upload) == {"added": 1, "rejected": 2}


def test_a_student_of_another_school_cannot_be_taken_over(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    run_import(administration, HEADER, MAYA, ZOE)
    claimed = ZOE.replace("washington", "lincoln")
    upload = chen.upload(administration, HEADER, MAYA, claimed)
    assert reasons(upload) == [(3, "student ID", OTHER_SCHOOL)]


@pytest.mark.parametrize("complete_for", ["schools", "changes"])
def test_a_withdrawn_student_of_another_school_cannot_be_taken_over(
    staff, administration, console_of, complete_for
):
    dana, chen = console_of(staff.dana), console_of(staff.chen)
    run_import(administration, HEADER, MAYA, ZOE)
    withdrawing = ZOE.replace("125", "777")
    run_import(administration, HEADER, withdrawing, complete_for="schools")
    assert person("00125").withdrawn_at
    claimed = ZOE.replace("washington", "lincoln")
    upload = chen.apply(
        administration, HEADER, MAYA, claimed, complete_for=complete_for
    )
    assert reasons(upload) == [(3, "student ID", OTHER_SCHOOL)]
    assert person("00125").school == staff.washington
    assert person("00125").withdrawn_at
    # The district may move her.
    dana.apply(administration, HEADER, claimed, complete_for="changes")
    assert person("00125").school == staff.lincoln
    assert person("00125").withdrawn_at is None


def test_a_coordinator_can_invite_their_own_withdrawn_student_again(
    staff, administration, console_of
):
    chen, second_row = console_of(staff.chen), MAYA.replace("00123", "00900")
    chen.apply(administration, HEADER, MAYA)
    chen.apply(administration, HEADER, second_row)
    assert person("00123").withdrawn_at
    upload = chen.apply(administration, HEADER, MAYA, second_row)
    assert counts(upload) == {"changed": 1, "back": 1, "unchanged": 1}
    assert person("00123").withdrawn_at is None


def test_ids_of_other_schools_are_not_revealed_by_missing_zeros(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    run_import(administration, HEADER, MAYA, ZOE)
    guessed = [MAYA.replace("00123", "123"), MAYA.replace("00123", "125")]
    upload = chen.upload(administration, HEADER, *guessed, complete_for="changes")
    assert reasons(upload) == [
        (2, "student ID", "has lost its leading zeros: 00123 is already on the roster"),
        (3, "student ID", f"with leading zeros {OTHER_SCHOOL}"),
    ]
    page = chen.get(f"/console/rosters/{upload.pk}/rejected/").content.decode()
    assert "00123" in page and "00125" not in page
    # The district manages both schools and sees both IDs.
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *guessed, complete_for="changes")
    assert [reason.split()[5] for *_, reason in reasons(upload)] == ["00123", "00125"]

"""Upload, check, confirm and apply rosters in the console."""

from __future__ import annotations

import csv
import io
import os
import time
from dataclasses import replace
from datetime import timedelta

import openpyxl
import pytest
from django.conf import settings
from django.contrib.messages import get_messages
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEntry, District, Letter, Membership, School
from accounts.permissions import Permissions
from accounts.staff import dismiss
from accounts.tests.logging_in import log_in
from survey import access_codes, files, jobs
from survey.administrations import change_administration, plan_of
from survey.files import path_of, private_files
from survey.models import Identity, Respondent, Response, RosterUpload
from survey.rosters import apply, apply_job, dry_run, retention, uploads
from survey.rosters.scope import (
    NOT_OFFERED,
    NOT_YOURS,
    OTHER_SCHOOL,
    scope_of_upload,
)
from survey.tests.conftest import FIRST_PAGE

pytestmark = pytest.mark.django_db

# Sessions in the database cost a query, in Redis none.
SESSION = int(settings.SESSION_ENGINE.endswith(".db"))

HEADER = "district,school,student ID,given name,family name,grade,class"
MAYA = "riverside,lincoln,00123,Maya,Lopez,7,7B"
ALI = "riverside,lincoln,00124,Ali,Diaz,7,7A"
ZOE = "riverside,washington,00125,Zoe,Kim,8,8C"
NOOR = "lakeside,roosevelt,00123,Noor,Haddad,8,8A"


@pytest.fixture
def console_of(client, django_capture_on_commit_callbacks):
    """Return a console client that also runs the jobs its requests start."""

    class ConsoleClient:
        def __init__(self, user):
            self.client = log_in(Client(), user)

        def post(self, address, **data):
            with django_capture_on_commit_callbacks(execute=True):
                return self.client.post(address, data)

        def get(self, address, **data):
            return self.client.get(address, data)

        def upload(self, administration, *lines, name="roster.csv", **data):
            content = "\n".join(lines).encode() if lines else data.pop("content")
            response = self.post(
                f"/console/administrations/{administration.pk}/roster/",
                file=SimpleUploadedFile(name, content),
                **{"complete_for": "schools", **data},
            )
            assert response.status_code == 302, errors_of(response)
            return RosterUpload.objects.get(
                pk=int(response.url.strip("/").split("/")[-1])
            )

        def confirm(self, upload, typed=""):
            response = self.post(
                f"/console/rosters/{upload.pk}/confirm/",
                seen=upload.withdrawn,
                typed=typed,
            )
            upload.refresh_from_db()
            return response

        def apply(self, administration, *lines, typed="", **data):
            upload = self.upload(administration, *lines, **data)
            self.confirm(upload, typed=typed or str(upload.withdrawn))
            assert upload.state == "applied", upload.message
            return upload

    return ConsoleClient


def errors_of(response):
    return response.context["form"].errors if response.context else response.content


def counts(upload):
    names = ("added", "changed", "moved", "back", "withdrawn", "unchanged", "rejected")
    return {name: upload.report[name] for name in names if upload.report[name]}


def reasons(upload):
    return [(one.row, one.column, one.reason) for one in upload.rejections.all()]


def person(external_id, district="riverside"):
    return Respondent.objects.get(
        identity__external_id=external_id, identity__district__code=district
    )


def all_people():
    return list(Respondent.objects.order_by("pk").values()) + list(
        Identity.objects.order_by("pk").values()
    )


def test_a_district_uploads_checks_and_confirms_a_roster(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI, ZOE)

    assert upload.state == "checked"
    assert counts(upload) == {"added": 3}
    assert not Respondent.objects.exists()
    response = dana.get(f"/console/rosters/{upload.pk}/")
    page = response.content.decode()
    assert "Nothing has changed yet" in page and "Washington" in page
    # In the order of the file.
    read = [heading for heading, _ in response.context["mapping"]]
    assert read == HEADER.split(",")

    response = dana.confirm(upload)
    assert response.url == f"/console/rosters/{upload.pk}/"
    assert upload.state == "applied"
    maya = person("00123")
    assert (maya.school, maya.grade, maya.classroom) == (staff.lincoln, "07", "7B")
    assert "was applied" in dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert [one.to for one in mail.outbox] == [["dana@example.org"]]
    assert "3 people were added" in mail.outbox[0].body
    assert f"/console/rosters/{upload.pk}/" in mail.outbox[0].body
    written = AuditEntry.objects.filter(kind="survey.rosterupload").order_by("pk")
    assert [(one.action, one.by) for one in written] == [
        ("upload roster", "dana@example.org"),
        ("confirm roster", "dana@example.org"),
        ("apply roster", "dana@example.org"),
    ]
    assert {one.district_id for one in written} == {staff.riverside.pk}
    assert "Maya" not in str([(one.before, one.after) for one in written])


# People ---------------------------------------------------------------------


def test_missing_people_are_withdrawn_and_can_return(
    staff, administration, console_of, browser
):
    chen = console_of(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    maya = person("00123")
    browser.log_in(maya)
    assert browser.save(1, FIRST_PAGE, 10**15).status_code == 200

    upload = chen.apply(administration, HEADER, ALI)
    assert counts(upload) == {"withdrawn": 1, "unchanged": 1}
    maya.refresh_from_db()
    assert maya.withdrawn_at
    # The answers are kept, and no more are accepted.
    assert Response.objects.filter(respondent_id=maya.pk).count() == 5
    assert browser.save(1, FIRST_PAGE, 10**15 + 1).status_code == 409
    code = access_codes.code_of(maya)
    assert Client().post("/", {"code": code}).status_code != 302

    upload = chen.apply(administration, HEADER, ALI, MAYA.replace("7B", "7C"))
    assert counts(upload) == {"changed": 1, "back": 1, "unchanged": 1}
    maya.refresh_from_db()
    assert maya.withdrawn_at is None and maya.classroom == "7C"
    browser.log_in(maya)
    assert browser.save(1, FIRST_PAGE, 10**15 + 2).status_code == 200


def test_people_who_change_schools_keep_answers_and_count_once(
    staff, administration, console_of, browser
):
    dana = console_of(staff.dana)
    dana.apply(administration, HEADER, MAYA, ALI, ZOE)
    maya = person("00123")
    browser.log_in(maya)
    assert browser.save(1, FIRST_PAGE, 10**15).status_code == 200

    upload = dana.apply(
        administration, HEADER, MAYA.replace("lincoln", "washington"), ALI, ZOE
    )
    assert counts(upload) == {"changed": 1, "moved": 1, "unchanged": 2}
    by_school = {one.name: one for one in upload.schools.all()}
    assert by_school["Washington"].moved == by_school["Lincoln"].moved_away == 1
    assert (by_school["Lincoln"].people, by_school["Lincoln"].after) == (2, 1)
    assert (by_school["Washington"].people, by_school["Washington"].after) == (1, 2)
    moved = person("00123")
    assert (moved.pk, moved.school) == (maya.pk, staff.washington)
    assert browser.save(1, FIRST_PAGE, 10**15 + 1).status_code == 200
    assert Respondent.objects.count() == 3


def test_changing_districts_creates_a_new_record(staff, administration, console_of):
    state = console_of(staff.state)
    state.apply(administration, HEADER, MAYA, NOOR)
    upload = state.apply(
        administration,
        HEADER,
        MAYA.replace("riverside,lincoln", "lakeside,roosevelt").replace("123", "999"),
        NOOR,
    )
    # Lincoln is not in the file, so its people are not withdrawn.
    assert counts(upload) == {"added": 1, "unchanged": 1}
    assert Respondent.objects.filter(withdrawn_at=None).count() == 3


@pytest.mark.parametrize(
    ("complete_for", "gone"),
    [
        ("schools", {"Ali"}),
        ("districts", {"Ali", "Zoe"}),
        ("state", {"Ali", "Zoe", "Noor"}),
        ("changes", set()),
    ],
)
def test_uploaders_choose_who_is_withdrawn_if_missing(
    staff, administration, console_of, complete_for, gone
):
    state = console_of(staff.state)
    state.apply(administration, HEADER, MAYA, ALI, ZOE, NOOR)
    state.apply(administration, HEADER, MAYA, complete_for=complete_for)
    withdrawn = Identity.objects.exclude(respondent__withdrawn_at=None)
    assert set(withdrawn.values_list("given_name", flat=True)) == gone


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


# Withdrawing many -----------------------------------------------------------


def test_withdrawing_many_requires_typing_their_number(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    upload = chen.upload(administration, HEADER, ALI)
    assert upload.must_be_typed
    before = all_people()

    for wrong in ("", "2", "yes", "one", "1" * 30, "\u0661"):
        response = chen.confirm(upload, typed=wrong)
        if wrong == "\u0661":
            # The Arabic digit one.
            break
        assert response.status_code == 200
        assert (
            b"Type the number of people who will be withdrawn: 1." in response.content
        )
        assert upload.state == "checked" and all_people() == before
    assert upload.state == "applied"
    assert upload.typed == "\u0661"


def test_one_click_would_withdraw_everyone_without_typing(
    staff, administration, console_of, monkeypatch
):
    """Shows that the test above would fail without the check."""
    monkeypatch.setattr(dry_run, "withdraws_many", lambda schools: False)
    chen = console_of(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    chen.confirm(chen.upload(administration, HEADER, ALI), typed="")
    assert person("00123").withdrawn_at


@pytest.mark.parametrize(("missing", "typed"), [(2, False), (3, True)])
def test_a_tenth_of_a_school_can_be_withdrawn_without_typing(
    staff, administration, console_of, missing, typed
):
    chen = console_of(staff.chen)
    rows = [ALI.replace("00124", f"{number:05}") for number in range(20)]
    chen.apply(administration, HEADER, *rows)
    upload = chen.upload(administration, HEADER, *rows[missing:])
    assert upload.must_be_typed == typed


def test_outdated_figures_cannot_be_confirmed(staff, administration, console_of):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    response = chen.post(f"/console/rosters/{upload.pk}/confirm/", seen="5", typed="5")
    assert "The figures have changed" in str(
        list(get_messages(response.wsgi_request))[0]
    )
    assert not Respondent.objects.exists()


def test_withdrawing_more_than_shown_needs_a_new_confirmation(
    staff, administration, console_of
):
    chen, dana = console_of(staff.chen), console_of(staff.dana)
    rows = [ALI.replace("00124", f"{number:05}") for number in range(30)]
    chen.apply(administration, HEADER, *rows)
    upload = chen.upload(administration, HEADER, *rows[1:])
    # Meanwhile the district imports another thirty.
    dana.apply(
        administration,
        HEADER,
        *[ALI.replace("00124", f"9{number:05}") for number in range(30)],
        complete_for="changes",
    )
    before = all_people()

    chen.confirm(upload)
    assert upload.state == "checked"
    assert "confirm again" in upload.message
    assert (upload.withdrawn, upload.must_be_typed) == (31, True)
    assert all_people() == before
    assert (
        "has changed since this check"
        in chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    )
    chen.confirm(upload, typed="31")
    assert upload.state == "applied"
    assert Respondent.objects.filter(withdrawn_at=None).count() == 29


def test_people_would_be_withdrawn_unseen_without_the_second_check(
    staff, administration, console_of, monkeypatch
):
    """Shows that the test above would fail without the check."""
    monkeypatch.setattr(apply_job, "reason_to_confirm_again", lambda *_: "")
    chen, dana = console_of(staff.chen), console_of(staff.dana)
    chen.apply(administration, HEADER, MAYA)
    upload = chen.upload(administration, HEADER, MAYA)
    dana.apply(administration, HEADER, ALI, complete_for="changes")
    chen.confirm(upload)
    assert person("00124").withdrawn_at


def test_rejecting_more_than_shown_needs_a_new_confirmation(
    staff, administration, console_of
):
    chen, dana = console_of(staff.chen), console_of(staff.dana)
    upload = chen.upload(administration, HEADER, MAYA, ALI)
    assert counts(upload) == {"added": 2}
    # Meanwhile the district moves Ali to another school.
    dana.apply(administration, HEADER, ALI.replace("lincoln", "washington"))
    before = all_people()

    chen.confirm(upload)
    assert (upload.state, upload.message) == ("checked", apply_job.MORE_REJECTED)
    assert reasons(upload) == [(3, "student ID", OTHER_SCHOOL)]
    assert all_people() == before
    chen.confirm(upload)
    assert (upload.state, counts(upload)) == ("applied", {"added": 1, "rejected": 1})


def test_figures_would_be_wrong_without_the_second_check(
    staff, administration, console_of, monkeypatch
):
    """Shows that the test above would fail without the check."""
    monkeypatch.setattr(apply_job, "reason_to_confirm_again", lambda *_: "")
    chen, dana = console_of(staff.chen), console_of(staff.dana)
    upload = chen.upload(administration, HEADER, MAYA, ALI)
    dana.apply(administration, HEADER, ALI.replace("lincoln", "washington"))
    chen.confirm(upload)
    assert (upload.state, counts(upload)) == ("applied", {"added": 2})
    assert person("00124").school == staff.washington


@pytest.fixture
def limit_schools_when_the_file_is_opened(administration, staff, monkeypatch):
    """Limit the administration to Lincoln at the moment the file is opened."""

    def change():
        opened = apply_job.open_table

        def changing(file):
            plan = plan_of(administration)
            change_administration(
                administration=administration,
                to=replace(plan, schools=frozenset([staff.lincoln])),
                seen=None,
                by="a test",
            )
            return opened(file)

        monkeypatch.setattr(apply_job, "open_table", changing)

    return change


def test_the_administrations_schools_are_checked_again_after_the_lock(
    staff, administration, console_of, limit_schools_when_the_file_is_opened
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ZOE)
    limit_schools_when_the_file_is_opened()

    dana.confirm(upload)
    assert (upload.state, upload.message) == ("checked", apply_job.MORE_REJECTED)
    assert reasons(upload) == [(3, "school", NOT_OFFERED)]
    assert not Respondent.objects.exists()


def test_schools_checked_before_the_lock_would_be_outdated(
    staff,
    administration,
    console_of,
    limit_schools_when_the_file_is_opened,
    monkeypatch,
):
    """Shows that the test above would fail with a scope read before the lock."""
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ZOE)
    early = scope_of_upload(upload, Permissions(staff.dana))
    monkeypatch.setattr(dry_run, "scope_of_upload", lambda *_: early)
    limit_schools_when_the_file_is_opened()

    dana.confirm(upload)
    assert upload.state == "applied"
    assert person("00125").school == staff.washington


# Rejected rows ----------------------------------------------------------------

BAD = [
    MAYA.replace("00123", ""),
    ALI.replace(",7,", ",77,"),
    ALI.replace("00124", "00126").replace("Ali", "=1+1").replace(",7,", ",x,"),
]


def test_corrected_rejected_rows_can_be_uploaded(staff, administration, console_of):
    chen = console_of(staff.chen)
    good = [ALI.replace("00124", f"{number:05}") for number in range(500, 520)]
    upload = chen.apply(administration, HEADER, MAYA, ALI, *good)
    upload = chen.apply(administration, HEADER, *BAD[1:], MAYA, *good)
    assert upload.rejected == 2
    # Ali's row was rejected, so he was not withdrawn.
    assert person("00124").withdrawn_at is None

    response = chen.get(f"/console/rosters/{upload.pk}/rejected.csv")
    content = b"".join(response.streaming_content).decode("utf-8-sig")
    lines = list(csv.reader(io.StringIO(content)))
    assert lines[0] == ["Rejected because", *HEADER.split(",")]
    assert "grade is not a grade" in lines[1][0]
    assert lines[2][4] == "'=1+1"
    for line in lines[1:]:
        line[6] = "9"
    file = io.StringIO()
    csv.writer(file).writerows(lines)

    # By default missing people are withdrawn, but not with a corrected file.
    again = chen.apply(administration, content=file.getvalue().encode())
    assert counts(again) == {"added": 1, "changed": 1}
    assert person("00124").grade == "09"
    assert Identity.objects.get(external_id="00126").given_name == "=1+1"
    assert Respondent.objects.filter(withdrawn_at=None).count() == 23
    page = chen.get(f"/console/rosters/{again.pk}/").content.decode()
    assert "has corrected rows only" in page


def test_rows_without_an_id_prevent_withdrawals(staff, administration, console_of):
    chen = console_of(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    # The row without an ID could be Maya's.
    upload = chen.apply(administration, HEADER, BAD[0], ALI)
    assert counts(upload) == {"unchanged": 1, "rejected": 1}
    assert person("00123").withdrawn_at is None
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "1 row lacks an ID, so nobody will be withdrawn" in page


def test_rejected_cells_are_listed_and_viewing_them_is_logged(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, *BAD)
    page = chen.get(f"/console/rosters/{upload.pk}/rejected/").content.decode()
    assert "student ID" in page and "is missing" in page
    assert "=1+1" not in page
    assert [one[:2] for one in reasons(upload)] == [
        (2, "student ID"), (3, "grade"), (4, "grade"),
    ]  # fmt: skip
    looks = AuditEntry.objects.filter(action="see rejected rows")
    assert looks.get().subject_id == upload.pk


# Permissions -------------------------------------------------------------------


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
    console_of(staff.state).confirm(upload)
    assert District.objects.get(code="hilltop").schools.get().code == "roosevelt"


def test_new_schools_are_shown_before_they_are_added(staff, administration, console_of):
    """A misspelt name would create a school."""
    dana = console_of(staff.dana)
    misspelt = MAYA.replace("lincoln", "lincon")
    upload = dana.upload(administration, HEADER, misspelt, ALI)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "1 new school will be added." in page

    upload = dana.upload(administration, HEADER, MAYA, ALI)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "new school" not in page


def test_rows_of_schools_outside_the_administration_are_rejected(
    staff, administration, console_of
):
    administration.schools.add(staff.lincoln)
    upload = console_of(staff.dana).upload(
        administration, HEADER, MAYA, ZOE, ZOE.replace("washington", "adams")
    )
    assert reasons(upload)[0] == (3, "school", NOT_OFFERED)
    assert counts(upload) == {"added": 1, "rejected": 2}


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


def test_a_student_of_another_school_cannot_be_taken_over(
    staff, administration, console_of
):
    dana, chen = console_of(staff.dana), console_of(staff.chen)
    dana.apply(administration, HEADER, MAYA, ZOE)
    claimed = ZOE.replace("washington", "lincoln")
    upload = chen.upload(administration, HEADER, MAYA, claimed)
    assert reasons(upload) == [(3, "student ID", OTHER_SCHOOL)]
    # Once the other school has withdrawn her, she can be added.
    dana.apply(administration, HEADER, ZOE.replace("125", "777"))
    upload = chen.apply(administration, HEADER, MAYA, claimed)
    assert counts(upload) == {"changed": 1, "back": 1, "unchanged": 1}
    assert person("00125").school == staff.lincoln


def test_ids_of_other_schools_are_not_revealed_by_missing_zeros(
    staff, administration, console_of
):
    dana, chen = console_of(staff.dana), console_of(staff.chen)
    dana.apply(administration, HEADER, MAYA, ZOE)
    guessed = [MAYA.replace("00123", "123"), MAYA.replace("00123", "125")]
    upload = chen.upload(administration, HEADER, *guessed, complete_for="changes")
    assert reasons(upload) == [
        (2, "student ID", "has lost its leading zeros: 00123 is already on the roster"),
        (3, "student ID", f"with leading zeros {OTHER_SCHOOL}"),
    ]
    page = chen.get(f"/console/rosters/{upload.pk}/rejected/").content.decode()
    assert "00123" in page and "00125" not in page
    # The district manages both schools and sees both IDs.
    upload = dana.upload(administration, HEADER, *guessed, complete_for="changes")
    assert [reason.split()[5] for *_, reason in reasons(upload)] == ["00123", "00125"]


def test_permission_is_checked_again_when_applying(
    staff, administration, console_of, monkeypatch
):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    chen.confirm(upload)
    staff.chen.memberships.update(ended_at=timezone.now())
    jobs.run(uploads.latest_job(upload).pk)
    upload.refresh_from_db()
    assert (upload.state, upload.message) == ("failed", dry_run.NOT_PERMITTED)
    assert not Respondent.objects.exists()


PAGES = ("", "rejected/", "rejected.csv")
ACTIONS = ("confirm/", "cancel/", "again/")


def test_other_districts_cannot_see_an_upload(staff, administration, console_of):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    assert (
        console_of(staff.chen).get(f"/console/rosters/{upload.pk}/").status_code == 200
    )
    assert (
        console_of(staff.dana).get(f"/console/rosters/{upload.pk}/").status_code == 200
    )
    for user in (staff.sam, staff.analyst):
        other = console_of(user)
        for page in PAGES:
            assert other.get(f"/console/rosters/{upload.pk}/{page}").status_code == 404
        for act in ACTIONS:
            address = f"/console/rosters/{upload.pk}/{act}"
            assert other.post(address, seen=0).status_code == 404
    assert b"roster.csv" in console_of(staff.chen).get("/console/rosters/").content
    assert b"roster.csv" not in console_of(staff.sam).get("/console/rosters/").content
    upload.refresh_from_db()
    assert upload.state == "checked"


def test_analysts_cannot_upload_rosters(staff, administration, console_of):
    address = f"/console/administrations/{administration.pk}/roster/"
    analyst = console_of(staff.analyst)
    for page in ("", "template.csv", "template.xlsx"):
        assert analyst.get(address + page).status_code == 404
    assert analyst.post(address).status_code == 404
    assert analyst.get("/console/rosters/").status_code == 404


def test_an_administration_of_another_district_is_not_found(
    staff, administration, console_of
):
    administration.district = staff.lakeside
    administration.save(update_fields=["district"])
    address = f"/console/administrations/{administration.pk}/roster/"
    assert console_of(staff.sam).get(address).status_code == 200
    assert console_of(staff.chen).get(address).status_code == 404


# Errors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.pdf", b"%PDF-1.7", "Only CSV and Excel files"),
        ("r.ods", b"PK\x03\x04", "Only CSV and Excel files"),
        ("r.csv", b"", "empty"),
        ("r.csv", b"Maya,Lopez\n", "names the columns"),
        ("r.csv", b"school,grade\n1,2\n", "No column for: district"),
        ("r.xlsx", b"PK\x03\x04 and no more", "damaged"),
    ],
)
def test_unreadable_files_are_reported_beside_the_field(
    staff, administration, console_of, name, content, message
):
    response = console_of(staff.chen).post(
        f"/console/administrations/{administration.pk}/roster/",
        file=SimpleUploadedFile(name, content),
        complete_for="changes",
    )
    assert message in str(errors_of(response)["file"])
    assert b'value="changes" ' in response.content
    assert not RosterUpload.objects.exists()


def test_damage_in_the_middle_of_a_file_refuses_it(staff, administration, console_of):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA, '"riverside')
    assert (upload.state, upload.report) == ("refused", {})
    assert "never closed" in upload.message
    assert b"never closed" in chen.get(f"/console/rosters/{upload.pk}/").content
    assert chen.confirm(upload).status_code == 302
    assert upload.state == "refused"


def test_a_failed_check_can_be_started_again(
    staff, administration, console_of, monkeypatch
):
    chen = console_of(staff.chen)
    with monkeypatch.context() as broken:
        broken.setattr(dry_run, "store_result", None)
        upload = chen.upload(administration, HEADER, MAYA)
    assert upload.state == "failed"
    assert b"Start again" in chen.get(f"/console/rosters/{upload.pk}/").content
    chen.post(f"/console/rosters/{upload.pk}/again/")
    upload.refresh_from_db()
    assert upload.state == "checked"


def test_cancelling_deletes_the_files_and_changes_nothing(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA, BAD[1])
    kept = [upload.file, upload.rejected_file]
    assert all(map(private_files().exists, kept))
    chen.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert upload.state == "cancelled"
    assert not any(map(private_files().exists, kept))
    chen.confirm(upload)
    assert upload.state == "cancelled" and not Respondent.objects.exists()


def test_a_partly_applied_roster_cannot_be_cancelled(
    staff, administration, console_of, monkeypatch
):
    """As from a page that was opened before it was confirmed."""
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI)
    change = apply.change_people
    monkeypatch.setattr(apply, "change_people", lambda *_: 1 / 0)
    dana.confirm(upload)
    assert (upload.state, Respondent.objects.count()) == ("failed", 2)

    response = dana.post(f"/console/rosters/{upload.pk}/cancel/")
    assert [str(one) for one in get_messages(response.wsgi_request)] == [
        "This can't be done now. Status of this roster: not finished."
    ]
    upload.refresh_from_db()
    assert upload.state == "failed" and upload.file
    monkeypatch.setattr(apply, "change_people", change)
    dana.post(f"/console/rosters/{upload.pk}/again/")
    upload.refresh_from_db()
    assert upload.state == "applied"


def test_a_second_click_applies_nothing_twice(staff, administration, console_of):
    chen = console_of(staff.chen)
    upload = chen.apply(administration, HEADER, MAYA)
    response = chen.confirm(upload)
    assert "Status of this roster: applied" in str(
        list(get_messages(response.wsgi_request))[0]
    )
    assert len(mail.outbox) == 1


def test_former_staff_get_no_email_about_a_roster(staff, administration, console_of):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA)
    dismiss(membership=staff.chen.memberships.get(), by=staff.dana)
    console_of(staff.dana).confirm(upload)
    assert upload.state == "applied"
    assert [letter.to for letter in mail.outbox] == [[staff.dana.email]]


def test_nul_characters_are_removed_from_the_typed_number(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA)
    dana.confirm(upload, typed="a\x00b")
    assert (upload.state, upload.typed) == ("applied", "ab")


def test_a_roster_is_applied_while_the_mail_server_is_down(
    staff, administration, console_of, monkeypatch
):
    def away(*args, **options):
        raise ConnectionRefusedError

    monkeypatch.setattr("accounts.email_outbox.EmailMessage.send", away)
    upload = console_of(staff.chen).apply(administration, HEADER, MAYA)
    assert upload.state == "applied"
    # It will be sent later.
    assert Letter.objects.get().to == "chen@example.org"


def test_applying_a_roster_cannot_be_stopped(
    staff, administration, console_of, monkeypatch
):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    chen.confirm(upload)
    job = uploads.latest_job(upload)
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f"/console/jobs/{job.pk}/cancel/" not in page
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == "applied"


def test_a_check_can_be_stopped(staff, administration, console_of, monkeypatch):
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    job = uploads.latest_job(upload)
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f"/console/jobs/{job.pk}/cancel/" in page
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    [entry] = AuditEntry.objects.filter(action="cancel job")
    assert (entry.by, entry.school_id) == (staff.chen.email, staff.lincoln.pk)
    assert entry.after == {"kind": "roster.check", "of": upload.pk}
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "Processing has stopped" in page and "Cancel roster" in page
    chen.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert upload.state == "cancelled"


def test_files_are_deleted_after_30_days(
    staff, administration, console_of, django_capture_on_commit_callbacks
):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    with django_capture_on_commit_callbacks(execute=True):
        assert retention.delete_old_files() == 0
    old = timezone.now() - timedelta(days=31)
    RosterUpload.objects.update(uploaded_at=old)
    with django_capture_on_commit_callbacks(execute=True):
        assert retention.delete_old_files() == 1
    assert not private_files().exists(upload.file)
    assert not upload.rejections.exists()
    chen = console_of(staff.chen)
    assert (
        b"after 30 days" in chen.get(f"/console/rosters/{upload.pk}/rejected/").content
    )
    chen.confirm(upload)
    assert (upload.state, upload.message) == ("failed", dry_run.FILE_DELETED)


def folder():
    return path_of("rosters/any").parent


def test_a_check_cancelled_at_its_end_leaves_no_file(
    staff, administration, console_of, monkeypatch
):
    before = set(folder().iterdir())
    confirm = jobs.Progress.confirm

    def asked_to_stop(progress):
        jobs.request_cancel(progress.job)
        confirm(progress)

    monkeypatch.setattr(jobs.Progress, "confirm", asked_to_stop)
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    assert (upload.state, uploads.latest_job(upload).state) == (
        "cancelled",
        "cancelled",
    )
    assert not upload.rejections.exists()
    assert set(folder().iterdir()) - before == {path_of(upload.file)}


def test_a_check_stopped_too_late_is_completed(
    staff, administration, console_of, monkeypatch
):
    """Otherwise the job would say that nothing was kept."""
    store = dry_run.store_result

    def too_late(upload, *args):
        store(upload, *args)
        args[2].cancel_asked = True

    monkeypatch.setattr(dry_run, "store_result", too_late)
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA)
    assert (upload.state, uploads.latest_job(upload).state) == ("checked", "done")


def test_files_without_an_upload_are_deleted(staff, administration, console_of):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    left, fresh = (folder() / name for name in (".left.csv.4711", "fresh.roster"))
    for path in (left, fresh):
        path.write_text("00123,Maya,Lopez")
    kept = [path_of(name) for name in (upload.file, upload.rejected_file)]
    long_ago = time.time() - files.ORPHANED_AFTER - 60
    for path in (left, *kept):
        os.utime(path, (long_ago, long_ago))
    retention.delete_old_files()
    assert not left.exists()
    assert all(path.exists() for path in (fresh, *kept))


# Pages ---------------------------------------------------------------------------


def test_the_template_is_a_valid_roster_but_its_example_is_rejected(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    address = f"/console/administrations/{administration.pk}/roster/template"
    for ending in ("csv", "xlsx"):
        content = chen.get(f"{address}.{ending}").content
        upload = chen.upload(administration, content=content, name=f"t.{ending}")
        assert counts(upload) == {"rejected": 1}
        assert "the template's example" in reasons(upload)[0][2]
    book = openpyxl.load_workbook(io.BytesIO(content))
    book.active["C2"] = "00123"
    file = io.BytesIO()
    book.save(file)
    upload = chen.upload(administration, content=file.getvalue(), name="t.xlsx")
    assert counts(upload) == {"added": 1}


def test_the_template_names_a_school_of_the_user(staff, administration, console_of):
    for user, school in ((staff.dana, "riverside,lincoln"), (staff.sam, "lakeside,")):
        content = console_of(user).get(
            f"/console/administrations/{administration.pk}/roster/template.csv"
        )
        example = content.content.decode("utf-8-sig").splitlines()[1]
        assert example.startswith(school)


def test_lists_take_the_same_queries_for_three_rows_as_for_one(
    staff, administration, console_of, django_assert_num_queries
):
    dana = console_of(staff.dana)

    def pages(upload, rows):
        with django_assert_num_queries(5 + SESSION):
            response = dana.get("/console/rosters/")
        assert len(response.context["rows"]) == rows
        with django_assert_num_queries(6 + SESSION):
            response = dana.get(f"/console/rosters/{upload.pk}/")
        assert len(response.context["rows"]) == rows
        with django_assert_num_queries(6 + SESSION):
            response = dana.get(f"/console/rosters/{upload.pk}/rejected/")
        assert len(response.context["rows"]) == rows

    pages(dana.upload(administration, HEADER, MAYA, BAD[1]), 1)
    dana.upload(administration, HEADER, MAYA)
    adams = ALI.replace("lincoln", "adams")
    pages(dana.upload(administration, HEADER, MAYA, ZOE, adams, *BAD), 3)


def test_the_school_table_can_be_searched_and_sorted(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI, ZOE)
    page = dana.get(f"/console/rosters/{upload.pk}/", q="washing").content.decode()
    assert "Washington" in page and '<th scope="row">Lincoln' not in page
    rows = dana.get(f"/console/rosters/{upload.pk}/", sort="-added").context["rows"]
    assert [one.name for one in rows] == ["Lincoln", "Washington"]
    part = dana.client.get(
        f"/console/rosters/{upload.pk}/", headers={"HX-Request": "true"}
    ).content.decode()
    assert "Washington" in part and "<html" not in part and "Confirm roster" not in part

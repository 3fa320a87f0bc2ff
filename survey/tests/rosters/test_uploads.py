"""A roster through the console: uploaded, checked, confirmed, applied."""

from __future__ import annotations

import csv
import io
import os
import time
from dataclasses import replace
from datetime import timedelta

import openpyxl
import pytest
from django.contrib.messages import get_messages
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEntry, District, Letter, Membership, School
from accounts.permissions import Permissions
from accounts.staff import dismiss
from accounts.tests.logging_in import log_in
from survey import files, jobs
from survey.administrations import change_administration, plan_of
from survey.files import path_of, private_files
from survey.models import Identity, Respondent, Response, RosterUpload
from survey.rosters import apply, uploads
from survey.rosters.scope import ELSEWHERE, NOT_OFFERED, NOT_YOURS, reach_of
from survey.tests.conftest import FIRST_PAGE

pytestmark = pytest.mark.django_db

HEADER = "district,school,student ID,given name,family name,grade,class"
MAYA = "riverside,lincoln,00123,Maya,Lopez,7,7B"
ALI = "riverside,lincoln,00124,Ali,Diaz,7,7A"
ZOE = "riverside,washington,00125,Zoe,Kim,8,8C"
NOOR = "lakeside,roosevelt,00123,Noor,Haddad,8,8A"


@pytest.fixture
def entered(client, django_capture_on_commit_callbacks):
    """Does something in the console, and the jobs that it starts."""

    class Entered:
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

    return Entered


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


def everybody():
    return list(Respondent.objects.order_by("pk").values()) + list(
        Identity.objects.order_by("pk").values()
    )


def test_a_district_uploads_looks_and_confirms(staff, administration, entered):
    dana = entered(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI, ZOE)

    assert upload.state == "checked"
    assert counts(upload) == {"added": 3}
    assert not Respondent.objects.exists()
    response = dana.get(f"/console/rosters/{upload.pk}/")
    page = response.content.decode()
    assert "Nothing has changed yet" in page and "Washington" in page
    # As they stand in the file.
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


# What becomes of people ------------------------------------------------------


def test_whoever_is_missing_is_withdrawn_and_comes_back(
    staff, administration, entered, browser
):
    chen = entered(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    maya = person("00123")
    browser.log_in(maya)
    assert browser.save(1, FIRST_PAGE, 10**15).status_code == 200

    upload = chen.apply(administration, HEADER, ALI)
    assert counts(upload) == {"withdrawn": 1, "unchanged": 1}
    maya.refresh_from_db()
    assert maya.withdrawn_at
    # The answers stay, and nothing is added to them.
    assert Response.objects.filter(respondent_id=maya.pk).count() == 5
    assert browser.save(1, FIRST_PAGE, 10**15 + 1).status_code == 409
    code = uploads.access_codes.code_of(maya)
    assert Client().post("/", {"code": code}).status_code != 302

    upload = chen.apply(administration, HEADER, ALI, MAYA.replace("7B", "7C"))
    assert counts(upload) == {"changed": 1, "back": 1, "unchanged": 1}
    maya.refresh_from_db()
    assert maya.withdrawn_at is None and maya.classroom == "7C"
    browser.log_in(maya)
    assert browser.save(1, FIRST_PAGE, 10**15 + 2).status_code == 200


def test_whoever_moves_keeps_answers_and_counts_once(
    staff, administration, entered, browser
):
    dana = entered(staff.dana)
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


def test_in_another_district_the_same_person_is_a_new_one(
    staff, administration, entered
):
    state = entered(staff.state)
    state.apply(administration, HEADER, MAYA, NOOR)
    upload = state.apply(
        administration,
        HEADER,
        MAYA.replace("riverside,lincoln", "lakeside,roosevelt").replace("123", "999"),
        NOOR,
    )
    # Lincoln is not in the file, so nobody there is withdrawn.
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
def test_the_uploader_says_what_the_file_is_complete_for(
    staff, administration, entered, complete_for, gone
):
    state = entered(staff.state)
    state.apply(administration, HEADER, MAYA, ALI, ZOE, NOOR)
    state.apply(administration, HEADER, MAYA, complete_for=complete_for)
    withdrawn = Identity.objects.exclude(respondent__withdrawn_at=None)
    assert set(withdrawn.values_list("given_name", flat=True)) == gone


def test_a_coordinators_file_is_complete_for_no_district(
    staff, administration, entered
):
    response = entered(staff.chen).post(
        f"/console/administrations/{administration.pk}/roster/",
        file=SimpleUploadedFile("r.csv", f"{HEADER}\n{MAYA}".encode()),
        complete_for="districts",
    )
    assert "complete_for" in errors_of(response)
    assert not RosterUpload.objects.exists()


# More than a tenth -----------------------------------------------------------


def test_who_would_lose_many_types_how_many(staff, administration, entered):
    chen = entered(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    upload = chen.upload(administration, HEADER, ALI)
    assert upload.must_be_typed
    before = everybody()

    for wrong in ("", "2", "yes", "one", "1" * 30, "\u0661"):
        response = chen.confirm(upload, typed=wrong)
        if wrong == "\u0661":
            # An Arabic one is a one.
            break
        assert response.status_code == 200
        assert (
            b"Type the number of people who will be withdrawn: 1." in response.content
        )
        assert upload.state == "checked" and everybody() == before
    assert upload.state == "applied"
    assert upload.typed == "\u0661"


def test_without_that_guard_one_click_withdraws_everybody(
    staff, administration, entered, monkeypatch
):
    """The twin."""
    monkeypatch.setattr(uploads, "must_be_typed", lambda schools: False)
    chen = entered(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    chen.confirm(chen.upload(administration, HEADER, ALI), typed="")
    assert person("00123").withdrawn_at


@pytest.mark.parametrize(("missing", "typed"), [(2, False), (3, True)])
def test_a_tenth_is_not_yet_many(staff, administration, entered, missing, typed):
    chen = entered(staff.chen)
    rows = [ALI.replace("00124", f"{number:05}") for number in range(20)]
    chen.apply(administration, HEADER, *rows)
    upload = chen.upload(administration, HEADER, *rows[missing:])
    assert upload.must_be_typed == typed


def test_figures_that_nobody_has_seen_are_not_confirmed(staff, administration, entered):
    chen = entered(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    response = chen.post(f"/console/rosters/{upload.pk}/confirm/", seen="5", typed="5")
    assert "figures have changed" in str(list(get_messages(response.wsgi_request))[0])
    assert not Respondent.objects.exists()


def test_where_more_would_be_withdrawn_than_was_shown_it_asks_again(
    staff, administration, entered
):
    chen, dana = entered(staff.chen), entered(staff.dana)
    rows = [ALI.replace("00124", f"{number:05}") for number in range(30)]
    chen.apply(administration, HEADER, *rows)
    upload = chen.upload(administration, HEADER, *rows[1:])
    # Meanwhile, the district brings another thirty.
    dana.apply(
        administration,
        HEADER,
        *[ALI.replace("00124", f"9{number:05}") for number in range(30)],
        complete_for="changes",
    )
    before = everybody()

    chen.confirm(upload)
    assert upload.state == "checked"
    assert "confirm again" in upload.message
    assert (upload.withdrawn, upload.must_be_typed) == (31, True)
    assert everybody() == before
    assert "Meanwhile" in chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    chen.confirm(upload, typed="31")
    assert upload.state == "applied"
    assert Respondent.objects.filter(withdrawn_at=None).count() == 29


def test_without_that_look_it_would_withdraw_them(
    staff, administration, entered, monkeypatch
):
    """The twin."""
    monkeypatch.setattr(uploads, "_withdraws_more", lambda *_: False)
    chen, dana = entered(staff.chen), entered(staff.dana)
    chen.apply(administration, HEADER, MAYA)
    upload = chen.upload(administration, HEADER, MAYA)
    dana.apply(administration, HEADER, ALI, complete_for="changes")
    chen.confirm(upload)
    assert person("00124").withdrawn_at


def test_where_more_rows_would_be_refused_than_was_shown_it_asks_again(
    staff, administration, entered
):
    chen, dana = entered(staff.chen), entered(staff.dana)
    upload = chen.upload(administration, HEADER, MAYA, ALI)
    assert counts(upload) == {"added": 2}
    # Meanwhile, the district brings Ali to another school.
    dana.apply(administration, HEADER, ALI.replace("lincoln", "washington"))
    before = everybody()

    chen.confirm(upload)
    assert (upload.state, upload.message) == ("checked", uploads.MORE_REJECTED)
    assert reasons(upload) == [(3, "student ID", ELSEWHERE)]
    assert everybody() == before
    chen.confirm(upload)
    assert (upload.state, counts(upload)) == ("applied", {"added": 1, "rejected": 1})


def test_without_that_look_the_figures_would_be_wrong(
    staff, administration, entered, monkeypatch
):
    """The twin."""
    monkeypatch.setattr(uploads, "_why_to_ask_again", lambda *_: "")
    chen, dana = entered(staff.chen), entered(staff.dana)
    upload = chen.upload(administration, HEADER, MAYA, ALI)
    dana.apply(administration, HEADER, ALI.replace("lincoln", "washington"))
    chen.confirm(upload)
    assert (upload.state, counts(upload)) == ("applied", {"added": 2})
    assert person("00124").school == staff.washington


@pytest.fixture
def changed_while_opening(administration, staff, monkeypatch):
    """It is offered in Lincoln alone from the moment that the file is opened."""

    def change():
        opened = uploads.open_table

        def changing(file):
            plan = plan_of(administration)
            change_administration(
                administration=administration,
                to=replace(plan, schools=frozenset([staff.lincoln])),
                seen=None,
                by="a test",
            )
            return opened(file)

        monkeypatch.setattr(uploads, "open_table", changing)

    return change


def test_nobody_is_invited_where_it_is_not_offered_any_more(
    staff, administration, entered, changed_while_opening
):
    dana = entered(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ZOE)
    changed_while_opening()

    dana.confirm(upload)
    assert (upload.state, upload.message) == ("checked", uploads.MORE_REJECTED)
    assert reasons(upload) == [(3, "school", NOT_OFFERED)]
    assert not Respondent.objects.exists()


def test_asked_before_the_lock_somebody_would_be(
    staff, administration, entered, changed_while_opening, monkeypatch
):
    """The twin: what the lock is about was read in front of it."""
    dana = entered(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ZOE)
    early = reach_of(upload, Permissions(staff.dana))
    monkeypatch.setattr(uploads, "reach_of", lambda *_: early)
    changed_while_opening()

    dana.confirm(upload)
    assert upload.state == "applied"
    assert person("00125").school == staff.washington


# Rejected rows ----------------------------------------------------------------

BAD = [
    MAYA.replace("00123", ""),
    ALI.replace(",7,", ",77,"),
    ALI.replace("00124", "00126").replace("Ali", "=1+1").replace(",7,", ",x,"),
]


def test_rejected_rows_are_corrected_and_uploaded_as_they_are(
    staff, administration, entered
):
    chen = entered(staff.chen)
    good = [ALI.replace("00124", f"{number:05}") for number in range(500, 520)]
    upload = chen.apply(administration, HEADER, MAYA, ALI, *good)
    upload = chen.apply(administration, HEADER, *BAD[1:], MAYA, *good)
    assert upload.rejected == 2
    # Ali's row was refused: he stays as he was.
    assert person("00124").withdrawn_at is None

    response = chen.get(f"/console/rosters/{upload.pk}/rejected.csv")
    content = b"".join(response.streaming_content).decode("utf-8-sig")
    lines = list(csv.reader(io.StringIO(content)))
    assert lines[0] == ["Rejected because", *HEADER.split(",")]
    assert "grade is no grade" in lines[1][0]
    assert lines[2][4] == "'=1+1"
    for line in lines[1:]:
        line[6] = "9"
    file = io.StringIO()
    csv.writer(file).writerows(lines)

    # "Every school" is what it says by default, but this file is a part.
    again = chen.apply(administration, content=file.getvalue().encode())
    assert counts(again) == {"added": 1, "changed": 1}
    assert person("00124").grade == "09"
    assert Identity.objects.get(external_id="00126").given_name == "=1+1"
    assert Respondent.objects.filter(withdrawn_at=None).count() == 23
    page = chen.get(f"/console/rosters/{again.pk}/").content.decode()
    assert "names these people only" in page


def test_rows_that_do_not_say_whose_they_are_withdraw_nobody(
    staff, administration, entered
):
    chen = entered(staff.chen)
    chen.apply(administration, HEADER, MAYA, ALI)
    # Maya's ID was lost; it could be her who is missing.
    upload = chen.apply(administration, HEADER, BAD[0], ALI)
    assert counts(upload) == {"unchanged": 1, "rejected": 1}
    assert person("00123").withdrawn_at is None
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "1 rejected row does not say whose" in page


def test_the_reasons_are_a_page(staff, administration, entered):
    chen = entered(staff.chen)
    upload = chen.upload(administration, HEADER, *BAD)
    page = chen.get(f"/console/rosters/{upload.pk}/rejected/").content.decode()
    assert "student ID" in page and "is missing" in page
    assert "=1+1" not in page
    assert [one[:2] for one in reasons(upload)] == [
        (2, "student ID"), (3, "grade"), (4, "grade"),
    ]  # fmt: skip
    looks = AuditEntry.objects.filter(action="see rejected rows")
    assert looks.get().subject_id == upload.pk


# Where one may -----------------------------------------------------------------


def test_a_coordinator_names_the_own_school_only(staff, administration, entered):
    upload = entered(staff.chen).upload(
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


def test_a_district_makes_schools_and_the_state_districts(
    staff, administration, entered
):
    new_school = MAYA.replace("lincoln", "adams")
    new_district = NOOR.replace("lakeside", "hilltop")
    upload = entered(staff.dana).apply(
        administration, HEADER, new_school, new_district, NOOR
    )
    assert counts(upload) == {"added": 1, "rejected": 2}
    assert School.objects.get(code="adams").district == staff.riverside
    assert not District.objects.filter(code="hilltop").exists()

    upload = entered(staff.state).upload(administration, HEADER, new_district)
    assert not District.objects.filter(code="hilltop").exists()
    page = entered(staff.state).get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "1 district in this file is not known yet, and will be added: hill" in page
    entered(staff.state).confirm(upload)
    assert District.objects.get(code="hilltop").schools.get().code == "roosevelt"


def test_a_school_that_is_not_known_is_pointed_out_before_it_is_added(
    staff, administration, entered
):
    """A name that is spelled in another way would be a school of its own."""
    dana = entered(staff.dana)
    misspelt = MAYA.replace("lincoln", "lincon")
    upload = dana.upload(administration, HEADER, misspelt, ALI)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "1 school in this file is not known yet, and will be added." in page

    upload = dana.upload(administration, HEADER, MAYA, ALI)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "not known yet" not in page


def test_an_administration_reaches_whom_it_is_offered_to(
    staff, administration, entered
):
    administration.schools.add(staff.lincoln)
    upload = entered(staff.dana).upload(
        administration, HEADER, MAYA, ZOE, ZOE.replace("washington", "adams")
    )
    assert reasons(upload)[0] == (3, "school", NOT_OFFERED)
    assert counts(upload) == {"added": 1, "rejected": 2}


def test_who_works_in_two_schools_says_for_which(staff, administration, entered):
    Membership.objects.create(
        user=staff.chen, role="coordinator", school=staff.washington
    )
    chen = entered(staff.chen)
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


def test_nobody_takes_another_schools_student(staff, administration, entered):
    dana, chen = entered(staff.dana), entered(staff.chen)
    dana.apply(administration, HEADER, MAYA, ZOE)
    claimed = ZOE.replace("washington", "lincoln")
    upload = chen.upload(administration, HEADER, MAYA, claimed)
    assert reasons(upload) == [(3, "student ID", ELSEWHERE)]
    # Once the other school has let go of her, she may come.
    dana.apply(administration, HEADER, ZOE.replace("125", "777"))
    upload = chen.apply(administration, HEADER, MAYA, claimed)
    assert counts(upload) == {"changed": 1, "back": 1, "unchanged": 1}
    assert person("00125").school == staff.lincoln


def test_nobody_learns_another_schools_ids_by_leaving_out_the_zeros(
    staff, administration, entered
):
    dana, chen = entered(staff.dana), entered(staff.chen)
    dana.apply(administration, HEADER, MAYA, ZOE)
    guessed = [MAYA.replace("00123", "123"), MAYA.replace("00123", "125")]
    upload = chen.upload(administration, HEADER, *guessed, complete_for="changes")
    assert reasons(upload) == [
        (2, "student ID", "is 00123 but for the zeros, who is already on the roster"),
        (3, "student ID", f"but for its zeros {ELSEWHERE}"),
    ]
    page = chen.get(f"/console/rosters/{upload.pk}/rejected/").content.decode()
    assert "00123" in page and "00125" not in page
    # The district has both schools, and is told both.
    upload = dana.upload(administration, HEADER, *guessed, complete_for="changes")
    assert [reason.split()[1] for *_, reason in reasons(upload)] == ["00123", "00125"]


def test_who_was_dismissed_meanwhile_applies_nothing(
    staff, administration, entered, monkeypatch
):
    chen = entered(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    chen.confirm(upload)
    staff.chen.memberships.update(ended_at=timezone.now())
    jobs.run(uploads.job_of(upload).pk)
    upload.refresh_from_db()
    assert (upload.state, upload.message) == ("failed", uploads.NOT_YOURS)
    assert not Respondent.objects.exists()


PAGES = ("", "rejected/", "rejected.csv")
ACTS = ("confirm/", "cancel/", "again/")


def test_another_district_sees_nothing_of_it(staff, administration, entered):
    upload = entered(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    assert entered(staff.chen).get(f"/console/rosters/{upload.pk}/").status_code == 200
    assert entered(staff.dana).get(f"/console/rosters/{upload.pk}/").status_code == 200
    for user in (staff.sam, staff.analyst):
        other = entered(user)
        for page in PAGES:
            assert other.get(f"/console/rosters/{upload.pk}/{page}").status_code == 404
        for act in ACTS:
            address = f"/console/rosters/{upload.pk}/{act}"
            assert other.post(address, seen=0).status_code == 404
    assert b"roster.csv" in entered(staff.chen).get("/console/rosters/").content
    assert b"roster.csv" not in entered(staff.sam).get("/console/rosters/").content
    upload.refresh_from_db()
    assert upload.state == "checked"


def test_an_analyst_uploads_nothing(staff, administration, entered):
    address = f"/console/administrations/{administration.pk}/roster/"
    analyst = entered(staff.analyst)
    for page in ("", "template.csv", "template.xlsx"):
        assert analyst.get(address + page).status_code == 404
    assert analyst.post(address).status_code == 404
    assert analyst.get("/console/rosters/").status_code == 404


def test_an_administration_of_another_district_is_not_there(
    staff, administration, entered
):
    administration.district = staff.lakeside
    administration.save(update_fields=["district"])
    address = f"/console/administrations/{administration.pk}/roster/"
    assert entered(staff.sam).get(address).status_code == 200
    assert entered(staff.chen).get(address).status_code == 404


# What goes wrong ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.pdf", b"%PDF-1.7", "CSV or an Excel file"),
        ("r.ods", b"PK\x03\x04", "CSV or an Excel file"),
        ("r.csv", b"", "empty"),
        ("r.csv", b"Maya,Lopez\n", "names the columns"),
        ("r.csv", b"school,grade\n1,2\n", "No column for: district"),
        ("r.xlsx", b"PK\x03\x04 and no more", "damaged"),
    ],
)
def test_what_is_no_roster_is_said_beside_the_field(
    staff, administration, entered, name, content, message
):
    response = entered(staff.chen).post(
        f"/console/administrations/{administration.pk}/roster/",
        file=SimpleUploadedFile(name, content),
        complete_for="changes",
    )
    assert message in str(errors_of(response)["file"])
    assert b'value="changes" ' in response.content
    assert not RosterUpload.objects.exists()


def test_what_only_a_whole_reading_finds_refuses_the_file(
    staff, administration, entered
):
    chen = entered(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA, '"riverside')
    assert (upload.state, upload.report) == ("refused", {})
    assert "never closed" in upload.message
    assert b"never closed" in chen.get(f"/console/rosters/{upload.pk}/").content
    assert chen.confirm(upload).status_code == 302
    assert upload.state == "refused"


def test_a_failed_check_is_started_again(staff, administration, entered, monkeypatch):
    chen = entered(staff.chen)
    with monkeypatch.context() as broken:
        broken.setattr(uploads, "_store", None)
        upload = chen.upload(administration, HEADER, MAYA)
    assert upload.state == "failed"
    assert b"Start again" in chen.get(f"/console/rosters/{upload.pk}/").content
    chen.post(f"/console/rosters/{upload.pk}/again/")
    upload.refresh_from_db()
    assert upload.state == "checked"


def test_cancelled_it_changes_nothing_and_is_forgotten(staff, administration, entered):
    chen = entered(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA, BAD[1])
    kept = [upload.file, upload.rejected_file]
    assert all(map(private_files().exists, kept))
    chen.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert upload.state == "cancelled"
    assert not any(map(private_files().exists, kept))
    chen.confirm(upload)
    assert upload.state == "cancelled" and not Respondent.objects.exists()


def test_what_is_half_applied_is_not_called_cancelled(
    staff, administration, entered, monkeypatch
):
    """By a page that stood open since before it was confirmed."""
    dana = entered(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI)
    change = apply._change
    monkeypatch.setattr(apply, "_change", lambda *_: 1 / 0)
    dana.confirm(upload)
    assert (upload.state, Respondent.objects.count()) == ("failed", 2)

    response = dana.post(f"/console/rosters/{upload.pk}/cancel/")
    assert [str(one) for one in get_messages(response.wsgi_request)] == [
        "This roster is not finished."
    ]
    upload.refresh_from_db()
    assert upload.state == "failed" and upload.file
    monkeypatch.setattr(apply, "_change", change)
    dana.post(f"/console/rosters/{upload.pk}/again/")
    upload.refresh_from_db()
    assert upload.state == "applied"


def test_a_second_click_applies_nothing_twice(staff, administration, entered):
    chen = entered(staff.chen)
    upload = chen.apply(administration, HEADER, MAYA)
    response = chen.confirm(upload)
    assert "This roster is applied" in str(list(get_messages(response.wsgi_request))[0])
    assert len(mail.outbox) == 1


def test_who_has_left_the_school_is_not_written_to(staff, administration, entered):
    upload = entered(staff.chen).upload(administration, HEADER, MAYA)
    dismiss(membership=staff.chen.memberships.get(), by=staff.dana)
    entered(staff.dana).confirm(upload)
    assert upload.state == "applied"
    assert [letter.to for letter in mail.outbox] == [[staff.dana.email]]


def test_what_no_database_holds_is_left_out_of_what_was_typed(
    staff, administration, entered
):
    dana = entered(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA)
    dana.confirm(upload, typed="a\x00b")
    assert (upload.state, upload.typed) == ("applied", "ab")


def test_a_mail_server_that_is_away_harms_nothing(
    staff, administration, entered, monkeypatch
):
    def away(*args, **options):
        raise ConnectionRefusedError

    monkeypatch.setattr("accounts.email_outbox.EmailMessage.send", away)
    upload = entered(staff.chen).apply(administration, HEADER, MAYA)
    assert upload.state == "applied"
    # Somebody else tries again.
    assert Letter.objects.get().to == "chen@example.org"


def test_what_was_confirmed_is_not_stopped_halfway(
    staff, administration, entered, monkeypatch
):
    chen = entered(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    chen.confirm(upload)
    job = uploads.job_of(upload)
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f"/console/jobs/{job.pk}/cancel/" not in page
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    jobs.run(job.pk)
    upload.refresh_from_db()
    assert upload.state == "applied"


def test_a_check_is_stopped_when_asked(staff, administration, entered, monkeypatch):
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    chen = entered(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA)
    job = uploads.job_of(upload)
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f"/console/jobs/{job.pk}/cancel/" in page
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    chen.post(f"/console/jobs/{job.pk}/cancel/")
    [entry] = AuditEntry.objects.filter(action="cancel job")
    assert (entry.by, entry.school_id) == (staff.chen.email, staff.lincoln.pk)
    assert entry.after == {"kind": "roster.check", "of": upload.pk}
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "It has stopped" in page and "Cancel this roster" in page
    chen.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert upload.state == "cancelled"


def test_files_are_deleted_after_a_month(
    staff, administration, entered, django_capture_on_commit_callbacks
):
    upload = entered(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    with django_capture_on_commit_callbacks(execute=True):
        assert uploads.forget_old_rosters() == 0
    old = timezone.now() - timedelta(days=31)
    RosterUpload.objects.update(uploaded_at=old)
    with django_capture_on_commit_callbacks(execute=True):
        assert uploads.forget_old_rosters() == 1
    assert not private_files().exists(upload.file)
    assert not upload.rejections.exists()
    chen = entered(staff.chen)
    assert (
        b"after 30 days" in chen.get(f"/console/rosters/{upload.pk}/rejected/").content
    )
    chen.confirm(upload)
    assert (upload.state, upload.message) == ("failed", uploads.GONE)


def folder():
    return path_of("rosters/any").parent


def test_a_check_that_is_cancelled_at_its_end_leaves_no_file(
    staff, administration, entered, monkeypatch
):
    before = set(folder().iterdir())
    confirm = jobs.Progress.confirm

    def asked_to_stop(progress):
        jobs.request_cancel(progress.job)
        confirm(progress)

    monkeypatch.setattr(jobs.Progress, "confirm", asked_to_stop)
    upload = entered(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    assert (upload.state, uploads.job_of(upload).state) == ("cancelled", "cancelled")
    assert not upload.rejections.exists()
    assert set(folder().iterdir()) - before == {path_of(upload.file)}


def test_asked_too_late_to_stop_a_check_is_done(
    staff, administration, entered, monkeypatch
):
    """Not "nothing of it was kept", with figures on the page."""
    store = uploads._store

    def too_late(upload, *args):
        store(upload, *args)
        args[2].cancel_asked = True

    monkeypatch.setattr(uploads, "_store", too_late)
    upload = entered(staff.chen).upload(administration, HEADER, MAYA)
    assert (upload.state, uploads.job_of(upload).state) == ("checked", "done")


def test_a_file_that_no_upload_names_is_swept_up(staff, administration, entered):
    upload = entered(staff.chen).upload(administration, HEADER, MAYA, BAD[1])
    left, fresh = (folder() / name for name in (".left.csv.4711", "fresh.roster"))
    for path in (left, fresh):
        path.write_text("00123,Maya,Lopez")
    kept = [path_of(name) for name in (upload.file, upload.rejected_file)]
    long_ago = time.time() - files.ORPHANED_AFTER - 60
    for path in (left, *kept):
        os.utime(path, (long_ago, long_ago))
    uploads.forget_old_rosters()
    assert not left.exists()
    assert all(path.exists() for path in (fresh, *kept))


# Pages ---------------------------------------------------------------------------


def test_the_template_is_a_roster_that_refuses_its_example(
    staff, administration, entered
):
    chen = entered(staff.chen)
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


def test_the_templates_example_is_in_a_school_of_ones_own(
    staff, administration, entered
):
    for user, school in ((staff.dana, "riverside,lincoln"), (staff.sam, "lakeside,")):
        content = entered(user).get(
            f"/console/administrations/{administration.pk}/roster/template.csv"
        )
        example = content.content.decode("utf-8-sig").splitlines()[1]
        assert example.startswith(school)


# Sessions lie in the database here, and in Redis elsewhere.
@pytest.mark.once
def test_lists_ask_as_often_for_three_as_for_one(
    staff, administration, entered, django_assert_num_queries
):
    dana = entered(staff.dana)

    def pages(upload, rows):
        with django_assert_num_queries(6):
            response = dana.get("/console/rosters/")
        assert len(response.context["rows"]) == rows
        with django_assert_num_queries(7):
            response = dana.get(f"/console/rosters/{upload.pk}/")
        assert len(response.context["rows"]) == rows
        with django_assert_num_queries(7):
            response = dana.get(f"/console/rosters/{upload.pk}/rejected/")
        assert len(response.context["rows"]) == rows

    pages(dana.upload(administration, HEADER, MAYA, BAD[1]), 1)
    dana.upload(administration, HEADER, MAYA)
    adams = ALI.replace("lincoln", "adams")
    pages(dana.upload(administration, HEADER, MAYA, ZOE, adams, *BAD), 3)


def test_the_school_table_is_searched_and_sorted(staff, administration, entered):
    dana = entered(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA, ALI, ZOE)
    page = dana.get(f"/console/rosters/{upload.pk}/", q="washing").content.decode()
    assert "Washington" in page and '<th scope="row">Lincoln' not in page
    rows = dana.get(f"/console/rosters/{upload.pk}/", sort="-added").context["rows"]
    assert [one.name for one in rows] == ["Lincoln", "Washington"]
    part = dana.client.get(
        f"/console/rosters/{upload.pk}/", headers={"HX-Request": "true"}
    ).content.decode()
    assert "Washington" in part and "<html" not in part and "Confirm" not in part

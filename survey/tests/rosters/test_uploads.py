"""Upload, confirm, cancel and apply rosters in the console."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import AuditEntry
from survey.models import Identity, Respondent, Response
from survey.people import access_codes
from survey.people.rosters import apply, dry_run, uploads
from survey.tests.conftest import FIRST_PAGE
from survey.tests.rosters.roster_console import (
    ALI,
    BAD,
    HEADER,
    MAYA,
    NOOR,
    ZOE,
    all_people,
    counts,
    person,
)
from survey.tests.rosters.roster_imports import run_import
from survey.work import job_turns
from survey.work.files import private_files

pytestmark = pytest.mark.django_db


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
    assert [message.to for message in mail.outbox] == [["dana@example.org"]]
    assert "3 people were added" in mail.outbox[0].body
    assert f"/console/rosters/{upload.pk}/" in mail.outbox[0].body
    written = AuditEntry.objects.filter(kind="survey.rosterupload").order_by("pk")
    assert [(entry.action, entry.by) for entry in written] == [
        ("upload roster", "dana@example.org"),
        ("confirm roster", "dana@example.org"),
        ("apply roster", "dana@example.org"),
    ]
    assert {entry.district_id for entry in written} == {staff.riverside.pk}
    assert "Maya" not in str([(entry.before, entry.after) for entry in written])


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
    page = dana.get(f"/console/rosters/{upload.pk}/")
    totals = {label: number for label, number in page.context["totals"] if number}
    # Each person is in one of the numbers.
    assert totals == {"moved": 1, "unchanged": 2}
    by_school = {school.name: school for school in upload.schools.all()}
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
    run_import(administration, HEADER, MAYA, ALI, ZOE, NOOR)
    state.apply(administration, HEADER, MAYA, complete_for=complete_for)
    withdrawn = Identity.objects.exclude(respondent__withdrawn_at=None)
    assert set(withdrawn.values_list("given_name", flat=True)) == gone


def test_withdrawing_many_requires_typing_their_number(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    run_import(administration, HEADER, MAYA, ALI)
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
    run_import(administration, HEADER, MAYA, ALI)
    chen.confirm(chen.upload(administration, HEADER, ALI), typed="")
    assert person("00123").withdrawn_at


@pytest.mark.parametrize(("missing", "typed"), [(2, False), (3, True)])
def test_a_tenth_of_a_school_can_be_withdrawn_without_typing(
    staff, administration, console_of, missing, typed
):
    chen = console_of(staff.chen)
    rows = [ALI.replace("00124", f"{number:05}") for number in range(20)]
    run_import(administration, HEADER, *rows)
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


def test_nul_characters_are_removed_from_the_typed_number(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA)
    dana.confirm(upload, typed="a\x00b")
    assert (upload.state, upload.typed) == ("applied", "ab")


def test_a_second_click_applies_nothing_twice(staff, administration, console_of):
    chen = console_of(staff.chen)
    upload = chen.apply(administration, HEADER, MAYA)
    response = chen.confirm(upload)
    assert "Status of this roster: applied" in str(
        list(get_messages(response.wsgi_request))[0]
    )
    assert len(mail.outbox) == 1


def test_cancelling_deletes_the_files_and_changes_nothing(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA, BAD[1])
    stored = [upload.file, upload.rejected_file]
    assert all(map(private_files().exists, stored))
    chen.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert upload.state == "cancelled"
    assert not any(map(private_files().exists, stored))
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
    assert [str(message) for message in get_messages(response.wsgi_request)] == [
        "This can't be done now. Status of this roster: not fully applied."
    ]
    upload.refresh_from_db()
    assert upload.state == "failed" and upload.file
    monkeypatch.setattr(apply, "change_people", change)
    dana.post(f"/console/rosters/{upload.pk}/again/")
    upload.refresh_from_db()
    assert upload.state == "applied"


def test_one_user_cannot_fill_the_disk_or_the_queue(
    staff, administration, console_of, monkeypatch
):
    address = f"/console/administrations/{administration.pk}/roster/"

    def refusal(user):
        file = SimpleUploadedFile("roster.csv", f"{HEADER}\n{MAYA}".encode())
        data = {"file": file, "complete_for": "schools"}
        response = console_of(user).post(address, **data)
        return response.context["form"].non_field_errors() if response.context else []

    first = console_of(staff.dana).upload(administration, HEADER, MAYA)
    monkeypatch.setattr(uploads, "MOST_BYTES", 2 * first.size - 1)
    before = private_files().listdir("rosters")
    assert "Cancel uploads that you no longer need" in refusal(staff.dana)[0]
    assert private_files().listdir("rosters") == before
    # Another user is not affected, and a cancelled upload makes room.
    assert refusal(staff.chen) == []
    console_of(staff.dana).post(f"/console/rosters/{first.pk}/cancel/")
    assert refusal(staff.dana) == []
    monkeypatch.setattr(uploads, "MOST_BYTES", 10**9)
    monkeypatch.setattr(job_turns, "MOST_UNFINISHED", 0)
    assert "not done yet" in refusal(staff.dana)[0]

"""Apply confirmed rosters, with everything checked again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core import mail
from django.utils import timezone

from accounts.models import QueuedEmail
from accounts.permissions import Permissions
from accounts.staff import dismiss
from survey.fieldwork.administrations import change_administration, plan_of
from survey.models import Respondent
from survey.people.rosters import apply_job, dry_run, uploads
from survey.people.rosters.scope import (
    NOT_OFFERED,
    OTHER_SCHOOL,
    scope_of_upload,
)
from survey.tests.rosters.roster_console import (
    ALI,
    HEADER,
    MAYA,
    ZOE,
    all_people,
    counts,
    person,
    reasons,
)
from survey.work import jobs
from survey.work.files import path_of

pytestmark = pytest.mark.django_db


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
        opened = apply_job.open_roster

        def changing(upload):
            plan = plan_of(administration)
            change_administration(
                administration=administration,
                to=replace(plan, schools=frozenset([staff.lincoln])),
                seen=None,
                by="a test",
            )
            return opened(upload)

        monkeypatch.setattr(apply_job, "open_roster", changing)

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


def test_a_file_that_was_readable_when_it_was_checked_says_why_it_is_not_now(
    staff, administration, console_of
):
    """A stricter version may be installed between the check and the confirmation."""
    chen = console_of(staff.chen)
    upload = chen.upload(administration, HEADER, MAYA, ALI)
    stray = [MAYA.replace("Maya", '"Maya'), ALI.replace("Ali", '"Ali')]
    path_of(upload.file).write_text("\n".join([HEADER, *stray]))
    chen.confirm(upload)
    assert upload.state == "failed"
    page = chen.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "Row 2, column &#x27;given name&#x27;: a quotation mark is never" in page
    assert not Respondent.objects.exists()


def test_former_staff_get_no_email_about_a_roster(staff, administration, console_of):
    upload = console_of(staff.chen).upload(administration, HEADER, MAYA)
    dismiss(membership=staff.chen.memberships.get(), by=staff.dana)
    console_of(staff.dana).confirm(upload)
    assert upload.state == "applied"
    assert [email.to for email in mail.outbox] == [[staff.dana.email]]


def test_a_roster_is_applied_while_the_mail_server_is_down(
    staff, administration, console_of, monkeypatch
):
    def away(*args, **options):
        raise ConnectionRefusedError

    monkeypatch.setattr("accounts.email_outbox.EmailMessage.send", away)
    upload = console_of(staff.chen).apply(administration, HEADER, MAYA)
    assert upload.state == "applied"
    # It will be sent later.
    assert QueuedEmail.objects.get().to == "chen@example.org"

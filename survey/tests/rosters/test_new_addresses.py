"""Only the district sends a person's code to another address."""

from __future__ import annotations

import pytest
from django.core import mail
from django.utils import timezone

from accounts import email_outbox
from survey.models import Administration, Respondent
from survey.people.rosters import row_checks
from survey.people.rosters.scope import OTHER_ADDRESS
from survey.tests.rosters import roster_console
from survey.tests.rosters.roster_console import counts, person, reasons
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

HEADER = f"{roster_console.HEADER},e-mail"
MAYA = f"{roster_console.MAYA},maya@example.org"
MINE = MAYA.replace("maya@example.org", "chen@example.org")
# Without an address.
ALI = f"{roster_console.ALI},"


@pytest.fixture
def chen(staff, console_of):
    return console_of(staff.chen)


@pytest.fixture
def dana(staff, console_of):
    return console_of(staff.dana)


@pytest.fixture(autouse=True)
def roster(administration, staff):
    run_import(administration, HEADER, MAYA, ALI)


def show_completion(administration):
    Administration.objects.filter(pk=administration.pk).update(
        coordinators_see_finished=True
    )


def code_emails(console, administration):
    """E-mail the codes of Lincoln; return the addresses."""
    school = person("00123").school_id
    mail.outbox.clear()
    console.post(
        f"/console/administrations/{administration.pk}/cards/?school={school}",
        format="email",
    )
    email_outbox.send_waiting()
    return sorted(
        address
        for email in mail.outbox
        if "https://survey.example.org/#" in email.body
        for address in email.to
    )


def test_a_coordinator_cannot_redirect_a_code(administration, chen):
    upload = chen.apply(administration, HEADER, MINE, ALI)
    assert reasons(upload) == [(2, "e-mail", OTHER_ADDRESS)]
    # Maya was not withdrawn either.
    assert counts(upload) == {"unchanged": 1, "rejected": 1}
    page = chen.get(f"/console/rosters/{upload.pk}/rejected/").content.decode()
    assert "E-mail address changes need the district" in page
    assert code_emails(chen, administration) == ["maya@example.org"]
    chen.post(
        f"/console/administrations/{administration.pk}"
        f"/people/{person('00123').pk}/reissue/"
    )
    email_outbox.send_waiting()
    assert not any("chen@example.org" in email.to for email in mail.outbox)


def test_without_the_check_the_code_goes_to_the_new_address(
    administration, chen, monkeypatch
):
    monkeypatch.setattr(row_checks, "reject_new_addresses", lambda *args: None)
    chen.apply(administration, HEADER, MINE, ALI)
    assert code_emails(chen, administration) == ["chen@example.org"]


def test_the_district_changes_an_address(administration, chen, dana):
    upload = dana.apply(administration, HEADER, MINE, ALI)
    assert counts(upload) == {"changed": 1, "unchanged": 1}
    assert code_emails(chen, administration) == ["chen@example.org"]


def test_a_coordinator_cannot_add_or_remove_an_address(administration, chen):
    upload = chen.apply(
        administration,
        HEADER,
        MAYA.replace("maya@example.org", ""),
        f"{ALI}chen@example.org",
    )
    assert reasons(upload) == [(row, "e-mail", OTHER_ADDRESS) for row in (2, 3)]
    assert code_emails(chen, administration) == ["maya@example.org"]


def test_a_withdrawn_person_does_not_come_back_with_another_address(
    administration, chen
):
    chen.apply(administration, HEADER, ALI)
    upload = chen.apply(administration, HEADER, MINE, ALI)
    assert counts(upload) == {"unchanged": 1, "rejected": 1}
    assert person("00123").withdrawn_at
    chen.apply(administration, HEADER, MAYA, ALI)
    assert code_emails(chen, administration) == ["maya@example.org"]


def test_a_coordinator_changes_everything_else(administration, chen):
    new = MAYA.replace("00123", "00129").replace("maya@", "mia@")
    upload = chen.apply(administration, HEADER, MAYA.replace("7B", "7A"), ALI, new)
    assert counts(upload) == {"added": 1, "changed": 1, "unchanged": 1}
    # A file without the column changes no address.
    upload = chen.apply(
        administration,
        roster_console.HEADER,
        roster_console.MAYA,
        complete_for="changes",
    )
    assert counts(upload) == {"changed": 1}
    assert code_emails(chen, administration) == ["maya@example.org", "mia@example.org"]


def test_addresses_of_people_who_started_are_kept_where_progress_is_shown(
    administration, chen
):
    """The coordinator sees the codes of the others, and never theirs."""
    show_completion(administration)
    started = Respondent.objects.filter(identity__external_id="00123")
    started.update(started_at=timezone.now())
    upload = chen.apply(administration, HEADER, MINE, f"{ALI}ali@example.org")
    assert reasons(upload) == [(2, "e-mail", OTHER_ADDRESS)]
    assert counts(upload) == {"changed": 1, "rejected": 1}
    addresses = code_emails(chen, administration)
    assert addresses == ["ali@example.org", "maya@example.org"]

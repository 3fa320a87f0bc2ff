"""People and surveys in the audit log, by the names that they have on other pages."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

from accounts import audit
from accounts.console import audit_sentences
from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import Identity
from survey.tests.people import invite

pytestmark = pytest.mark.django_db

AUDIT = "/console/audit/"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.content.decode()))


@pytest.fixture
def maya(administration, staff):
    return invite(administration, staff.lincoln, "40313", "Maya López")


def show_code(maya, staff):
    audit.record(
        "show an access code",
        by=staff.chen,
        subject=maya,
        school=maya.school,
        after={"issue": 1},
    )


def test_an_entry_names_the_person_and_the_look_is_recorded(
    client, administration, staff, maya
):
    show_code(maya, staff)
    page = log_in(client, staff.dana).get(AUDIT)
    text = text_of(page)
    assert "chen@example.org showed the access code of Maya López" in text
    assert administration.title in text
    assert f"/people/{maya.pk}/" in page.content.decode()
    look = AuditEntry.objects.get(action="see names in the audit log")
    assert (look.by, look.after, look.district_id) == (
        "dana@example.org",
        {"people": 1},
        staff.riverside.pk,
    )
    assert "López" not in str(list(AuditEntry.objects.values()))
    assert "dana@example.org saw names under “Activity”" in text_of(client.get(AUDIT))


def test_a_person_who_moved_away_is_not_named(client, staff, maya):
    show_code(maya, staff)
    type(maya).objects.filter(pk=maya.pk).update(school=staff.roosevelt)
    text = text_of(log_in(client, staff.dana).get(AUDIT))
    assert "showed the access code of a person" in text and "López" not in text
    assert not AuditEntry.objects.filter(action="see names in the audit log").exists()


def test_a_person_whose_name_was_deleted_is_a_person(client, staff, maya):
    show_code(maya, staff)
    Identity.objects.all().delete()
    assert "access code of a person" in text_of(log_in(client, staff.dana).get(AUDIT))


def test_administrations_have_their_title(client, administration, staff):
    audit.record(
        "look at people",
        by=staff.chen,
        subject=administration,
        school=staff.lincoln,
    )
    text = text_of(log_in(client, staff.dana).get(AUDIT))
    assert f"looked at people of {administration.title}" in text


@pytest.mark.parametrize("number", [1, 3])
def test_three_people_take_as_many_statements_as_one(
    client, administration, staff, django_assert_num_queries, number
):
    for key in range(number):
        show_code(invite(administration, staff.lincoln, str(key), "Maya"), staff)
    log_in(client, staff.dana)
    # Session, user, memberships; the actions, the number, the rows, districts,
    # schools, users, people; the place of the user, and the audit.
    with django_assert_num_queries(13):
        client.get(AUDIT)


def test_every_action_of_this_project_has_a_sentence():
    """Actions are constants, or the first argument of a function that records."""
    call = re.compile(r'(?:audit\.record|record_action|\b_record)\(\s*"([^"]+)"')
    actions = {
        action
        for app in ("accounts", "survey", "reports")
        for path in (settings.BASE_DIR / app).rglob("*.py")
        if "tests" not in path.parts
        for action in call.findall(path.read_text())
    }
    assert {"log in", "add a person", "upload roster"} <= actions
    # Written by Django's admin, with a verb and any model's name.
    actions -= {"change", "delete", "appoint", "dismiss", "merge"}
    # With the kind of the place.
    actions -= {"rename", "close", "reopen"}
    assert actions <= set(audit_sentences._SENTENCES)

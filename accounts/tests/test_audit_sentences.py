"""The audit log in sentences, with repeated entries folded."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone, translation

from accounts import audit
from accounts.console import audit_sentences
from accounts.models import AuditEntry, User
from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db

AUDIT = "/console/audit/"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.content.decode()))


def test_an_entry_is_a_sentence_with_the_users_name(staff, client):
    User.objects.filter(pk=staff.chen.pk).update(first_name="Li", last_name="Chen")
    audit.record("log in", by=staff.chen, subject=staff.chen, school=staff.lincoln)
    text = text_of(log_in(client, staff.dana).get(AUDIT))
    assert "Li Chen logged in" in text
    # The account says which of two people of this name it was.
    assert "chen@example.org" in text


def test_repeated_entries_are_one_line(staff, client):
    for page in range(5):
        audit.record(
            "look at people",
            by=staff.chen,
            school=staff.lincoln,
            after={"searched": False, "page": page, "people": 50 - page},
        )
    audit.record("look at people", by=staff.dana, school=staff.lincoln)
    response = log_in(client, staff.dana).get(AUDIT)
    text = text_of(response)
    assert [line.count for line in response.context["lines"]] == [1, 5]
    assert "5 times" in text and "since" in text
    assert "searched" not in text and "page:" not in text


def test_commands_and_lists_are_shown_in_words(staff, client):
    audit.record(
        "create feed",
        by="load_demo",
        school=staff.lincoln,
        after={"administrations": ["spring", "fall"], "rows": {"added": 2}},
    )
    text = text_of(log_in(client, staff.dana).get(AUDIT))
    assert "System (load_demo)" in text
    assert "survey rounds: spring, fall" in text and "rows: added: 2" in text


def test_properties_and_actions_are_named_in_the_readers_language(staff, client):
    audit.record(
        "log in",
        by=staff.dana,
        district=staff.riverside,
        before={"student_percent": 50, "water": "2026-99-99"},
        after={"student_percent": None, "water": True, "first": "2026-11-09"},
    )
    page = log_in(client, staff.dana).get(AUDIT)
    assert "threshold for students, in percent: 50" in text_of(page)
    [line] = page.context["lines"]
    del line.details
    with translation.override("es"):
        percent = "umbral para estudiantes, en porcentaje"
        assert sorted(line.details) == [
            ("primer día", None, "9 de noviembre de 2026"),
            (percent, 50, None),
            ("water", "2026-99-99", "sí"),
        ]
        assert audit_sentences.action_label("log in") == "Inició sesión"
    assert audit_sentences.action_label("log in") == "Logged in"
    assert audit_sentences.action_label("water plants") == "Water plants"


def test_changes_that_differ_are_lines_of_their_own(staff, client):
    for people in (1, 2, 2):
        audit.record(
            "import roster",
            by=staff.chen,
            school=staff.lincoln,
            after={"added": people},
        )
    response = log_in(client, staff.dana).get(AUDIT)
    assert [line.count for line in response.context["lines"]] == [2, 1]


def test_entries_of_two_days_are_two_lines(staff, client):
    now = timezone.now()
    for days in (0, 1):
        AuditEntry.objects.create(
            at=now - timedelta(days=days),
            by="x",
            action="log in",
            district_id=staff.riverside.pk,
        )
    response = log_in(client, staff.dana).get(AUDIT)
    assert [line.count for line in response.context["lines"]] == [1, 1]


def test_an_action_without_a_sentence_is_named(staff, client):
    audit.record("water plants", by=staff.chen, school=staff.lincoln)
    text = text_of(log_in(client, staff.dana).get(AUDIT))
    assert "chen@example.org: water plants" in text


def test_names_of_objects_are_escaped(staff, client):
    AuditEntry.objects.create(
        by="<b>x</b>",
        action="log in <i>",
        subject="<script>",
        district_id=staff.riverside.pk,
    )
    page = log_in(client, staff.dana).get(AUDIT).content.decode()
    assert "<script>" not in page.partition("<main")[2]
    assert "<b>x</b>" not in page and "log in <i>" not in page


def test_sentences_have_known_fields_only():
    for action in audit_sentences._SENTENCES:
        assert audit_sentences.fields_of(action) <= {"who", "subject"}, action

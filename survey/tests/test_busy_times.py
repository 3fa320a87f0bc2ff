"""When people answer, or soon will, a server is not upgraded."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.fieldwork.busy_times import reasons_to_wait
from survey.work import survey_day

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return timezone.now()


def test_people_who_answer_are_a_reason(administration, maya, now):
    # The window is open, and nobody answers: a night.
    assert reasons_to_wait(now, hours=12) == []
    maya.started_at = now - timedelta(minutes=59)
    maya.save(update_fields=["started_at"])
    expected = [f"people answer {administration.name} now"]
    assert reasons_to_wait(now, hours=12) == expected
    assert reasons_to_wait(now + timedelta(minutes=2), hours=12) == []
    maya.completed_at = now
    maya.save(update_fields=["completed_at"])
    assert reasons_to_wait(now + timedelta(minutes=30), hours=12) == expected


def test_an_opening_soon_is_a_reason(administration, now):
    administration.opens_at = now + timedelta(hours=11)
    administration.closes_at = now + timedelta(days=9)
    administration.save(update_fields=["opens_at", "closes_at"])
    [reason] = reasons_to_wait(now, hours=12)
    assert reason.startswith(f"{administration.name} opens at ")
    assert reasons_to_wait(now, hours=10) == []


def test_the_end_of_a_window_ends_it(administration, maya, now):
    maya.started_at = now
    maya.save(update_fields=["started_at"])
    administration.opens_at = now - timedelta(days=9)
    administration.closes_at = now - timedelta(seconds=1)
    administration.save(update_fields=["opens_at", "closes_at"])
    assert reasons_to_wait(now, hours=12) == []


def test_a_survey_day_is_a_reason_until_it_is_over(now):
    survey_day.begin(ends_at=now + timedelta(hours=2), reason="The state", by="test")
    [reason] = reasons_to_wait(now, hours=12)
    assert reason.startswith("a survey day is on until ")
    survey_day.end(by="test")
    assert reasons_to_wait(now, hours=12) == []


def test_it_costs_three_statements(administration, now, django_assert_num_queries):
    with django_assert_num_queries(3):
        reasons_to_wait(now, hours=12)


def test_the_command_prints_them(administration, maya, now, capsys):
    maya.started_at = now
    maya.save(update_fields=["started_at"])
    call_command("reasons_to_wait")
    [reason] = json.loads(capsys.readouterr().out)
    assert administration.name in reason

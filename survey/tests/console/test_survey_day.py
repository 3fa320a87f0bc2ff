"""The page of the survey day, its banner, and what waiting jobs say."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import caches
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import Job, SurveyDay
from survey.work import survey_day

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/console/settings/survey-day/"
BANNER = "exports, scores, roster syncs and reminders wait."


@pytest.fixture(autouse=True)
def empty_cache():
    caches["lists"].clear()
    yield
    caches["lists"].clear()


def page(user, address: str = PAGE) -> str:
    return log_in(Client(), user).get(address).content.decode()


def begin() -> SurveyDay:
    ends_at = timezone.now() + timedelta(hours=2)
    return survey_day.begin(ends_at=ends_at, reason="Everybody answers", by="test")


def test_the_state_begins_a_survey_day_and_ends_it(staff):
    state = log_in(Client(), staff.state)
    in_an_hour = timezone.localtime(timezone.now() + timedelta(hours=1))
    data = {"until": f"{in_an_hour:%H:%M}", "reason": "All <high> schools"}
    assert state.post(PAGE, data)["Location"] == PAGE
    day = SurveyDay.objects.get()
    assert day.by == staff.state
    assert timedelta(0) < day.ends_at - timezone.now() <= timedelta(hours=1)
    text = state.get(PAGE).content.decode()
    assert "End the survey day now" in text and "Begin the survey day" not in text
    assert "All &lt;high&gt; schools" in text and BANNER not in text
    assert BANNER in state.get("/console/").content.decode()

    assert "is on already" in state.post(PAGE, data).content.decode()
    assert state.post(f"{PAGE}end/")["Location"] == PAGE
    assert survey_day.current() is None
    assert BANNER not in state.get("/console/").content.decode()
    # The second click finds it ended.
    assert (
        "No survey day is on."
        in state.post(f"{PAGE}end/", follow=True).content.decode()
    )
    actions = AuditEntry.objects.filter(action__endswith="survey day")
    assert [*actions.order_by("pk").values_list("action", "user_id")] == [
        ("begin survey day", staff.state.pk),
        ("end survey day", staff.state.pk),
    ]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"until": "", "reason": "x"},
        {"until": "25:00", "reason": "x"},
        {"until": "16:00"},
    ],
)
def test_an_incomplete_form_says_what_is_missing(staff, data):
    answer = log_in(Client(), staff.state).post(PAGE, data)
    assert answer.status_code == 200 and "Enter a " in answer.content.decode()
    assert not SurveyDay.objects.exists()


def test_a_district_sees_the_day_and_can_neither_begin_nor_end_it(staff):
    dana = log_in(Client(), staff.dana)
    data = {"until": "16:00", "reason": "x"}
    assert dana.post(PAGE, data).status_code == 404
    assert not SurveyDay.objects.exists()
    begin()
    text = dana.get(PAGE).content.decode()
    assert "Everybody answers" in text
    assert BANNER in dana.get("/console/").content.decode()
    assert "End the survey day now" not in text
    assert dana.post(f"{PAGE}end/").status_code == 404
    assert survey_day.current() is not None


def test_the_banner_is_for_people_whose_work_waits(staff):
    assert BANNER not in page(staff.state, "/console/")
    begin()
    assert BANNER in page(staff.state, "/console/")
    # Coordinators' cards and rosters do not wait.
    assert BANNER not in page(staff.chen, "/console/")


def test_a_job_says_until_when_it_waits(staff):
    export = Job.objects.create(kind="export.make", by=staff.state)
    cards = Job.objects.create(kind="cards.make", by=staff.state)
    day = begin()
    local = timezone.localtime(day.ends_at)
    sentence = f"Waits until {local:%-I:%M %p}"
    if local.date() != timezone.localdate():
        # "Dec. 1", but "May 1".
        sentence = f"Waits until {date_format(local, 'N j')}, "
    address = "/console/jobs/{}/"
    assert sentence in page(staff.state, address.format(export.pk))
    assert "Waits until" not in page(staff.state, address.format(cards.pk))
    survey_day.end(by="test")
    assert "Waiting to start." in page(staff.state, address.format(export.pk))

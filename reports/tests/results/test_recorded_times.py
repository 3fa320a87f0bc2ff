"""The check of a draft tells how long people took for an earlier version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from accounts.tests.logging_in import log_in
from reports.answers.versions import versions_of
from reports.models import ResultsRollUp
from reports.tests.exports.conftest import answer, released
from survey.instrument.drafts.recorded_times import recorded_times
from survey.models import Response, Survey

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
START = datetime(2027, 3, 1, 14, tzinfo=UTC)
PAGES = [("safe", "pets", "age", "far", "comment"), ("born", "bus", "promise")]
ANSWERS = {
    **{"safe": "1", "pets": "cat", "age": "13", "far": "1.5", "comment": "Hi"},
    **{"born": "2014-01-02", "bus": "5", "promise": "OK"},
}


@pytest.fixture
def finish(fall, enrol, staff):
    """Let people finish, with so many seconds for each page."""
    version = versions_of([fall])[fall.published_id]

    def finish(count, seconds):
        for _ in range(count):
            fields = {"started_at": START, "completed_at": START}
            person = enrol(fall, staff.lincoln, **fields)
            answer(person, ANSWERS)
            for number, names in enumerate(PAGES, 1):
                ids = [version.items[name]["id"] for name in names]
                moment = START + timedelta(seconds=number * seconds)
                answers = Response.objects.filter(respondent_id=person.pk)
                answers.filter(item_id__in=ids).update(saved_at=moment)

    return finish


@pytest.fixture
def checked(staff, client, fall):
    """Start a new version, and return its check page."""
    log_in(client, staff.state)
    survey = fall.published.survey

    def checked():
        form = {"version": "9", "owner": "state"}
        client.post(reverse("survey_new_version", args=[survey.pk]), form)
        draft = Survey.objects.get(version="9")
        return client.get(reverse("survey_check", args=[draft.pk])).content.decode()

    return checked


def test_a_new_version_shows_the_times_of_the_one_before(fall, finish, checked):
    finish(12, seconds=240)
    released(fall)
    page = " ".join(checked().split())
    version = fall.published.survey.version
    assert f"(median of 12 people who answered version {version})" in page
    # Two pages of 4 minutes, and what nobody saved.
    assert "About 9 minutes on a phone" in page
    assert page.count("<li>240</li>") == 2
    assert "(estimated)" in page
    assert "2 pages are new or changed, or too few people answered them." in page


def test_times_of_fewer_people_than_the_minimum_are_not_stored(fall, finish, checked):
    fall.minimum_group = 13
    fall.save()
    finish(12, seconds=240)
    released(fall)
    assert "times" not in ResultsRollUp.objects.get().layout
    page = checked()
    assert "on a phone" in page and "median of" not in page


def test_times_are_those_of_the_same_owner_once_they_are_released(
    fall, finish, staff, checked
):
    finish(12, seconds=240)
    assert "median of" not in checked()
    released(fall)
    assert "median of" in checked()
    # One of a district has the same name and version.
    draft = Survey.objects.get(version="9")
    Survey.objects.filter(pk=draft.pk).update(district=staff.riverside)
    draft.refresh_from_db()
    assert recorded_times(draft) is None

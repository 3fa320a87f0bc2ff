"""Times of earlier waves: the median of a page, shared by its questions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reports.answers.page_times import FEWEST_PEOPLE, page_times
from reports.answers.versions import versions_of
from reports.tests.exports.conftest import answer
from survey.models import Response

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

START = datetime(2027, 3, 1, 14, tzinfo=UTC)
PAGES = [("safe", "pets", "age", "far", "comment"), ("born", "bus", "promise")]
ANSWERS = {
    **{"safe": "1", "pets": "cat", "age": "13", "far": "1.5", "comment": "Hi"},
    **{"born": "2014-01-02", "bus": "5", "promise": "OK"},
}


@pytest.fixture
def finished(fall, enrol, staff):
    """Let a person answer two pages, in so many seconds each."""
    version = versions_of([fall])[fall.published_id]

    def finish(*seconds, **fields):
        fields = {"started_at": START, "completed_at": START, **fields}
        person = enrol(fall, staff.lincoln, **fields)
        answer(person, ANSWERS)
        moment = START
        for names, taken in zip(PAGES, seconds, strict=True):
            moment += timedelta(seconds=taken)
            ids = [version.items[name]["id"] for name in names]
            Response.objects.filter(respondent_id=person.pk, item_id__in=ids).update(
                saved_at=moment
            )

    return finish


def read(fall, django_assert_num_queries):
    version = versions_of([fall])[fall.published_id]
    with django_assert_num_queries(2):
        return page_times(fall, version).seconds


def test_items_share_the_median_time_of_their_page(
    fall, finished, django_assert_num_queries
):
    for n in range(FEWEST_PEOPLE - 1):
        finished(50, 20 + n)
    # Somebody went for lunch on the first page, and was quick on the second.
    finished(4000, 4)
    finished(50, 24)
    seconds = read(fall, django_assert_num_queries)
    assert {name: seconds[name] for name in PAGES[0]} == dict.fromkeys(PAGES[0], 10)
    # Four items, with the note.
    assert seconds["bus"] == seconds["hello"] == 24 / 4
    # Nobody saved the last page.
    assert "last" not in seconds


def test_times_of_few_people_are_not_returned(
    fall, finished, django_assert_num_queries
):
    for _ in range(FEWEST_PEOPLE - 1):
        finished(50, 20)
    assert read(fall, django_assert_num_queries) == {}
    finished(50, 20)
    assert read(fall, django_assert_num_queries)


def test_people_who_stopped_or_opted_out_do_not_count(
    fall, finished, django_assert_num_queries
):
    finished(50, 20)
    for _ in range(FEWEST_PEOPLE):
        finished(50, 20, completed_at=None)
        finished(50, 20, opted_out_at=START, withdrawn_at=START)
    assert read(fall, django_assert_num_queries) == {}


def test_a_larger_minimum_of_the_administration_counts(fall, finished):
    version = versions_of([fall])[fall.published_id]
    for _ in range(FEWEST_PEOPLE + 1):
        finished(50, 20)
    assert page_times(fall, version).people == FEWEST_PEOPLE + 1
    fall.minimum_group = FEWEST_PEOPLE + 2
    assert page_times(fall, version) == ({}, 0)

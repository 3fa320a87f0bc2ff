"""The first page of results has scores by the rules of the school reports."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from reports.models import SchoolRate
from reports.rates.visible_totals import total_for
from reports.scores.visible import visible_scores
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed

pytestmark = pytest.mark.django_db


def shown(client, user, administration, **query):
    log_in(client, user)
    return client.get(reverse("results_page", args=[administration.pk]), query)


def numbers(response):
    overview = response.context["page"].overview
    return [[line.text for line in part.places] for part in overview.themes]


def test_a_school_is_beside_its_district_and_the_state(
    client, staff, fall, django_assert_num_queries
):
    query = {"school": staff.lincoln.pk}
    response = shown(client, staff.state, fall, **query)
    places = [("school", staff.lincoln.pk), ("district", staff.riverside.pk)]
    scores = visible_scores(fall, [*places, ("state", 0)])
    expected = [str(scores[place]["safe"].score) for place in (*places, ("state", 0))]
    assert numbers(response) == [expected]
    assert f"<strong>{expected[0]}</strong>" in response.text
    assert "100 %" in response.text
    assert "No measure stands out" in response.text
    with django_assert_num_queries(23):
        client.get(reverse("results_page", args=[fall.pk]), query)
    # Analysts of the district do not see the state's.
    assert numbers(shown(client, staff.analyst, fall, **query)) == [expected[:2]]


def test_a_district_and_the_state_have_their_scores(
    client, staff, fall, django_assert_num_queries
):
    places = [("district", staff.riverside.pk), ("state", 0)]
    scores = visible_scores(fall, places)
    district, state = (str(scores[place]["safe"].score) for place in places)
    query = {"district": staff.riverside.pk}
    assert numbers(shown(client, staff.state, fall, **query)) == [[district, state]]
    assert numbers(shown(client, staff.dana, fall)) == [[district]]
    response = shown(client, staff.state, fall)
    assert numbers(response) == [[state]]
    total = total_for(Permissions(staff.state), fall)
    assert response.context["page"].rate == total.rate_words == "82 %"
    with django_assert_num_queries(18):
        client.get(reverse("results_page", args=[fall.pk]))


def test_a_school_below_the_threshold_has_no_scores(client, staff, fall):
    query = {"school": staff.washington.pk}
    response = shown(client, staff.dana, fall, **query)
    assert not response.context["page"].overview.themes
    assert "There is no report for this school: 5 more students" in response.text
    # It is the threshold that hides them.
    SchoolRate.objects.filter(school=staff.washington).update(finished=20)
    assert numbers(shown(client, staff.dana, fall, **query))


def test_a_group_has_no_scores(client, staff, fall):
    response = shown(client, staff.dana, fall, group="grade:08")
    assert response.context["page"].overview is None


def test_the_last_time_is_shown_to_those_who_may_see_it(client, staff, survey, fall):
    spring = closed(survey, "spring-2027")
    answered(spring, staff.lincoln, 60, 7, shift=1.5)
    scored(spring)
    for query in ({"school": staff.lincoln.pk}, {"district": staff.riverside.pk}, {}):
        response = shown(client, staff.state, spring, **query)
        [safe] = response.context["page"].overview.themes
        assert safe.last_time.name == fall.title
        assert "Change since last time: " in response.text
    # Those of the whole state are not for a district.
    [safe] = shown(client, staff.dana, spring).context["page"].overview.themes
    assert safe.own_line.name == "Riverside" and safe.last_time
    SchoolRate.objects.filter(administration=fall).update(eligible=900, at_opening=900)
    response = shown(client, staff.dana, spring, school=staff.lincoln.pk)
    [safe] = response.context["page"].overview.themes
    assert safe.last_time is None


def test_questions_are_shown_by_theme(client, staff, fall, monkeypatch):
    monkeypatch.setattr("reports.console.results.page.FEW_QUESTIONS", 2)
    response = shown(client, staff.dana, fall)
    assert 'class="results-item"' not in response.text
    assert 'questions=theme.safe">' in response.text
    response = shown(client, staff.dana, fall, questions="theme.safe")
    assert response.text.count('class="results-item"') == 7
    assert [part.name for part in response.context["page"].shown_measures] == [
        *("safe", "trust", "noise")
    ]
    response = shown(client, staff.dana, fall, questions="all")
    assert response.text.count('class="results-item"') == 7
    for unknown in ("theme.trust", "page.1", "about", "x"):
        response = shown(client, staff.dana, fall, questions=unknown)
        assert response.status_code == 404

"""Pages about results of unusual administrations, and with nonsense in addresses."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.tests.logging_in import log_in
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.publishing.conftest import publish  # noqa: F401
from reports.tests.scores.conftest import (
    ITEMS,
    MEASURES,
    closed,
    published,
    simulated,
    take_part,
)
from survey.models import Respondent

pytestmark = pytest.mark.django_db

PAGES = ("results_page", "scores_table", "scores_rates", "scores_changes")
PAGES += ("scores_quality",)
FILES = ("results_csv", "scores_csv", "scores_rates_csv", "scores_changes_csv")
FILES += ("scores_quality_csv",)


def get(client, route, administration, **query):
    return client.get(reverse(route, args=[administration.pk]), query)


def report(client, administration, school):
    return client.get(reverse("school_report", args=[administration.pk, school.pk]))


def finish(administration):
    Respondent.objects.filter(administration=administration).update(
        completed_at=administration.opens_at
    )
    return scored(administration)


@pytest.fixture
def state(client, staff):
    log_in(client, staff.state)
    return client


def test_a_measure_whose_items_have_all_changed_is_not_compared(state, staff, fall):
    new = [f"r{n}" for n in range(1, 5)] + ITEMS[4:]
    measures = [[*MEASURES[0]], MEASURES[1], [*MEASURES[2]], MEASURES[3]]
    measures[2][5] = "r1 r2 -r3 r4"
    spring = closed(published(items=new, measures=measures, version="2"), "spring")
    take_part(spring, staff.lincoln, simulated(60, 5), items=new)
    take_part(spring, staff.roosevelt, simulated(40, 6), items=new)
    finish(spring)
    page = get(state, "scores_changes", spring, measure="trust")
    assert "“Trust” cannot be compared: its questions" in page.text
    page = get(state, "scores_changes", spring, measure="trust", compare=fall.pk)
    assert "cannot be compared" in page.text
    # The other measure goes on, and so does the page of answers.
    page = get(state, "scores_changes", spring, measure="noise")
    assert "schools changed more than chance" in page.text
    page = get(state, "results_page", spring, compare=fall.pk)
    charts = [
        chart
        for survey_page in page.context["page"].charts
        for _stem, charts in survey_page.blocks
        for chart in charts
    ]
    compared = {
        chart.name for chart in charts if any(r.is_compared for r in chart.rows)
    }
    assert compared == set(ITEMS[4:])
    assert "Change over time" in report(state, spring, staff.lincoln).text


def test_a_wave_with_one_school_is_shown_without_comparisons(state, staff, new_survey):
    administration = closed(new_survey, "alone")
    answered(administration, staff.lincoln, 40, 1)
    scored(administration)
    for route in (*PAGES, *FILES):
        assert get(state, route, administration).status_code == 200
    page = get(state, "scores_rates", administration)
    assert "Too few schools with different numbers" in page.text
    page = get(state, "scores_changes", administration)
    assert "no earlier survey round" in page.text
    assert "points of 99" in report(state, administration, staff.lincoln).text


@pytest.mark.parametrize("value", ["1", "4", "dk"])
def test_everybody_in_one_category_has_answers_and_no_scores(
    state, staff, new_survey, value
):
    administration = closed(new_survey, "alike")
    for school in (staff.lincoln, staff.roosevelt):
        take_part(administration, school, [[value] * len(ITEMS)] * 20)
    finish(administration)
    for route in (*PAGES, *FILES):
        assert get(state, route, administration).status_code == 200
    page = get(state, "results_page", administration)
    assert page.context["page"].figures.people == 40
    page = get(state, "scores_rates", administration)
    assert "No school shows a response rate and a score" in page.text
    page = report(state, administration, staff.lincoln)
    assert "points of 99" not in page.text
    assert "not been calculated" in page.text or "no report" in page.text


def test_a_survey_without_measures_says_so(state, staff):
    administration = closed(published(measures=[], version="2"), "plain")
    take_part(administration, staff.lincoln, simulated(20, 1))
    finish(administration)
    assert get(state, "results_page", administration).context["page"].charts
    for route in PAGES[1:]:
        page = get(state, route, administration)
        assert "The survey has no measures" in page.text
        assert "<form" not in page.text.partition('id="main"')[2]
    for route in FILES:
        assert get(state, route, administration).status_code == 200
    assert report(state, administration, staff.lincoln).status_code == 200


def test_an_administration_without_people_says_so(state, staff, new_survey):
    administration = scored(closed(new_survey, "empty"))
    page = get(state, "results_page", administration)
    assert "Nobody in this group has answered" in page.text
    page = get(state, "scores_table", administration)
    assert page.text.count("No scores: ") == 3
    page = get(state, "scores_rates", administration)
    assert "No school shows a response rate and a score" in page.text
    page = get(state, "scores_changes", administration)
    assert "no earlier survey round" in page.text
    for route in FILES:
        assert get(state, route, administration).status_code == 200
    page = report(state, administration, staff.lincoln)
    assert "There is no report for this school" in page.text
    assert get(state, "publishing", administration).status_code == 200


NONSENSE = (
    *(
        "x",
        "-1",
        "0",
        "²",
        "\x00",
        ":",
        "%s",
        "' OR 1=1 --",
        "<script>alert(1)</script>",
    ),
    *("9" * 40, "0" * 30 + "9" * 30, "é" * 5000),
)


def assert_page_or_not_found(client, address, query):
    response = client.get(address, query)
    assert response.status_code in (200, 404), (address, query)
    assert "<script>alert" not in response.text


# One after the other where nonsense is not found, and the others at once.
PARAMETERS = (
    (["district"], PAGES),
    (["school"], ("results_page", "publishing_preview")),
    (["group"], PAGES[:1]),
    (["compare"], ("results_page", "scores_changes")),
    (["question"], ("results_comments",)),
    (["start"], ("results_comments",)),
    (["measure", "show", "sort", "page", "q", "from", "to", "x"], PAGES),
)


def test_nonsense_in_an_address_is_a_page_or_not_found(state, staff, fall):
    for parameters, routes in PARAMETERS:
        for route in routes:
            address = reverse(route, args=[fall.pk])
            for nonsense in NONSENSE:
                query = dict.fromkeys(parameters, nonsense)
                assert_page_or_not_found(state, address, query)


def test_nonsense_in_the_addresses_of_reports_is_a_page_or_not_found(
    state,
    staff,
    fall,
    publish,  # noqa: F811
):
    publish(fall)
    school = f"/results/{fall.pk}/schools/{staff.lincoln.pk}/"
    paths = (f"/console{school}", school, "/results/", f"/results/{fall.pk}/")
    for nonsense in NONSENSE:
        for path in paths:
            query = {"language": nonsense, "q": nonsense}
            assert_page_or_not_found(state, path, query)


def test_administrations_that_do_not_exist_are_not_found(state, staff, fall):
    for key in ("0", "9" * 18, "9" * 40):
        paths = [f"results/{key}/schools/{staff.lincoln.pk}/"]
        for path in ("", "scores/", "scores/rates/", "scores/changes/", "comments/"):
            paths.append(f"results/{key}/{path}")
        paths.append(f"results/{fall.pk}/schools/{key}/")
        for path in paths:
            assert state.get(f"/console/{path}").status_code == 404, path
        assert state.get(f"/results/{key}/").status_code == 404

"""The search of the console finds what a user's role may open, and names nobody."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.tests.logging_in import log_in
from reports.tests.conftest import invite
from survey.models import Identity, Respondent

pytestmark = pytest.mark.django_db


def results(user, query):
    response = log_in(Client(), user).get("/console/search/", {"q": query})
    assert response.status_code == 200
    return {
        name: [result.name for result in rows]
        for name, rows in response.context["results"].items()
    }


def test_survey_rounds_schools_and_pages_are_found(staff, students):
    title = students.title
    assert results(staff.state, title[:6])["Survey rounds"] == [title]
    assert results(staff.state, "lincol")["Schools"] == [staff.lincoln.name]
    assert results(staff.state, staff.lincoln.code)["Schools"] == [staff.lincoln.name]
    assert results(staff.state, "roster syncs")["Pages"] == ["Roster syncs"]


def test_schools_and_pages_of_others_are_not_found(staff, students):
    assert "Schools" not in results(staff.chen, staff.roosevelt.name)
    assert "Pages" not in results(staff.chen, "roster syncs")


def test_people_are_found_on_the_page_of_a_survey_round(staff, students):
    invite(students, staff.lincoln, 1)
    [person] = Respondent.objects.all()
    Identity.objects.create(
        respondent=person,
        administration=students,
        district=staff.riverside,
        external_id="s1",
        given_name="Zoraida",
        family_name="Quill",
    )
    rows = results(staff.chen, "Zoraida")
    assert rows == {"People": [f"Find “Zoraida” among the people of {students.title}"]}
    page = log_in(Client(), staff.chen).get("/console/search/", {"q": "Zor"})
    assert "Quill" not in page.text
    assert "People" not in results(staff.analyst, "Zoraida")


@pytest.mark.parametrize("query", ["", " ", "\0", "%", "x" * 5000, "<script>"])
def test_any_query_has_an_answer(staff, students, query):
    page = log_in(Client(), staff.state).get("/console/search/", {"q": query})
    assert page.status_code == 200
    assert "<script>" not in page.text.partition("<main")[2]

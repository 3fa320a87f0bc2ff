"""The search of the console finds what a user's role may open, and names nobody."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import School
from accounts.school_directory import refresh_words
from accounts.tests.logging_in import log_in
from reports.tests.conftest import invite
from survey.models import Administration, Identity, Respondent

pytestmark = pytest.mark.django_db


def page_of(user, query):
    return log_in(Client(), user).get("/console/search/", {"q": query})


def results(user, query):
    response = page_of(user, query)
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
    # Nothing is left but the people of the open round.
    assert page_of(staff.chen, staff.roosevelt.name).status_code == 302
    assert results(staff.analyst, staff.roosevelt.name) == {}
    # All staff may read about a page that few may open.
    for user in (staff.chen, staff.analyst):
        rows = results(user, "roster syncs")
        assert rows["Help"] == ["Roster syncs"]
        assert "Pages" not in rows


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
    # It is the only open round, and nothing else has this name.
    people = f"/console/administrations/{students.pk}/people/"
    reply = page_of(staff.chen, "Zoraida")
    assert (reply.status_code, reply["Location"]) == (302, f"{people}?q=Zoraida")
    # Other matches follow.
    find = f"Find “Lin” among the people of {students.title}"
    rows = results(staff.chen, "Lin")
    [first, *_] = rows.items()
    assert first == (f"People in {students.title}", [find])
    assert rows["Schools"] == [staff.lincoln.name]
    page = page_of(staff.chen, "Lin")
    assert f'href="{people}?q=Lin" autofocus' in page.text
    assert "Quill" not in page.text
    assert results(staff.analyst, "Zoraida") == {}


def test_districts_are_found(staff, students):
    rows = results(staff.state, "riversi")
    assert rows["Districts"] == [staff.riverside.name]
    assert results(staff.dana, staff.riverside.code)["Districts"] == ["Riverside"]
    # Nothing is left but the people of the open round.
    assert page_of(staff.dana, staff.lakeside.name).status_code == 302
    assert page_of(staff.chen, staff.riverside.name).status_code == 302


def test_misspelt_schools_are_found_among_the_users(staff, students):
    refresh_words()
    assert results(staff.analyst, "lincon") == {
        "Schools that match “lincoln”": [staff.lincoln.name]
    }
    # One of another district is known to the directory alone.
    assert "Schools that match “roosevelt”" in results(staff.state, "rosevelt")
    assert results(staff.analyst, "rosevelt") == {}


@pytest.mark.parametrize(
    ("query", "page", "route", "section"),
    [
        ("opt out", "Find a person", "people_list", "4. People"),
        ("Opt-outs", "Find a person", "people_list", "4. People"),
        ("print cards", "Login cards", "cards_list", "2. Cards and codes"),
        ("reminder", "E-mails", "emails_detail", "3. The survey days"),
    ],
)
def test_tasks_lead_to_their_pages(staff, students, query, page, route, section):
    shown = page_of(staff.state, query)
    pages = shown.context["results"]["Pages"]
    address = reverse(route, args=[students.pk])
    assert (page, students.title, address) in [
        (result.name, result.about, result.address) for result in pages
    ]
    help_pages = {it.name: it.address for it in shown.context["results"]["Help"]}
    [(name, address)] = [it for it in help_pages.items() if it[0].startswith(section)]
    assert address.startswith("/help/en/coordinators/#")
    # Analysts do none of it.
    assert results(staff.analyst, query).keys() == {"Help"}


def test_what_matches_nothing_is_said_before_people_are_offered(staff, students):
    second = Administration.objects.create(
        name="second",
        published=students.published,
        role="teacher",
        opens_at=timezone.now() - timedelta(days=1),
        closes_at=timezone.now() + timedelta(days=9),
    )
    page = page_of(staff.state, "Zoraida").text
    assert page.index("Nothing matches “Zoraida”") < page.index(
        f"among the people of {second.title}"
    )
    assert "Nothing matches" not in page_of(staff.state, "lincoln").text


@pytest.mark.parametrize("query", ["lincoln", "print cards"])
def test_a_search_costs_few_statements(
    staff, students, query, django_assert_num_queries
):
    client = log_in(Client(), staff.state)
    # 3 identify the user; 1 more reads the rounds that have such a page.
    with django_assert_num_queries(8 if query == "print cards" else 7):
        client.get("/console/search/", {"q": query})


@pytest.mark.parametrize("is_planned", [False, True])
def test_people_of_several_open_rounds_come_last(staff, students, is_planned):
    now = timezone.now()
    second = Administration.objects.create(
        name="second",
        published=students.published,
        role="teacher",
        opens_at=now + timedelta(days=1 if is_planned else -1),
        closes_at=now + timedelta(days=9),
    )
    rows = results(staff.state, "Lin")
    finds = [
        f"Find “Lin” among the people of {administration.title}"
        for administration in (second, students)
    ]
    if is_planned:
        assert rows[f"People in {students.title}"] == [finds[1]]
        assert rows["People"] == [finds[0]]
    else:
        assert rows["People"] == finds
        assert "autofocus" not in page_of(staff.state, "Lin").text


@pytest.mark.parametrize("query", ["", " ", "\0", "%", "x" * 5000, "<script>"])
def test_any_query_has_an_answer(staff, students, query):
    client = log_in(Client(), staff.state)
    page = client.get("/console/search/", {"q": query}, follow=True)
    assert page.status_code == 200
    assert "<script>" not in page.text.partition("<main")[2]


def test_a_code_made_of_the_name_is_not_shown_beside_it(staff, students):
    client = log_in(Client(), staff.state)
    for code, about in (("L-17", ", L-17"), (staff.lincoln.name.casefold(), "")):
        School.objects.filter(pk=staff.lincoln.pk).update(code=code)
        text = client.get(reverse("console_search"), {"q": "lincoln"}).text
        assert f'<span class="hint">{staff.riverside.name}{about}</span>' in text

"""Who sees the results and scores of which places, by every address that there is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership
from accounts.tests.logging_in import log_in
from reports.models import ResultsRollUp, SchoolRate
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed
from survey.models import Identity, Respondent

pytestmark = pytest.mark.django_db

ROUTES = (
    *("results_page", "results_csv", "scores_table", "scores_csv"),
    *("scores_rates", "scores_rates_csv", "scores_changes", "scores_changes_csv"),
)


def answers(client, administration, school, query=None):
    """Return the response of each address, with the school's report."""
    addresses = {route: reverse(route, args=[administration.pk]) for route in ROUTES}
    addresses["school_report"] = reverse(
        "school_report", args=[administration.pk, school.pk]
    )
    return {route: client.get(path, query) for route, path in addresses.items()}


def statuses(client, administration, school):
    replies = answers(client, administration, school)
    return {response.status_code for response in replies.values()}


def content(response):
    """Return a file, or a page without the menus, which name the user's places."""
    text = response.text
    return text.partition('id="main"')[2] or text


def share(*, shared=True):
    ResultsRollUp.objects.update(shared_at=timezone.now() if shared else None)


def test_results_open_when_the_administration_closes_and_is_shared(client, staff, fall):
    school = {"sam": staff.roosevelt}
    readers = ("state", "dana", "analyst", "chen", "sam")

    def seen_by():
        allowed = []
        for name in readers:
            log_in(client, getattr(staff, name))
            status = statuses(client, fall, school.get(name, staff.lincoln))
            assert len(status) == 1
            allowed += [name] if status == {200} else []
        return allowed

    assert seen_by() == ["state", "dana", "analyst"]
    share()
    assert seen_by() == ["state", "dana", "analyst", "chen", "sam"]
    # It runs again: only what is shared stays.
    fall.closes_at = timezone.now() + timedelta(days=1)
    fall.save()
    assert seen_by() == ["state", "dana", "analyst", "chen", "sam"]
    share(shared=False)
    assert seen_by() == []


def test_no_address_shows_another_place(client, staff, fall):
    """Lakeside and Roosevelt are not Riverside's; Washington is not Lincoln's."""
    share()
    foreign = {
        staff.dana: ["Roosevelt", "Lakeside"],
        staff.analyst: ["Roosevelt", "Lakeside"],
        staff.chen: ["Roosevelt", "Lakeside", "Washington"],
        staff.sam: ["Lincoln", "Riverside", "Washington"],
    }
    own_school = {staff.sam: staff.roosevelt}
    places = {
        "district": (staff.riverside, staff.lakeside),
        "school": (staff.lincoln, staff.washington, staff.roosevelt),
    }
    log_in(client, staff.state)
    everything = "".join(
        response.text for response in answers(client, fall, staff.lincoln).values()
    )
    assert all(name in everything for names in foreign.values() for name in names)
    for user, hidden in foreign.items():
        log_in(client, user)
        queries = [{}, {"sort": "-score-trust", "show": "moved"}, {"q": hidden[0]}]
        for kind, places_of_kind in places.items():
            queries += [
                {kind: place.pk} for place in places_of_kind if str(place) in hidden
            ]
        for query in queries:
            replies = answers(client, fall, own_school.get(user, staff.lincoln), query)
            for route, response in replies.items():
                # A searched word is in the form, and in the links to other pages.
                text = content(response).replace(f'value="{hidden[0]}"', "")
                text = text.replace(f"“{hidden[0]}”", "")
                text = text.replace(f"q={hidden[0]}", "")
                for name in hidden:
                    assert name not in text, (user.email, route, query)
        for school in places["school"]:
            if str(school) in hidden:
                address = reverse("school_report", args=[fall.pk, school.pk])
                assert client.get(address).status_code == 404


def test_a_school_below_its_threshold_is_nowhere_for_its_coordinator(
    client, staff, fall
):
    share()

    def figures():
        log_in(client, staff.chen)
        replies = answers(client, fall, staff.lincoln)
        return {
            "answers": replies["results_page"].context["page"].figures is not None,
            "answers in the file": replies["results_csv"].text.count("\n") > 1,
            "scores": "No scores: " not in replies["scores_table"].text,
            "in the file": not replies["scores_csv"].text.strip().endswith(",,,"),
            "rates": bool(replies["scores_rates"].context["page"].listing.rows),
            "in that file": replies["scores_rates_csv"].text.count("\n") > 1,
            "report": "points of 99" in replies["school_report"].text,
        }

    assert all(figures().values()), figures()
    lincoln = SchoolRate.objects.filter(administration=fall, school=staff.lincoln)
    lincoln.update(finished=29)
    assert not any(figures().values()), figures()
    address = reverse("school_report_pdf", args=[fall.pk, staff.lincoln.pk])
    assert client.get(address).status_code == 404


def test_roles_in_two_places_do_not_help_each_other(client, staff, fall):
    """An analyst of Lakeside who coordinates Lincoln sees no unshared Lincoln."""
    Membership.objects.create(
        user=staff.chen, role=Membership.Role.ANALYST, district=staff.lakeside
    )
    log_in(client, staff.chen)
    replies = answers(client, fall, staff.roosevelt)
    assert replies["scores_table"].status_code == 200
    assert "Roosevelt" in replies["scores_table"].text
    for route, response in replies.items():
        assert "Lincoln" not in content(response), route
    address = reverse("school_report", args=[fall.pk, staff.lincoln.pk])
    assert client.get(address).status_code == 404
    address = reverse("results_page", args=[fall.pk])
    assert client.get(address, {"school": staff.lincoln.pk}).status_code == 404
    share()
    assert client.get(address, {"school": staff.lincoln.pk}).status_code == 200


def test_results_of_another_district_are_not_found(client, staff, survey):
    administration = closed(survey, "lakeside-only", district=staff.lakeside)
    answered(administration, staff.roosevelt, 40, 3)
    scored(administration)
    share()
    for user in (staff.dana, staff.analyst, staff.chen):
        log_in(client, user)
        assert statuses(client, administration, staff.roosevelt) == {404}
    log_in(client, staff.sam)
    assert statuses(client, administration, staff.roosevelt) == {200}


def test_no_page_has_a_name_or_code_of_a_person(client, staff, fall):
    people = list(Respondent.objects.filter(administration=fall, school=staff.lincoln))
    for n, person in enumerate(people):
        Identity.objects.create(
            respondent=person,
            administration=fall,
            district=staff.riverside,
            external_id=f"ZQ-{n}",
            given_name="Zebulon",
            family_name="Quill",
        )
    for user in (staff.state, staff.analyst):
        log_in(client, user)
        replies = answers(client, fall, staff.lincoln, {"school": staff.lincoln.pk})
        for route, response in replies.items():
            assert "Zebulon" not in response.text, route
            assert "ZQ-" not in response.text, route

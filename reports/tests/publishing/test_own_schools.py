"""Coordinators are led from the console to the public pages of their schools."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership
from accounts.tests.logging_in import log_in
from reports.models import ResultsRollUp
from reports.publishing.publications import withdraw

pytestmark = pytest.mark.django_db

NOT_SHARED = "not shared with schools"


def console(client, user, name="results_list"):
    return log_in(client, user).get(reverse(name)).text


def test_the_list_of_results_leads_to_the_page_of_the_own_school(
    client, staff, fall, publish, django_assert_num_queries
):
    assert NOT_SHARED in console(client, staff.chen)
    publish(fall)
    text = console(client, staff.chen)
    # Why there are public pages only.
    assert NOT_SHARED in text and "No results yet" not in text
    school_page = reverse("published_school", args=[fall.pk, staff.lincoln.pk])
    state = reverse("published_state", args=[fall.pk])
    assert f'href="{school_page}"' in text and f'href="{state}"' in text
    # Schools of others are in the list of the public page only.
    assert "Roosevelt" not in text
    # Session, user, memberships; results, public pages, and what is not shared.
    with django_assert_num_queries(6):
        client.get(reverse("results_list"))
    # Who sees the results in the console needs no other page of them.
    assert "Published for everybody" not in console(client, staff.dana)


def test_the_home_page_leads_to_the_page_of_the_own_school(
    client, staff, fall, publish
):
    school_page = reverse("published_school", args=[fall.pk, staff.lincoln.pk])
    assert "See results" not in console(client, staff.chen, "console_home")
    publish(fall)
    text = console(client, staff.chen, "console_home")
    assert f'<a href="{school_page}">See results</a>' in text
    # The console shows more than the public page.
    ResultsRollUp.objects.update(shared_at=timezone.now())
    results = reverse("results_page", args=[fall.pk])
    assert f'<a href="{results}">See results</a>' in console(
        client, staff.chen, "console_home"
    )
    ResultsRollUp.objects.update(shared_at=None)
    # With several schools, to the list of them.
    Membership.objects.create(
        user=staff.chen, role="coordinator", school=staff.roosevelt
    )
    text = console(client, staff.chen, "console_home")
    assert f'<a href="{reverse("results_list")}">See results</a>' in text


def test_a_school_without_a_report_is_led_to_all_schools(client, staff, fall, publish):
    publish(fall)
    Membership.objects.filter(user=staff.chen).update(school=staff.washington)
    text = console(client, staff.chen)
    assert reverse("published_state", args=[fall.pk]) in text
    assert "Washington" not in text.partition("<main")[2]
    text = console(client, staff.chen, "console_home")
    assert "See results" not in text and "See response rates" in text


def test_what_is_embargoed_or_withdrawn_is_not_linked(client, staff, fall, publish):
    publication = publish(fall, embargo_until=timezone.now() + timedelta(days=1))
    assert NOT_SHARED in console(client, staff.chen)
    assert "See results" not in console(client, staff.chen, "console_home")
    withdraw(publication, because="A mistake.", by=staff.state)
    withdraw(publish(fall), because="A mistake.", by=staff.state)
    assert NOT_SHARED in console(client, staff.chen)

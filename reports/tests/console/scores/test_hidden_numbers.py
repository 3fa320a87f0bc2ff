"""The page that explains which numbers are hidden, and the links to it."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.models import User
from accounts.tests.logging_in import log_in
from reports.models import ResultsRollUp

pytestmark = pytest.mark.django_db


def test_every_page_of_results_links_to_what_is_hidden(client, staff, fall):
    log_in(client, staff.state)
    hidden = reverse("results_hidden", args=[fall.pk])
    for name, args, query in (
        ("results_page", (), ""),
        ("results_page", (), f"?school={staff.washington.pk}&group=grade:03"),
        ("results_comments", (), ""),
        ("scores_table", (), ""),
        ("scores_rates", (), ""),
        ("scores_changes", (), ""),
        ("scores_quality", (), ""),
        ("school_report", (staff.lincoln.pk,), ""),
    ):
        response = client.get(reverse(name, args=[fall.pk, *args]) + query)
        assert response.status_code == 200, name
        assert f'href="{hidden}"' in response.text, name
    page = client.get(hidden).text
    assert f'href="{reverse("results_page", args=[fall.pk])}"' in page
    assert fall.title in page


def test_users_read_what_is_hidden_from_them(client, staff, fall):
    hidden = reverse("results_hidden", args=[fall.pk])
    ResultsRollUp.objects.update(minimum_group=12)
    # It was raised after the answers were counted.
    fall.minimum_group = 15
    fall.save()
    log_in(client, staff.dana)
    text = client.get(hidden).text
    assert "at least 12 people answered" in text
    assert "only together" in text
    # Coordinators have no results before these are shared.
    log_in(client, staff.chen)
    assert client.get(hidden).status_code == 404
    ResultsRollUp.objects.update(shared_at=fall.closes_at)
    text = client.get(hidden).text
    assert "only together" not in text
    assert "of the schools that have a report" in text


def test_it_is_explained_in_the_language_of_the_user(client, staff, fall):
    User.objects.filter(pk=staff.dana.pk).update(language="es")
    log_in(client, User.objects.get(pk=staff.dana.pk))
    text = client.get(reverse("results_hidden", args=[fall.pk])).text
    assert "Qué números se ocultan" in text
    assert f"respondieron al menos {fall.minimum_group} personas" in text

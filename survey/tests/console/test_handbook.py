"""Who may read the handbook, and what it costs."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.tests.logging_in import log_in
from survey.console.handbook import image_language

pytestmark = pytest.mark.django_db

ADDRESS = "/console/handbook/"


def test_all_staff_read_the_handbook_and_nobody_else(staff):
    for user in (staff.state, staff.dana, staff.chen, staff.analyst):
        page = log_in(Client(), user).get(ADDRESS)
        assert "Before the survey" in page.content.decode()
        assert "handbook/en/cards" in page.content.decode()
    assert Client().get(ADDRESS)["Location"].startswith("/console/account/login/")


def test_a_language_without_images_shows_the_english_ones():
    assert image_language("en") == "en"
    assert image_language("xx") == "en"
    assert image_language("../..") == "en"


def test_the_handbook_reads_nothing_but_the_user(staff, django_assert_num_queries):
    client = log_in(Client(), staff.chen)
    with django_assert_num_queries(3):
        client.get(ADDRESS)

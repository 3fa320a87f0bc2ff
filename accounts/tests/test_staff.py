from __future__ import annotations

import pytest
from django.db import IntegrityError

from accounts.models import District, School, User
from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def engineer() -> User:
    return User.objects.create_superuser("Engineer@Example.org", "calm-harbour-42")


def test_staff_log_in_by_email(client, engineer):
    response = client.post(
        "/console/account/login/?next=/engineers/",
        {"login": "Engineer@example.org", "password": "calm-harbour-42"},
    )
    assert response["Location"] == "/engineers/"


def test_every_list_for_engineers_opens(client, engineer):
    log_in(client, engineer)
    District.objects.create(code="riverside", name="Riverside")
    for path in (
        "accounts/user/",
        "accounts/user/add/",
        f"accounts/user/{engineer.pk}/change/",
        "accounts/district/",
        "accounts/school/",
        "accounts/membership/",
        "accounts/auditentry/",
        "survey/wave/",
        "survey/administration/",
        "survey/publishedsurvey/",
    ):
        assert client.get(f"/engineers/{path}").status_code == 200, path


def test_the_admin_shows_no_answers_or_identities(client, engineer):
    log_in(client, engineer)
    page = client.get("/engineers/tables/").content.decode().lower()
    assert "administrations" in page
    for word in ("response", "identit", "respondent"):
        assert word not in page


def test_the_admin_is_hidden_from_others(client):
    assert client.get("/engineers/").status_code == 302


def test_one_user_per_address_in_any_case(engineer):
    with pytest.raises(IntegrityError, match="email"):
        User.objects.create_user("ENGINEER@Example.org", "x")


def test_one_school_per_code_in_a_district():
    riverside = District.objects.create(code="riverside", name="Riverside")
    School.objects.create(district=riverside, code="lincoln", name="Lincoln")
    with pytest.raises(IntegrityError):
        School.objects.create(district=riverside, code="lincoln", name="Other")

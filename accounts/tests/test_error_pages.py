"""Error pages of the console, which differ from the respondents'."""

from __future__ import annotations

import pytest
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import IntegrityError, InterfaceError, OperationalError
from django.test import Client
from django.urls import include, path

from accounts.access import anyone
from accounts.tests.logging_in import log_in
from settings.urls import handler400, handler403, handler404, handler500  # noqa: F401

pytestmark = pytest.mark.django_db
FAILURES = {400: BadRequest, 403: PermissionDenied, 500: RuntimeError}
DATABASE_ERRORS = {1: OperationalError, 2: InterfaceError, 3: IntegrityError}


@anyone
def failing(request, status):
    raise {**FAILURES, **DATABASE_ERRORS}[status]("this page fails")


urlpatterns = [
    path("console/fails/<int:status>/", failing),
    path("fails/<int:status>/", failing),
    path("", include("settings.urls")),
]


def page(client, address):
    return client.get(address).content.decode()


def test_staff_get_a_404_page_with_a_link_to_the_console(staff, client):
    reply = log_in(client, staff.chen).get("/console/rats/")

    assert reply.status_code == 404
    text = reply.content.decode()
    assert 'href="/console/"' in text and "home page shows" in text
    # For who has no role, and therefore no first page either.
    assert 'href="/console/me/"' in text
    assert "code" not in text
    for reason in ("mistyped", "Your role does not include", "another account"):
        assert reason in text


@pytest.mark.parametrize(
    "address, around",
    [
        ("/console/me/sessions/end/", "/console/me/"),
        ("/console/settings/calendar/us-holidays/", "/console/settings/calendar/"),
        ("/console/surveys/1/correct/here/", "/console/surveys/1/correct/"),
        ("/console/rosters/1/confirm/", "/console/rosters/1/"),
        ("/console/jobs/1/cancel/", "/console/jobs/1/"),
        ("/console/results/1/share/", "/console/results/1/"),
    ],
)
def test_an_address_that_only_takes_forms_leads_to_the_page_of_its_button(
    staff, client, address, around
):
    reply = log_in(client, staff.state).get(address)
    assert reply.status_code == 405
    assert reply["Allow"] == "POST"
    assert "Nothing was changed" in reply.text
    assert f'class="button" href="{around}"' in reply.text
    # Programs get no page.
    assert client.put(address).content == b""


def test_a_page_that_exists_elsewhere_is_answered_as_one_that_does_not(staff, client):
    log_in(client, staff.dana)
    [foreign] = staff.sam.memberships.all()
    pages = [
        client.get(f"/console/staff/{pk}/") for pk in (foreign.pk, foreign.pk + 10**6)
    ]
    assert [reply.status_code for reply in pages] == [404, 404]
    assert pages[0].content == pages[1].content


def test_respondents_get_a_404_page_that_asks_for_the_code(client):
    text = page(client, "/rats/")

    assert "enter your code" in text and 'lang="es"' in text
    assert "/console/" not in text


def test_staff_get_advice_after_a_csrf_failure(staff):
    client = log_in(Client(enforce_csrf_checks=True), staff.chen)
    reply = client.post("/console/account/logout/")

    assert reply.status_code == 403
    text = reply.content.decode()
    assert "Nothing was changed" in text and "code" not in text


@pytest.mark.django_db
def test_respondents_are_asked_for_the_code_after_a_csrf_failure():
    browser = Client(enforce_csrf_checks=True)
    browser.get("/")
    reply = browser.post("/", {"code": "x"})

    assert reply.status_code == 403
    assert "Enter your code again" in reply.content.decode()


def test_respondents_whose_browser_blocks_cookies_are_told_so():
    reply = Client(enforce_csrf_checks=True).post("/", {"code": "x"})

    assert reply.status_code == 403
    text = reply.content.decode()
    assert "This browser blocks cookies" in text
    assert "open for too long" not in text


@pytest.mark.urls("accounts.tests.test_error_pages")
@pytest.mark.parametrize("status", FAILURES)
def test_every_error_page_exists_for_staff_and_respondents(status):
    client = Client(raise_request_exception=False)
    for_staff = client.get(f"/console/fails/{status}/")
    for_others = client.get(f"/fails/{status}/")

    assert for_staff.status_code == for_others.status_code == status
    assert "Open console" in for_staff.content.decode()
    assert "Open console" not in for_others.content.decode()


@pytest.mark.urls("accounts.tests.test_error_pages")
@pytest.mark.parametrize("error", [1, 2])
def test_staff_are_told_to_come_again_while_the_database_is_away(error):
    reply = Client(raise_request_exception=False).get(f"/console/fails/{error}/")

    assert (reply.status_code, reply["Retry-After"]) == (503, "15")
    assert "The database does not answer" in reply.content.decode()


@pytest.mark.urls("accounts.tests.test_error_pages")
@pytest.mark.parametrize("address", ["/console/fails/3/", "/fails/1/"])
def test_other_errors_of_the_database_and_pages_remain_errors(address):
    reply = Client(raise_request_exception=False).get(address)

    assert reply.status_code == 500
    assert "The database does not answer" not in reply.content.decode()

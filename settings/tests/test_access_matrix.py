"""Every route, method and role: no user reaches another district's objects.

Each is answered with the rights of the database role of its process in the stack.
The routes are read from the URL resolver, so new ones are tested automatically. A
route with a parameter needs a line in `settings/tests/matrix/fixtures.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import override_settings

from settings.tests.matrix import snapshot
from settings.tests.matrix.checker import (
    METHODS,
    Attempt,
    RouteChecker,
    check_route,
    encode_form,
    passes_rule,
)
from settings.tests.matrix.fixtures import forms_for
from settings.tests.matrix.roles import stack_roles
from settings.tests.matrix.routes import Route, routes
from settings.tests.matrix.scenario import Scenario

# Permissions do not depend on the database.
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


IN_THIS_PROCESS = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}


@pytest.fixture(autouse=True)
def disable_logging():
    """Do not log the many refused requests."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def show_reports_as_html(monkeypatch):
    """Send what a PDF is made of: its text can be searched, and it is there at once."""
    monkeypatch.setattr(
        "reports.console.scores.views.pdf_files",
        lambda documents: {name: html.encode() for name, html in documents.items()},
    )


@pytest.fixture(scope="module")
def scenario(django_db_setup, django_db_blocker) -> Iterator[Scenario]:
    """Create the objects once, and roll back what each test writes."""
    with (
        django_db_blocker.unblock(),
        # It is emptied before each request.
        override_settings(CACHES={**settings.CACHES, "default": IN_THIS_PROCESS}),
        stack_roles(),
        transaction.atomic(),
    ):
        yield Scenario()
        transaction.set_rollback(True)


def route_named(name: str) -> Route:
    [route] = [route for route in routes() if route.name == name]
    return route


def test_every_route_shows_and_changes_only_what_its_rule_allows(scenario):
    defects = [defect for route in routes() for defect in check_route(route, scenario)]

    assert not defects, "\n".join(defects)
    # Everything was rolled back, so all requests met the same objects.
    assert snapshot.changed(scenario.digests, snapshot.table_digests()) == []


def test_a_rule_refuses_every_method(scenario):
    """Therefore the matrix tries one method where a rule refuses the user."""
    route = route_named("staff_invite")
    checker = RouteChecker(route, scenario)
    [address] = scenario.addresses(route)
    refused = [
        requester
        for requester in scenario.requesters
        if not passes_rule(route.rule, requester)
    ]
    assert len(refused) > 5
    for requester in refused:
        for method in METHODS:
            assert checker.check_reply(Attempt(requester, method, address)) == []


@pytest.mark.parametrize(
    "name",
    ["export_new", "export_return", "staff_invite", "survey_upload", "roster_upload"],
)
def test_a_form_refused_for_another_place_is_accepted_for_the_own(scenario, name):
    route = route_named(name)
    addresses = scenario.addresses(route)
    own_addresses = [
        address for address in addresses if address.places == [scenario.own_place]
    ]
    [address] = own_addresses or addresses
    [requester] = [
        requester
        for requester in scenario.requesters
        if requester.user == scenario.own_place.administrator
        and requester.second_factor
    ]
    for form in forms_for(route, scenario.own_place)[1:]:
        with snapshot.rolled_back(), snapshot.recorded_writes() as writes:
            reply = requester.send("POST", address.path, encode_form(form))
        assert (reply.status, bool(writes)) == (302, True), (form, reply.text)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles")
@pytest.mark.parametrize(
    ("role", "table", "name"),
    [
        ("console", "survey_wave", "administration_detail"),
        ("taking", "accounts_schoollisting", "school_page"),
    ],
)
def test_a_right_that_a_process_lacks_is_reported(scenario, role, table, name):
    with snapshot.rolled_back():
        with connection.cursor() as cursor:
            cursor.execute(f"REVOKE SELECT ON {table} FROM {role}")
        defects = check_route(route_named(name), scenario)
    assert f"permission denied for table {table}" in "\n".join(defects)


def test_routes_of_packages_are_included():
    names = {route.name for route in routes()}
    assert {"console_home", "survey_login", "mfa_authenticate"} <= names
    assert {"account_login", "admin:index", "admin:survey_wave_change"} <= names


# Routes with planted defects


@pytest.fixture
def leaky_scenario(settings, scenario) -> Scenario:
    settings.ROOT_URLCONF = "settings.tests.matrix.leaky_urls"
    return scenario


def defects_of(scenario: Scenario, name: str) -> str:
    return "\n".join(check_route(route_named(name), scenario))


DEFECTS = {
    "shows_no_school": "shows nothing of markofmine",
    "shows_any_school": "GET of markoftheirs by the coordinator of markofmine"
    " leaks markoftheirs",
    "shows_district_schools": "by the coordinator of markofmine leaks marknextdoor",
    "finds_any_school": "by the coordinator of markofmine leaks marknextdoor",
    "trusts_school_in_query": "for ?school=",
    "deletes_files": "a reading request changes exports/",
    "shows_any_school_compressed": "by the analyst of markofmine leaks markoftheirs",
    "shows_any_school_in_header": "leaks markoftheirs of markoftheirs (200)",
    "answers_403": "by the analyst of markofmine is 403, not 404",
    "lists_all_schools": "GET by the administrator of markofmine leaks markoftheirs",
    "trusts_query": "GET ?… with ids of markoftheirs by the coordinator",
    "trusts_form": "POST with ids of markoftheirs by the coordinator",
    "writes_school_of_form": "POST with ids of markoftheirs by the coordinator of"
    " markofmine changes ['accounts_school', 'accounts_schoollisting'] there",
    "appoints_by_form": "POST with ids of markoftheirs by the analyst of markofmine"
    " changes ['accounts_membership'] there",
    "logs_out_on_get": "a reading request ends the session of the coordinator of"
    " markoftheirs",
    "writes_on_get": "who only reads,"
    " changes ['accounts_school', 'accounts_schoollisting']",
    "deletes_on_get": "who only reads, changes ['accounts_letter']",
    "writes_before_checking": "POST of markoftheirs by the analyst of markofmine,"
    " who may not, changes ['accounts_school', 'accounts_schoollisting']",
    "crashes": "is a server error 500: AttributeError",
    "has_no_rule": "declares no rule: put one of accounts.access on its view",
    "has_too_wide_a_rule": "by the coordinator of markofmine is 200, not 404",
    "gadget": 'RouteParameter("gadget gadget_id", lambda place, route:',
    "is_unreachable": "another route answers /console/lists/",
}


def test_each_planted_defect_is_reported_and_a_correct_route_has_none(leaky_scenario):
    missed = {
        name
        for name in DEFECTS
        if DEFECTS[name] not in defects_of(leaky_scenario, name)
    }

    assert missed == set()
    assert defects_of(leaky_scenario, "shows_own_school") == ""


def test_a_correct_route_shows_a_school_only_to_its_own_users(leaky_scenario):
    route = route_named("shows_own_school")
    seen = set()
    for requester in leaky_scenario.requesters:
        for address in leaky_scenario.addresses(route):
            mark = address.places[0].mark
            if requester.send("GET", address.path).find_marks([mark]):
                seen.add((str(requester), mark))
    assert seen == {
        ("a state administrator", "markofmine"),
        ("a state administrator", "markoftheirs"),
        *(
            (f"the {role} of {mark}", mark)
            for role in ("administrator", "coordinator", "analyst")
            for mark in ("markofmine", "markoftheirs")
        ),
        # The second school of the district: all but the first school's coordinator.
        ("a state administrator", "marknextdoor"),
        ("the administrator of markofmine", "marknextdoor"),
        ("the analyst of markofmine", "marknextdoor"),
    }


def test_missing_access_middleware_is_reported(leaky_scenario, settings, monkeypatch):
    settings.MIDDLEWARE = [
        name for name in settings.MIDDLEWARE if "AccessMiddleware" not in name
    ]
    # Test clients keep the middleware that they were created with.
    for requester in leaky_scenario.requesters:
        monkeypatch.setattr(requester.client.handler, "_middleware_chain", None)
    assert "not the login" in defects_of(leaky_scenario, "lists_all_schools")

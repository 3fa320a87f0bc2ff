"""Send the requests of each route as the database role of its process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from django.db import connection

from accounts.access import Audience
from settings.tests.matrix import snapshot
from settings.tests.matrix.checker import encode_form, has_role
from settings.tests.matrix.fixtures import forms_for, queries_for
from settings.tests.matrix.routes import Route, routes
from settings.tests.matrix.scenario import Requester, Scenario

PRIMARY, POOLER = 5432, 6432


def failed_requests(scenario: Scenario, *names: str) -> set[str]:
    """Return a sentence for each page and form that ends in a server error.

    Of all routes, or of those with these names.
    """
    of_respondents = {route.view for route in routes("survey.urls")}
    failed: set[str] = set()
    for role in ("taking", "console"):
        with connected_as(role):
            for route in routes():
                if names and route.name not in names:
                    continue
                if (route.view in of_respondents) is (role == "taking"):
                    failed |= {f"{role}: {it}" for it in _failures(route, scenario)}
    return failed


@contextmanager
def connected_as(role: str) -> Iterator[None]:
    """Let this process's queries run as one of the roles."""
    kept = {name: connection.settings_dict[name] for name in ("USER", "PORT")}
    connection.close()
    connection.settings_dict["USER"] = role
    if kept["PORT"] == POOLER:
        # The pooler would keep its connections to the test database.
        connection.settings_dict["PORT"] = PRIMARY
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict |= kept


def _failures(route: Route, scenario: Scenario) -> Iterator[str]:
    requests = [("GET", query) for query in ({}, queries_for(scenario.own)[0])]
    requests += [("POST", form) for form in ({}, *forms_for(route, scenario.own))]
    for requester in _requesters(route, scenario):
        for address in scenario.addresses(route):
            if address.place not in (scenario.own, None):
                continue
            refused = set()
            for method, fields in requests:
                if method in refused:
                    continue
                path = address.path
                if method == "GET" and fields:
                    path = f"{path}?{urlencode(fields)}"
                body = encode_form(fields) if method == "POST" else b""
                with snapshot.rolled_back():
                    reply = requester.send(method, path, body)
                if reply.status == 405:
                    refused.add(method)
                if reply.status >= 500:
                    error = reply.error[1] if reply.error else reply.status
                    yield f"{method} of {route.name}: {str(error).splitlines()[0]}"
    scenario.restore_files()


def _requesters(route: Route, scenario: Scenario) -> list[Requester]:
    """Return one whom the route's rule admits for the whole state, and one for a place.

    What a page reads depends on that, and hardly on the role.
    """
    is_public = route.rule.audience is Audience.ANYONE
    admitted = [
        requester
        for requester in scenario.requesters_for(route)
        if requester.second_factor and requester.place is not scenario.other
        if is_public or (requester.user and has_role(route.rule, requester))
    ]
    return list({one.place and one.place.mark: one for one in admitted}.values())

"""Every route × method × role: nobody reaches another district's anything.

The routes are the resolver's, so a new one is tried as soon as it is there.
One with a parameter needs a line in `settings/tests/matrix/fixtures.py`.
"""

from __future__ import annotations

import logging

import pytest

from settings.tests.matrix import state
from settings.tests.matrix.fixtures import forms_about
from settings.tests.matrix.judging import (
    World,
    encoded,
    examine,
    examine_all,
    is_shown,
)
from settings.tests.matrix.routes import routes

# What is asked are permissions, the same on every database.
pytestmark = [pytest.mark.once, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def silence():
    """What is refused is not news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def world(settings) -> World:
    # In the database, so that each session is as it was when all is undone.
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.db"
    return World()


def test_every_route_shows_and_does_what_its_rule_allows(world):
    wrong = examine_all(world)

    assert not wrong, "\n".join(wrong)
    # Everything was undone, so that each was asked in the same world.
    assert state.changed(world.before, state.digests()) == []


def test_there_was_something_to_leak_on_every_page(world):
    """Whose it is sees it there."""
    assert [route.name for route in routes() if not is_shown(route, world)] == []


@pytest.mark.parametrize(
    "name", ["export_new", "staff_invite", "survey_upload", "roster_upload"]
)
def test_a_form_that_another_place_is_refused_goes_through_at_home(world, name):
    [route] = [one for one in routes() if one.name == name]
    [address] = [one for one in world.addresses(route) if one.whose is world.mine] or (
        world.addresses(route)
    )
    [asker] = [
        one
        for one in world.askers
        if one.user == world.mine.administrator and one.second_factor
    ]
    for typed in forms_about(route, world.mine)[1:]:
        with state.undone(), state.written() as written:
            reply = asker.ask("POST", address.path, encoded(typed))
        assert (reply.status, bool(written)) == (302, True), (typed, reply.text)


def test_the_packages_routes_are_among_them():
    names = {route.name for route in routes()}
    assert {"console_home", "survey_login", "mfa_authenticate"} <= names
    assert {"account_login", "admin:index", "admin:survey_wave_change"} <= names


# The twin: each defect is found, and named


@pytest.fixture
def leaky(settings, world) -> World:
    settings.ROOT_URLCONF = "settings.tests.matrix.leaky_urls"
    return world


def found_in(world: World, name: str) -> str:
    [route] = [one for one in routes() if one.name == name]
    return "\n".join(examine(route, world))


DEFECTS = {
    "leaks": "GET of markoftheirs by the coordinator of markofmine leaks markoftheirs",
    "leaks_next_door": "by the coordinator of markofmine leaks marknextdoor",
    "leaks_when_searched": "by the coordinator of markofmine leaks marknextdoor",
    "believes_one_of_its_query": "when asked school=",
    "spoils_files": "something there touches exports/",
    "leaks_packed": "by the analyst of markofmine leaks markoftheirs",
    "leaks_by_its_header": "leaks markoftheirs of markoftheirs (200)",
    "tells_that_it_is_there": "by the analyst of markofmine is 403, not 404",
    "lists_everything": "GET by the administrator of markofmine leaks markoftheirs",
    "believes_its_query": "GET ?… with numbers of markoftheirs by the coordinator",
    "believes_its_form": "POST with numbers of markoftheirs by the coordinator",
    "writes_by_form": "POST with numbers of markoftheirs by the coordinator of"
    " markofmine changes ['accounts_school'] there",
    "adds_by_form": "POST with numbers of markoftheirs by the analyst of markofmine"
    " changes ['accounts_membership'] there",
    "signs_out": "a look ends the session of the coordinator of markoftheirs",
    "writes_when_looked_at": "who only looks, changes ['accounts_school']",
    "deletes_when_looked_at": "who only looks, changes ['accounts_letter']",
    "writes_before_it_asks": "POST of markoftheirs by the analyst of markofmine,"
    " who may not, changes ['accounts_school']",
    "crashes": "is a server error 500: AttributeError",
    "has_no_rule": "declares no rule: put one of accounts.access on its view",
    "is_for_more_than_it_should": "by the coordinator of markofmine is 200, not 404",
    "gadget": 'Add a line Thing("gadget gadget_id", lambda place, route:',
    "is_shadowed": "another route answers /console/lists/",
}


def test_each_planted_defect_is_found_and_a_sound_route_has_none(leaky):
    missed = {name for name in DEFECTS if DEFECTS[name] not in found_in(leaky, name)}

    assert missed == set()
    assert found_in(leaky, "sound") == ""


def test_the_sound_route_leaks_to_nobody_and_shows_it_to_its_own(leaky):
    """The sound route does show it, to those whose it is."""
    [route] = [one for one in routes() if one.name == "sound"]
    seen = set()
    for asker in leaky.askers:
        for address in leaky.addresses(route):
            if asker.ask("GET", address.path).holds([address.whose.mark]):
                seen.add((str(asker), address.whose.mark))
    assert seen == {
        ("a state administrator", "markofmine"),
        ("a state administrator", "markoftheirs"),
        *(
            (f"the {role} of {mark}", mark)
            for role in ("administrator", "coordinator", "analyst")
            for mark in ("markofmine", "markoftheirs")
        ),
        # All but the coordinator.
        ("a state administrator", "marknextdoor"),
        ("the administrator of markofmine", "marknextdoor"),
        ("the analyst of markofmine", "marknextdoor"),
    }


def test_without_the_middleware_every_refusal_would_be_missed(leaky, settings):
    settings.MIDDLEWARE = [
        name for name in settings.MIDDLEWARE if "AccessMiddleware" not in name
    ]
    # A browser keeps the middleware that it began with.
    for asker in leaky.askers:
        asker.client.handler._middleware_chain = None
    assert "not the login" in found_in(leaky, "lists_everything")

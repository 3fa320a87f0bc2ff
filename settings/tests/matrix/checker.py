"""Request each route as each user with each place's objects; report defects."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.shortcuts import resolve_url
from django.test.client import BOUNDARY, encode_multipart
from django.urls import Resolver404, get_urlconf, resolve

from accounts.access import Audience, Rule
from accounts.permissions import CAPABILITIES
from settings.tests.matrix import snapshot
from settings.tests.matrix.fixtures import (
    FormData,
    PlaceObjects,
    UnknownParameter,
    forms_for,
    queries_for,
)
from settings.tests.matrix.routes import Route
from settings.tests.matrix.scenario import (
    ANY_PARAMETER,
    Address,
    Reply,
    Requester,
    Scenario,
)

READING_METHODS = ("GET", "HEAD")
FURTHER_METHODS = ("PUT", "PATCH", "DELETE")
METHODS = (*READING_METHODS, "POST", *FURTHER_METHODS)


class Attempt(NamedTuple):
    """One request of the matrix."""

    requester: Requester
    method: str
    address: Address

    def __str__(self) -> str:
        return f"{self.method}{self.address.description} by {self.requester}"


def check_route(route: Route, scenario: Scenario) -> list[str]:
    """Return a sentence for each defect of a route."""
    if route.rule is None:
        return [f"{route} declares no rule: put one of accounts.access on its view"]
    try:
        addresses = scenario.addresses(route)
    except UnknownParameter as unknown:
        return [f"{route}: {unknown}"]
    for address in addresses:
        try:
            view = resolve(address.path, get_urlconf()).func
        except Resolver404:
            view = None
        if view is not route.view:
            return [f"{route}: another route answers {address.path}"]
    return RouteChecker(route, scenario).check(addresses)


class RouteChecker:
    def __init__(self, route: Route, scenario: Scenario) -> None:
        self.route = route
        self.rule: Rule = route.rule
        self.scenario = scenario
        # Names of the query string that the page has looked up so far.
        self.parameters_read: set[str] = set()
        # Methods that the view refuses as such.
        self.refused_methods: set[str] = set()
        # Whether a user has seen an object of the own place, which could leak.
        self.shows_own_objects = False

    def check(self, addresses: list[Address]) -> list[str]:
        self.first_address = addresses[0]
        self.written = snapshot.WrittenTables()
        requesters = self.scenario.requesters_for(self.route)
        reaching = [
            requester
            for requester in requesters
            if requester.place is not self.scenario.other_place
            and passes_rule(self.rule, requester)
        ]
        # The user who may see least.
        self.all_methods_by = max(reaching, key=self.count_foreign_places, default=None)
        # By the mark of a place, the first user who may not see it.
        self.all_queries_by = {
            place.mark: requester
            for requester in reversed(reaching)
            for place in self.scenario.foreign_places(requester, self.route)
        }
        # Of those with the role, the first whom the middleware sends to set one up.
        self.without_second_factor = next(
            (each for each in requesters if lacks_second_factor(self.rule, each)), None
        )
        # What a page reads of its users' own objects depends on whether they work in
        # one place or the whole state, and hardly on the role.
        self.with_own_forms = self.users_by_scope()
        attempts = [
            Attempt(requester, method, address)
            for requester in requesters
            for address in addresses
            for method in self.methods_to_try(requester, address)
        ]
        # First of all which methods the view refuses.
        attempts.sort(key=self.tries_all_methods, reverse=True)
        reading, writing = [], []
        for attempt in attempts:
            (reading if self.must_change_nothing(attempt) else writing).append(attempt)
        defects = []
        for attempt in writing:
            if not self.is_refused_anyway(attempt):
                defects += self.check_writing(attempt)
        # Users may delete their own files.
        self.scenario.restore_files()
        defects = self.check_reading(reading) + defects
        has_own_objects = any(
            self.scenario.own_place in each.places for each in addresses
        )
        if has_own_objects and not self.shows_own_objects:
            defects.append(
                f"{self.route} shows nothing of {self.scenario.own_place.mark}"
            )
        return defects

    def users_by_scope(self) -> list[Requester]:
        """Return an admitted user of the whole state, and one of a place."""
        is_public = self.rule.audience is Audience.ANYONE
        admitted = [
            requester
            for requester in self.scenario.requesters_for(self.route)
            if requester.second_factor
            and requester.place is not self.scenario.other_place
            if is_public or (requester.user and has_role(self.rule, requester))
        ]
        return list(
            {user.place and user.place.mark: user for user in admitted}.values()
        )

    def methods_to_try(self, requester: Requester, address: Address) -> tuple[str, ...]:
        """Return all methods where the view has to refuse, else GET and POST.

        Requests are left out that would repeat the result of another.
        """
        scenario = self.scenario
        is_ours = self.rule.audience is not Audience.ENGINEER
        if is_ours and not passes_rule(self.rule, requester):
            # The middleware refuses them without looking at the objects or the method.
            if address is not self.first_address:
                return ()
            is_enough = (
                requester.second_factor or requester is self.without_second_factor
            )
            return ("GET",) if is_enough else ()
        if scenario.neighbor in address.places:
            # Only the coordinator may not see it.
            is_concerned = requester.user == scenario.own_place.coordinator
            is_mixed = scenario.other_place in address.places
            return ("GET", "POST") if is_concerned and not is_mixed else ()
        if requester.place is scenario.other_place:
            # A view is found that takes the first object of all. What else its users
            # could see, those of the own district try.
            if address.places not in ([], [scenario.other_place]):
                return ()
        elif (
            requester.user
            and not requester.place
            and scenario.other_place in address.places
        ):
            # Administrators of the state may see every place.
            return ()
        if requester is not self.all_methods_by:
            return ("GET", "POST")
        # What is true of GET is true of HEAD.
        is_first = address is self.first_address
        return METHODS if is_first else ("GET", "POST", *FURTHER_METHODS)

    def tries_all_methods(self, attempt: Attempt) -> bool:
        is_first = attempt.address is self.first_address
        return is_first and attempt.requester is self.all_methods_by

    def is_refused_anyway(self, attempt: Attempt) -> bool:
        """Return whether the view refused the method, for any user and object."""
        return (
            attempt.method in self.refused_methods
            and not self.tries_all_methods(attempt)
            and passes_rule(self.rule, attempt.requester)
        )

    def count_foreign_places(self, requester: Requester) -> int:
        return len(self.scenario.foreign_places(requester, self.route))

    def must_change_nothing(self, attempt: Attempt) -> bool:
        """Return whether the request only reads, or has to be refused."""
        requester, method, address = attempt
        if method in READING_METHODS:
            return True
        if self.rule.audience is Audience.ANYONE:
            return False
        if requester.user is None or self.is_foreign(requester, address):
            return True
        needs_second_factor = self.rule.audience is not Audience.SIGNED_IN
        return needs_second_factor and not requester.second_factor

    def is_foreign(self, requester: Requester, address: Address) -> bool:
        """Return whether the path names an object of another place or user."""
        if requester.user is None:
            return False
        if address.user is not None and address.user != requester.user:
            return True
        places = [each for each in address.places if each is not self.scenario.shared]
        if places and requester.place is None:
            is_console = self.rule.audience is not Audience.ENGINEER
            return requester.user.is_superuser and is_console
        return not all(self.scenario.is_in(requester, place) for place in places)

    def check_reading(self, attempts: list[Attempt]) -> list[str]:
        """Check requests that must change nothing, with one comparison of rows."""
        route, scenario = self.route, self.scenario
        defects: list[str] = []
        queried = set()
        with snapshot.rolled_back():
            for attempt in attempts:
                requester, method, address = attempt
                if self.is_refused_anyway(attempt):
                    continue
                defects += self.check_reply(attempt)
                # Query strings are checked once per user, on a page of theirs.
                is_own_page = method == "GET" and not self.is_foreign(
                    requester, address
                )
                if is_own_page and str(requester) not in queried:
                    queried.add(str(requester))
                    defects += self.check_queries(requester, address)
                if method == "GET" and self.sends_own_forms(requester, address):
                    query = queries_for(scenario.own_place)[0]
                    if self.parameters_read:
                        place = scenario.own_place
                        defects += self.check_query(requester, address, place, query)[1]
            changed = self.changed_tables()
            defects += [
                f"{route}: a reading request ends the session of {requester}"
                for requester in scenario.logged_out_requesters()
            ]
        defects += [
            f"{route}: a reading request changes {name}"
            for name in scenario.restore_files()
        ]
        if changed:
            for attempt in attempts:
                defects += self.find_change(attempt)
            if not defects:
                defects.append(f"{route}: the requests together change {changed}")
        return defects

    def find_change(self, attempt: Attempt) -> list[str]:
        """Repeat a single request, and report the tables that it changes."""
        requester, method, address = attempt
        with snapshot.rolled_back():
            with snapshot.recorded_writes() as writes:
                requester.send(method, address.path, role=self.route.database_role)
            if not writes:
                return []
            changed = self.changed_tables()
        reason = "only reads" if method in READING_METHODS else "may not"
        defect = f"{self.route}: {attempt}, who {reason}, changes {changed}"
        return [defect] if changed else []

    def changed_tables(self) -> list[str]:
        after = snapshot.table_digests(self.written.names())
        return snapshot.changed(self.scenario.digests, after)

    def check_writing(self, attempt: Attempt) -> list[str]:
        """Check a request that may change something, and roll it back."""
        requester, method, address = attempt
        defects = []
        # The other district's users submit forms, which do more than an empty one.
        if method != "POST" or requester.place is not self.scenario.other_place:
            with snapshot.rolled_back():
                defects = self.check_reply(attempt)
        if method == "POST" and "POST" not in self.refused_methods:
            places = self.tried_places(requester)
            if self.sends_own_forms(requester, address):
                places = [*places, self.scenario.own_place]
            for place in places:
                for form in forms_for(self.route, place):
                    defects += self.check_form(requester, address, place, form)
        return defects

    def tried_places(self, requester: Requester) -> list[PlaceObjects]:
        """Return the foreign places whose ids a user tries in forms."""
        places = self.scenario.foreign_places(requester, self.route)
        if requester.place is self.scenario.other_place and places:
            # Its neighbor concerns only a coordinator of that district.
            return [self.scenario.own_place]
        return places

    def sends_own_forms(self, requester: Requester, address: Address) -> bool:
        return requester in self.with_own_forms and all(
            place in (self.scenario.own_place, self.scenario.shared)
            for place in address.places
        )

    def check_form(
        self,
        requester: Requester,
        address: Address,
        place: PlaceObjects,
        form: FormData,
    ) -> list[str]:
        """Submit a form with ids of a place."""
        request = f"{self.route}: POST with ids of {place.mark} by {requester}"
        with snapshot.rolled_back():
            with snapshot.recorded_writes() as writes:
                reply = requester.send(
                    "POST",
                    address.path,
                    encode_form(form),
                    role=self.route.database_role,
                )
            defects = self.find_leaks(request, requester, reply, form)
            if writes and place in self.scenario.foreign_places(requester, self.route):
                before = self.scenario.place_digests[place.mark]
                rows = self.scenario.related_rows[place.mark]
                after = rows.digests(self.written.names())
                if changed := snapshot.changed(before, after):
                    defects.append(f"{request} changes {changed} there")
        return defects

    def check_queries(self, requester: Requester, address: Address) -> list[str]:
        """Request a page with ids of another place in the query string."""
        defects: list[str] = []
        # Only pages for staff contain lists.
        if self.rule.audience is not Audience.STAFF:
            return []
        if not passes_rule(self.rule, requester) or not self.parameters_read:
            return []
        # What the other district's users could see, those of the own district try.
        if requester.place is self.scenario.other_place:
            return []
        for place in self.scenario.foreign_places(requester, self.route):
            queries = queries_for(place)
            if requester is not self.all_queries_by.get(place.mark):
                queries = queries[:1]
            for number, parameters in enumerate(queries):
                # The first shows what the page looks up, the others try that in the
                # part that htmx loads.
                read = self.parameters_read
                if number and not read & {ANY_PARAMETER, *parameters}:
                    continue
                reply, leaks = self.check_query(
                    requester, address, place, parameters, htmx=number > 0
                )
                defects += leaks
                if reply.status == 405 or not reply.is_text:
                    # This page does not read its query string.
                    return defects
        return defects

    def check_query(
        self,
        requester: Requester,
        address: Address,
        place: PlaceObjects,
        parameters: FormData,
        *,
        htmx: bool = False,
    ) -> tuple[Reply, list[str]]:
        query = urlencode(parameters)
        reply = requester.send(
            "GET", f"{address.path}?{query}", htmx=htmx, role=self.route.database_role
        )
        self.parameters_read |= reply.parameters_read
        request = f"{self.route}: GET ?… with ids of {place.mark} by {requester}"
        leaks = self.find_leaks(request, requester, reply, {})
        return reply, [f"{defect} for ?{query[:80]}" for defect in leaks]

    def check_reply(self, attempt: Attempt) -> list[str]:
        requester, method, address = attempt
        reply = requester.send(method, address.path, role=self.route.database_role)
        self.parameters_read |= reply.parameters_read
        if reply.status == 405 and self.tries_all_methods(attempt):
            self.refused_methods.add(method)
        if (
            method == "GET"
            and self.scenario.own_place in address.places
            and requester.user
        ):
            own_mark = self.scenario.own_place.mark
            if reply.status == 405 or (
                reply.status < 400 and reply.find_marks([own_mark])
            ):
                self.shows_own_objects = True
        request = f"{self.route}: {attempt}"
        is_console = method == "GET" and address.path.startswith("/console/")
        if reply.status == 405 and is_console and 'href="/console/' not in reply.text:
            return [f"{request} is 405 without a link to a page"]
        return [
            *self.find_leaks(request, requester, reply, {}),
            *self.find_wrong_refusal(request, requester, address, reply),
        ]

    def find_leaks(
        self, request: str, requester: Requester, reply: Reply, form: FormData
    ) -> list[str]:
        """Report a server error, or marks of places that the user must not see."""
        if reply.status >= 500:
            error = reply.error[1] if reply.error else ""
            return [f"{request} is a server error {reply.status}: {error!r}"]
        defects = []
        for place in self.scenario.foreign_places(requester, self.route):
            # A form may show what was typed in.
            for text in map(str, form.values()):
                if place.mark in text:
                    encoded = urlencode({"": text.lower()})[1:]
                    reply.text = reply.text.replace(text.lower(), "")
                    reply.text = reply.text.replace(encoded, "")
            if marks := reply.find_marks(place.marks):
                defects.append(
                    f"{request} leaks {marks[0]} of {place.mark} ({reply.status})"
                )
        return defects

    def find_wrong_refusal(
        self, request: str, requester: Requester, address: Address, reply: Reply
    ) -> list[str]:
        """Report a refusal that differs from the one that all routes use."""
        if reply.status >= 500 or reply.status == 405:
            return []
        audience = self.rule.audience
        if requester.user is None:
            is_login = reply.status == 302 and reply.location.startswith(
                resolve_url(settings.LOGIN_URL)
            )
            if audience is Audience.ANYONE or is_login:
                return []
            return [f"{request} is {reply.status}, not the login"]
        if audience not in (Audience.SIGNED_IN, Audience.ANYONE):
            if not has_role(self.rule, requester):
                if reply.status == 404:
                    return []
                return [f"{request}, whose role has no such page, is {reply.status}"]
            if not requester.second_factor:
                set_up = resolve_url(settings.SECOND_FACTOR_URL)
                if reply.status == 302 and reply.location.startswith(set_up):
                    return []
                return [f"{request} is {reply.status}, not the second factor"]
        if self.is_foreign(requester, address) and reply.status != 404:
            return [f"{request} is {reply.status}, not 404"]
        return []


def encode_form(form: FormData) -> bytes:
    for value in form.values():
        if hasattr(value, "seek"):
            value.seek(0)
    return encode_multipart(BOUNDARY, form)


def passes_rule(rule: Rule, requester: Requester) -> bool:
    """Return whether the rule lets the user reach the view of one of our pages."""
    if rule.audience is Audience.ANYONE:
        return True
    # Engineers' pages are Django's own.
    if requester.user is None or rule.audience is Audience.ENGINEER:
        return False
    if rule.audience is Audience.SIGNED_IN:
        return True
    return requester.second_factor and has_role(rule, requester)


def lacks_second_factor(rule: Rule, requester: Requester) -> bool:
    return not requester.second_factor and has_role(rule, requester)


def has_role(rule: Rule, requester: Requester) -> bool:
    if rule.audience is Audience.ENGINEER:
        return requester.user.is_staff
    if not rule.capabilities:
        return bool(requester.roles)
    return any(rule.capabilities & CAPABILITIES[role] for role in requester.roles)

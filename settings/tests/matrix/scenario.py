"""Create the districts, users and objects that the access matrix works with."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, cast
from unittest.mock import patch
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.handlers import wsgi
from django.db.models import F
from django.http import HttpResponseBase, QueryDict
from django.test import Client
from django.test.client import MULTIPART_CONTENT

from accounts.access import Audience
from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from reports.models import ResultsRollUp, SchoolRate
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from settings.tests.matrix import snapshot
from settings.tests.matrix.fixtures import (
    PlaceObjects,
    RouteParameter,
    create_member,
    create_place,
    create_published_survey,
    create_state,
    parameter_for,
    rows_of,
)
from settings.tests.matrix.roles import as_database_role
from settings.tests.matrix.routes import Route
from survey.models import Administration
from survey.work.files import path_of, private_files

ANY_PARAMETER = "*"
FORM = "application/x-www-form-urlencoded"


@dataclass
class Requester:
    """A browser with a user, who works in `place` (None: in no single district)."""

    name: str
    user: User | None
    place: PlaceObjects | None
    second_factor: bool = True

    def __post_init__(self) -> None:
        self.client = Client(raise_request_exception=False)
        if self.user:
            log_in(self.client, self.user, second_factor=self.second_factor)
        cookie = self.client.cookies.get(PREFIX + settings.SESSION_COOKIE_NAME)
        self.session_key = cookie.value if cookie else None
        memberships = self.user.memberships.all() if self.user else ()
        self.roles = {membership.role for membership in memberships}

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        htmx: bool = False,
        role: str = "console",
    ) -> Reply:
        """Send a request, and forget the cookies that the response sets.

        `role` is the database role of the process that answers.
        """
        cookies = self.client.cookies.copy()
        # Earlier requests must not use up a rate limit.
        cache.clear()
        try:
            with (
                as_database_role(role),
                patch.object(wsgi, "QueryDict", RecordedQuery),
            ):
                response = self.client.generic(
                    method,
                    path,
                    body,
                    content_type=MULTIPART_CONTENT if body else FORM,
                    headers={"HX-Request": "true"} if htmx else None,
                )
                query = cast(RecordedQuery, response.wsgi_request.GET)
                return Reply(path, response, query.read)
        finally:
            self.client.cookies = cookies

    def __str__(self) -> str:
        return self.name + ("" if self.second_factor else " without a second factor")


class RecordedQuery(QueryDict):
    """A query string that records which parameters are looked up."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self.read: set[str] = set()
        super().__init__(*arguments, **more)
        self.read.clear()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)

    def getlist(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().getlist(key, default)

    def __iter__(self) -> Iterator[str]:
        self.read.add(ANY_PARAMETER)
        return super().__iter__()

    def __len__(self) -> int:
        # Whether there are any, before the page looks up some of them.
        self.read.add("")
        return super().__len__()

    def keys(self) -> Any:
        self.read.add(ANY_PARAMETER)
        return super().keys()

    def lists(self) -> Any:
        self.read.add(ANY_PARAMETER)
        return super().lists()

    def copy(self) -> RecordedQuery:
        # Pages copy the query string for links that change one parameter.
        copied = RecordedQuery(mutable=True)
        for key, values in super().lists():
            copied.setlist(key, list(values))
        copied.read = self.read
        return copied

    def urlencode(self, safe: str | None = None) -> str:
        # Only repeats what was sent.
        return urlencode(list(super().lists()), doseq=True, safe=safe or "")


class Reply:
    """A response's status, and its headers and content as lower-case text."""

    def __init__(
        self, path: str, response: HttpResponseBase, parameters_read: set[str]
    ) -> None:
        self.parameters_read = parameters_read
        self.status = response.status_code
        self.location = response.headers.get("Location", "")
        self.is_text = response.headers.get("Content-Type", "").startswith("text/")
        self.error = getattr(response, "exc_info", None)
        content = (
            b"".join(response.streaming_content)
            if response.streaming
            else response.content
        )
        headers = "\n".join(f"{name}: {value}" for name, value in response.items())
        # The response may repeat the path of the request.
        self.text = (headers + unpack(content)).replace(path, "").lower()

    def find_marks(self, marks: list[str]) -> list[str]:
        """Return those of the marks that the response contains."""
        return [mark for mark in marks if mark.lower() in self.text]


def unpack(content: bytes) -> str:
    """Return the text of a response, gzip stream, workbook or ZIP archive."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    if content.startswith(b"PK"):
        with (
            suppress(zipfile.BadZipFile),
            zipfile.ZipFile(io.BytesIO(content)) as archive,
        ):
            content = b"\n".join(archive.read(name) for name in archive.namelist())
    return content.decode("utf-8", "replace")


@dataclass
class Address:
    """A route's path, with the places and user to which the objects in it belong."""

    path: str
    # In the order of the scenario; empty if the path names no object of a place.
    places: list[PlaceObjects]
    # For messages: " of MARK", or empty.
    description: str
    # The only user who may open it, if there is one.
    user: User | None = None


class Scenario:
    """Two districts, a second school of the first, and users of all roles."""

    def __init__(self) -> None:
        published = create_published_survey()
        head = create_member("head@state.example", "state")
        self.shared = create_state("markofmine and markoftheirs", published, head)
        common = published, self.shared.administration
        self.own_place = create_place("Riverside", "markofmine", *common)
        self.other_place = create_place("Lakeside", "markoftheirs", *common)
        self.neighbor = create_place(
            "Riverside", "marknextdoor", *common, district=self.own_place.district
        )
        self.places = (self.own_place, self.other_place, self.neighbor)
        roll_up()
        for administration in Administration.objects.filter(scoring__isnull=False):
            roll_up_results(administration)
        # Nothing is hidden, and enough people finished for reports of the schools. The
        # counting stopped sharing, because the administrations are still open.
        ResultsRollUp.objects.update(hidden_as_of=F("as_of"), shared_at=F("as_of"))
        SchoolRate.objects.update(
            eligible=20, at_opening=20, started=20, finished=20, needed=10
        )
        self.head = head
        self.requesters = list(self._create_requesters())
        self.digests = snapshot.table_digests()
        self.related_rows = {
            place.mark: snapshot.RelatedRows(
                rows_of(place, with_district=place is not self.neighbor)
            )
            for place in self.places
        }
        self.place_digests = {
            mark: rows.digests() for mark, rows in self.related_rows.items()
        }
        self.files = {}
        for folder in private_files().listdir("")[0]:
            for file_name in private_files().listdir(folder)[1]:
                name = f"{folder}/{file_name}"
                self.files[name] = path_of(name).read_bytes()

    def _create_requesters(self) -> Iterator[Requester]:
        yield Requester("nobody", None, None)
        yield Requester("a state administrator", self.head, None)
        yield Requester("a state administrator", self.head, None, second_factor=False)
        for place in (self.own_place, self.other_place):
            for role in ("administrator", "coordinator", "analyst"):
                name = f"the {role} of {place.mark}"
                yield Requester(name, getattr(place, role), place)
        for role in ("administrator", "coordinator", "analyst"):
            user = getattr(self.own_place, role)
            yield Requester(
                f"the {role} of {self.own_place.mark}", user, self.own_place, False
            )
        self.engineer = User.objects.create_superuser("engineer@state.example")
        yield Requester("an engineer", self.engineer, None)

    def logged_out_requesters(self) -> list[Requester]:
        """Return the users whose session does not exist any more."""
        keys = {requester.session_key for requester in self.requesters}
        left = Session.objects.filter(session_key__in=keys - {None})
        ended = keys - {None, *left.values_list("session_key", flat=True)}
        return [each for each in self.requesters if each.session_key in ended]

    def restore_files(self) -> list[str]:
        """Restore private files that were changed or deleted; return their names."""
        restored = []
        for name, content in self.files.items():
            path = path_of(name)
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
                restored.append(name)
        return restored

    def requesters_for(self, route: Route) -> list[Requester]:
        """Return who requests a route; fewer where pages do not distinguish roles."""
        users: dict[Audience, tuple[User | None, ...]] = {
            Audience.ANYONE: (
                None,
                self.head,
                self.own_place.coordinator,
                self.other_place.coordinator,
            ),
            Audience.ENGINEER: (
                None,
                self.head,
                self.own_place.administrator,
                self.engineer,
            ),
        }
        chosen = users.get(route.rule.audience)
        return [
            requester
            for requester in self.requesters
            if chosen is None or requester.user in chosen
        ]

    def addresses(self, route: Route) -> list[Address]:
        """Return the route's paths, with objects of all combinations of places.

        Raises UnknownParameter.
        """
        parameters = {name: parameter_for(route, name) for name in route.parameters}
        owned = [name for name, parameter in parameters.items() if parameter.owned]
        if not owned:
            values = {
                name: parameter.value(self.own_place, route)
                for name, parameter in parameters.items()
            }
            return [Address(route.address(values), [], "")]
        addresses = []
        for places in product((*self.places, self.shared), repeat=len(owned)):
            place_of = dict(zip(owned, places, strict=True))
            if any(
                place_of[name] is self.shared and not parameters[name].shared
                for name in owned
            ):
                continue
            values = {
                name: self._value(
                    parameter, place_of.get(name, self.own_place), places, route
                )
                for name, parameter in parameters.items()
            }
            users = [
                getattr(place_of[name], parameters[name].only_user)
                for name in owned
                if parameters[name].only_user
            ]
            description = " and ".join(place.mark for place in places)
            addresses.append(
                Address(
                    route.address(values),
                    [each for each in (*self.places, self.shared) if each in places],
                    f" of {description}",
                    users[0] if users else None,
                )
            )
        return addresses

    def _value(
        self,
        parameter: RouteParameter,
        place: PlaceObjects,
        places: tuple[PlaceObjects, ...],
        route: Route,
    ) -> object:
        within_shared = parameter.value_within_shared
        if within_shared and place is not self.shared and self.shared in places:
            return within_shared(place, route)
        return parameter.value(place, route)

    def foreign_places(self, requester: Requester, route: Route) -> list[PlaceObjects]:
        """Return the places whose marks the requester must never see."""
        if requester.user and requester.place is None:
            # State administrators see everything in the console, engineers
            # everything on their own pages and nothing in the console.
            is_engineer = requester.user.is_staff
            rows = Audience.ENGINEER if is_engineer else route.rule.audience
            if route.rule.audience is rows:
                return []
        return [place for place in self.places if not self.is_in(requester, place)]

    def is_in(self, requester: Requester, place: PlaceObjects) -> bool:
        """Return whether the requester works in a place or in its district."""
        if requester.place is None:
            return False
        if place is requester.place:
            return True
        is_same_district = place.district == requester.place.district
        return is_same_district and requester.user != requester.place.coordinator

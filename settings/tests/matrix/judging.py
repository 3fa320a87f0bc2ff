"""Each route is asked by everybody for everything; what is wrong is a sentence."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.http import HttpResponseBase
from django.shortcuts import resolve_url
from django.test import Client
from django.urls import Resolver404, get_urlconf, resolve

from accounts.access import Who
from accounts.models import User
from accounts.permissions import CAPABILITIES
from accounts.staff_door import PREFIX
from accounts.tests.logging_in import log_in
from settings.tests.matrix import state
from settings.tests.matrix.routes import Route, routes
from settings.tests.matrix.things import (
    Place,
    Unknown,
    furnish,
    member,
    numbers_of,
    opened,
    publish,
    rows_of,
    thing_for,
)
from survey.models import Administration

SAFE = ("GET", "HEAD")
METHODS = (*SAFE, "POST", "PUT", "PATCH", "DELETE")


@dataclass
class Asker:
    """Somebody with a browser. `place` is theirs; None: the state's, or nobody's."""

    name: str
    user: User | None
    place: Place | None
    second_factor: bool = True

    def __post_init__(self) -> None:
        self.client = Client(raise_request_exception=False)
        if self.user:
            log_in(self.client, self.user, second_factor=self.second_factor)
        kept = self.client.cookies.get(PREFIX + settings.SESSION_COOKIE_NAME)
        self.session = kept.value if kept else None

    def is_logged_in(self) -> bool:
        sessions = Session.objects.filter(session_key=self.session)
        return self.user is None or sessions.exists()

    def ask(self, method: str, address: str, body: str = "") -> Reply:
        before = self.client.cookies.copy()
        # Nobody is told to come later because of those who asked before.
        cache.clear()
        try:
            response = self.client.generic(
                method,
                address,
                body,
                content_type="application/x-www-form-urlencoded",
            )
            return Reply(address, response)
        finally:
            self.client.cookies = before

    def __str__(self) -> str:
        return self.name + ("" if self.second_factor else " without a second factor")


class Reply:
    def __init__(self, address: str, response: HttpResponseBase) -> None:
        self.status = response.status_code
        self.location = response.headers.get("Location", "")
        self.error = getattr(response, "exc_info", None)
        content = (
            b"".join(response.streaming_content)
            if response.streaming
            else response.content
        )
        headers = "\n".join(f"{name}: {it}" for name, it in response.items())
        # What was asked for may be said again.
        self.text = (headers + unpacked(content)).replace(address, "").lower()

    def holds(self, marks: list[str]) -> list[str]:
        return [mark for mark in marks if mark.lower() in self.text]


def unpacked(content: bytes) -> str:
    """Its text; of a workbook or an archive, that of all its members."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    if content.startswith(b"PK"):
        with (
            suppress(zipfile.BadZipFile),
            zipfile.ZipFile(io.BytesIO(content)) as inner,
        ):
            content = b"\n".join(inner.read(name) for name in inner.namelist())
    return content.decode("utf-8", "replace")


@dataclass
class Address:
    """`whose` is the place of what it names; None: nobody's, or everybody's."""

    path: str
    whose: Place | None
    said: str


class World:
    """Two districts, and everybody who might ask."""

    def __init__(self) -> None:
        published = publish()
        self.shared = opened("statewide-students", published)
        self.mine = furnish("Riverside", "markofmine", published, self.shared)
        self.theirs = furnish("Lakeside", "markoftheirs", published, self.shared)
        self.askers = list(self._askers())
        self.before = state.digests()
        self.of_places = {
            place.mark: state.digests_of(rows_of(place))
            for place in (self.mine, self.theirs)
        }

    def _askers(self) -> Iterator[Asker]:
        head = member("head@state.example", "state")
        yield Asker("nobody", None, None)
        yield Asker("a state administrator", head, None)
        yield Asker("a state administrator", head, None, second_factor=False)
        for place in (self.mine, self.theirs):
            for role in ("administrator", "coordinator", "analyst"):
                name = f"the {role} of {place.mark}"
                yield Asker(name, getattr(place, role), place)
        for role in ("administrator", "coordinator", "analyst"):
            user = getattr(self.mine, role)
            yield Asker(f"the {role} of {self.mine.mark}", user, self.mine, False)
        engineer = User.objects.create_superuser("engineer@state.example")
        yield Asker("an engineer", engineer, None)

    def askers_of(self, route: Route) -> list[Asker]:
        """All; an engineers' page knows no places, so those of one are enough."""
        if route.rule.who is not Who.ENGINEER:
            return self.askers
        return [one for one in self.askers if one.place is not self.theirs]

    def addresses(self, route: Route) -> list[Address]:
        """Raises Unknown."""
        things = {name: thing_for(route, name) for name in route.parameters}
        owned = [name for name, thing in things.items() if thing.owned]
        if not owned:
            values = {name: it.of(self.mine, route) for name, it in things.items()}
            return [Address(route.address(values), None, "")]
        shared = self.shared_place()
        found = []
        for places in product((self.mine, self.theirs, shared), repeat=len(owned)):
            of = dict(zip(owned, places, strict=True))
            if any(of[one] is shared and not things[one].shared for one in owned):
                continue
            values = {
                name: thing.of(of.get(name, self.mine), route)
                for name, thing in things.items()
            }
            whose = {place.mark for place in places if place is not shared}
            # One's own with another's is another's.
            owners = [one for one in (self.mine, self.theirs) if one.mark in whose]
            for owner in owners or [None]:
                said = " and ".join(place.mark for place in places)
                found.append(Address(route.address(values), owner, f" of {said}"))
        return found

    def shared_place(self) -> Place:
        """Both districts': whoever asks sees their own half."""
        return SharedPlace(self.shared)  # type: ignore[return-value]

    def others_of(self, asker: Asker, route: Route) -> list[Place]:
        """Whose marks this asker must never see."""
        both = [self.mine, self.theirs]
        if asker.user and asker.place is None:
            # An engineer's own pages show everything; the console nothing.
            own = Who.ENGINEER if asker.user.is_staff else route.rule.who
            if route.rule.who is own:
                return []
        return [one for one in both if one is not asker.place]


class SharedPlace:
    mark = "both"

    def __init__(self, administration: Administration) -> None:
        self.administration = administration


def examine(route: Route, world: World) -> list[str]:
    """What is wrong with it; nothing, where all is well."""
    if route.rule is None:
        return [f"{route} declares no rule: put one of accounts.access on its view"]
    try:
        addresses = world.addresses(route)
    except Unknown as unknown:
        return [f"{route}: {unknown}"]
    for address in addresses:
        if not _is_answered_by(route, address.path):
            return [f"{route}: another route answers {address.path}"]
    asked = [
        (asker, method, address)
        for asker in world.askers_of(route)
        for method in methods_of(route, asker)
        for address in addresses
    ]
    looking = [one for one in asked if _changes_nothing(route, *one)]
    rest = [one for one in asked if not _changes_nothing(route, *one)]
    return [
        *_all_at_once(route, world, looking),
        *(wrong for one in rest for wrong in _alone(route, world, *one)),
    ]


def methods_of(route: Route, asker: Asker) -> tuple[str, ...]:
    """All; an engineer on Django's own pages only looks and sends."""
    own = route.rule.who is Who.ENGINEER and asker.user and asker.user.is_staff
    return ("GET", "POST") if own else METHODS


def _is_answered_by(route: Route, path: str) -> bool:
    try:
        return resolve(path, get_urlconf()).func is route.view
    except Resolver404:
        return False


def _changes_nothing(route: Route, asker: Asker, method: str, address: Address) -> bool:
    if method in SAFE:
        return True
    if route.rule.who is Who.ANYONE:
        return False
    if asker.user is None or _is_foreign(route, asker, address):
        return True
    return route.rule.who is not Who.SIGNED_IN and not asker.second_factor


def _is_foreign(route: Route, asker: Asker, address: Address) -> bool:
    """It names something of another district's."""
    if address.whose is None or asker.user is None:
        return False
    if asker.place is None:
        return asker.user.is_superuser and route.rule.who is not Who.ENGINEER
    return address.whose is not asker.place


def _all_at_once(
    route: Route, world: World, asked: list[tuple[Asker, str, Address]]
) -> list[str]:
    """They may not change anything, so one look at the rows is enough."""
    wrong: list[str] = []
    with state.undone():
        for asker, method, address in asked:
            wrong += _answer(route, world, asker, method, address)
            if method == "GET":
                wrong += _filtered(route, world, asker, address)
        rows = state.changed(world.before, state.digests())
        wrong += [
            f"{route}: a look ends the session of {one}"
            for one in world.askers
            if not one.is_logged_in()
        ]
    if rows:
        wrong += [it for one in asked for it in _change(route, world, *one)]
        wrong += [] if wrong else [f"{route}: something there changes {rows}"]
    return wrong


def _change(
    route: Route, world: World, asker: Asker, method: str, address: Address
) -> list[str]:
    """Which of them it was."""
    with state.undone():
        asker.ask(method, address.path)
        rows = state.changed(world.before, state.digests())
    why = "only looks" if method in SAFE else "may not"
    said = f"{route}: {method}{address.said} by {asker}, who {why}, changes {rows}"
    return [said] if rows else []


def _alone(
    route: Route, world: World, asker: Asker, method: str, address: Address
) -> list[str]:
    """It may change something: each is undone before the next."""
    with state.undone():
        wrong = _answer(route, world, asker, method, address)
    if method == "POST":
        for place in world.others_of(asker, route):
            with state.undone():
                body = urlencode(numbers_of(place))
                reply = asker.ask(method, address.path, body)
                about = f"{route}: POST with numbers of {place.mark} by {asker}"
                wrong += _never(about, route, world, asker, reply, numbers_of(place))
                after = state.digests_of(rows_of(place))
                if rows := state.changed(world.of_places[place.mark], after):
                    wrong.append(f"{about} changes {rows} there")
    return wrong


def _filtered(route: Route, world: World, asker: Asker, address: Address) -> list[str]:
    """With the other district's numbers after the "?"."""
    wrong = []
    for place in world.others_of(asker, route) if asker.user else ():
        ids = {name: it for name, it in numbers_of(place).items() if name != "email"}
        query = urlencode(ids)
        reply = asker.ask("GET", f"{address.path}?{query}")
        about = f"{route}: GET ?… with numbers of {place.mark} by {asker}"
        wrong += _never(about, route, world, asker, reply, {})
    return wrong


def _answer(
    route: Route, world: World, asker: Asker, method: str, address: Address
) -> list[str]:
    reply = asker.ask(method, address.path)
    about = f"{route}: {method}{address.said} by {asker}"
    return [
        *_never(about, route, world, asker, reply, {}),
        *_refused(about, route, asker, address, reply),
    ]


def _never(
    about: str,
    route: Route,
    world: World,
    asker: Asker,
    reply: Reply,
    typed: dict[str, object],
) -> list[str]:
    """Neither an error nor a leak."""
    if reply.status >= 500:
        error = reply.error[1] if reply.error else ""
        return [f"{about} is a server error {reply.status}: {error!r}"]
    wrong = []
    for place in world.others_of(asker, route):
        # What somebody typed in may be shown again.
        shown = [text for text in map(str, typed.values()) if place.mark in text]
        for text in shown:
            reply.text = reply.text.replace(text.lower(), "")
            reply.text = reply.text.replace(urlencode({"": text.lower()})[1:], "")
        if found := reply.holds(place.marks):
            wrong.append(f"{about} leaks {found[0]} of {place.mark} ({reply.status})")
    return wrong


def _refused(
    about: str, route: Route, asker: Asker, address: Address, reply: Reply
) -> list[str]:
    """Whoever may not is told so in one way only."""
    if reply.status >= 500 or reply.status == 405:
        return []
    rule = route.rule
    if asker.user is None:
        login = reply.status == 302 and reply.location.startswith(
            resolve_url(settings.LOGIN_URL)
        )
        fine = rule.who is Who.ANYONE or login
        return [] if fine else [f"{about} is {reply.status}, not the login"]
    if rule.who is Who.SIGNED_IN or rule.who is Who.ANYONE:
        if _is_foreign(route, asker, address) and reply.status != 404:
            return [f"{about} is {reply.status}, not 404"]
        return []
    if not _has_role(rule, asker):
        fine = reply.status == 404
        return (
            [] if fine else [f"{about}, whose role has no such page, is {reply.status}"]
        )
    if not asker.second_factor:
        factor = resolve_url(settings.SECOND_FACTOR_URL)
        fine = reply.status == 302 and reply.location.startswith(factor)
        return [] if fine else [f"{about} is {reply.status}, not the second factor"]
    if _is_foreign(route, asker, address) and reply.status != 404:
        return [f"{about} is {reply.status}, not 404"]
    return []


def _has_role(rule: object, asker: Asker) -> bool:
    if rule.who is Who.ENGINEER:
        return asker.user.is_staff
    held = [CAPABILITIES[one.role] for one in asker.user.memberships.all()]
    if not rule.capabilities:
        return bool(held)
    return any(rule.capabilities & capabilities for capabilities in held)


def examine_all(world: World, urlconf: str | None = None) -> list[str]:
    return [wrong for route in routes(urlconf) for wrong in examine(route, world)]

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
from django.db.models import Model
from django.http import HttpResponseBase
from django.shortcuts import resolve_url
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import Resolver404, get_urlconf, resolve

from accounts.access import Audience, Rule
from accounts.models import User
from accounts.permissions import CAPABILITIES
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from reports.rollup import roll_up
from settings.tests.matrix import state
from settings.tests.matrix.fixtures import (
    Place,
    Thing,
    Unknown,
    forms_about,
    furnish,
    member,
    of_the_state,
    publish,
    questions_about,
    rows_of,
    thing_for,
)
from settings.tests.matrix.routes import Route, routes
from survey.files import path_of, private_files

FORM = "application/x-www-form-urlencoded"
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
        memberships = self.user.memberships.all() if self.user else ()
        self.roles = {one.role for one in memberships}

    def is_logged_in(self) -> bool:
        sessions = Session.objects.filter(session_key=self.session)
        return self.user is None or sessions.exists()

    def ask(
        self, method: str, address: str, body: bytes = b"", *, part: bool = False
    ) -> Reply:
        """`part`: as htmx asks for a piece of a page."""
        before = self.client.cookies.copy()
        # Nobody is told to come later because of those who asked before.
        cache.clear()
        try:
            response = self.client.generic(
                method,
                address,
                body,
                content_type=MULTIPART_CONTENT if body else FORM,
                headers={"HX-Request": "true"} if part else None,
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
        self.is_text = response.headers.get("Content-Type", "").startswith("text/")
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
    # Where it is one person's alone.
    person: User | None = None


class World:
    """Two districts, a further school of the first, and everybody who might ask."""

    def __init__(self) -> None:
        published = publish()
        head = member("head@state.example", "state")
        self.shared = of_the_state("markofmine and markoftheirs", published, head)
        both = published, self.shared.administration
        self.mine = furnish("Riverside", "markofmine", *both)
        self.theirs = furnish("Lakeside", "markoftheirs", *both)
        self.next_door = furnish(
            "Riverside", "marknextdoor", *both, district=self.mine.district
        )
        roll_up()
        self.askers = list(self._askers(head))
        self.before = state.digests()
        self.of_places = {
            place.mark: state.digests_of(self.rows_of(place)) for place in self.places
        }
        self.files = {
            name: path_of(name).read_bytes()
            for folder in ("cards", "rosters", "exports")
            for name in _names_in(folder)
        }

    @property
    def places(self) -> tuple[Place, ...]:
        return self.mine, self.theirs, self.next_door

    def rows_of(self, place: Place) -> dict[type[Model], int]:
        return rows_of(place, with_district=place is not self.next_door)

    def lost_files(self) -> list[str]:
        """Which of them are gone or changed; they are put back."""
        lost = []
        for name, content in self.files.items():
            path = path_of(name)
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
                lost.append(name)
        return lost

    def _askers(self, head: User) -> Iterator[Asker]:
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
        """All; an engineers' page knows neither places nor roles."""
        if route.rule.audience is not Audience.ENGINEER:
            return self.askers
        known = (None, self.mine.administrator)
        return [one for one in self.askers if one.place is None or one.user in known]

    def addresses(self, route: Route) -> list[Address]:
        """Raises Unknown."""
        things = {name: thing_for(route, name) for name in route.parameters}
        owned = [name for name, thing in things.items() if thing.owned]
        if not owned:
            values = {name: it.of(self.mine, route) for name, it in things.items()}
            return [Address(route.address(values), None, "")]
        found = []
        all_places = (*self.places, self.shared)
        for places in product(all_places, repeat=len(owned)):
            of = dict(zip(owned, places, strict=True))
            if any(of[one] is self.shared and not things[one].shared for one in owned):
                continue
            values = {
                name: self._value(thing, of.get(name, self.mine), places, route)
                for name, thing in things.items()
            }
            # One's own with another's is another's.
            whose = [one for one in self.places if one in places]
            said = " and ".join(place.mark for place in places)
            persons = [
                getattr(of[name], things[name].whose)
                for name in owned
                if things[name].whose
            ]
            for owner in whose or [None]:
                found.append(
                    Address(
                        route.address(values),
                        owner,
                        f" of {said}",
                        persons[0] if persons else None,
                    )
                )
        return found

    def _value(
        self, thing: Thing, of: Place, places: tuple[Place, ...], route: Route
    ) -> object:
        inside = thing.beside_shared
        if inside and of is not self.shared and self.shared in places:
            return inside(of, route)
        return thing.of(of, route)

    def others_of(self, asker: Asker, route: Route) -> list[Place]:
        """Whose marks this asker must never see."""
        if asker.user and asker.place is None:
            # An engineer's own pages show everything; the console nothing.
            own = Audience.ENGINEER if asker.user.is_staff else route.rule.audience
            if route.rule.audience is own:
                return []
        return [one for one in self.places if not self.is_in(asker, one)]

    def is_in(self, asker: Asker, place: Place) -> bool:
        """The place is theirs; a district's people are also next door."""
        if asker.place is None:
            return False
        if place is asker.place:
            return True
        same = place.district == asker.place.district
        return same and asker.user != asker.place.coordinator


def _names_in(folder: str) -> list[str]:
    _, names = private_files().listdir(folder)
    return [f"{folder}/{name}" for name in names]


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
        for address in addresses
        for method in methods_of(route, world, asker, address)
    ]
    looking = [one for one in asked if _changes_nothing(route, world, *one)]
    rest = [one for one in asked if not _changes_nothing(route, world, *one)]
    found = [
        *_all_at_once(route, world, looking),
        *(wrong for one in rest for wrong in _alone(route, world, *one)),
    ]
    # Their own they may delete.
    world.lost_files()
    return found


def methods_of(
    route: Route, world: World, asker: Asker, address: Address
) -> tuple[str, ...]:
    """All where the view itself has to refuse; GET and POST where its rule does.

    The other district's people are a mirror, and what is next door is of
    interest to two.
    """
    if world.next_door.mark in address.said:
        concerned = asker.user in (world.mine.coordinator, world.mine.administrator)
        return ("GET", "POST") if concerned and asker.second_factor else ()
    inside = asker.place is not world.theirs and _gets_in(route.rule, asker)
    if " and " in address.said and not (inside and asker.place):
        # What does not fit together is refused by the view, if by anything.
        return ()
    return METHODS if inside else ("GET", "POST")


def _is_answered_by(route: Route, path: str) -> bool:
    try:
        return resolve(path, get_urlconf()).func is route.view
    except Resolver404:
        return False


def _changes_nothing(
    route: Route, world: World, asker: Asker, method: str, address: Address
) -> bool:
    if method in SAFE:
        return True
    if route.rule.audience is Audience.ANYONE:
        return False
    if asker.user is None or _is_foreign(route, world, asker, address):
        return True
    return route.rule.audience is not Audience.SIGNED_IN and not asker.second_factor


def _is_foreign(route: Route, world: World, asker: Asker, address: Address) -> bool:
    """It names something of another's place, or of another person."""
    if asker.user is None:
        return False
    if address.person is not None and address.person != asker.user:
        return True
    if address.whose is None:
        return False
    if asker.place is None:
        return asker.user.is_superuser and route.rule.audience is not Audience.ENGINEER
    return not world.is_in(asker, address.whose)


def _all_at_once(
    route: Route, world: World, asked: list[tuple[Asker, str, Address]]
) -> list[str]:
    """They may not change anything, so one look at the rows is enough."""
    wrong: list[str] = []
    filtered = set()
    with state.undone():
        for asker, method, address in asked:
            wrong += _answer(route, world, asker, method, address)
            # Once each: on what is there for them.
            foreign = _is_foreign(route, world, asker, address)
            if method == "GET" and not foreign and str(asker) not in filtered:
                filtered.add(str(asker))
                wrong += _filtered(route, world, asker, address)
        rows = state.changed(world.before, state.digests())
        wrong += [
            f"{route}: a look ends the session of {one}"
            for one in world.askers
            if not one.is_logged_in()
        ]
    wrong += [f"{route}: something there touches {it}" for it in world.lost_files()]
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
            for typed in forms_about(route, place):
                wrong += _sent(route, world, asker, address, place, typed)
    return wrong


def _sent(
    route: Route,
    world: World,
    asker: Asker,
    address: Address,
    place: Place,
    typed: dict[str, object],
) -> list[str]:
    """A form with the other place's numbers in it."""
    about = f"{route}: POST with numbers of {place.mark} by {asker}"
    with state.undone():
        with state.written() as written:
            reply = asker.ask("POST", address.path, encoded(typed))
        wrong = _never(about, route, world, asker, reply, typed)
        if written and (rows := _changed_there(world, place)):
            wrong.append(f"{about} changes {rows} there")
    return wrong


def encoded(typed: dict[str, object]) -> bytes:
    for one in typed.values():
        if hasattr(one, "seek"):
            one.seek(0)
    return encode_multipart(BOUNDARY, typed)


def _changed_there(world: World, place: Place) -> list[str]:
    after = state.digests_of(world.rows_of(place))
    return state.changed(world.of_places[place.mark], after)


def _filtered(route: Route, world: World, asker: Asker, address: Address) -> list[str]:
    """With the other district's numbers after the "?"."""
    wrong = []
    # Of pages that are for everybody there are no lists.
    lists = route.rule.audience is Audience.STAFF and _gets_in(route.rule, asker)
    for place in world.others_of(asker, route) if lists else ():
        questions = questions_about(place)
        if asker.place is world.theirs:
            questions = questions[:1]
        for number, question in enumerate(questions):
            query = urlencode(question)
            path = f"{address.path}?{query}"
            reply = asker.ask("GET", path, part=number > 0)
            about = f"{route}: GET ?… with numbers of {place.mark} by {asker}"
            found = _never(about, route, world, asker, reply, {})
            wrong += [f"{one} when asked {query[:80]}" for one in found]
            if reply.status == 405 or not reply.is_text:
                # Nothing there reads a question.
                return wrong
    return wrong


def _answer(
    route: Route, world: World, asker: Asker, method: str, address: Address
) -> list[str]:
    reply = asker.ask(method, address.path)
    about = f"{route}: {method}{address.said} by {asker}"
    return [
        *_never(about, route, world, asker, reply, {}),
        *_refused(about, route, world, asker, address, reply),
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
    about: str,
    route: Route,
    world: World,
    asker: Asker,
    address: Address,
    reply: Reply,
) -> list[str]:
    """Whoever may not is told so in one way only."""
    if reply.status >= 500 or reply.status == 405:
        return []
    rule = route.rule
    if asker.user is None:
        login = reply.status == 302 and reply.location.startswith(
            resolve_url(settings.LOGIN_URL)
        )
        fine = rule.audience is Audience.ANYONE or login
        return [] if fine else [f"{about} is {reply.status}, not the login"]
    if rule.audience is Audience.SIGNED_IN or rule.audience is Audience.ANYONE:
        if _is_foreign(route, world, asker, address) and reply.status != 404:
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
    if _is_foreign(route, world, asker, address) and reply.status != 404:
        return [f"{about} is {reply.status}, not 404"]
    return []


def _gets_in(rule: Rule, asker: Asker) -> bool:
    """As far as the view, by its rule; an engineer's pages are Django's own."""
    if rule.audience is Audience.ANYONE:
        return True
    if asker.user is None or rule.audience is Audience.ENGINEER:
        return False
    if rule.audience is Audience.SIGNED_IN:
        return True
    return asker.second_factor and _has_role(rule, asker)


def _has_role(rule: Rule, asker: Asker) -> bool:
    if rule.audience is Audience.ENGINEER:
        return asker.user.is_staff
    if not rule.capabilities:
        return bool(asker.roles)
    return any(rule.capabilities & CAPABILITIES[role] for role in asker.roles)


def is_shown(route: Route, world: World) -> bool:
    """To somebody whose it is, where it can be looked at: there is what to leak."""
    addresses = [one for one in world.addresses(route) if one.whose is world.mine]
    for asker, address in product(world.askers, addresses):
        if not _gets_in(route.rule, asker) or asker.user is None:
            continue
        with state.undone():
            reply = asker.ask("GET", address.path)
        if reply.status == 405 or (reply.status < 400 and reply.holds(["markofmine"])):
            return True
    return not addresses


def examine_all(world: World, urlconf: str | None = None) -> list[str]:
    return [wrong for route in routes(urlconf) for wrong in examine(route, world)]

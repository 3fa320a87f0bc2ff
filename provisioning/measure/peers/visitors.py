"""Simulate the browser of a person who answers a peer's survey."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from provisioning.commands import Refusal
from provisioning.measure.load.crowd import Person, send
from provisioning.measure.load.driver import LOGINS_TOGETHER
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.respondent import (
    CONTENT,
    LOGIN,
    SAVE,
    Request,
    check_status,
)
from provisioning.measure.load.tally import Tally
from provisioning.measure.load.target import Target

REDIRECTED = (302, 303, 307)
OUT_OF_PEOPLE = "The people of a peer were not enough: take fewer --seconds"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The addresses of a peer's survey, with places for `code`, `page` and `item`."""

    start: str
    page: str
    end: str
    answer: str
    pages: int
    items: int

    def path(self, code: str, page: int) -> str:
        """Return the address of a page, or of the end after the last page."""
        form = self.page if page <= self.pages else self.end
        return form.format(code=code, page=page)


@dataclass(eq=False)
class Visitor:
    code: str
    site: Site
    target: Target
    seed: int = 0
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed} {self.code}")  # noqa: S311

    def start(self) -> Request:
        path = self.site.start.format(code=self.code)
        return self._request(LOGIN, "GET", path, leads_to=1)

    def show(self, page: int) -> Request:
        return self._request(CONTENT, "GET", self.site.path(self.code, page))

    def save(self, page: int) -> Request:
        """Save a page; the reply has to lead to the next."""
        answers: dict[str, object] = {
            self.site.answer.format(page=page, item=item): self.chance.randint(1, 5)
            for item in range(1, self.site.items + 1)
        }
        if token := self.cookies.get("csrftoken"):
            answers["csrfmiddlewaretoken"] = token
        path = self.site.path(self.code, page)
        return self._request(SAVE, "POST", path, urlencode(answers), leads_to=page + 1)

    def _request(
        self, kind: str, method: str, path: str, body: str = "", leads_to: int = 0
    ) -> Request:
        next_path = self.site.path(self.code, leads_to) if leads_to else ""

        def check(reply: Reply) -> str:
            for line in reply.headers(b"set-cookie"):
                name, _, value = line.decode("latin-1").split(";")[0].partition("=")
                self.cookies[name] = value
            if not next_path:
                return check_status(reply, 200)
            leads = reply.headers(b"location") == [next_path.encode()]
            return check_status(reply, *REDIRECTED) or ("" if leads else "not saved")

        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = f"Cookie: {cookies}\r\n" if cookies else ""
        if method == "POST":
            headers += f"Content-Type: {FORM}\r\nContent-Length: {len(body)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.target.host}\r\n{headers}\r\n"
        return Request(kind, f"{head}{body}".encode(), check)


def enter(visitor: Visitor) -> Iterator[Request]:
    """Come as far as the first page, which brings the form's token."""
    yield visitor.start()
    yield visitor.show(1)


def saves_of(visitor: Visitor) -> Iterator[Request]:
    for page in range(1, visitor.site.pages + 1):
        yield visitor.save(page)


def visit(visitor: Visitor) -> Iterator[Request]:
    """Answer the whole survey; each save is followed by the page that it leads to."""
    yield visitor.start()
    for page in range(1, visitor.site.pages + 1):
        yield visitor.show(page)
        yield visitor.save(page)
    yield visitor.show(visitor.site.pages + 1)


class PeerDriver:
    """One load process, with the people of a peer: see `Driver`."""

    def __init__(
        self, target: Target, site: Site, codes: Sequence[str], *, seed: int = 0
    ) -> None:
        self.target = target
        self.outside = (Visitor(code, site, target, seed=seed) for code in codes)
        self.inside: deque[Person] = deque()

    def enter(self, people: int) -> int:
        """Log in this many people who have not saved a page yet."""
        visitors = self._take(people)
        send(
            self.target, map(enter, visitors), together=LOGINS_TOGETHER
        ).tally.refuse_failures("Starting fails")
        self.inside = deque(map(saves_of, visitors))
        return people

    def save(self, **load: Any) -> Tally:
        """Save pages in a closed loop, without asking for the pages between."""
        return self._send(self.inside, **load)

    def visit(self, people: int, **load: Any) -> Tally:
        """Answer whole surveys in a closed loop."""
        return self._send(map(visit, self._take(people)), **load)

    def _take(self, people: int) -> list[Visitor]:
        visitors = list(islice(self.outside, people))
        if len(visitors) < people:
            raise Refusal(OUT_OF_PEOPLE)
        return visitors

    def _send(self, people: Iterable[Person], **load: Any) -> Tally:
        crowd = send(self.target, people, **load)
        if crowd.out_of_people:
            raise Refusal(OUT_OF_PEOPLE)
        return crowd.tally

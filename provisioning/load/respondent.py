"""One person at the survey: what they ask, and what an answer must look like.

A request is made by a method (`save`, `display`, ...); `check` reads its
reply, moves the person on, and names what was wrong with it. A save counts
only by its receipt: status 200, and a body that names this save's revision
and the number of its items.
"""

from __future__ import annotations

import hashlib
import html
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from provisioning.load.engine import Exchange
from provisioning.load.replies import Reply
from provisioning.load.target import Target

# The names that load plans and dashboards use.
LOGIN = "survey_login"
DISPLAY = "survey_display"
SAVE = "survey_change_page"
CONTENT = "survey_content"
COMPLETE = "survey_complete"
VIEWS = (LOGIN, DISPLAY, SAVE, CONTENT, COMPLETE)

# How a person comes and goes: login page and code, shell, review, finish, thanks.
AROUND = 6
SHELL = re.compile(
    rb'<script id="take" type="application/json">(.*?)</script>', re.DOTALL
)
REVIEWED = re.compile(rb'name="reviewed" value="([^"]*)"')
REFUSALS = frozenset((400, 401, 403, 404, 409, 413, 415, 422))
AGENT = "User-Agent: Mozilla/5.0 (X11; CrOS x86_64) groundswell-load"

Answers = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Plan:
    """A rehearsal, as `manage.py open_rehearsal --json` describes it."""

    administration: str
    digest: str
    renderer: str
    language: str
    # For each page the names of its items, each with its values.
    pages: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]
    # Page -> its bytes as they were first served: they never change.
    contents: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Plan:
        pages = tuple(
            tuple((item["name"], tuple(item["values"])) for item in page["items"])
            for page in described["pages"]
        )
        return cls(
            described["administration"],
            described["digest"],
            described["renderer"],
            described["language"],
            pages,
        )

    def content_path(self, n: int) -> str:
        return f"/content/{self.digest}/{self.renderer}/{self.language}/{n}/"

    def answers(self, n: int, chance: random.Random) -> dict[str, object]:
        """One value for each item of page `n`."""
        draw = chance.random
        return {
            name: values[int(draw() * len(values))]
            for name, values in self.pages[n - 1]
        }


@dataclass(slots=True)
class Request:
    kind: str
    data: bytes
    # Of a save only.
    page: int = 0
    revision: int = 0
    items: int = 0
    hash: str = ""
    # Which of a view's requests it is, where it has several.
    step: str = ""


def hash_of(answers: Answers) -> str:
    """Sixteen hex digits by which two pages' answers are compared."""
    text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Respondent:
    """Not bound to a connection: browsers keep several, and lose them."""

    def __init__(self, code: str, plan: Plan, target: Target, *, seed: int = 0) -> None:
        self.code = code
        self.plan = plan
        self.tag = ""
        self.revision = 0
        self.base = 0
        self.seen: list[int] = []
        self.reviewed = ""
        self.cookies: dict[str, str] = {}
        self.chance = random.Random(f"{seed} {code}")  # noqa: S311
        self._host = f"Host: {target.host}\r\n{AGENT}\r\n"
        self._origin = f"Origin: {target.origin}\r\n"
        self._for_saves = ""

    @property
    def logged_in(self) -> bool:
        return bool(self.tag)

    # Requests

    def login_page(self) -> Request:
        return Request(LOGIN, self._get("/"), step="page")

    def login(self) -> Request:
        form = {"code": self.code, "csrfmiddlewaretoken": self.cookies["csrftoken"]}
        return Request(LOGIN, self._post_form("/", form), step="code")

    def display(self) -> Request:
        return Request(DISPLAY, self._get("/take/"))

    def renew(self) -> Request:
        """As a tab that goes on after a new login: the shell's data only."""
        accept = "Accept: application/json\r\n"
        return Request(DISPLAY, self._get("/take/", accept), step="renew")

    def content(self, n: int) -> Request:
        """Page `n`, or the outline, which is page 0."""
        encoding = "Accept-Encoding: gzip, deflate, br\r\n"
        return Request(CONTENT, self._get(self.plan.content_path(n), encoding), page=n)

    def save(self, n: int, answers: Answers, *, revision: int = 0) -> Request:
        """Page `n` under the next revision, or under the one that is given."""
        if not revision:
            revision = self.revision
            self.revision += 1
        body = json.dumps({"revision": revision, "answers": answers})
        head = (
            f"POST /take/pages/{n}/ HTTP/1.1\r\n{self._for_saves}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        # JSON of Python's is ASCII, so that its length is that in bytes.
        data = (head + body).encode()
        return Request(SAVE, data, page=n, revision=revision, items=len(answers))

    def review(self) -> Request:
        return Request(COMPLETE, self._get("/take/complete/"), step="review")

    def finish(self) -> Request:
        form = {
            "reviewed": self.reviewed,
            "csrfmiddlewaretoken": self.cookies["csrftoken"],
        }
        return Request(
            COMPLETE, self._post_form("/take/complete/", form), step="finish"
        )

    def thanks(self) -> Request:
        return Request(COMPLETE, self._get("/take/complete/"), step="thanks")

    # Replies

    def check(self, request: Request, exchange: Exchange) -> str:
        """The name of what went wrong, or an empty one. Moves the person on."""
        reply = exchange.reply
        if reply is None:
            return exchange.failure
        if reply.status >= 500:
            return f"status {reply.status}"
        return _CHECKS[request.kind](self, request, reply)

    def _check_login(self, request: Request, reply: Reply) -> str:
        wanted = 200 if request.step == "page" else 302
        if reply.status != wanted:
            return f"status {reply.status}"
        self._keep_cookies(reply)
        token = "csrftoken" if request.step == "page" else "sessionid"  # noqa: S105
        return "" if token in self.cookies else "no cookie"

    def _check_display(self, request: Request, reply: Reply) -> str:
        if reply.status != 200:
            return f"status {reply.status}"
        found = SHELL.search(reply.body)
        try:
            shell = json.loads(found[1] if found else reply.body)
            self.tag, self.base = shell["tag"], shell["revision"]
            self.seen = shell["seen"]
        except (ValueError, KeyError, TypeError):
            return "no shell"
        self.revision = max(self.revision, self.base)
        self._keep_cookies(reply)
        self._prepare_saves()
        return "" if shell["digest"] == self.plan.digest else "another survey"

    def _check_save(self, request: Request, reply: Reply) -> str:
        if reply.status != 200:
            return f"status {reply.status}"
        try:
            receipt = json.loads(reply.body)
            if (
                receipt["revision"] == request.revision
                and receipt["saved"] == request.items
            ):
                return ""
        except (ValueError, KeyError, TypeError):
            pass
        return "false receipt"

    def _check_content(self, request: Request, reply: Reply) -> str:
        if reply.status != 200:
            return f"status {reply.status}"
        known = self.plan.contents.setdefault(request.page, reply.body)
        return "" if known == reply.body and known else "other content"

    def _check_complete(self, request: Request, reply: Reply) -> str:
        if request.step == "finish":
            return "" if reply.status == 302 else f"status {reply.status}"
        if reply.status != 200:
            return f"status {reply.status}"
        self._keep_cookies(reply)
        found = REVIEWED.search(reply.body)
        if request.step == "thanks":
            return "not finished" if found else ""
        self.reviewed = html.unescape(found[1].decode()) if found else ""
        return "" if self.reviewed else "no review"

    def outcome(self, request: Request, exchange: Exchange, failure: str) -> str:
        """Of a save: `acked`, `rejected` (and surely not stored) or `unknown`."""
        if not failure:
            return "acked"
        reply = exchange.reply
        return "rejected" if reply and reply.status in REFUSALS else "unknown"

    # Inside

    def _get(self, path: str, more: str = "") -> bytes:
        head = f"GET {path} HTTP/1.1\r\n{self._host}{more}{self._cookie_line()}\r\n"
        return head.encode()

    def _post_form(self, path: str, form: Mapping[str, str]) -> bytes:
        body = urlencode(form)
        head = (
            f"POST {path} HTTP/1.1\r\n{self._host}{self._origin}{self._cookie_line()}"
            "Content-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return (head + body).encode()

    def _cookie_line(self) -> str:
        if not self.cookies:
            return ""
        pairs = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return f"Cookie: {pairs}\r\n"

    def _prepare_saves(self) -> None:
        self._for_saves = (
            f"{self._host}{self._origin}Accept: application/json\r\n"
            "Content-Type: application/json\r\n"
            f"X-Groundswell-Respondent: {self.tag}\r\n{self._cookie_line()}"
        )

    def _keep_cookies(self, reply: Reply) -> None:
        for line in reply.headers(b"set-cookie"):
            pair, *attributes = line.decode("latin-1").split(";")
            name, _, value = pair.partition("=")
            gone = any(one.strip().lower() == "max-age=0" for one in attributes)
            if gone:
                self.cookies.pop(name.strip(), None)
            else:
                self.cookies[name.strip()] = value.strip()
        self._prepare_saves()


_CHECKS = {
    LOGIN: Respondent._check_login,
    DISPLAY: Respondent._check_display,
    SAVE: Respondent._check_save,
    CONTENT: Respondent._check_content,
    COMPLETE: Respondent._check_complete,
}


def entering(person: Respondent) -> Iterator[Request]:
    """Requests that bring a person to the first page."""
    yield person.login_page()
    yield person.login()
    yield person.display()


def answering(person: Respondent, pages: Sequence[int]) -> Iterator[Request]:
    for n in pages:
        yield person.save(n, person.plan.answers(n, person.chance))


def leaving(person: Respondent) -> Iterator[Request]:
    yield person.review()
    yield person.finish()
    yield person.thanks()


def taking(person: Respondent) -> Iterator[Request]:
    """A whole person; half of all requests are saves.

    Each page is saved once. The other half is what comes and goes with a
    person, and content for the rest: a school's browsers have the last pages
    already, which the previous class read on them.
    """
    count = len(person.plan.pages)
    if not person.logged_in:
        yield from entering(person)
    for n in range(1, count + 1):
        if n <= count - AROUND:
            yield person.content(n)
        yield from answering(person, [n])
    yield from leaving(person)

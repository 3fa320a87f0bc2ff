"""Simulate the browser of one respondent: requests, cookies, checks of replies.

The load engine, fault injection and the overload run share it. It is bound to
no connection: browsers keep several, and lose them.
"""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from provisioning.measure.load.engine import Exchange
from provisioning.measure.load.replies import Reply
from provisioning.measure.load.target import Target

# The names that JMeter's plan and the dashboards use.
LOGIN = "survey_login"
DISPLAY = "survey_display"
SAVE = "survey_change_page"
CONTENT = "survey_content"
COMPLETE = "survey_complete"
START = "open_start"
BEGIN = "open_begin"
VIEWS = (LOGIN, DISPLAY, SAVE, CONTENT, COMPLETE)

# Requests of one person without saves and content: login page, code, survey,
# review, finish, thanks.
REQUESTS_PER_VISIT = 6
HTML = "text/html"
JSON = "application/json"
COMPRESSED = "*/*\r\nAccept-Encoding: gzip, deflate, br"
BOOTSTRAP = re.compile(
    rb'<script id="take" type="application/json">(.*?)</script>', re.DOTALL
)
REVIEWED = re.compile(rb'name="reviewed" value="([^"]*)"')
START_FORM = re.compile(rb'name="form" value="([^"]*)"')
AGENT = "User-Agent: Mozilla/5.0 (X11; CrOS x86_64) groundswell-load"

# Outcomes of a save.
ACKED = "acked"
REJECTED = "rejected"
UNKNOWN = "unknown"
# Errors after which a browser stops saving.
HALTING = ("superseded", "finished", "withdrawn", "closed")

Answers = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RehearsalSurvey:
    """The survey of a rehearsal, from `manage.py open_rehearsal --json`."""

    digest: str
    renderer: str
    language: str
    # For each page the names of its items, each with its values.
    pages: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]
    # Page -> its bytes as first served. They must never change.
    contents: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> RehearsalSurvey:
        pages = tuple(
            tuple((item["name"], tuple(item["values"])) for item in page["items"])
            for page in described["pages"]
        )
        digest, renderer = described["digest"], described["renderer"]
        return cls(digest, renderer, described["language"], pages)

    def content_path(self, page: int) -> str:
        return f"/content/{self.digest}/{self.renderer}/{self.language}/{page}/"

    def draw_answers(self, page: int, chance: random.Random) -> Answers:
        draw = chance.random
        return {
            name: values[int(draw() * len(values))]
            for name, values in self.pages[page - 1]
        }


@dataclass(slots=True)
class Request:
    kind: str
    data: bytes
    # Returns the name of what is wrong with a reply, or "".
    check_reply: Callable[[Reply], str]
    # Of a save only.
    revision: int = 0
    # Returns the same request with current cookies.
    renewed: Callable[[], bytes] | None = None

    def check(self, exchange: Exchange) -> str:
        """Return the name of what went wrong, or ""; keep what the reply brings."""
        return self.check_reply(exchange.reply) if exchange.reply else exchange.failure


def check_status(reply: Reply, *accepted: int) -> str:
    return "" if reply.status in accepted else f"status {reply.status}"


def get_request(
    target: Target, path: str, *accepted: int, headers: str = "", kind: str = ""
) -> Request:
    """Return a request whose reply has one of these statuses, or 200."""
    data = f"GET {path} HTTP/1.1\r\nHost: {target.host}\r\n{headers}\r\n".encode()
    statuses = accepted or (200,)
    return Request(kind or path, data, lambda reply: check_status(reply, *statuses))


@dataclass(frozen=True, slots=True)
class Receipt:
    outcome: str
    # saved, retry, session (log in again), halt, or refused.
    kind: str
    reply: str
    revision: int = 0
    at: str = ""
    # Seconds that the server asked to wait.
    after: float = 0.0
    error: str = ""


def read_receipt(exchange: Exchange, revision: int) -> Receipt:
    """Classify the reply to a save, as `classify` in static/js/send_save.js does.

    A page is shown as saved for a receipt that names its own revision, and for
    nothing else.
    """
    reply = exchange.reply
    if reply is None:
        return Receipt(UNKNOWN, "retry", exchange.failure)
    body = json_object(reply)
    error = str(body.get("error", ""))
    summary = f"{reply.status} {error}".strip()
    if reply.status == 200:
        if body.get("revision") != revision or type(body.get("saved")) is not int:
            return Receipt(UNKNOWN, "retry", "200 foreign")
        return Receipt(ACKED, "saved", summary, revision, str(body.get("at", "")))
    if reply.status == 401 and error:
        return Receipt(REJECTED, "session", summary)
    if reply.status == 409 and error in HALTING:
        return Receipt(REJECTED, "halt", summary, error=error)
    if error and 400 <= reply.status < 500 and reply.status not in (408, 425, 429):
        return Receipt(REJECTED, "refused", summary)
    return Receipt(UNKNOWN, "retry", summary, after=retry_after(reply))


def retry_after(reply: Reply | None) -> float:
    """Return the seconds to wait that a reply asks for, or 0."""
    values = reply.headers(b"retry-after") if reply else []
    return float(values[0]) if values and values[0].isdigit() else 0.0


def json_object(reply: Reply | None) -> dict[str, Any]:
    """Return the object in the body; an empty one where there is none."""
    try:
        value = json.loads(reply.body) if reply else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(eq=False)
class Respondent:
    """Build one respondent's requests, and check the replies to them.

    With `accept=JSON` it logs in as the page's own script does in a tab that
    goes on after its session ended; otherwise as a browser that navigates.
    """

    code: str
    survey: RehearsalSurvey
    target: Target
    seed: int = 0
    accept: str = HTML
    tag: str = ""
    # The next save's, and what the server had when the survey was opened.
    revision: int = 0
    base: int = 0
    seen: list[int] = field(default_factory=list)
    reviewed: str = ""
    # With an open code: the number in the form that begins.
    form: str = ""
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed} {self.code}")  # noqa: S311
        self._format_headers()

    # Requests

    def login_page(self) -> Request:
        return self._visit(LOGIN, "/", self._has_cookie("csrftoken"), self.accept)

    def login(self) -> Request:
        check = self._has_cookie("sessionid")
        return self._visit(LOGIN, "/", check, self.accept, {"code": self.code})

    def start_page(self) -> Request:
        return self._visit(START, "/open/", self._has_cookie("csrftoken"))

    def offer(self) -> Request:
        """Type an open code; keep what the form of its page sends."""

        def check(reply: Reply) -> str:
            form = START_FORM.search(reply.body)
            self.form = html.unescape(form[1].decode()) if form else ""
            return "" if self.form else "no form"

        return self._visit(START, "/open/", check, form={"code": self.code}, status=200)

    def begin(self) -> Request:
        form = {"code": self.code, "form": self.form, "language": self.survey.language}
        check = self._has_cookie("sessionid")
        return self._visit(BEGIN, "/open/begin/", check, form=form)

    def display(self) -> Request:
        return self._visit(DISPLAY, "/take/", self._read_bootstrap, self.accept)

    def content(self, page: int) -> Request:
        def check(reply: Reply) -> str:
            known = self.survey.contents.setdefault(page, reply.body)
            return "" if known == reply.body and known else "other content"

        return self._visit(CONTENT, self.survey.content_path(page), check, COMPRESSED)

    def save(self, page: int, answers: Answers) -> Request:
        """Save a page under the next revision."""
        revision = self.revision
        self.revision += 1
        body = json.dumps({"revision": revision, "answers": answers})

        def check(reply: Reply) -> str:
            if failure := check_status(reply, 200):
                return failure
            receipt = json_object(reply)
            named = (receipt.get("revision"), receipt.get("saved"))
            return "" if named == (revision, len(answers)) else "false receipt"

        return Request(SAVE, self.post_save(page, body), check, revision)

    def post_save(self, page: int, body: str) -> bytes:
        # json.dumps writes ASCII, so that the length is that in bytes.
        return (
            f"POST /take/pages/{page}/ HTTP/1.1\r\n{self._save_headers}"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()

    def review(self) -> Request:
        def check(reply: Reply) -> str:
            field = REVIEWED.search(reply.body)
            self.reviewed = html.unescape(field[1].decode()) if field else ""
            return "" if self.reviewed else "no review"

        return self._visit(COMPLETE, "/take/complete/", check)

    def finish(self) -> Request:
        form = {"reviewed": self.reviewed}
        return self._visit(COMPLETE, "/take/complete/", lambda reply: "", form=form)

    def thanks(self) -> Request:
        def check(reply: Reply) -> str:
            return "not finished" if REVIEWED.search(reply.body) else ""

        return self._visit(COMPLETE, "/take/complete/", check)

    def _visit(
        self,
        kind: str,
        path: str,
        check_page: Callable[[Reply], str],
        accept: str = HTML,
        form: Mapping[str, str] | None = None,
        status: int = 0,
    ) -> Request:
        """Open a page, or post a form, which redirects a browser that navigates."""
        method, headers, body = "GET", "", ""
        if form is not None:
            token = self.cookies.get(f"{self.target.cookie_prefix}csrftoken", "")
            body = urlencode({**form, "csrfmiddlewaretoken": token})
            method, status = "POST", status or (302 if accept == HTML else 200)
            headers = (
                f"{self._origin}Content-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n"
            )

        def data() -> bytes:
            return (
                f"{method} {path} HTTP/1.1\r\n{self._host}Accept: {accept}\r\n"
                f"{headers}{self._cookie_line}\r\n{body}"
            ).encode()

        def check(reply: Reply) -> str:
            self._keep_cookies(reply)
            return check_status(reply, status or 200) or check_page(reply)

        return Request(kind, data(), check, renewed=data)

    def _has_cookie(self, name: str) -> Callable[[Reply], str]:
        name = f"{self.target.cookie_prefix}{name}"
        return lambda reply: "" if name in self.cookies else "no cookie"

    def _read_bootstrap(self, reply: Reply) -> str:
        script = BOOTSTRAP.search(reply.body)
        try:
            bootstrap = json.loads(script[1] if script else reply.body)
            self.tag, self.base = bootstrap["tag"], bootstrap["revision"]
            self.seen, digest = bootstrap["seen"], bootstrap["digest"]
        except (ValueError, KeyError, TypeError):
            return "no bootstrap data"
        self.revision = max(self.revision, self.base)
        self._format_headers()
        return "" if digest == self.survey.digest else "another survey"

    def _keep_cookies(self, reply: Reply) -> None:
        if b"\r\nset-cookie:" not in reply.head.lower():
            return
        for line in reply.headers(b"set-cookie"):
            pair, *attributes = line.decode("latin-1").split(";")
            name, _, value = pair.partition("=")
            if any(each.strip().lower() == "max-age=0" for each in attributes):
                self.cookies.pop(name.strip(), None)
            else:
                self.cookies[name.strip()] = value.strip()
        self._format_headers()

    def _format_headers(self) -> None:
        """Format once what all requests share: saves are the hot path."""
        pairs = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self._cookie_line = f"Cookie: {pairs}\r\n" if pairs else ""
        self._host = f"Host: {self.target.host}\r\n{AGENT}\r\n"
        self._origin = f"Origin: {self.target.origin}\r\n"
        self._save_headers = (
            f"{self._host}{self._origin}Accept: {JSON}\r\nContent-Type: {JSON}\r\n"
            f"X-Groundswell-Respondent: {self.tag}\r\n{self._cookie_line}"
        )


def login_requests(respondent: Respondent) -> Iterator[Request]:
    yield respondent.login_page()
    yield respondent.login()
    yield respondent.display()


def save_requests(respondent: Respondent, pages: Iterable[int]) -> Iterator[Request]:
    for page in pages:
        answers = respondent.survey.draw_answers(page, respondent.chance)
        yield respondent.save(page, answers)


def visit_requests(respondent: Respondent) -> Iterator[Request]:
    """Take a whole survey; half of all requests are saves.

    Each page is saved once. The other half are the requests around them, and
    content for the rest: a school's browsers have the last pages in their
    cache, from the class before.
    """
    count = len(respondent.survey.pages)
    if not respondent.tag:
        yield from login_requests(respondent)
    for page in range(1, count + 1):
        if page <= count - REQUESTS_PER_VISIT:
            yield respondent.content(page)
        yield from save_requests(respondent, [page])
    yield respondent.review()
    yield respondent.finish()
    yield respondent.thanks()

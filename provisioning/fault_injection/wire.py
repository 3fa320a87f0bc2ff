"""What a browser sends, and what it makes of the reply.

`read_receipt` is the twin of `classify` in static/js/send_save.js: a page is
shown as saved for a receipt that names its own revision, and for nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioning.fault_injection.attempts import ACKED, REJECTED, UNKNOWN
from provisioning.load.engine import Exchange
from provisioning.load.replies import Reply
from provisioning.load.target import Target

HALTING = ("superseded", "finished", "withdrawn", "closed")
REVIEWED = re.compile(rb'name="reviewed" value="([^"]*)"')


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
    reply = exchange.reply
    if reply is None:
        return Receipt(UNKNOWN, "retry", exchange.failure)
    body = json_of(reply)
    error = str(body.get("error", ""))
    said = f"{reply.status} {error}".strip()
    if reply.status == 200:
        if body.get("revision") == revision and type(body.get("saved")) is int:
            return Receipt(ACKED, "saved", said, revision, str(body.get("at", "")))
        return Receipt(UNKNOWN, "retry", "200 foreign")
    if reply.status == 401 and error:
        return Receipt(REJECTED, "session", said)
    if reply.status == 409 and error in HALTING:
        return Receipt(REJECTED, "halt", said, error=error)
    if error and 400 <= reply.status < 500 and reply.status not in (408, 425, 429):
        return Receipt(REJECTED, "refused", said)
    return Receipt(UNKNOWN, "retry", said, after=seconds_asked(reply))


def seconds_asked(reply: Reply | None) -> float:
    """How long to wait before coming again; 0 where nothing was said."""
    value = (reply.header(b"retry-after") if reply else None) or b""
    return float(value) if value.isdigit() else 0.0


def json_of(reply: Reply | None) -> dict[str, Any]:
    """The object in the body; empty where there is none."""
    try:
        value = json.loads(reply.body) if reply else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def reviewed_in(reply: Reply | None) -> str:
    found = REVIEWED.search(reply.body) if reply else None
    return found[1].decode() if found else ""


class Browser:
    """One browser's cookies, and requests as it would send them."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cookies: dict[str, str] = {}
        self.tag = ""

    def get(self, path: str, *, accept: str = "application/json") -> bytes:
        return self._request("GET", path, {"Accept": accept})

    def post(
        self, path: str, body: bytes, kind: str, *, accept: str = "application/json"
    ) -> bytes:
        headers = {"Content-Type": kind, "Origin": self.target.origin, "Accept": accept}
        if self.tag:
            headers["X-Groundswell-Respondent"] = self.tag
        return self._request("POST", path, headers, body)

    def save(self, page: int, revision: int, answers: Mapping[str, Any]) -> bytes:
        """Without `seen` and `base`: whoever sends it has seen everything."""
        content = {"revision": revision, "answers": answers}
        body = json.dumps(content, separators=(",", ":")).encode()
        return self.post(f"/take/pages/{page}/", body, "application/json")

    def keep_cookies(self, reply: Reply) -> None:
        for line in reply.headers(b"set-cookie"):
            name, _, value = line.decode().split(";")[0].partition("=")
            self.cookies[name] = value

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.target.host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if self.cookies:
            cookies = "; ".join(f"{name}={it}" for name, it in self.cookies.items())
            lines.append(f"Cookie: {cookies}")
        if method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body

"""Serve made-up OneRoster data as REST and as ZIP files, with faults on demand.

For tests, the demonstration and load, on loopback only. The first part of the
path names the district: /north/roster.zip, /north/ims/oneroster/v1p1/users.
"""

from __future__ import annotations

import gzip
import json
import secrets
import threading
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Json = dict[str, Any]

COLLECTIONS = (
    "orgs",
    "academicSessions",
    "users",
    "classes",
    "enrollments",
    "demographics",
)
VERSIONS = ("/ims/oneroster/v1p1/", "/ims/oneroster/rostering/v1p2/")


@dataclass
class Faults:
    """What a server does that it should not, or may do and others do not."""

    # Seconds before each answer, and bytes per second of its content.
    latency: float = 0
    bytes_per_second: float = 0
    # Answered first, one by one, before anything is served.
    statuses: list[int] = field(default_factory=list)
    retry_after: str = ""
    # Of the total: added to it, written instead of it, and left out.
    total_added: int = 0
    total_text: str = ""
    has_total: bool = True
    # A person is deleted after so many pages of users.
    total_changes_after: int = 0
    ends_early_after: int = 0
    repeats_first_page: bool = False
    ignores_offset: bool = False
    total_is_size_of_page: bool = False
    # So many answers are cut in the middle, after those to be left whole.
    breaks_off: int = 0
    most_per_page: int = 0
    refuses_pages_above: int = 0
    ignores_filter: bool = False
    refuses_filter: bool = False
    only_per_school: bool = False
    has_next_link: bool = False
    # Pages are asked for by a cursor of the server's own, in a link without offset.
    has_cursors: bool = False
    repeats_cursor: bool = False
    # What stands for an empty page: a status, or null instead of a list.
    status_beyond_end: int = 0
    has_null_pages: bool = False
    token_seconds: float = 3600
    # After so many requests, a token has ended before its time.
    token_uses: int = 0
    client_auth: str = ""
    refused_scopes: tuple[str, ...] = ()
    not_offered: tuple[str, ...] = ()


@dataclass
class District:
    """A district's data, and what its server asks for."""

    collections: dict[str, list[Json]] = field(default_factory=dict)
    archive: bytes = b""
    # "", "basic", "bearer", "oauth1" or "oauth2".
    authorization: str = ""
    client_id: str = "client"
    client_secret: str = "secret"  # noqa: S105
    token: str = "token"  # noqa: S105
    faults: Faults = field(default_factory=Faults)
    # What was asked, without host.
    requests: list[str] = field(default_factory=list)
    tokens: dict[str, float] = field(default_factory=dict)
    uses: Counter[str] = field(default_factory=Counter)


@dataclass
class OneRosterServer:
    port: int
    districts: dict[str, District]

    def address(self, district: str = "north") -> str:
        return f"http://127.0.0.1:{self.port}/{district}"

    def archive_address(self, district: str = "north") -> str:
        return f"{self.address(district)}/roster.zip"

    def token_address(self, district: str = "north") -> str:
        return f"{self.address(district)}/token"


@contextmanager
def serve(
    districts: dict[str, District], *, port: int = 0
) -> Iterator[OneRosterServer]:
    """Serve these districts on loopback, in threads, until the end of the block."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        # A night begins with many feeds at once.
        request_queue_size = 512

        def handle_error(self, *_: object) -> None:
            """Ignore clients that close the connection."""

    handler = type("DistrictHandler", (Handler,), {"districts": districts})
    server = Server(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield OneRosterServer(server.server_address[1], districts)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise the body waits for the client's delayed acknowledgement of the head.
    disable_nagle_algorithm = True
    districts: Mapping[str, District]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body: bytes) -> None:
        url = urlsplit(self.path)
        _, name, *rest = url.path.split("/", 2)
        district = self.districts.get(name)
        if district is None:
            self._send(404)
            return
        path, faults = "/" + "".join(rest), district.faults
        district.requests.append(f"{self.command} {path}?{url.query}".rstrip("?"))
        if faults.latency:
            time.sleep(faults.latency)
        if faults.statuses:
            status = faults.statuses.pop(0)
            self._send(status, headers={"Retry-After": faults.retry_after})
        elif path == "/token" and self.command == "POST":
            self._send_token(district, parse_qs(body.decode()))
        elif not self._is_authorized(district):
            self._send(401)
        elif path == "/roster.zip":
            self._send_archive(district)
        else:
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            self._send_page(district, path, query)

    # Authorization

    def _is_authorized(self, district: District) -> bool:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if district.authorization == "bearer":
            return (kind, value) == ("Bearer", district.token)
        if district.authorization == "basic":
            return kind == "Basic" and b64decode(value).decode() == (
                f"{district.client_id}:{district.client_secret}"
            )
        if district.authorization == "oauth2":
            district.uses[value] += 1
            most = district.faults.token_uses
            return district.tokens.get(value, 0) > time.monotonic() and (
                not most or district.uses[value] <= most
            )
        if district.authorization == "oauth1":
            return kind == "OAuth" and self._is_signed(district)
        return True

    def _is_signed(self, district: District) -> bool:
        """Sign the same request again and compare."""
        # Not at the top: the command `provisioning/run feeds` starts without .venv.
        from oauthlib.oauth1 import Client as OAuth1Client

        sent = dict(
            part.strip().split("=", 1)
            for part in self.headers["Authorization"].removeprefix("OAuth ").split(",")
        )
        fields = {name: unquote(value.strip('"')) for name, value in sent.items()}
        client = OAuth1Client(
            district.client_id,
            client_secret=district.client_secret,
            signature_method=fields.get("oauth_signature_method", ""),
            nonce=fields.get("oauth_nonce"),
            timestamp=fields.get("oauth_timestamp"),
        )
        url = f"http://{self.headers['Host']}{self.path}"
        _, headers, _ = client.sign(url, http_method=self.command)
        return headers["Authorization"] == self.headers["Authorization"]

    def _send_token(self, district: District, form: Mapping[str, list[str]]) -> None:
        faults = district.faults
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic" and faults.client_auth != "body":
            pair = b64decode(value).decode()
        elif faults.client_auth != "basic":
            pair = ":".join(
                form.get(name, [""])[0] for name in ("client_id", "client_secret")
            )
        else:
            pair = ""
        scopes = form.get("scope", [""])[0].split()
        if unquote(pair) != f"{district.client_id}:{district.client_secret}":
            self._send_json(401, {"error": "invalid_client"})
        elif set(scopes) & set(faults.refused_scopes):
            self._send_json(400, {"error": "invalid_scope"})
        else:
            token = secrets.token_hex(16)
            district.tokens[token] = time.monotonic() + faults.token_seconds
            answer = {
                "access_token": token,
                "token_type": "Bearer",
                # As a text, which some servers send.
                "expires_in": str(faults.token_seconds),
            }
            self._send_json(200, answer)

    # Content

    def _send_archive(self, district: District) -> None:
        etag = f'"{sha256(district.archive).hexdigest()[:16]}"'
        if self.headers.get("If-None-Match") == etag:
            self._send(304, headers={"ETag": etag})
        else:
            self._send(
                200,
                district.archive,
                {
                    "ETag": etag,
                    "Content-Type": "application/zip",
                    "Last-Modified": formatdate(usegmt=True),
                },
                district.faults,
            )

    def _send_page(
        self, district: District, path: str, query: Mapping[str, str]
    ) -> None:
        faults = district.faults
        version = next((prefix for prefix in VERSIONS if path.startswith(prefix)), None)
        endpoint = path.removeprefix(version or "")
        items = self._objects(district, endpoint)
        limit, offset = int(query.get("limit", 100)), int(query.get("offset", 0))
        if faults.has_cursors:
            offset = int(query.get("cursor", "0"))
        if version is None or items is None:
            self._send(404)
            return
        if faults.refuses_pages_above and limit > faults.refuses_pages_above:
            self._send_json(400, {"imsx_codeMajor": "failure"})
            return
        if since := query.get("filter", ""):
            if faults.refuses_filter:
                self._send_json(400, {"imsx_codeMinor": "invalid_filter_field"})
                return
            if not faults.ignores_filter:
                time_ = since.partition(">")[2].strip("'")
                items = [
                    item for item in items if item.get("dateLastModified", "") > time_
                ]
        if faults.total_changes_after and offset >= faults.total_changes_after:
            items = items[:-1]
        total = len(items) + faults.total_added
        page = items[offset : offset + min(limit, faults.most_per_page or limit)]
        if faults.ends_early_after and offset >= faults.ends_early_after:
            page = []
        if faults.repeats_first_page and offset:
            page = items[: len(page)]
        if faults.ignores_offset:
            page = items[:limit]
        if faults.total_is_size_of_page:
            total = len(page)
        headers = {"X-Total-Count": faults.total_text or str(total)}
        if not faults.has_total:
            headers = {}
        if faults.has_next_link:
            last = offset + len(page) >= len(items)
            headers["Link"] = (
                f'<https://x.example/>; rel="{"last" if last else "next"}"'
            )
        if faults.has_cursors and offset + len(page) < len(items):
            after = 0 if faults.repeats_cursor else offset + len(page)
            address = f"https://x.example/v?cursor={after}&limit={limit}"
            headers["Link"] = f'<{address}>; rel="next"'
        if faults.status_beyond_end and offset and not page:
            self._send_json(faults.status_beyond_end, {}, {}, faults)
            return
        key = endpoint.rpartition("/")[2]
        if faults.has_null_pages and not page:
            self._send_json(200, None, headers, faults)
            return
        key = "users" if key in ("students", "teachers") else key
        self._send_json(200, {key: page}, headers, faults)

    def _objects(self, district: District, endpoint: str) -> list[Json] | None:
        """Return the objects of an endpoint; None if there is no such endpoint."""
        faults, collections = district.faults, district.collections
        if endpoint in faults.not_offered:
            return None
        if endpoint in COLLECTIONS:
            if faults.only_per_school and endpoint in (
                "users",
                "classes",
                "enrollments",
            ):
                return None
            return collections.get(endpoint, [])
        match endpoint.split("/"):
            case ["schools", school, ("students" | "teachers") as role]:
                return [
                    user
                    for user in collections["users"]
                    if (unquote(school), role[:-1]) in schools_and_roles(user)
                ]
            case ["schools", school, ("classes" | "enrollments") as collection]:
                return [
                    item
                    for item in collections.get(collection, [])
                    if item.get("school", {}).get("sourcedId") == unquote(school)
                ]
        return None

    def _send_json(
        self,
        status: int,
        content: object,
        headers: Mapping[str, str] | None = None,
        faults: Faults | None = None,
    ) -> None:
        body = json.dumps(content).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        self._send(status, body, headers, faults)

    def _send(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            if value:
                self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if faults and faults.breaks_off:
            faults.breaks_off -= 1
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif faults and faults.bytes_per_second:
            part = max(1, int(faults.bytes_per_second / 20))
            for start in range(0, len(body), part):
                self.wfile.write(body[start : start + part])
                time.sleep(part / faults.bytes_per_second)
        else:
            self.wfile.write(body)


def schools_and_roles(user: Json) -> set[tuple[str, str]]:
    if user.get("roles"):
        return {(role["org"]["sourcedId"], role["role"]) for role in user["roles"]}
    return {(org["sourcedId"], user.get("role", "")) for org in user.get("orgs", [])}

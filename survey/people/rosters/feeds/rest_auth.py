"""Authorize requests to OneRoster servers: OAuth 2, OAuth 1.0a, bearer tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from typing import Protocol
from urllib.parse import quote_plus

from django.utils.translation import gettext as _
from oauthlib.oauth1 import Client as OAuth1Client
from oauthlib.oauth2 import BackendApplicationClient

from survey.people.rosters.feeds.download_types import DownloadFailed, FeedSource
from survey.people.rosters.feeds.http_client import HttpClient, check_status

SCOPES = ("roster.readonly", "roster-core.readonly", "roster-demographics.readonly")
SCOPE_PREFIX = {
    "1.1": "https://purl.imsglobal.org/spec/or/v1p1/scope/",
    "1.2": "https://purl.imsglobal.org/spec/or/v1p2/scope/",
}
# Of servers that do not say how long their token is valid.
TOKEN_SECONDS = 10 * 60
# A token is replaced this long before its end, or at nine tenths of its time.
TOKEN_MARGIN = 60
# RFC 6749, 5.2. Other words may repeat the secret, and are not shown.
TOKEN_ERRORS = (
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
)


class Authorization(Protocol):
    def headers(self, method: str, url: str) -> Mapping[str, str]: ...

    def renew(self) -> bool:
        """Prepare for another attempt after status 401; return whether to make it."""

    def confirm(self) -> None:
        """Note that the server accepted the request."""


def authorization_of(source: FeedSource, client: HttpClient) -> Authorization:
    """Return what a feed authorizes itself with. Raises DownloadFailed."""
    kind = str(source.options.get("authorization") or "oauth2")
    if kind == "bearer":
        return BearerToken(source.credentials.get("token", ""))
    if kind == "oauth1":
        return OAuth1(source)
    return OAuth2(source, client)


class BearerToken:
    def __init__(self, token: str) -> None:
        self._token = token

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def renew(self) -> bool:
        return False

    def confirm(self) -> None:
        pass


class OAuth1:
    """Sign each request; with SHA-1 if the server refuses SHA-256."""

    def __init__(self, source: FeedSource) -> None:
        self._credentials = source.credentials
        chosen = str(source.options.get("signature") or "")
        self._methods = [chosen] if chosen else ["HMAC-SHA256", "HMAC-SHA1"]

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        client = OAuth1Client(
            self._credentials.get("client_id", ""),
            client_secret=self._credentials.get("client_secret", ""),
            signature_method=self._methods[0],
        )
        _, headers, _ = client.sign(url, http_method=method)
        return {str(name): str(value) for name, value in headers.items()}

    def renew(self) -> bool:
        if len(self._methods) == 1:
            return False
        del self._methods[0]
        return True

    def confirm(self) -> None:
        del self._methods[1:]


class OAuth2:
    """Fetch a token with client credentials, and another one before its end."""

    def __init__(self, source: FeedSource, client: HttpClient) -> None:
        self._source = source
        self._client = client
        self._token = ""
        self._ends = 0.0
        # Prevents endless attempts if a server refuses its own tokens.
        self._renewed_at_once = False

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        if time.monotonic() >= self._ends:
            self._fetch_token()
        return {"Authorization": f"Bearer {self._token}"}

    def renew(self) -> bool:
        may_retry = not self._renewed_at_once
        self._renewed_at_once = True
        self._ends = 0.0
        return may_retry

    def confirm(self) -> None:
        self._renewed_at_once = False

    def _fetch_token(self) -> None:
        """Try the usual scopes and both places for the client's secret."""
        refused = ""
        for scope in self._scopes():
            for in_body in self._places():
                status, answer = self._post(scope, in_body=in_body)
                token = answer.get("access_token")
                if status == 200 and isinstance(token, str) and token:
                    self._keep(token, answer.get("expires_in"))
                    return
                error = answer.get("error")
                refused = (
                    str(error)
                    if error in TOKEN_ERRORS
                    else _("status %(status)s") % {"status": status}
                )
                if refused == "invalid_scope":
                    break
            if refused != "invalid_scope":
                break
        raise DownloadFailed(
            _(
                "The token server gave no token (%(refused)s). Check the client"
                " ID, the secret and the scopes."
            )
            % {"refused": refused}
        )

    def _scopes(self) -> Iterator[str]:
        if chosen := str(self._source.options.get("scope") or "").strip():
            yield chosen
            return
        prefix = SCOPE_PREFIX.get(str(self._source.options.get("version")), "")
        yield " ".join(prefix + scope for scope in SCOPES)
        yield " ".join(SCOPES)
        yield ""

    def _places(self) -> list[bool]:
        chosen = self._source.options.get("client_auth")
        return [chosen == "body"] if chosen else [False, True]

    def _post(self, scope: str, *, in_body: bool) -> tuple[int, dict[str, object]]:
        name = self._source.credentials.get("client_id", "")
        secret = self._source.credentials.get("client_secret", "")
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        more = {"client_secret": secret} if in_body else {}
        if not in_body:
            # RFC 6749, 2.3.1: both are encoded as in a form first.
            pair = f"{quote_plus(name)}:{quote_plus(secret)}"
            headers["Authorization"] = (
                f"Basic {base64.b64encode(pair.encode()).decode()}"
            )
        body = BackendApplicationClient(name).prepare_request_body(
            scope=scope or None, include_client_id=in_body, **more
        )
        address = str(self._source.options.get("token_url") or "")
        with self._client.request(
            "POST", address, headers=headers, body=body.encode()
        ) as answer:
            if answer.status == 429 or answer.status >= 500 or answer.status == 404:
                check_status(answer)
            content = answer.read(100_000)
            try:
                reply = json.loads(content)
            except ValueError:
                reply = None
            return answer.status, reply if isinstance(reply, dict) else {}

    def _keep(self, token: str, expires_in: object) -> None:
        try:
            seconds = float(str(expires_in))
        except ValueError:
            seconds = TOKEN_SECONDS
        margin = min(TOKEN_MARGIN, seconds / 10)
        self._token, self._ends = token, time.monotonic() + seconds - margin

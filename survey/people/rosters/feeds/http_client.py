"""Send requests to the HTTPS servers of feeds, within limits."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import httpcore
from django.conf import settings
from django.utils.translation import gettext as _

from survey.people.rosters.feeds.download_types import DownloadFailed
from survey.people.rosters.feeds.outgoing import (
    CheckedBackend,
    Deadline,
    Limits,
    ascii_host,
    tls_context,
)

REDIRECTS = {301, 302, 303, 307, 308}
MOST_REDIRECTS = 3
CHUNK = 64 * 1024

# Returns the headers with credentials, for a method and URL.
Authorize = Callable[[str, str], Mapping[str, str]]


@dataclass(frozen=True)
class Url:
    """A checked http or https URL, in ASCII and without a fragment."""

    scheme: str
    host: str
    port: int
    text: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def parse_url(text: str) -> Url:
    """Check a URL. Raises DownloadFailed."""
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise DownloadFailed(_("The address is no URL.")) from None
    if parts.scheme not in ("https", "http") or not host:
        raise DownloadFailed(_("The address must begin with https://."))
    if parts.username is not None or parts.password is not None:
        # Addresses are shown; credentials are not.
        raise DownloadFailed(
            _(
                "Enter the user name and password in their own fields, not in the"
                " address."
            )
        )
    host = ascii_host(host)
    netloc = f"[{host}]" if ":" in host else host
    if port is not None:
        netloc += f":{port}"
    # Escapes spaces, control and other characters that a request line may not
    # hold; what is escaped already stays so.
    path = quote(parts.path or "/", safe="%/:=&?~+!$,;'@()*")
    query = quote(parts.query, safe="%/:=&?~+!$,;'@()*")
    return Url(
        parts.scheme,
        host,
        port or (443 if parts.scheme == "https" else 80),
        urlunsplit((parts.scheme, netloc, path, query, "")),
    )


class Answer:
    """The answer to a request; its content is read once, within the limits."""

    def __init__(
        self,
        url: Url,
        response: httpcore.Response,
        count: Callable[[int], None],
    ) -> None:
        self.url = url
        self.status = response.status
        self.headers = {
            name.decode("latin-1").lower(): value.decode("latin-1").strip()
            for name, value in response.headers
        }
        self._response = response
        self._count = count

    def chunks(self) -> Iterator[bytes]:
        """Yield the decoded content. Raises DownloadFailed if it is too large."""
        encoding = self.headers.get("content-encoding", "").strip().lower()
        for chunk in _decoded(self._response.iter_stream(), encoding, self.url.host):
            self._count(len(chunk))
            yield chunk

    def read(self, limit: int) -> bytes:
        """Return the content up to this many bytes."""
        content = bytearray()
        for chunk in self.chunks():
            content += chunk
            if len(content) >= limit:
                break
        return bytes(content[:limit])


class HttpClient:
    """Send the requests of one download, over connections that are kept open."""

    def __init__(
        self,
        addresses: Iterable[str],
        *,
        limits: Limits | None = None,
        on_bytes: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.limits = limits or Limits()
        self._on_bytes = on_bytes
        self._left = self.limits.content
        self.deadline = Deadline(self.limits.seconds)
        # Redirects lead to the usual port, or to one that a person entered.
        self._ports = {443} | {parse_url(address).port for address in addresses}
        # Proxies of the environment are not used: they would look up the name.
        self._pools = {
            scheme: httpcore.ConnectionPool(
                ssl_context=tls_context(),
                max_connections=4,
                network_backend=CheckedBackend(
                    self.deadline, only_allowed_networks=scheme == "http"
                ),
            )
            for scheme in ("https", "http")
        }

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def request(
        self,
        method: str,
        address: str,
        *,
        headers: Mapping[str, str] | None = None,
        authorize: Authorize | None = None,
        body: bytes | None = None,
    ) -> Iterator[Answer]:
        """Send a request, follow redirects of a GET, and yield the answer.

        The credentials of `authorize` go to no other server than that of the
        address. Raises DownloadFailed.
        """
        first = url = parse_url(address)
        for _attempt in range(MOST_REDIRECTS + 1):
            sent = {"User-Agent": f"Groundswell/{settings.VERSION}", **(headers or {})}
            if authorize is not None and url.origin == first.origin:
                sent |= authorize(method, url.text)
            with self._send(method, url, sent, body) as answer:
                location = answer.headers.get("location", "")
                if answer.status not in REDIRECTS or not location:
                    yield answer
                    return
            if method != "GET":
                raise DownloadFailed(
                    _(
                        "%(host)s answered with a redirect, which is not followed"
                        " here. Enter the address that it leads to."
                    )
                    % {"host": url.host}
                )
            url = self._redirected(url, location)
        raise DownloadFailed(
            _("%(host)s redirected more than %(most_redirects)s times.")
            % {"host": first.host, "most_redirects": MOST_REDIRECTS}
        )

    def _redirected(self, url: Url, location: str) -> Url:
        try:
            target = parse_url(urljoin(url.text, location))
        except ValueError:
            raise DownloadFailed(
                _("%(host)s redirected to an address that is no URL.")
                % {"host": url.host}
            ) from None
        if url.scheme == "https" and target.scheme != "https":
            raise DownloadFailed(
                _("%(host)s redirected to a connection without encryption.")
                % {"host": url.host}
            )
        if target.port not in self._ports:
            raise DownloadFailed(
                _(
                    "%(host)s redirected to port %(port)s, which this roster sync may"
                    " not use."
                )
                % {"host": url.host, "port": target.port}
            )
        return target

    @contextmanager
    def _send(
        self, method: str, url: Url, headers: Mapping[str, str], body: bytes | None
    ) -> Iterator[Answer]:
        timeouts = {
            "connect": self.limits.connect_seconds,
            "read": self.limits.read_seconds,
            "write": self.limits.read_seconds,
            "pool": self.limits.connect_seconds,
        }
        for value in headers.values():
            # Before anything is encoded: those errors would hold the value.
            if not is_header_value(value):
                raise DownloadFailed(
                    _("The credentials hold characters that cannot be sent.")
                )
        with (
            _named_errors(url.host),
            self._pools[url.scheme].stream(
                method,
                url.text,
                headers=[
                    (name.encode("ascii"), value.encode("latin-1"))
                    for name, value in headers.items()
                ],
                content=body,
                extensions={"timeout": timeouts},
            ) as response,
        ):
            yield Answer(url, response, self._count)

    def _count(self, size: int) -> None:
        self._on_bytes(size)
        self._left -= size
        if self._left < 0:
            raise self.limits.too_large()


def is_header_value(text: str) -> bool:
    """Test if a text can be sent as the value of a header."""
    return text == text.strip() and bool(re.fullmatch(r"[\x20-\x7e\xa0-\xff]*", text))


def _decoded(chunks: Iterable[bytes], encoding: str, host: str) -> Iterator[bytes]:
    """Decompress in parts of limited size, so that the reader can stop early."""
    if encoding in ("", "identity"):
        yield from chunks
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise DownloadFailed(
            _("%(host)s sent its answer in a compression that was not asked for.")
            % {"host": host}
        )
    # Reads the headers of gzip and of zlib.
    decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        for chunk in chunks:
            if decoder.eof:
                # zlib keeps what follows in memory, and would do so without end.
                raise zlib.error
            rest = chunk
            while rest:
                yield decoder.decompress(rest, CHUNK)
                rest = decoder.unconsumed_tail
        yield decoder.flush()
    except zlib.error:
        raise DownloadFailed(
            _("%(host)s sent compressed content that cannot be read.") % {"host": host},
            may_retry=True,
        ) from None
    if not decoder.eof:
        raise _broken_off(host)


def _broken_off(host: str) -> DownloadFailed:
    return DownloadFailed(
        _("%(host)s broke off the connection, or sent no valid answer.")
        % {"host": host},
        may_retry=True,
    )


@contextmanager
def _named_errors(host: str) -> Iterator[None]:
    """Turn httpcore's errors into DownloadFailed, whose messages hold no secret."""
    try:
        yield
    except httpcore.ConnectError:
        raise DownloadFailed(
            _("No encrypted connection to %(host)s is possible.") % {"host": host},
            may_retry=True,
        ) from None
    except httpcore.TimeoutException:
        raise DownloadFailed(
            _("%(host)s does not answer.") % {"host": host}, may_retry=True
        ) from None
    except (httpcore.NetworkError, httpcore.ProtocolError):
        # A LocalProtocolError says that a header cannot be sent, and which one.
        raise _broken_off(host) from None


def check_status(answer: Answer) -> None:
    """Raise DownloadFailed if the answer is not a success."""
    host, status = answer.url.host, answer.status
    if 200 <= status < 300:
        return
    if status in (401, 403):
        message = _("%(host)s refused the credentials (status %(status)s).") % {
            "host": host,
            "status": status,
        }
    elif status in (404, 410):
        message = _("%(host)s has nothing at this address (status %(status)s).") % {
            "host": host,
            "status": status,
        }
    elif status == 429:
        message = _("%(host)s allows no more requests for now (status 429).") % {
            "host": host
        }
    elif status >= 500:
        message = _("%(host)s has an error of its own (status %(status)s).") % {
            "host": host,
            "status": status,
        }
    else:
        message = _("%(host)s answered with status %(status)s.") % {
            "host": host,
            "status": status,
        }
    raise DownloadFailed(message, may_retry=status == 429 or status >= 500)

"""Connect to the servers of feeds, and to no other machine.

A person enters the address of a feed, and a server may redirect or change its
DNS. Each connection is therefore made to an address that was looked up once and
checked: it is public, or in FEED_NETWORKS.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import certifi
import httpcore
import idna
from django.conf import settings
from django.core import checks
from django.utils.translation import gettext as _

from survey.people.rosters.feeds.download_types import DownloadFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# From the registries of special-purpose addresses of IANA (RFC 6890), written
# out because what Python's `is_global` includes differs between its versions.
NOT_PUBLIC = [
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # Behind a provider's NAT.
        "127.0.0.0/8",
        "169.254.0.0/16",  # Link-local, and metadata of cloud machines.
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "168.63.129.16/32",  # Azure's own services, for machines there.
        "2001::/23",  # Teredo and other protocols that wrap IPv4.
        "2001:db8::/32",
        "2002::/16",  # 6to4: holds an IPv4 address.
        "3fff::/20",
    )
]
# Everything else of IPv6 is no public address: loopback, link-local, unique
# local, multicast, and those that stand for IPv4 (::ffff:0:0/96, 64:ff9b::/96).
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")

# A name with more addresses than this is tried no further.
MOST_ADDRESSES = 4


@dataclass(frozen=True)
class Limits:
    # Of all answers of one download together, after decompression.
    content: int = 2 * 1024**3
    # Of one download, from the first connection to the last byte.
    seconds: float = 60 * 60
    connect_seconds: float = 10
    # Until a server sends the next byte.
    read_seconds: float = 60

    def too_large(self) -> DownloadFailed:
        return DownloadFailed(
            _("The roster is larger than %(megabytes)s MB.")
            % {"megabytes": f"{self.content // 1024**2:,}"}
        )


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    def shorten(self, timeout: float | None) -> float:
        """Return this timeout, or the time that is left. Raises DownloadFailed."""
        self.check()
        left = self._ends - time.monotonic()
        return left if timeout is None else min(left, timeout)

    def check(self) -> None:
        """Raise DownloadFailed at the end. Sockets may return a moment earlier."""
        if time.monotonic() > self._ends - 0.01:
            minutes = max(1, round(self._seconds / 60))
            raise DownloadFailed(
                _("The download took longer than %(minutes)s min and was stopped.")
                % {"minutes": minutes},
                may_retry=True,
            )


# Addresses


def look_up(host: str, port: int, *, only_allowed_networks: bool = False) -> list[str]:
    """Return the addresses of a host, all of them checked.

    Raises DownloadFailed if any of them may not be connected to. The message
    does not tell whether a name exists that only this network knows.
    """
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno == socket.EAI_AGAIN:
            raise DownloadFailed(
                _("The address of %(host)s could not be looked up.") % {"host": host},
                may_retry=True,
            ) from None
        entries = []
    except (OSError, UnicodeError):
        entries = []
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if only_allowed_networks:
        if not (addresses and all(_is_in_allowed_network(a) for a in addresses)):
            raise DownloadFailed(
                _("Connections to %(host)s must be encrypted: use https.")
                % {"host": host}
            )
    elif not (addresses and all(is_permitted(a) for a in addresses)):
        raise DownloadFailed(
            _("%(host)s does not exist or has no public address.") % {"host": host}
        )
    return addresses[:MOST_ADDRESSES]


def is_permitted(text: str) -> bool:
    """Test if a feed may connect to this IP address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if _is_in_allowed_network(text):
        return True
    if any(address in network for network in NOT_PUBLIC):
        return False
    return address.version == 4 or address in PUBLIC_IPV6


def _is_in_allowed_network(text: str) -> bool:
    address = ipaddress.ip_address(text)
    return any(
        address in ipaddress.ip_network(network) for network in settings.FEED_NETWORKS
    )


def ascii_host(host: str) -> str:
    """Return a host name as DNS spells it. Raises DownloadFailed."""
    name = host
    if not host.isascii():
        with suppress(idna.IDNAError):
            name = idna.encode(host, uts46=True).decode()
    if not re.fullmatch(r"[0-9A-Za-z._:%-]{1,253}", name):
        raise DownloadFailed(_("The address has no valid name of a server."))
    return name


def connect(host: str, port: int, limits: Limits, deadline: Deadline) -> socket.socket:
    """Open a connection to a host that a feed may connect to."""
    for address in look_up(host, port):
        timeout = deadline.shorten(limits.connect_seconds)
        try:
            return socket.create_connection((address, port), timeout=timeout)
        except OSError:
            continue
    raise _no_connection(host, port)


def _no_connection(host: str, port: int) -> DownloadFailed:
    return DownloadFailed(
        _("%(host)s does not accept connections on port %(port)s.")
        % {"host": host, "port": port},
        may_retry=True,
    )


# HTTP


class CheckedBackend(httpcore.NetworkBackend):
    """Connect httpcore to checked addresses, until a deadline."""

    def __init__(self, deadline: Deadline, *, only_allowed_networks: bool) -> None:
        self._deadline = deadline
        self._only_allowed_networks = only_allowed_networks
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        for address in look_up(
            host, port, only_allowed_networks=self._only_allowed_networks
        ):
            try:
                stream = self._backend.connect_tcp(
                    address, port, self._deadline.shorten(timeout)
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
            return _StreamWithDeadline(stream, self._deadline)
        raise _no_connection(host, port)


class _StreamWithDeadline(httpcore.NetworkStream):
    """End reads at the deadline, however slowly the server sends."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return self._stream.read(max_bytes, self._deadline.shorten(timeout))
        except httpcore.ReadTimeout:
            self._deadline.check()
            raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.shorten(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            stream = self._stream.start_tls(
                ssl_context, server_hostname, self._deadline.shorten(timeout)
            )
        except httpcore.ConnectError as error:
            # The pool would drop the cause.
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise DownloadFailed(
                    _(
                        "The certificate of %(server_hostname)s is not valid:"
                        " %(verify_message)s."
                    )
                    % {
                        "server_hostname": server_hostname,
                        "verify_message": error.__cause__.verify_message,
                    }
                ) from None
            raise
        return _StreamWithDeadline(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@cache
def tls_context() -> ssl.SSLContext:
    """Return a context that trusts the system's authorities and certifi's."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def check_feed_networks(**_: object) -> list[checks.CheckMessage]:
    """Check that FEED_NETWORKS are networks; a system check of `check --deploy`."""
    wrong = []
    for network in settings.FEED_NETWORKS:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            wrong.append(network)
    return [
        checks.Error(f"FEED_NETWORKS holds {network!r}, no network.", id="survey.E005")
        for network in wrong
    ]

"""Decide what may be put under load: this machine, without real respondents."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from provisioning.commands import Refusal

OPEN_ADMINISTRATIONS = """
SELECT coalesce(json_agg(a.name), '[]')
FROM survey_administration a LEFT JOIN survey_wave w ON w.id = a.wave_id
WHERE now() BETWEEN a.opens_at AND a.closes_at + interval '10 minutes'
  AND w.name IS DISTINCT FROM 'Rehearsals'
"""


@dataclass(frozen=True, slots=True)
class Target:
    family: socket.AddressFamily
    address: tuple[str, int] | str
    # The Host header: the application compares it with its own.
    host: str
    tls: ssl.SSLContext | None = None

    @property
    def origin(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}"

    @property
    def cookie_prefix(self) -> str:
        """Return how names of cookies begin; browsers take `__Host-` with TLS only."""
        return "__Host-" if self.tls else ""


def target_of(text: str, *, host: str = "") -> Target:
    """Parse `http://127.0.0.1:8080`, or `unix:/path/taking.sock` with a `host`.

    Raises Refusal for other machines: the engine produces real load.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not Path(path).is_socket():
            raise Refusal(f"There is no socket {path}; is the stack up?")
        return Target(socket.AF_UNIX, path, host or "127.0.0.1")
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise Refusal(f"{text} is not like http://127.0.0.1:8080 or unix:/a/socket")
    address = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname
    if not is_loopback(address):
        raise Refusal(f"{address} is not this machine; only loopback can be loaded")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return Target(family, (address, parts.port or 80), host or parts.netloc)


def is_loopback(host: str) -> bool:
    try:
        addresses = socket.getaddrinfo(host, None)
    except OSError:
        raise Refusal(f"No address is known for {host}") from None
    return all(ipaddress.ip_address(info[4][0]).is_loopback for info in addresses)


def refuse_real_respondents(
    query: Callable[[str], list[str]], *, consequence: str
) -> None:
    """Raise Refusal while an administration other than a rehearsal is open.

    `query` runs SQL on the primary and returns its one JSON value.
    """
    names = query(OPEN_ADMINISTRATIONS)
    if names:
        raise Refusal(
            f"Real people may answer now ({', '.join(names)}), and {consequence}"
        )

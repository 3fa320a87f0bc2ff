"""What is under load: this machine, and nothing else."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from provisioning.commands import Refusal


@dataclass(frozen=True, slots=True)
class Target:
    family: socket.AddressFamily
    address: tuple[str, int] | str
    # What browsers would send: the application compares it with its own.
    host: str
    scheme: str = "http"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}"


def target_of(text: str, *, host: str = "") -> Target:
    """`http://127.0.0.1:8080`, or `unix:/path/taking.sock` with a `host`.

    Refuses what is not on this machine: the engine holds real load.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not Path(path).is_socket():
            raise Refusal(f"There is no socket {path}; is the stack up?")
        return Target(socket.AF_UNIX, path, host or "127.0.0.1")
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise Refusal(f"{text} is not like http://127.0.0.1:8080 or unix:/a/socket")
    address = _loopback(parts.hostname)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return Target(family, (address, parts.port or 80), host or parts.netloc)


def _loopback(host: str) -> str:
    address = "127.0.0.1" if host == "localhost" else host
    try:
        if ipaddress.ip_address(address).is_loopback:
            return address
    except ValueError:
        pass
    raise Refusal(f"{host} is not this machine; load is offered to loopback only")

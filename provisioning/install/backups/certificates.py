"""Read when the certificates end by which hosts reach one another's pgBackRest."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

SECONDS = 5


def first_end(etc: Path, servers: Sequence[str]) -> float | None:
    """Return when the first certificate ends that these servers show.

    In seconds since 1970. Also that of a server that was given a new one and not
    reloaded. Servers that don't answer are left out; None without any.
    """
    # Hosts are called by numbers, which Python doesn't look for among the names.
    context = ssl.create_default_context(cafile=str(etc / "ca.pem"))
    context.check_hostname = False
    context.load_cert_chain(etc / "certificate.pem", etc / "certificate.key")
    ends = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            with (
                socket.create_connection((host, int(port)), SECONDS) as connection,
                context.wrap_socket(connection) as encrypted,
            ):
                certificate = encrypted.getpeercert() or {}
        except ssl.SSLCertVerificationError:
            # It has ended, or is of another authority.
            ends.append(0.0)
        except OSError:
            continue
        else:
            ends.append(float(ssl.cert_time_to_seconds(str(certificate["notAfter"]))))
    return min(ends, default=None)

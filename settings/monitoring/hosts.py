"""Read what this host has left: its disk, its table of connections, its certificate."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from settings.monitoring.answers import NOT_SET_UP, TIMEOUT, Answer

# Of the kernel; there once its module is loaded.
CONNECTION_TABLE = Path("/proc/sys/net/netfilter")
EVERY_ADDRESS = ("", "0.0.0.0", "::", "*")  # noqa: S104


def read_disk() -> Answer:
    """Read the free space that a program without root's reserve has."""
    disk = os.statvfs(settings.FILES_FOLDER)
    return Answer(
        True,
        "read",
        samples=[
            ("disk_bytes", float(disk.f_blocks * disk.f_frsize), ()),
            ("disk_free_bytes", float(disk.f_bavail * disk.f_frsize), ()),
        ],
    )


def read_connection_table() -> Answer:
    """Read how many connections the kernel tracks for the firewall, and may track."""
    try:
        entries, limit = (
            float((CONNECTION_TABLE / f"nf_conntrack_{name}").read_text())
            for name in ("count", "max")
        )
    except FileNotFoundError:
        return NOT_SET_UP
    return Answer(
        True,
        "read",
        samples=[("conntrack_entries", entries, ()), ("conntrack_limit", limit, ())],
    )


def read_certificate() -> Answer:
    """Read the certificate that nginx serves, which may be older than its file."""
    if not settings.TLS_LISTEN:
        return NOT_SET_UP
    from cryptography.x509 import load_der_x509_certificate

    listen = urlsplit(f"//{settings.TLS_LISTEN}")
    host = listen.hostname or ""
    address = ("127.0.0.1" if host in EVERY_ADDRESS else host, listen.port or 443)
    # Its date is wanted, also of one that is wrong or has ended.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    name = urlsplit(settings.PUBLIC_ADDRESS).hostname
    with (
        socket.create_connection(address, TIMEOUT) as plain,
        context.wrap_socket(plain, server_hostname=name) as server,
    ):
        content = server.getpeercert(binary_form=True) or b""
    ends = load_der_x509_certificate(content).not_valid_after_utc.timestamp()
    return Answer(True, "read", samples=[("certificate_timestamp_seconds", ends, ())])

"""What `provisioning/install` refuses, by name, before it writes anything."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from provisioning.ansible.plugins.filter.variables import (
    host_problem,
    time_zone_problem,
)
from provisioning.commands import Refusal
from provisioning.installation.server.options import (
    HOME,
    CertificateFiles,
    InstallOptions,
)

# Whose packages the roles name.
SYSTEMS = {"debian": ("12", "13"), "ubuntu": ("24.04",)}
# Of a first installation; packages, one release and an empty database take 4 GB.
DISK_GB = 8
EMAIL = re.compile(r"[^@\s,;<>\"']+@[^@\s,;<>\"']+\.[^@\s,;<>\"']+")
MAIL_SCHEMES = ("smtp", "smtp+tls", "smtp+ssl", "filemail")
# Anything between quotation marks, as the programs' environments have them.
QUOTES = re.compile(r"['\s]")


def refuse_unusable(
    options: InstallOptions, files: CertificateFiles | None, *, is_running: bool
) -> None:
    """Raise Refusal with all that is wrong with these options or this machine."""
    problems = [
        *machine_problems(Path("/etc/os-release").read_text(), is_running=is_running),
        *option_problems(options),
        *(certificate_problems(files, options.host) if files and options.host else []),
    ]
    if problems:
        raise Refusal("; ".join(problems))


def machine_problems(os_release: str, *, is_running: bool) -> Iterator[str]:
    if os.geteuid() != 0:
        yield "only root can install it: begin with sudo"
    if problem := system_problem(os_release):
        yield problem
    if not Path("/run/systemd/system").is_dir():
        yield "systemd does not run here, and has to start the servers"
    # A second time they are its own.
    if not is_running:
        yield from busy_ports()
    if not (HOME / "current").exists():
        free = shutil.disk_usage(existing(HOME)).free >> 30
        if free < DISK_GB:
            yield f"{HOME} has {free} GB left, and needs {DISK_GB}"


def system_problem(os_release: str) -> str:
    lines = [line.partition("=") for line in os_release.splitlines()]
    values = {name: value.strip('"') for name, _, value in lines}
    name, version = values.get("ID", ""), values.get("VERSION_ID", "")
    if version in SYSTEMS.get(name, ()):
        return ""
    supported = ", ".join(f"{each} {' or '.join(SYSTEMS[each])}" for each in SYSTEMS)
    here = values.get("PRETTY_NAME") or "an unknown system"
    return f"this is {here}; supported: {supported}"


def busy_ports() -> Iterator[str]:
    for port in (80, 443):
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))  # noqa: S104
                probe.listen()
            except PermissionError:
                return
            except OSError:
                yield f"port {port} is taken by another program (ss -ltnp)"


def existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def option_problems(options: InstallOptions) -> Iterator[str]:
    checks: Mapping[str, Callable[[str], str]] = {
        "host": name_problem,
        "email": lambda text: "" if EMAIL.fullmatch(text) else "is no e-mail address",
        "time_zone": time_zone_problem,
        "mail": mail_problem,
        "acme": address_problem,
        "backup": lambda text: backup_variables(text)[1],
    }
    for name, problem_of in checks.items():
        value = getattr(options, name)
        option = f"--{name.replace('_', '-')}"
        if not value and name in ("host", "email"):
            yield f"{option} is missing"
        elif value and (problem := problem_of(value)):
            yield f"{option}: {problem}"


def name_problem(host: str) -> str:
    if problem := host_problem(host):
        return problem
    with suppress(ValueError):
        ip_address(host.strip("[]"))
        return f"{host} is an address; a certificate needs a name"
    if host.startswith("."):
        return f"{host!r} stands for many names; give the one that people type"
    if "." not in host:
        return f"{host} is no full name, such as survey.example.org"
    return ""


def address_of(text: str) -> SplitResult | None:
    """Return a URL's parts, or None if it is malformed."""
    with suppress(ValueError):
        parts = urlsplit(text)
        # Reading the port may fail.
        if (parts.port is None or parts.port > 0) and not QUOTES.search(text):
            return parts
    return None


def mail_problem(text: str) -> str:
    parts = address_of(text)
    if parts is None or parts.scheme not in MAIL_SCHEMES:
        return "write smtp+tls://USER:PASSWORD@HOST:587, special signs as %40"
    if parts.scheme == "filemail":
        return "" if parts.path.startswith("/") else "filemail:/// and a folder"
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        return "names no host, or has signs that have to be written as %2F, %3F, %23"
    return ""


def address_problem(text: str) -> str:
    parts = address_of(text)
    if parts is None or parts.scheme != "https" or not parts.hostname:
        return f"{text} is no address that begins with https://"
    return ""


def backup_variables(text: str) -> tuple[dict[str, str], str]:
    """Return the variables of the role `backup` for a place, or what is wrong."""
    if text.startswith("/") and not QUOTES.search(text):
        return {"backup_folder": text}, ""
    parts = address_of(text)
    if parts is None or not parts.hostname:
        return (
            {},
            "write a folder, ssh://HOST?from=ADDRESS or s3://KEY:SECRET@HOST/BUCKET",
        )
    more = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if parts.scheme == "ssh":
        if "from" not in more:
            return {}, "add ?from= and this machine's address, where that host reads"
        variables = {
            "backup_repository": "host",
            "backup_host": parts.hostname,
            "backup_address": more["from"],
        }
        if parts.username:
            variables["backup_host_login"] = f"{parts.username}@{parts.hostname}"
        if parts.path.strip("/"):
            variables["backup_host_folder"] = parts.path
        return variables, ""
    if parts.scheme == "s3":
        bucket = parts.path.strip("/")
        if not (parts.username and parts.password and bucket):
            return {}, "write s3://KEY:SECRET@HOST/BUCKET?region=REGION"
        variables = {
            "backup_repository": "s3",
            "backup_s3_endpoint": parts.hostname,
            "backup_s3_bucket": bucket,
            "backup_s3_key": unquote(parts.username),
            "backup_s3_key_secret": unquote(parts.password),
        }
        if region := more.get("region"):
            variables["backup_s3_region"] = region
        return variables, ""
    return {}, f"{parts.scheme}:// is no place for backups"


def certificate_problems(files: CertificateFiles, host: str) -> Iterator[str]:
    """Check files as a browser would, with the certificate itself as authority."""
    for option, path in (("--certificate", files.certificate), ("--key", files.key)):
        if not path.is_file():
            yield f"{option}: there is no file {path}"
            return
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # A passphrase can't be asked for, neither here nor by nginx at a boot.
    try:
        server.load_cert_chain(files.certificate, files.key, password=lambda: b"")
    except ssl.SSLError as error:
        # The second: of another kind, such as RSA.
        if error.reason in ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED"):
            yield f"--key: {files.key} does not belong to {files.certificate}"
        else:
            yield (
                f"--certificate: {files.certificate} and {files.key} are no certificate"
                " and key as PEM without a passphrase"
            )
        return
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(files.certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        shake_hands(server, client, host)
    except ssl.SSLCertVerificationError as error:
        yield f"--certificate: {error.verify_message.rstrip('.')}"


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """Connect both in memory; raise SSLCertVerificationError if the client refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        waiting = []
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                waiting.append(end)
        if not waiting:
            return
        ends = waiting

"""Checks of what other machines decide: certificate, name, mail server."""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from urllib.parse import SplitResult, unquote, urlsplit

from provisioning.installation.doctor.findings import (
    ERROR,
    NOTE,
    WARNING,
    Facts,
    Finding,
    Server,
    age,
    call,
)
from provisioning.installation.server.report import addresses_of_machine
from provisioning.monitoring import thresholds
from provisioning.monitoring.thresholds import DAY

# OpenSSL's X509_V_FLAG_NO_CHECK_TIME: the end is a finding of its own.
WITHOUT_TIME = 0x200000
# certbot renews a month before the end.
RENEWAL_IS_LATE = 25


def served_certificate(host: str, address: str = "127.0.0.1") -> bytes:
    """Return the certificate that this address shows, whoever signed it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((address, 443), timeout=4) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        return connection.getpeercert(binary_form=True) or b""


def chain_problem(host: str) -> str:
    """Return why a program with this system's authorities refuses, or blank."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_flags |= WITHOUT_TIME  # type: ignore[operator]
    try:
        with (
            socket.create_connection(("127.0.0.1", 443), timeout=4) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return error.verify_message


def read_certificate(server: Server) -> Facts:
    host = str(server.options["host"])
    failed = server.home / "certificate" / "failed"
    facts: Facts = {
        "host": host,
        "problem": "",
        "acme": bool(server.options.get("acme")),
        "refused": failed.read_text().strip() if failed.exists() else "",
    }
    try:
        served = served_certificate(host)
        facts["chain"] = chain_problem(host)
    except OSError as error:
        return {**facts, "problem": error.strerror or str(error)}
    pem = ssl.DER_cert_to_PEM_cert(served)
    status, shown = call(
        ["openssl", "x509", "-noout", "-enddate", "-ext", "subjectAltName"],
        input_text=pem,
    )
    if status:
        return {**facts, "problem": shown}
    ends = re.search(r"notAfter=(.+)", shown)
    file = (server.home / "certificate" / "chain.pem").read_text()
    return {
        **facts,
        "ends_in": ssl.cert_time_to_seconds(ends[1]) - time.time() if ends else 0.0,
        "names": re.findall(r"DNS:([^\s,]+)", shown),
        "is_of_file": "".join(pem.split()) in "".join(file.split()),
    }


def covers(names: list[str], host: str) -> bool:
    return any(
        name.lower() == host.lower()
        or (
            name.startswith("*.") and host.partition(".")[2].lower() == name[2:].lower()
        )
        for name in names
    )


def judge_certificate(server: Server, facts: Facts) -> Iterator[Finding]:
    host = facts["host"]
    renew = (
        f"sudo certbot renew, and read {server.home}/log/certificate.log"
        if facts["acme"]
        else f"{server.command}/install --certificate FILE --key FILE with a new one"
    )
    if facts["problem"]:
        yield Finding(
            "certificate.away",
            ERROR,
            f"Nothing answers on port 443: {facts['problem']}",
            f"{server.command}/stack logs nginx",
        )
        return
    if facts["ends_in"] < 0:
        yield Finding(
            "certificate.expired",
            ERROR,
            f"The certificate ended {age(facts['ends_in'])} ago: no browser gets in",
            renew,
        )
    elif facts["ends_in"] < thresholds.CERTIFICATE_ENDS * DAY:
        yield Finding(
            "certificate.ends",
            WARNING,
            f"The certificate ends in {age(facts['ends_in'])}",
            renew,
        )
    if not covers(facts["names"], host):
        yield Finding(
            "certificate.name",
            ERROR,
            f"The certificate is for {', '.join(facts['names']) or 'no name'}, not for"
            f" {host}: browsers refuse it",
            renew,
        )
    if facts["chain"]:
        yield Finding(
            "certificate.chain",
            ERROR,
            "No authority that this system knows has signed the certificate, or a part"
            f" of its chain is missing: {facts['chain']}",
            "put the certificates between yours and the authority's behind yours in the"
            " file, and install it; an authority of your own:"
            " /usr/local/share/ca-certificates, then update-ca-certificates",
        )
    if not facts["is_of_file"]:
        yield Finding(
            "certificate.file",
            WARNING,
            "nginx shows another certificate than the one in its file",
            f"{server.command}/stack reload",
        )
    yield from judge_renewal(server, facts)


def judge_renewal(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["acme"] and (facts["refused"] or facts["ends_in"] < RENEWAL_IS_LATE * DAY):
        why = facts["refused"] or f"it ends in {age(facts['ends_in'])}"
        yield Finding(
            "certificate.renewal",
            ERROR,
            f"The authority does not renew the certificate: {why}",
            "the name has to lead here and port 80 to be open to everybody; then"
            f" {server.command}/install",
        )


def read_name(server: Server) -> Facts:
    host = str(server.options["host"])
    facts: Facts = {"host": host, "mine": sorted(addresses_of_machine())}
    try:
        addresses = {str(each[4][0]) for each in socket.getaddrinfo(host, 443)}
    except OSError as error:
        return {**facts, "named": [], "leads_here": False, "problem": error.strerror}
    leads_here = bool(addresses & set(facts["mine"]))
    if not leads_here:
        # Through a router, say: the same certificate is this machine.
        with suppress(OSError):
            shown = served_certificate(host)
            leads_here = any(
                served_certificate(host, each) == shown for each in addresses
            )
    return {
        **facts,
        "named": sorted(addresses),
        "leads_here": leads_here,
        "problem": "",
    }


def judge_name(server: Server, facts: Facts) -> Iterator[Finding]:
    mine = ", ".join(facts["mine"]) or "its public address"
    if not facts["named"]:
        yield Finding(
            "dns.nowhere",
            ERROR,
            f"{facts['host']} leads nowhere ({facts['problem']})",
            f"add an A record for {mine}; if other names lead nowhere either, it is"
            " this machine's network or /etc/resolv.conf",
        )
    elif not facts["leads_here"]:
        yield Finding(
            "dns.elsewhere",
            ERROR,
            f"{facts['host']} leads to {', '.join(facts['named'])}, where another"
            f" machine or none answers; this machine has {mine}",
            "change the A record; behind a router, lead its ports 80 and 443 here",
        )


def read_mail(server: Server) -> Facts:
    """Greet the mail server and log in there; no e-mail is sent."""
    address = str(server.options.get("mail", ""))
    parts = urlsplit(address)
    if not address or parts.scheme == "filemail":
        return {"is_set": bool(address), "server": "", "problem": ""}
    place = str(parts.hostname)
    try:
        problem = greet(parts)
    except smtplib.SMTPAuthenticationError as error:
        problem = f"it refuses the user or the password ({error.smtp_code})"
    except smtplib.SMTPResponseException as error:
        problem = f"it answers {error.smtp_code}"
    except (OSError, smtplib.SMTPException, ValueError) as error:
        # Of its text, nothing that the server wrote or the address has.
        problem = getattr(error, "strerror", "") or type(error).__name__
    return {"is_set": True, "server": place, "problem": problem}


def greet(parts: SplitResult) -> str:
    scheme = parts.scheme
    is_tls = scheme == "smtp+ssl"
    kind = smtplib.SMTP_SSL if is_tls else smtplib.SMTP
    port = parts.port or (465 if is_tls else 25)
    host = parts.hostname or ""
    with closing(kind(host, port, timeout=5)) as connection:
        connection.ehlo_or_helo_if_needed()
        if scheme == "smtp+tls":
            connection.starttls(context=ssl.create_default_context())
        if parts.username:
            connection.login(unquote(parts.username), unquote(parts.password or ""))
        with suppress(smtplib.SMTPException, OSError):
            connection.quit()
    return ""


def judge_mail(server: Server, facts: Facts) -> Iterator[Finding]:
    change = f"{server.command}/install --mail smtp+tls://USER:PASSWORD@HOST:587"
    if not facts["is_set"]:
        yield Finding(
            "mail.none",
            NOTE,
            "No e-mail is sent: invitations and forgotten passwords need it",
            change,
        )
    elif facts["problem"]:
        yield Finding(
            "mail.refuses",
            ERROR,
            f"The mail server {facts['server']} does not take e-mails:"
            f" {facts['problem']}",
            f"ask its owner; another one: {change}. What waits is sent afterwards",
        )

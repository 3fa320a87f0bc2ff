"""Tell at the end of an installation what serves, and what is left to do."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress

from provisioning.commands import ROOT, Refusal, output_of, step
from provisioning.installation.server.options import HOME, InstallOptions
from provisioning.measure.capacity import people_an_hour

COMMAND = f"{HOME}/current/provisioning"


def conclude(options: InstallOptions) -> int:
    """Send the test e-mail, appoint the first administrator, and print the rest."""
    left = [
        *certificate_tasks(options),
        *name_tasks(options),
        *mail_tasks(options),
        *backup_tasks(options),
    ]
    link = administrators_link(options)
    print(f"\nGroundswell serves https://{options.host}/ (release {ROOT.name})")
    print(f"  times are those of {options.time_zone}; all is in {HOME}")
    for line in [*size_lines(options), *capacity_lines()]:
        print(f"  {line}")
    print("\nLeft to do:" if left else "\nNothing is left to do.")
    for number, task in enumerate(left, 1):
        print(f"  {number}. {task}")
    if link:
        print(
            f"\nThe first administrator, {options.email}, chooses a password here,"
            f" within 24 hours:\n  {link}\nThis link is printed once."
        )
    print(f"\nsudo {COMMAND}/stack status shows its programs.", flush=True)
    return 0


def status_over_tls(
    options: InstallOptions, context: ssl.SSLContext | None = None
) -> int:
    """Return the status of the login page on this machine; 0 without an answer."""
    if context is None:
        # Whoever signed it: what browsers think of it is another question.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, http.client.HTTPException):
        plain = socket.create_connection(("127.0.0.1", 443), timeout=5)
        connection = http.client.HTTPSConnection(options.host, timeout=5)
        with closing(connection):
            connection.sock = context.wrap_socket(plain, server_hostname=options.host)
            connection.request("GET", "/")
            return connection.getresponse().status
    return 0


def certificate_tasks(options: InstallOptions) -> Iterator[str]:
    """Ask whether a program with this system's authorities would trust it."""
    if status_over_tls(options, ssl.create_default_context()) == 200:
        return
    failed = HOME / "certificate" / "failed"
    if options.acme and failed.exists():
        yield (
            f"The authority signed no certificate: {failed.read_text().strip()}."
            " Browsers warn until it has. Once the name leads here and port 80 is"
            f" open, run {COMMAND}/install again"
        )
    else:
        yield (
            "No authority that this system knows has signed the certificate, or a part"
            " of its chain is missing: see what a browser says"
        )


def name_tasks(options: InstallOptions) -> Iterator[str]:
    mine = addresses_of_machine()
    try:
        named = {each[4][0] for each in socket.getaddrinfo(options.host, 443)}
    except OSError:
        named = set()
    here = ", ".join(sorted(mine)) or "its public address"
    if not named:
        yield f"{options.host} leads nowhere yet: add an A record for {here}"
    elif not {str(each) for each in named} & mine:
        yield (
            f"{options.host} leads to {', '.join(sorted(map(str, named)))}; this"
            f" machine has {here}. Unless a router with that address leads here, change"
            " the A record"
        )


def addresses_of_machine() -> set[str]:
    with suppress(Refusal):
        lines = output_of(
            ["ip", "-o", "addr", "show", "scope", "global"], failing="ip fails"
        )
        return {line.split()[3].split("/")[0] for line in lines.splitlines()}
    return set()


def mail_tasks(options: InstallOptions) -> Iterator[str]:
    if not options.mail:
        yield (
            "No e-mail is sent: invitations and forgotten passwords need it. Run"
            f" {COMMAND}/install --mail smtp+tls://USER:PASSWORD@HOST:587"
        )
        return
    try:
        with step(f"Sending a test e-mail to {options.email}"):
            manage("sendtestemail", options.email)
    except Refusal as refusal:
        yield f"No test e-mail was sent ({refusal}): run install with another --mail"


def backup_tasks(options: InstallOptions) -> Iterator[str]:
    if not options.backup:
        yield (
            f"Backups go to {HOME}/backups, on the same disk, and are lost with it: run"
            f" {COMMAND}/install --backup PLACE"
        )
    yield (
        "Back up the keys, without which no backup can be read: write a passphrase"
        f" into FILE, run {COMMAND}/stack backup --keys FILE, and keep the passphrase"
        " elsewhere"
    )


def administrators_link(options: InstallOptions) -> str:
    """Return a link for the first administrator, or "" if there is one already."""
    with step("Appointing the first administrator"):
        printed = manage("appoint", options.email, "--role", "state", "--first")
    return printed.strip()


def size_lines(options: InstallOptions) -> list[str]:
    if options.size == "small":
        return [
            "small: a page is saved once it is on this disk; there is no second copy"
            " of the database, so a lost disk loses what the last backup lacks; jobs"
            " run one after another, without a queue",
        ]
    return [
        "a page is saved once it is on this disk; a second copy of the database on it"
        " serves exports and results"
    ]


def capacity_lines() -> list[str]:
    people, cores = people_an_hour()
    return [
        f"{cores} cores carry about {people:,} people an hour who answer 45 pages, with"
        " half of the machine left free (provisioning/run capacity)"
    ]


def manage(*arguments: str) -> str:
    """Run manage.py in the environment of the user who migrates."""
    return output_of(
        [ROOT / "provisioning" / "stack", "manage", *arguments],
        failing=f"manage.py {arguments[0]} fails",
    )

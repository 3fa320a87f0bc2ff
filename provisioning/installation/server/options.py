"""The options of `provisioning/install`, kept for the next time."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, caller_path, command_parser
from provisioning.installation.stack import setting

HOME = Path("/srv/groundswell")
FILE = HOME / "installation.json"
ACME = "https://acme-v02.api.letsencrypt.org/directory"


@dataclass(frozen=True, slots=True)
class InstallOptions:
    host: str = ""
    email: str = ""
    time_zone: str = ""
    mail: str = ""
    # Empty: the owner's own certificate.
    acme: str = ""
    backup: str = ""
    size: str = ""
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Files that are read once, when they are given."""

    certificate: Path
    key: Path


def parse(
    arguments: Sequence[str] | None = None,
) -> tuple[dict[str, Any], CertificateFiles | None]:
    """Return the options that were given, and the owner's certificate if it was."""
    given = vars(parser().parse_args(arguments))
    certificate, key = given.pop("certificate"), given.pop("key")
    if bool(certificate) != bool(key):
        raise Refusal("--certificate and --key belong together")
    if certificate and given["acme"]:
        raise Refusal("Choose --acme, or --certificate with --key")
    if certificate:
        return given, CertificateFiles(caller_path(certificate), caller_path(key))
    return given, None


def parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "Install Groundswell on this machine, to serve people under a name with TLS;"
        " run again, it goes on where it was interrupted, or brings in other options."
        " Options are kept for the next time.",
        epilog="Afterwards: /srv/groundswell/current/provisioning/stack status",
    )
    add = parser.add_argument
    add("--host", help="The name that browsers ask for: survey.example.org.")
    add("--email", help="The address of the first administrator.")
    add("--time-zone", help="The state's: America/Chicago. The machine's, if missing.")
    add(
        "--mail", help="smtp+tls://USER:PASSWORD@HOST:587; if missing, no mail is sent."
    )
    add("--certificate", metavar="FILE", help="Your own, with its chain, as PEM.")
    add("--key", metavar="FILE", help="Its private key, as PEM.")
    add("--acme", metavar="URL", help=f"The authority that signs one ({ACME}).")
    add(
        "--backup",
        metavar="PLACE",
        help="/mnt/other-disk, ssh://HOST?from=ADDRESS or s3://KEY:SECRET@HOST/BUCKET;"
        " if missing, a folder of this disk, which is lost with it.",
    )
    add(
        "--size",
        choices=("standard", "small"),
        help="small: for 2 GB and one core, without a second copy of the database and"
        " without a queue. By the machine's memory, if missing.",
    )
    add(
        "--set",
        action="append",
        type=setting,
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="A variable of provisioning/ansible; empty: its usual value.",
    )
    # Of an upgrade, which calls the release that it brings.
    add("--step", choices=("prepare", "apply"), default="", help=argparse.SUPPRESS)
    return parser


def merge(
    given: dict[str, Any], *, own_certificate: bool, file: Path = FILE
) -> InstallOptions:
    """Add the options of the last time to those that were given."""
    try:
        before = asdict(read_options(json.loads(file.read_text())))
    except FileNotFoundError:
        before = asdict(InstallOptions(acme=ACME))
    except (KeyError, TypeError, ValueError):
        raise Refusal(f"{file} can't be read; move it away") from None
    settings = {**before["settings"], **dict(given["settings"])}
    merged = {
        each.name: given[each.name]
        if given[each.name] is not None
        else before[each.name]
        for each in fields(InstallOptions)
        if each.name != "settings"
    }
    if own_certificate:
        merged["acme"] = ""
    elif given["acme"] == "":
        merged["acme"] = ACME
    return InstallOptions(
        **merged, settings={name: value for name, value in settings.items() if value}
    )


def read_options(written: dict[str, Any]) -> InstallOptions:
    """Return the options that this release knows of those that one has written."""
    # A newer one may have added some, before a rollback.
    names = {each.name for each in fields(InstallOptions)}
    return InstallOptions(
        # All have always had this.
        host=written["host"],
        **{name: written[name] for name in names - {"host"} if name in written},
    )


def keep(options: InstallOptions, file: Path = FILE) -> None:
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    # The mail server's password is among them.
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(json.dumps(asdict(options), indent=1))
    draft.replace(file)

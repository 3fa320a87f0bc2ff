"""Write what each container mounts: its configuration and its secrets, and no other's.

Runs in a container of its own before the others, each time. Secrets are made the first
time, in a volume that only this one mounts; certificates too, unless they are there. It
renders the roles' templates with the playbook, so that a container is configured as an
installed server is.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from provisioning.commands import Refusal, output_of, step
from provisioning.installation.playbook import ANSIBLE, run_playbook

INVENTORY = ANSIBLE / "inventories" / "containers"
HOME = Path("/srv/groundswell")
# Each container's folder here is its /srv/groundswell/etc.
TARGET = Path("/configuration")
# What it may read: files and folders of `etc`.
MOUNTED = {
    "taking": ("app/taking.env", "taking"),
    "console": ("app/console.env", "console"),
    "worker": ("app/worker.env", "worker"),
    "release": ("app/manage.env", "primary/grants.sql"),
    "nginx": ("nginx",),
    "pgbouncer": ("pgbouncer",),
    "postgresql": ("primary",),
    "redis": ("redis", "redis-messages"),
    "memcached": ("memcached",),
    "rabbitmq": ("rabbitmq",),
}
# Variables of the settings that are set for the whole installation, and the roles'
# variables that they become.
VARIABLES = {
    "GROUNDSWELL_HOSTS": "allowed_hosts",
    "GROUNDSWELL_TIME_ZONE": "time_zone",
    "GROUNDSWELL_URL": "public_address",
    "GROUNDSWELL_VERSION": "version",
    "GROUNDSWELL_EMAIL_URL": "mail_server",
    "GROUNDSWELL_EMAIL_FROM": "mail_from",
    "GROUNDSWELL_EMAIL_PROVIDER": "mail_provider",
    "GROUNDSWELL_EMAIL_KEY": "mail_key",
    "GROUNDSWELL_EMAIL_DOMAIN": "mail_domain",
    "GROUNDSWELL_EMAIL_REGION": "mail_region",
    "GROUNDSWELL_EMAIL_API": "mail_api",
    "GROUNDSWELL_EMAIL_WEBHOOK_KEY": "mail_webhook_key",
    "GROUNDSWELL_SENTRY_DSN": "sentry_dsn",
    "GROUNDSWELL_SOURCE_URL": "source_url",
    "GROUNDSWELL_DASHBOARDS": "dashboards",
}
LISTS = {
    "GROUNDSWELL_EMAIL_WEBHOOK_SECRETS": "mail_webhook_secrets",
    "GROUNDSWELL_FEED_NETWORKS": "feed_networks",
}
# Any other variable of the roles, as JSON: {"taking_workers": 8}.
FURTHER = "GROUNDSWELL_VARIABLES"


def main() -> int:
    os.umask(0o077)
    variables = variables_of(os.environ)
    make_certificate(HOME / "certificate", str(variables["allowed_hosts"]))
    run_playbook(
        HOME / "playbook",
        variables,
        "--tags=files",
        inventories=[INVENTORY],
        quietly=True,
    )
    with step(f"Writing {len(MOUNTED)} folders"):
        for name, paths in MOUNTED.items():
            hand_out(TARGET / name, paths)
    return 0


def variables_of(environment: dict[str, str] | os._Environ[str]) -> dict[str, object]:
    """Return the roles' variables. Raises Refusal if a value can't be read."""
    variables: dict[str, object] = {
        variable: environment[name]
        for name, variable in VARIABLES.items()
        if environment.get(name)
    }
    for name, variable in LISTS.items():
        if environment.get(name):
            variables[variable] = environment[name].split(",")
    try:
        further = json.loads(environment.get(FURTHER) or "{}")
    except ValueError as error:
        raise Refusal(f"{FURTHER} is not JSON: {error}") from None
    if not isinstance(further, dict):
        raise Refusal(f'{FURTHER} is no object such as {{"taking_workers": 8}}')
    # The second through a tunnel, to the engineers' pages.
    hosts = variables.get("allowed_hosts")
    variables["allowed_hosts"] = f"{hosts},localhost" if hosts else "localhost"
    return {**variables, **further}


def make_certificate(folder: Path, hosts: str) -> None:
    """Make a certificate that nobody signed, unless the owner's own is mounted."""
    key, certificate = folder / "key.pem", folder / "chain.pem"
    if certificate.exists() and key.exists():
        return
    host = hosts.split(",")[0].removeprefix(".")
    with step(f"Making a certificate for {host}, which browsers will not trust"):
        output_of(
            ["openssl", "req", "-config", "/dev/null", "-x509", "-newkey", "ec"]
            + ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "365"]
            + ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
            + ["-keyout", str(key), "-out", f"{certificate}.new"],
            failing="openssl can't make it",
        )
        Path(f"{certificate}.new").rename(certificate)


def hand_out(folder: Path, paths: tuple[str, ...]) -> None:
    """Put files of `etc` into a folder that is mounted elsewhere, each in one step."""
    wanted: set[Path] = set()
    for path in paths:
        source = HOME / "etc" / path
        for file in [source] if source.is_file() else sorted(source.rglob("*")):
            if file.is_file():
                target = folder / file.relative_to(HOME / "etc")
                target.parent.mkdir(parents=True, exist_ok=True)
                draft = target.with_name(f".{target.name}.new")
                shutil.copyfile(file, draft)
                draft.replace(target)
                wanted.add(target)
    # A file of a version before may be read by mistake.
    for file in folder.rglob("*"):
        if file.is_file() and file not in wanted:
            file.unlink()


if __name__ == "__main__":
    sys.exit(main())

"""The example of a fleet with the drill's own hosts: what differs, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from provisioning.commands import Refusal
from provisioning.installation.playbook import ANSIBLE

EXAMPLE = ANSIBLE / "inventories" / "fleet.example"
NAME = "survey.example.org"
# What stands in front of the web hosts is the owner's, and so no host of the playbook.
BALANCER = ("lb1", "10.0.0.2")
# Where each web and worker host has the folder of files, as a file server's.
SHARED_FILES = "/srv/groundswell-files"
# JMeter's, which serves nobody.
LEFT_OUT = "load"
Groups = dict[str, dict[str, str]]


def groups_of(example: Path = EXAMPLE) -> Groups:
    """Return each group's hosts with their addresses."""
    hosts = yaml.safe_load((example / "hosts.yml").read_text())
    return {
        group: {name: each["ansible_host"] for name, each in described["hosts"].items()}
        for group, described in hosts["fleet"]["children"].items()
        if group != LEFT_OUT
    }


def differences(folder: Path, repository: str) -> dict[str, object]:
    """Return the variables that an owner would set, for small hosts of one machine.

    `folder` has the key for SSH, the hosts' keys, and gets the secrets.
    """
    known = f"-o UserKnownHostsFile={folder}/known_hosts"
    return {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": f"{folder}/ssh_key",
        # Not this machine's own master connections.
        "ansible_ssh_common_args": f"{known} -o ControlPath={folder}/%C",
        "repository": repository,
        "secrets": f"{folder}/secrets",
        # Backups and e-mail have servers of their own, and drills of their own.
        "backup_repository": "none",
        "mail_server": "filemail:////tmp",
        # Files in a folder of all hosts: a bucket elsewhere is reached by TLS, with a
        # certificate that the system knows.
        "files_bucket": "",
        "files_folder": SHARED_FILES,
        "files_shared": True,
        "files_gid": 2001,
        # Of a balancer, whose clients are one address.
        "connections_per_address": 0,
        "requests_per_address": 8192,
        # Each host would take its share of the whole machine's memory.
        "memory": 1024,
        "max_wal_size": "512MB",
        "min_wal_size": "128MB",
        "max_slot_wal_keep_size": "1GB",
        "taking_workers": 1,
        "console_workers": 1,
        "content_cache_size": "64m",
        "name_fonts": [],
    }


def write_inventory(
    folder: Path, groups: Groups, variables: Mapping[str, object]
) -> Path:
    """Write the example with these hosts, and with the variables after its own."""
    example = yaml.safe_load((EXAMPLE / "group_vars/fleet.yml").read_text())
    # A variable that no role and no inventory knows would change nothing.
    known = example.keys() | names_in_roles()
    if unknown := [
        name
        for name in variables
        if name.partition("_")[0] != "ansible" and name not in known
    ]:
        raise Refusal(f"The roles know no {', '.join(unknown)}")
    inventory = folder / "inventory"
    (inventory / "group_vars").mkdir(parents=True)
    hosts: dict[str, Any] = {
        group: {"hosts": {name: {"ansible_host": it} for name, it in members.items()}}
        for group, members in groups.items()
    }
    text = json.dumps({"fleet": {"children": hosts}}, indent=1)
    (inventory / "hosts.yml").write_text(text)
    values = {**example, **variables}
    (inventory / "group_vars/fleet.yml").write_text(json.dumps(values, indent=1))
    return inventory


def names_in_roles() -> set[str]:
    files = [
        *ANSIBLE.glob("roles/*/defaults/main.yml"),
        *ANSIBLE.glob("group_vars/all/*.yml"),
    ]
    return {name for file in files for name in yaml.safe_load(file.read_text()) or {}}


def balancer_configuration(web: Mapping[str, str]) -> str:
    """Return HAProxy's: connections to the web hosts that are ready, TLS untouched."""
    return BALANCER_TEMPLATE + "".join(
        f"    server {name} {address}:443 check port 8081\n"
        f"    server {name}-unready {address}:443 backup\n"
        for name, address in web.items()
    )


BALANCER_TEMPLATE = """\
global
    maxconn 8000

defaults
    mode tcp
    timeout connect 2s
    # /readyz waits a second for servers that hang, and longer on a busy host: without
    # this, the loss of a cache would take all web hosts out.
    timeout check 5s
    timeout client 1m
    timeout server 1m
    option redispatch
    retries 2

listen survey
    bind 0.0.0.0:443
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
    # None is ready while there is no primary: nginx tells browsers when to come again.
    option allbackups
    default-server inter 2s fall 2 rise 1 on-marked-down shutdown-sessions
"""

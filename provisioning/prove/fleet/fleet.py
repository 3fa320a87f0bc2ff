"""All hosts of a fleet, the switch between them, and who runs the playbook for them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, output_of, step
from provisioning.installation.playbook import (
    ANSIBLE,
    ansible_environment,
    playbook_command,
    why_failed,
)
from provisioning.processes import start_process, stop_process
from provisioning.prove.failovers.cluster import IS_PRIMARY, STANDBYS
from provisioning.prove.failovers.faults import SYNCHRONOUS
from provisioning.prove.fleet.hosts import GATEWAY, SWITCH, Host, Switch, in_namespace
from provisioning.prove.fleet.inventory import (
    BALANCER,
    NAME,
    SHARED_FILES,
    balancer_configuration,
    differences,
    groups_of,
    write_inventory,
)
from provisioning.prove.installing.authority import own_certificate
from provisioning.prove.installing.machine import Mirror, make_root
from provisioning.prove.installing.releases import copy_code

# Where the roles look for the certificate of the name.
CERTIFICATE = "etc/ssl/groundswell/fullchain.pem"
CERTIFICATE_KEY = "etc/ssl/private/groundswell.key"

HOME = "/srv/groundswell"
CHECKOUT = f"{HOME}-checkout"
STATUS = (
    *(f"{CHECKOUT}/.venv/bin/supervisorctl", "-c", f"{HOME}/etc/supervisord.conf"),
    "status",
)
MANAGE = (
    *("runuser", "-u", "groundswell", "--", "sh", f"{HOME}/etc/app/run", "manage"),
    *(f"{CHECKOUT}/.venv/bin/python", "manage.py"),
)
PSQL = ("psql", "-h", f"{HOME}/run", "-U", "postgres", "-d", "groundswell", "-qAtXc")


class Fleet:
    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder
        self.suite = suite
        self.groups = groups_of()
        self.hosts: dict[str, Host] = {}
        self.started: list[subprocess.Popen[bytes]] = []

    def make(self) -> None:
        """Make and start all hosts: a fresh Debian that answers SSH, no more."""
        base = self.folder / "base"
        make_root(base, self.suite, Mirror.of_this_machine(), "openssh-server")
        self.write_keys(base)
        self.certificate, key = own_certificate(self.folder, NAME)
        Switch(self.folder)
        files = self.folder / "files"
        files.mkdir()
        addresses = dict([BALANCER])
        for members in self.groups.values():
            addresses |= members
        # A machine's name has no underscore.
        prefix = self.folder.name.replace("_", "-")
        for name, address in addresses.items():
            shares = name in {**self.groups["web"], **self.groups["worker"]}
            host = self.hosts[name] = Host(
                self.folder / name,
                name=f"{prefix}-{name}",
                base=base,
                address=address,
                shared=[(files, SHARED_FILES)] if shares else [],
            )
            host.prepare()
        for name in self.groups["web"]:
            root = self.hosts[name].root
            for path, place in (
                (self.certificate, CERTIFICATE),
                (key, CERTIFICATE_KEY),
            ):
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, root / place)
        with step(f"Starting {len(self.hosts)} hosts"):
            for host in self.hosts.values():
                host.power_on()
            for host in self.hosts.values():
                host.wait_for_boot()

    def write_keys(self, base: Path) -> None:
        """Let the playbook in, and let it know the hosts."""
        key = self.folder / "ssh_key"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        output_of(command, failing="ssh-keygen fails")
        (base / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
        shutil.copy(f"{key}.pub", base / "root/.ssh/authorized_keys")
        public = (base / "etc/ssh/ssh_host_ed25519_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"* {public}")

    def serve_code(self) -> str:
        """Serve this checkout's files to the hosts as a git repository."""
        code = self.folder / "repositories" / "groundswell"
        copy_code(code)
        git = ["git", "-C", str(code), "-c", "user.name=Drill"]
        git += ["-c", "user.email=drill@example.org"]
        for command in (
            ["init", "--quiet", "--initial-branch=main"],
            ["add", "--all"],
            ["commit", "--quiet", "--message=Files"],
        ):
            output_of([*git, *command], failing="git fails")
        daemon = ["git", "daemon", "--export-all", f"--listen={GATEWAY}"]
        self.start_process("git", *daemon, f"--base-path={code.parent}")
        return f"git://{GATEWAY}/groundswell"

    def start_process(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Start a process of the drill itself, at the switch."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = start_process(in_namespace(SWITCH, *command), output=log)
        self.started.append(process)
        return process

    def write_inventory(self, repository: str) -> None:
        variables = differences(self.folder, repository)
        self.inventory = write_inventory(self.folder, self.groups, variables)

    @property
    def guarded_ports(self) -> list[dict[str, Any]]:
        values = json.loads((self.inventory / "group_vars/fleet.yml").read_text())
        ports: list[dict[str, Any]] = values["guarded_ports"]
        return ports

    @property
    def authority(self) -> Path:
        """Return what browsers know the certificate of the name by."""
        return self.certificate.with_name("ca.pem")

    def play(self, *options: str) -> float:
        """Run the playbook; return the seconds it took."""
        began = time.monotonic()
        command = playbook_command(
            f"--inventory={self.inventory}", "--forks=10", *options, variables={}
        )
        log = self.folder / "provisioning.log"
        with log.open("w") as output:
            done = subprocess.run(
                in_namespace(SWITCH, *command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ANSIBLE,
                env=ansible_environment(self.folder),
            )
        if done.returncode:
            lines = log.read_text().splitlines()
            raise Refusal(f"{why_failed(lines)} (more in {log})")
        return time.monotonic() - began

    def balance(self) -> None:
        """Set up the balancer, which is none of the playbook's."""
        host = self.hosts[BALANCER[0]]
        host.run("apt-get", "-qq", "update")
        host.run("apt-get", "-qq", "install", "--yes", "haproxy")
        text = balancer_configuration(self.groups["web"])
        (host.root / "etc/haproxy/haproxy.cfg").write_text(text)
        host.run("systemctl", "restart", "haproxy")

    def changed(self) -> list[str]:
        """Return the tasks of the last run that changed something.

        Without chrony's: no container may set the clock, so it ends at once.
        """
        text = (self.folder / "provisioning.log").read_text()
        tasks = re.split(r"^(?:TASK|RUNNING HANDLER) \[", text, flags=re.M)[1:]
        names = [
            task.partition("]")[0]
            for task in tasks
            if re.search("^changed:", task, re.M)
        ]
        return [name for name in names if not name.startswith("chrony :")]

    # What it says of itself

    def first(self, group: str) -> Host:
        return self.hosts[next(iter(self.groups[group]))]

    def manage(self, *arguments: str) -> str:
        """Run a management command where the playbook runs the migrations."""
        return self.first("web").run(*MANAGE, *arguments)

    def sql(self, query: str, host: Host | None = None) -> str:
        return (host or self.primary()).run(*PSQL, query).strip()

    def databases(self) -> list[Host]:
        return [self.hosts[name] for name in self.groups["failover"]]

    def primary(self) -> Host:
        """Return the database host that is no standby."""
        for host in self.databases():
            with suppress(Refusal):
                if self.sql(IS_PRIMARY, host) == "t":
                    return host
        raise Refusal("No database host is the primary")

    def standby(self) -> Host:
        """Return the standby for which commits wait."""
        name = self.sql(SYNCHRONOUS)
        return self.hosts[name]

    def is_whole(self, host: Host) -> bool:
        """Return whether all of a host's programs run, and its database follows."""
        if host.label == BALANCER[0]:
            return host.call("systemctl", "is-active", "haproxy").returncode == 0
        # Its exit status takes programs that die again and again for running ones.
        states = host.call(*STATUS).stdout.decode().splitlines()
        if not states or not all(" RUNNING " in state for state in states):
            return False
        if host.label not in self.groups["failover"]:
            return True
        with suppress(Refusal):
            return self.sql(STANDBYS) == "2|1"
        return False

    def stop(self) -> None:
        stop_process(*self.started)
        for host in self.hosts.values():
            if hasattr(host, "container"):
                host.cut_power()
            host.remove_groups()

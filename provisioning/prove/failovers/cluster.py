"""Three database hosts and a web host, as the fleet's roles configure them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from provisioning.commands import ROOT, Refusal, wait_until
from provisioning.installation.environment import PYTHON
from provisioning.installation.playbook import (
    ANSIBLE,
    ansible_environment,
    playbook_command,
    why_failed,
)
from provisioning.installation.postgresql import postgresql_programs, run_sql
from provisioning.installation.stack_folder import environment_of
from provisioning.prove.failovers.host import NAME as WATCHDOG
from provisioning.prove.failovers.host import USER, Host, Watchdog, run

INVENTORY = ANSIBLE / "inventories" / "fleet.example"
# As in the inventory.
DATABASES = {"db1": "10.0.0.11", "db2": "10.0.0.12", "db3": "10.0.0.13"}
WEB = {"web1": "10.0.0.41"}
START_SECONDS = 120.0
WHOLE_SECONDS = 180.0

# What a small machine needs instead of a fleet's sizes, and a test's data fill.
SIZES = {
    "gathers_facts": False,
    "shared_buffers": "64MB",
    "effective_cache_size": "256MB",
    "maintenance_work_mem": "32MB",
    "max_wal_size": "256MB",
    "min_wal_size": "64MB",
    "max_slot_wal_keep_size": "512MB",
    "huge_pages": "off",
    # A pipe instead of a device. The role requires one under A1 alone.
    "patroni_watchdog_driver": "testing",
    "patroni_watchdog_device": "{{ run }}/" + WATCHDOG,
    "failover_free_megabytes": 20,
    # One fault after another on the same host.
    "failover_pause_seconds": 30,
}
IS_PRIMARY = "SELECT NOT pg_is_in_recovery()"
# Patroni waits for any standby (*) while it chooses one, and none may take over.
STANDBYS = """
SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')
    AND current_setting('synchronous_standby_names') <> '*')
FROM pg_stat_replication WHERE state = 'streaming' AND application_name LIKE 'db%'
"""


@dataclass
class Cluster:
    folder: Path
    promise: str
    databases: list[Host] = field(default_factory=list)
    inventories: ClassVar[Sequence[Path]] = (INVENTORY,)
    limit: ClassVar[str] = "failover,web1"
    skipped: ClassVar[str] = "web,firewall"
    sizes: ClassVar[Mapping[str, object]] = SIZES

    def __post_init__(self) -> None:
        self.write_configuration()
        run("ip link set lo up")
        run("ip link add bridge type bridge")
        run("ip address add 10.0.0.1/24 dev bridge")
        run("ip link set bridge up")
        for name, address in DATABASES.items():
            host = Host.connected(name, address, self.folder / name)
            host.mount_disk()
            if self.promise == "A1":
                host.watchdog = Watchdog(host.folder / "run" / WATCHDOG, host.kill)
            self.databases.append(host)
        [(name, address)] = WEB.items()
        self.web = Host.connected(name, address, self.folder / name)

    def write_configuration(self) -> None:
        self.write_files(self.limit, self.inventories)

    def write_files(self, hosts: str, inventories: Sequence[Path]) -> None:
        """Write what the usual playbook configures on these hosts."""
        self.play(
            "site.yml",
            *("--tags=files", f"--limit={hosts}", f"--skip-tags={self.skipped}"),
            inventories=inventories,
            variables={"files_only": True},
        )

    def play(
        self,
        book: str,
        *options: str,
        inventories: Sequence[Path] | None = None,
        variables: Mapping[str, object],
    ) -> None:
        """Run a playbook with these hosts' folders."""
        given: dict[str, object] = {
            **self.sizes,
            "postgresql_bin": str(self.programs()),
            "deploys_code": False,
            "checkout": str(ROOT),
            "installs_packages": False,
            "home": f"{self.folder}/{{{{ inventory_hostname }}}}",
            "files_folder": f"{self.folder}/files",
            "secrets": f"{self.folder}/secrets",
            "server_user": USER,
            "promise": self.promise,
            # There is nothing outside of these networks.
            "backup_repository": "none",
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": sys.executable,
            **variables,
        }
        command = playbook_command(
            *(f"--inventory={path}" for path in inventories or self.inventories),
            *(*options, "--forks=4"),
            variables=given,
            book=book,
        )
        log = self.folder / f"{book}.log"
        with log.open("w") as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ANSIBLE,
                env=ansible_environment(self.folder),
            )
        if done.returncode:
            raise Refusal(f"{book} fails: {why_failed(log.read_text().splitlines())}")

    def play_night(self, book: str, *options: str, **variables: object) -> None:
        """Run a playbook that stops the database, as an operator does."""
        self.play(
            book,
            *options,
            variables={
                # The hosts' programs share a user.
                "separates": False,
                "starts_at_boot": False,
                # The people are made up, and their survey is open.
                "during_survey": True,
                **variables,
            },
        )

    def programs(self) -> Path:
        return postgresql_programs()

    def start(self) -> None:
        for host in (*self.databases, self.web):
            host.start()
        if not wait_until(self.primary, seconds=START_SECONDS, pause=0.5):
            raise Refusal("No database host becomes the primary; see --keep")
        for host in self.databases:
            scripts = host.folder / "etc/database"
            host.run(f"sh {scripts}/on_leader sh {scripts}/configure")
        if not self.becomes_whole():
            raise Refusal("The cluster does not become whole; see --keep")

    def migrate(self) -> None:
        environment = {**os.environ, **environment_of(self.web.folder, "manage")}
        command = f"{PYTHON} {ROOT}/manage.py migrate --verbosity=0"
        self.web.run(command, env=environment)

    def execute(self, sql: str) -> None:
        primary = self.primary()
        if primary is None:
            raise Refusal("No database host is the primary")
        run_sql(sql, run=primary.folder / "run")

    def primary(self) -> Host | None:
        """Return the only host that is no standby."""
        primaries = [
            host for host in self.databases if host.query(IS_PRIMARY) == (True,)
        ]
        return primaries[0] if len(primaries) == 1 else None

    def is_whole(self) -> bool:
        """Return whether both standbys follow the primary, as the promise wants."""
        primary = self.primary()
        standbys = primary and primary.query(STANDBYS)
        if not standbys:
            return False
        return standbys[0] == 2 and (self.promise == "A1" or standbys[1] > 0)

    def becomes_whole(self) -> bool:
        return wait_until(self.is_whole, seconds=WHOLE_SECONDS, pause=0.5)

    def heal(self) -> None:
        for host in self.databases:
            host.speed_up_disk()
            host.empty_disk()
            host.shift_clock(0)
            host.reconnect()
            host.resume()

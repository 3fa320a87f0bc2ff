"""Upgrade a data folder by pg_upgrade into a new one, which the caller puts in place.

Both servers run with a configuration of this module's: with a socket in a folder that
only PostgreSQL's user may enter, without the network, without archiving the log.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, output_of, step
from provisioning.installation.postgresql import run_sql, running_server
from provisioning.installation.upgrades.collations import (
    Versions,
    recorded_versions,
    reindex_changed,
)
from provisioning.installation.upgrades.comparison import Record, record_database

# Each table is locked at once while its definition is copied.
SETTINGS = """\
listen_addresses = ''
unix_socket_directories = '{work}'
unix_socket_permissions = 0700
hba_file = '{work}/pg_hba.conf'
archive_mode = off
autovacuum = off
hot_standby = off
max_connections = 100
max_locks_per_transaction = 1024
shared_buffers = 256MB
maintenance_work_mem = 512MB
max_wal_size = 4GB
shared_preload_libraries = 'pg_stat_statements'
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = ''
"""
CLEAN = ("shut down", "shut down in recovery")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataUpgrade:
    """An upgrade of the folder `old`; `work` has its scripts and the sockets."""

    old: Path
    new: Path
    work: Path
    old_programs: Path
    new_programs: Path
    # PostgreSQL's system user, if this process is root.
    user: str | None
    link: bool

    def prepare(self) -> None:
        self.work.mkdir(mode=0o700)
        (self.work / "postgresql.conf").write_text(SETTINGS.format(work=self.work))
        # Only its user and root can enter the folder of the socket.
        (self.work / "pg_hba.conf").write_text("local all all trust\n")
        if self.user:
            for path in (self.work, *self.work.iterdir()):
                shutil.chown(path, self.user, self.user)

    def run(
        self,
        program: Path,
        *options: str | Path,
        failing: str,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run a program of PostgreSQL as its user, in the folder `work`."""
        return output_of(
            ["env", "-C", self.work, program, *options],
            failing=failing,
            # In English, whatever the caller's language is.
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
            user=self.user,
        )

    @contextmanager
    def server(self, data: Path) -> Iterator[None]:
        """Run the server of the old or of the new folder."""
        programs = self.old_programs if data == self.old else self.new_programs
        with running_server(
            data,
            f"--config_file={self.work}/postgresql.conf",
            run=self.work,
            log=self.work / f"{programs.parent.name}.log",
            programs=programs,
            user=self.user,
            seconds=24 * 60 * 60,
        ):
            yield

    def sql(self, statements: str, database: str = "postgres") -> list[list[str]]:
        return run_sql(statements, run=self.work, database=database)


def control_of(upgrade: DataUpgrade, data: Path) -> dict[str, str]:
    """Return what pg_controldata says about a stopped server's folder."""
    printed = upgrade.run(
        upgrade.old_programs / "pg_controldata", data, failing=f"{data} can't be read"
    )
    return dict(re.findall(r"^(.+?): +(.+)$", printed, re.MULTILINE))


def upgrade_folder(
    upgrade: DataUpgrade, *, compares: bool, is_copy: bool = False
) -> tuple[dict[str, Any], Record, Record]:
    """Upgrade, and return figures and what both held; `compares` reads every row.

    Of a copy, which is deleted afterwards, amcheck reads all tables and indexes.

    The old folder stays as it is, unless it is linked: then it must not start again
    once the new one has.
    """
    if control_of(upgrade, upgrade.old)["Database cluster state"] not in CLEAN:
        raise Refusal(f"The server of {upgrade.old} was not stopped in order")
    seconds = {}
    began = time.monotonic()
    with step("Looking at what is there"), upgrade.server(upgrade.old):
        versions = recorded_versions(upgrade.work)
        before = record_database(upgrade.work, with_rows=compares)
    seconds["look"] = time.monotonic() - began
    began = time.monotonic()
    with step("Making the new folder"):
        make_new_folder(upgrade)
    with step(f"{'Linking' if upgrade.link else 'Copying'} by pg_upgrade"):
        run_pg_upgrade(upgrade)
    seconds["pg_upgrade"] = time.monotonic() - began
    began = time.monotonic()
    with upgrade.server(upgrade.new):
        rebuilt = finish(upgrade, versions)
        seconds["finish"] = time.monotonic() - began
        with step("Looking at what is there now"):
            after = record_database(upgrade.work, with_rows=compares)
        if is_copy:
            check_indexes(upgrade)
    rounded = {name: round(each, 1) for name, each in seconds.items()}
    return {"reindexed": rebuilt, "seconds": rounded}, before, after


def make_new_folder(upgrade: DataUpgrade) -> None:
    """Make an empty cluster; pg_upgrade gives it the old one's locale and encoding."""
    control = control_of(upgrade, upgrade.old)
    segments = int(control["Bytes per WAL segment"]) // 2**20
    options = [f"--pgdata={upgrade.new}", f"--wal-segsize={segments}"]
    if control["Data page checksum version"] != "0":
        options.append("--data-checksums")
    upgrade.run(
        upgrade.new_programs / "initdb",
        *options,
        *("--username=postgres", "--auth-local=peer", "--auth-host=reject"),
        # pg_upgrade writes everything to the disk at its end.
        *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
        failing="The new folder can't be made",
    )


def run_pg_upgrade(upgrade: DataUpgrade) -> None:
    server = f"-c config_file={upgrade.work}/postgresql.conf"
    upgrade.run(
        upgrade.new_programs / "pg_upgrade",
        f"--old-bindir={upgrade.old_programs}",
        f"--new-bindir={upgrade.new_programs}",
        f"--old-datadir={upgrade.old}",
        f"--new-datadir={upgrade.new}",
        f"--old-options={server}",
        f"--new-options={server}",
        f"--socketdir={upgrade.work}",
        "--username=postgres",
        f"--jobs={os.cpu_count() or 1}",
        *(["--link"] if upgrade.link else []),
        failing="pg_upgrade fails",
    )


def finish(upgrade: DataUpgrade, versions: Versions) -> list[str]:
    """Bring extensions, indexes and statistics up to the new version.

    Returns the indexes that were rebuilt. pg_upgrade brings no statistics along: the
    first, coarse ones keep the planner from reading whole tables.
    """
    script = upgrade.work / "update_extensions.sql"
    if script.exists():
        with step("Updating extensions"):
            upgrade.sql(script.read_text())
    with step("Rebuilding indexes of changed collations"):
        rebuilt = reindex_changed(upgrade.work, versions)
    with step("Making coarse statistics"):
        make_coarse_statistics(upgrade)
    return rebuilt


def make_coarse_statistics(upgrade: DataUpgrade) -> None:
    upgrade.run(
        upgrade.new_programs / "vacuumdb",
        *("--all", "--analyze-only", "--quiet", f"--jobs={os.cpu_count() or 1}"),
        *(f"--host={upgrade.work}", "--username=postgres"),
        failing="Statistics can't be made",
        environment={"PGOPTIONS": "-c default_statistics_target=1"},
    )


def check_indexes(upgrade: DataUpgrade) -> None:
    """Have amcheck read all tables and indexes; only on a copy, for it stays there."""
    with step("Checking all tables and indexes"):
        upgrade.run(
            upgrade.new_programs / "pg_amcheck",
            *("--all", "--install-missing", "--heapallindexed"),
            *(f"--host={upgrade.work}", "--username=postgres"),
            f"--jobs={os.cpu_count() or 1}",
            failing="An index or a table is damaged",
        )

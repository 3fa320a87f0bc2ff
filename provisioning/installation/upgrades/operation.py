"""provisioning/stack upgrade_postgresql: the database of a stack, by pg_upgrade."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, output_of, scratch_folder, step
from provisioning.installation.backups.operations import backup
from provisioning.installation.postgresql import (
    OLDEST,
    PACKAGED,
    postgresql_programs,
    postgresql_version,
    programs_of,
)
from provisioning.installation.promotion import PRIMARY, REPLICA, answers, stop_program
from provisioning.installation.supervisor import Supervisor
from provisioning.installation.up import merge_options, up, variables_of
from provisioning.installation.upgrades.comparison import described
from provisioning.installation.upgrades.data_folder import (
    DataUpgrade,
    control_of,
    upgrade_folder,
)

IN_RECOVERY = "SELECT pg_is_in_recovery()"
# Of the folder's size: what the copy, and its log, may need besides.
ROOM = 1.1


def add_upgrade_options(parser: argparse.ArgumentParser) -> None:
    add_version_options(parser)
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="Upgrade a copy, compare it with what was there, and delete it; the stack"
        " goes on serving.",
    )


def add_version_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--to",
        type=int,
        required=True,
        choices=sorted(set(PACKAGED.values()) - {OLDEST}),
        help="The version of PostgreSQL, which is installed.",
    )
    add(
        "--link",
        action="store_true",
        help="Link files instead of copying them: seconds, and no room. A replica's"
        " folder is the way back.",
    )
    add(
        "--compare",
        action="store_true",
        help="Compare every row before it serves again, as a rehearsal does.",
    )


def upgrade_postgresql(
    folder: Path, *, to: int, rehearse: bool, link: bool, compare: bool = False
) -> int:
    """Upgrade the stack's database, or a copy of it; print figures as JSON."""
    data = folder / "data"
    supervisor = Supervisor(folder)
    supervisor.refuse_unless_running()
    old_programs = postgresql_programs(data / "primary")
    if (known := postgresql_version(data / "primary")) >= to:
        raise Refusal(f"The data are those of PostgreSQL {known} already")
    new_programs = programs_of(to)
    refuse_without_room(data, rehearse=rehearse, link=link)
    user = str(variables_of(folder, merge_options(folder, None, ()))["server_user"])
    began = time.monotonic()
    with scratch_folder() as scratch:
        upgrade = DataUpgrade(
            old=data / ("rehearsal/old" if rehearse else "primary"),
            new=data / ("rehearsal/new" if rehearse else "upgraded"),
            work=scratch / "work",
            old_programs=old_programs,
            new_programs=new_programs,
            user=user or None,
            link=link,
        )
        upgrade.prepare()
        if rehearse:
            figures = rehearse_upgrade(folder, upgrade)
        else:
            figures = upgrade_stack(folder, upgrade, supervisor, compare=compare)
    figures = {"from": known, "to": to, "rehearsed": rehearse, **figures}
    figures["minutes"] = round((time.monotonic() - began) / 60, 1)
    for sentence in figures["differences"]:
        print(f"  {sentence}", flush=True)
    print(json.dumps(figures), flush=True)
    return int(bool(figures["differences"]))


def refuse_without_room(data: Path, *, rehearse: bool, link: bool) -> None:
    """Refuse where the copies would fill the disk, which would stop saving."""
    used = subprocess.run(
        ["du", "--summarize", "--block-size=1", data / "primary"],
        capture_output=True,
        text=True,
    )
    size = int(used.stdout.split()[0])
    # The copy for a rehearsal, the new folder unless it is linked; and the new
    # replica where the old one is kept.
    copies = rehearse + (not link) + (link and not rehearse)
    needed, free = int(copies * size * ROOM), shutil.disk_usage(data).free
    if free < needed:
        raise Refusal(
            f"{data} has {free / 2**30:.1f} GB free, and this needs"
            f" {needed / 2**30:.1f}" + ("" if link else "; --link needs less")
        )


# A rehearsal


def rehearse_upgrade(folder: Path, upgrade: DataUpgrade) -> dict[str, Any]:
    """Upgrade a copy of the running database, check it, and delete it."""
    with copied_data(folder, upgrade):
        with step("Letting the copy recover"), upgrade.server(upgrade.old):
            pass
        figures, before, after = upgrade_folder(upgrade, compares=True, is_copy=True)
    return described(figures, before, after)


@contextmanager
def copied_data(folder: Path, upgrade: DataUpgrade) -> Iterator[None]:
    """Copy the replica's data, or the primary's where there is no replica."""
    place, run = upgrade.old.parent, folder / "run"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    if upgrade.user:
        shutil.chown(place, upgrade.user, upgrade.user)
    port = REPLICA if answers(run, REPLICA, IN_RECOVERY) else PRIMARY
    passfile = folder / "etc/primary/pgpass"
    try:
        with step(f"Copying the {'replica' if port == REPLICA else 'primary'}"):
            upgrade.run(
                upgrade.old_programs / "pg_basebackup",
                *(f"--pgdata={upgrade.old}", "--checkpoint=fast"),
                "--wal-method=stream",
                f"--dbname=host={run} port={port} user=replicator passfile={passfile}",
                failing="The database can't be copied",
            )
        # A copy of the replica would wait for a primary.
        (upgrade.old / "standby.signal").unlink(missing_ok=True)
        yield
    finally:
        with step("Deleting the copies"):
            shutil.rmtree(place, ignore_errors=True)


# The upgrade itself


def upgrade_stack(
    folder: Path, upgrade: DataUpgrade, supervisor: Supervisor, *, compare: bool
) -> dict[str, Any]:
    """Stop the database, upgrade it, and start it with a new replica.

    Everything else goes on: pages answer as they do while the database is away. If
    something fails before the new folder is in place, the old one serves again.
    """
    data, began = folder / "data", time.monotonic()
    shutil.rmtree(upgrade.new, ignore_errors=True)
    replica = data / "replica"
    with step("Stopping the database"):
        for program in ("backup", "primary", "replica"):
            if supervisor_knows(supervisor, program):
                stop_program(supervisor, program)
    try:
        if upgrade.link:
            refuse_older_replica(upgrade, replica)
        figures, before, after = upgrade_folder(upgrade, compares=compare)
        result = described(figures, before, after)
        if result["differences"]:
            raise Refusal("; ".join(result["differences"][:3]))
    except BaseException:
        serve_again(upgrade, supervisor, replica)
        raise
    former = put_in_place(folder, upgrade, replica)
    renew_repository(folder, upgrade)
    up(folder, port=None, settings=())
    result["seconds"]["away"] = round(time.monotonic() - began, 1)
    with step("Making full statistics"):
        output_of(
            [str(upgrade.new_programs / "vacuumdb"), "--all", "--analyze-only"]
            + ["--quiet", f"--host={folder / 'run'}", "--username=postgres"],
            failing="Statistics can't be made",
        )
    if (folder / "etc/backup/pgbackrest.conf").exists():
        # The log of the new version continues no backup of the old one.
        backup(folder, full=True, keys=None)
    print(f"The former data are in {former}; rm -r {former} deletes them", flush=True)
    return result


def supervisor_knows(supervisor: Supervisor, program: str) -> bool:
    return bool(supervisor.programs(program))


def refuse_older_replica(upgrade: DataUpgrade, replica: Path) -> None:
    """Refuse to link where the replica, as the way back, would lack saves."""
    if not (replica / "PG_VERSION").exists():
        raise Refusal("There is no replica to go back to; upgrade without --link")
    name = "Latest checkpoint location"
    if control_of(upgrade, replica)[name] != control_of(upgrade, upgrade.old)[name]:
        raise Refusal("The replica lacks what was saved last; upgrade without --link")


def serve_again(upgrade: DataUpgrade, supervisor: Supervisor, replica: Path) -> None:
    """Start the old servers; a linked primary is replaced by the replica's folder."""
    linked = upgrade.old / "global/pg_control.old"
    print("The upgrade failed: the old version serves again", flush=True)
    if linked.exists():
        upgrade.old.rename(upgrade.old.with_name("linked"))
        (replica / "standby.signal").unlink(missing_ok=True)
        replica.rename(upgrade.old)
    for program in ("primary", "replica", "backup"):
        if supervisor_knows(supervisor, program):
            supervisor.calls.startProcess(program, False)


def put_in_place(folder: Path, upgrade: DataUpgrade, replica: Path) -> Path:
    """Put the new folder in the old one's place; return where the way back is."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    old_version = upgrade.old_programs.parent.name
    former = upgrade.old.with_name(f"postgresql-{old_version}-{stamp}")
    include = f"include '{folder}/etc/primary/postgresql.conf'\n"
    (upgrade.new / "postgresql.conf").write_text(include)
    if upgrade.link:
        replica.rename(former)
        # Its files are the new folder's now, and it must never start again.
        shutil.rmtree(upgrade.old)
    else:
        upgrade.old.rename(former)
        shutil.rmtree(replica, ignore_errors=True)
    upgrade.new.rename(upgrade.old)
    return former


def renew_repository(folder: Path, upgrade: DataUpgrade) -> None:
    """Tell pgBackRest, which would take no log of another version."""
    script = folder / "etc/backup/prepare"
    if script.exists():
        on_host = json.loads((folder / "etc/backup/backup.json").read_text())
        as_user = None if on_host.get("repository_command") else upgrade.user
        output_of(
            ["sh", script, "stanza-upgrade"],
            failing="The backups' repository can't be upgraded",
            user=as_user,
        )

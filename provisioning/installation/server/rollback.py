"""Go back to the release that served before: `provisioning/rollback`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from provisioning.commands import Refusal, command_parser, step
from provisioning.installation.backups.records import archive_log
from provisioning.installation.backups.replaying import (
    JOURNAL,
    add_journal_option,
    given_journal,
    has_entries,
    replay_by_release,
)
from provisioning.installation.backups.repository import Repository
from provisioning.installation.backups.restoring import (
    backup_before,
    restored_database,
    until_time,
)
from provisioning.installation.postgresql import run_sql
from provisioning.installation.promotion import stop_program
from provisioning.installation.server import progress
from provisioning.installation.server.options import HOME
from provisioning.installation.server.progress import BEFORE, UPGRADE, Upgrade
from provisioning.installation.server.release import CURRENT, RELEASES
from provisioning.installation.server.upgrade import (
    call,
    check,
    refuse_unless_serving,
    stop_programs,
)
from provisioning.installation.server.versions import (
    applied_migrations,
    migrations_of,
    too_new_for,
    version_in,
)
from provisioning.installation.stack_folder import environment_of
from provisioning.installation.supervisor import Supervisor

DATA = HOME / "data"
WORK = DATA / "restoring"
# What people would miss, with a condition on the time since when.
LOST = {
    "answers": "survey_response WHERE saved_at >= '{0}'",
    "people who finished": "survey_respondent WHERE completed_at >= '{0}'",
    "acts of staff": "accounts_auditentry WHERE at >= '{0}'",
}


def main() -> int:
    os.umask(0o022)
    options = parser().parse_args()
    refuse_unless_serving("rollback")
    with progress.exclusively():
        upgrade = progress.read(UPGRADE) or progress.read(BEFORE)
        if upgrade is None:
            raise Refusal("No release before this one is kept here")
        old = RELEASES / upgrade.old
        if not (old / "provisioning" / "install").exists():
            raise Refusal(f"{old} is gone; no way leads back to it")
        restores = bool(upgrade.aside) or needs_restore(upgrade, old)
        journal = HOME / "files" / JOURNAL
        if restores:
            environment = environment_of(HOME, "manage")
            has_bucket = bool(environment.get("GROUNDSWELL_FILES_BUCKET"))
            journal = given_journal(options.journal, has_bucket=has_bucket) or journal
        if not upgrade.aside:
            tell(upgrade, restores=restores)
            agree(options, restores=restores)
        go_back(upgrade, old, journal, restores=restores)
    return 0


def parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "Go back to the release that served before the last upgrade. The database stays"
        " as it is, and no request is lost, where each migration since says that the"
        " older release runs on it. Otherwise it is restored as it was when the upgrade"
        " began: what would be lost is counted before you are asked. The newer data"
        " are kept in a folder. Interrupted, a second call continues."
    )
    add = parser.add_argument
    add("--yes", action="store_true", help="Do not ask.")
    add(
        "--restore",
        action="store_true",
        help="With --yes: also if that loses what was saved since the upgrade.",
    )
    add_journal_option(parser)
    return parser


def needs_restore(upgrade: Upgrade, old: Path) -> bool:
    """Return whether the database has migrations that the old release can't bear."""
    new = RELEASES / upgrade.new
    if not upgrade.migrates_at:
        return False
    migrations = migrations_of(new)
    # The database also lists those that others have replaced since.
    added = applied_migrations() & (migrations.keys() - migrations_of(old).keys())
    return bool(too_new_for(version_in(old), added, migrations))


def tell(upgrade: Upgrade, *, restores: bool) -> None:
    print(f"{CURRENT.resolve().name} serves, and {upgrade.old} would.")
    if not restores:
        print("The database stays as it is; nothing is lost.", flush=True)
        return
    print(
        f"{upgrade.old} does not run on the tables of {', '.join(upgrade.too_new)}.\n"
        f"The database is restored as of {moment(upgrade):%Y-%m-%d %H:%M:%S %Z}, when"
        " the upgrade began. What came after it would be lost:"
    )
    for line in losses(upgrade.migrates_at):
        print(f"  {line}")
    print(f"Meanwhile the site is closed. The data of now stay in {DATA}.", flush=True)


def moment(upgrade: Upgrade) -> datetime:
    return datetime.fromisoformat(upgrade.migrates_at)


def losses(since: str) -> Iterator[str]:
    """Count what was written since then, and would be lost."""
    for name, rows in LOST.items():
        query = f"SELECT count(*) FROM {rows.format(since)}"  # noqa: S608
        [[count]] = run_sql(query, run=HOME / "run")
        yield f"{int(count):,} {name}"


def agree(options: argparse.Namespace, *, restores: bool) -> None:
    """Refuse unless the caller agrees, on the terminal or by options."""
    if options.yes and restores and not options.restore:
        raise Refusal("--yes loses nothing; add --restore")
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise Refusal("Nobody can be asked here: add --yes")
    if input("Go back? Type yes: ").strip() != "yes":
        raise Refusal("Nothing was changed")


def go_back(upgrade: Upgrade, old: Path, journal: Path, *, restores: bool) -> None:
    file = UPGRADE if UPGRADE.exists() else BEFORE
    if restores:
        if not upgrade.aside:
            stamp = time.strftime("%Y%m%d-%H%M%S")
            upgrade = replace(upgrade, aside=f"primary-before-rollback-{stamp}")
            progress.keep(file, upgrade)
        restore(upgrade, old, journal)
    call(old, "apply")
    check(old)
    for each in (UPGRADE, BEFORE):
        progress.forget(each)
    print(f"\n{old.name} serves again.")
    if restores:
        print(
            f"The data of before are in {DATA / upgrade.aside}; rm -r deletes them",
            flush=True,
        )


def restore(upgrade: Upgrade, old: Path, journal: Path) -> None:
    """Put the database of that moment in the place of the present one.

    At any point a second call does the rest: each step looks whether it is done.
    """
    primary, aside = DATA / "primary", DATA / upgrade.aside
    ready = WORK / "ready"
    supervisor = Supervisor(HOME)
    with step("Closing the site"):
        stop_programs()
    if not ready.exists() and not aside.exists():
        restore_beside(upgrade, old, journal)
        ready.touch()
    with step("Stopping the database"):
        for program in ("backup", "primary", "replica"):
            if supervisor.programs(program):
                stop_program(supervisor, program)
    if not aside.exists():
        primary.rename(aside)
    if not primary.exists():
        include = f"include '{HOME}/etc/primary/postgresql.conf'\n"
        (WORK / "data/primary/postgresql.conf").write_text(include)
        (WORK / "data/primary").rename(primary)
    # The old release's installation makes it anew.
    shutil.rmtree(DATA / "replica", ignore_errors=True)
    shutil.rmtree(WORK, ignore_errors=True)
    if supervisor.programs("memcached"):
        # It would go on with rows that are gone.
        supervisor.calls.signalProcess("memcached", "TERM")


def restore_beside(upgrade: Upgrade, old: Path, journal: Path) -> None:
    """Restore the database as of the upgrade into a folder of its own."""
    repository = Repository.of_stack(HOME)
    with step("Archiving the log"):
        archive_log(run=HOME / "run", database="postgres")
    chosen = backup_before(repository.backups(), moment(upgrade))
    shutil.rmtree(WORK, ignore_errors=True)
    until = until_time(chosen, moment(upgrade))
    with restored_database(repository, WORK, until) as run:
        [[answers]] = run_sql("SELECT count(*) FROM survey_response", run=run)
        # By the release that will serve: the newer one would change its tables.
        if has_entries(journal):
            environment = {**os.environ, **environment_of(HOME, "manage")}
            replay_by_release(old, run, journal, environment)
    print(f"Restored {chosen.label} and the log after it: {answers} answers")

"""Put a newer release in the place of the one that serves: `provisioning/upgrade`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from provisioning.commands import (
    ROOT,
    Refusal,
    caller_path,
    command_parser,
    fetch,
    output_of,
    step,
)
from provisioning.installation.environment import PRODUCTION, STACK, lock_of
from provisioning.installation.postgresql import run_sql
from provisioning.installation.promotion import stop_program
from provisioning.installation.server import progress
from provisioning.installation.server.fetching import fetch_release
from provisioning.installation.server.options import HOME
from provisioning.installation.server.progress import BEFORE, UPGRADE, Upgrade
from provisioning.installation.server.release import (
    CURRENT,
    RELEASES,
    SOURCE,
    copy_release,
    served_release,
)
from provisioning.installation.server.versions import (
    applied_migrations,
    migrations_of,
    refuse_skipped,
    refuse_unless_newer,
    too_new_for,
    version_in,
)
from provisioning.installation.stack_folder import addresses_of
from provisioning.installation.supervisor import Supervisor

HOURS = 12
# For packages of Debian, logs, and what people save meanwhile.
SPARE_GB = 1.0
# What reads or writes the application's tables.
PROGRAMS = ("taking", "console", "beat")
ROLLBACK = f"{CURRENT}/provisioning/rollback"


def main() -> int:
    os.umask(0o022)
    options = parser().parse_args()
    refuse_unless_serving("upgrade")
    with progress.exclusively():
        upgrade = progress.read(UPGRADE) or start(options)
        if options.version and not is_of(upgrade, options.version):
            raise Refusal(
                f"The upgrade to {upgrade.new} is not finished: run upgrade without a"
                f" version to go on, or {ROLLBACK}"
            )
        finish(upgrade, close_site=options.close_site)
    return 0


def parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "Upgrade this server to a newer release: fetch it and verify its signature,"
        " install its packages, make a backup, migrate the database, and restart the"
        " programs one after another, so that no request is lost. The release before"
        " stays, and provisioning/rollback goes back to it. Refused while people"
        " answer. Interrupted, the old release serves on, and a second call continues."
    )
    add = parser.add_argument
    add("version", nargs="?", default="", help="1.2.0; the newest, if missing.")
    add(
        "--from",
        dest="source",
        default="",
        metavar="SOURCE",
        help="A git repository, an archive (.tar.gz, as a file or an https:// address,"
        " with its signature in SOURCE.sig), or with --unsigned a folder. If missing,"
        " the repository that this server was installed from.",
    )
    add(
        "--unsigned",
        action="store_true",
        help="Take code that nobody known has signed.",
    )
    add("--sha256", default="", metavar="DIGEST", help="The archive's, to compare.")
    add(
        "--during-survey",
        action="store_true",
        help=f"Also while people answer, or {HOURS} hours before a survey opens.",
    )
    add(
        "--close-site",
        action="store_true",
        help="Close the site while migrations run on whose tables the old release can't"
        " serve. Refused without it where there are such.",
    )
    return parser


def refuse_unless_serving(command: str) -> None:
    if os.geteuid() != 0:
        raise Refusal(f"Only root can {command} a server: begin with sudo")
    if served_release() is None:
        raise Refusal("No release serves here: run provisioning/install")
    if not Supervisor(HOME).is_running():
        raise Refusal("Nothing is running; start it with systemctl start groundswell")
    # Of another one, it would judge by other rules than what serves.
    names = (served_release(), *(f for f in [in_progress()] if f))
    if ROOT not in names:
        raise Refusal(f"Run the {command} of what serves: {CURRENT}/provisioning/…")


def in_progress() -> Path | None:
    upgrade = progress.read(UPGRADE)
    return RELEASES / upgrade.new if upgrade else None


def is_of(upgrade: Upgrade, version: str) -> bool:
    version = version.removeprefix("v")
    return version in (upgrade.new, version_in(RELEASES / upgrade.new))


# Before anything changes


def start(options: argparse.Namespace) -> Upgrade:
    """Check, fetch and prepare the release; nothing that serves has changed then."""
    if not options.during_survey:
        refuse_survey_day()
    source = source_of(options.source)
    refuse_without_room()
    release = fetched_release(source, options)
    print(f"Preparing {release.name}; {ROOT.name} serves meanwhile", flush=True)
    copy_packages(ROOT, release)
    call(release, "prepare")
    return Upgrade(old=ROOT.name, new=release.name)


def refuse_survey_day() -> None:
    printed = output_of(
        [ROOT / "provisioning/stack", "manage", "reasons_to_wait", f"--hours={HOURS}"],
        failing="The server does not say whether people answer",
    )
    if reasons := json.loads(printed):
        raise Refusal(
            f"This is no time for it: {'; '.join(reasons)}. --during-survey does it"
            " nevertheless"
        )


def source_of(given: str) -> str:
    """Return where the release is to come from; a path as seen by the caller."""
    if given:
        path = caller_path(given)
        return str(path.resolve()) if path.exists() else given
    if SOURCE.exists():
        return SOURCE.read_text()
    raise Refusal("Nobody knows where releases come from here: give --from")


def refuse_without_room() -> None:
    """Refuse where a release, or the backup, would fill the disk."""
    used = output_of(["du", "-s", "--block-size=1", ROOT], failing="du fails")
    [[database]] = run_sql(
        "SELECT pg_database_size(current_database())", run=HOME / "run"
    )
    needed = int(used.split()[0]) + int(database) + int(SPARE_GB * 2**30)
    free = shutil.disk_usage(HOME).free
    if free < needed:
        raise Refusal(
            f"{HOME} has {free / 2**30:.1f} GB left, and the release and a backup need"
            f" {needed / 2**30:.1f}"
        )


def fetched_release(source: str, options: argparse.Namespace) -> Path:
    """Fetch and verify a release, and put it below `releases` under its version."""
    work = RELEASES / ".fetched"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    try:
        fetched = fetch_release(
            source,
            options.version,
            work,
            unsigned=options.unsigned,
            sha256=options.sha256,
        )
        is_build = options.unsigned and fetched.name != ROOT.name
        refuse_unless_newer(version_in(ROOT), fetched.version, is_build=is_build)
        signed = f"signed by {fetched.signer}" if fetched.signer else "NOT signed"
        print(f"{fetched.name} is version {fetched.version}, {signed}", flush=True)
        return copy_release(fetched.name, fetched.folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def copy_packages(old: Path, new: Path) -> None:
    """Copy `.venv` where both releases want the same packages: no network, seconds."""
    locks = [lock_of(path).relative_to(ROOT) for path in (PRODUCTION, STACK)]
    same = all(
        (new / lock).exists() and (new / lock).read_bytes() == (old / lock).read_bytes()
        for lock in locks
    )
    if not same or (new / ".venv").exists() or not (old / ".venv").exists():
        return
    with step("Copying the packages"):
        draft = new / ".venv.new"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(old / ".venv", draft, symlinks=True)
        for path in (draft / "pyvenv.cfg", *(draft / "bin").iterdir()):
            # Programs name their Python, which is deleted with the old release.
            if path.is_file() and not path.is_symlink():
                text = path.read_bytes()
                path.write_bytes(text.replace(bytes(old), bytes(new)))
        draft.rename(new / ".venv")


# From here on a second call goes on


def finish(upgrade: Upgrade, *, close_site: bool) -> None:
    """Migrate, restart and check; at any point a second call does the rest."""
    new, old = RELEASES / upgrade.new, RELEASES / upgrade.old
    if not upgrade.migrates_at:
        upgrade = plan(upgrade, new, close_site=close_site)
        back_up(old)
        begin(upgrade)
        upgrade = replace(upgrade, migrates_at=now())
        progress.keep(UPGRADE, upgrade)
    elif upgrade.closes:
        begin(upgrade)
    try:
        call(new, "apply")
        check(new)
    except Refusal:
        reopen(upgrade)
        print(
            f"{CURRENT.resolve().name} serves now. Run upgrade again to go on, or"
            f" {ROLLBACK} to go back to {old.name}",
            flush=True,
        )
        raise
    progress.keep(BEFORE, upgrade)
    progress.forget(UPGRADE)
    delete_older(new, old)
    print(
        f"\n{new.name} serves. {ROLLBACK} goes back to {old.name}"
        + (", with a restore" if upgrade.too_new else ", with the database as it is")
    )


def plan(upgrade: Upgrade, new: Path, *, close_site: bool) -> Upgrade:
    """Say what will be migrated, and refuse what the old release can't bear."""
    migrations = migrations_of(new)
    pending = migrations.keys() - applied_migrations()
    current = version_in(RELEASES / upgrade.old)
    too_new = too_new_for(current, pending, migrations)
    refuse_skipped(current, version_in(new), too_new)
    print(f"Migrations: {', '.join(sorted(pending)) or 'none'}", flush=True)
    if too_new and not close_site:
        raise Refusal(
            f"{upgrade.old} can't serve on the tables of {', '.join(too_new)}:"
            " --close-site closes the site for as long as they take"
        )
    return replace(upgrade, closes=bool(too_new), too_new=list(too_new))


def back_up(release: Path) -> None:
    with step("Making a backup"):
        output_of(
            [release / "provisioning" / "stack", "backup"],
            failing="Without a backup nothing is upgraded",
        )


def begin(upgrade: Upgrade) -> None:
    if upgrade.closes:
        with step("Closing the site"):
            stop_programs()


def stop_programs() -> None:
    """Stop what uses the application's tables; nginx says when to come back."""
    supervisor = Supervisor(HOME)
    for program in supervisor.programs():
        if program["group"] in PROGRAMS or program["name"].endswith("worker"):
            stop_program(supervisor, f"{program['group']}:{program['name']}")


def reopen(upgrade: Upgrade) -> None:
    """Let the old release serve again if its tables are still as it knows them."""
    if not upgrade.closes or applied_migrations() & set(upgrade.too_new):
        return
    supervisor = Supervisor(HOME)
    for program in supervisor.programs():
        if program["statename"] == "STOPPED":
            name = f"{program['group']}:{program['name']}"
            supervisor.calls.startProcess(name, False)


def now() -> str:
    return datetime.now(UTC).isoformat()


def call(release: Path, only: str) -> None:
    """Let a release install itself, or a part of that; its lines are printed."""
    command = [str(release / "provisioning" / "install"), "--step", only]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode:
        raise Refusal(f"{release.name} could not be installed")


def check(release: Path) -> None:
    """Refuse if another release answers, or its own checks find something."""
    monitoring = addresses_of(HOME)["monitoring"]
    with step("Checking"):
        answered = fetch(f"{monitoring}healthz")[1].decode().strip()
        if not answered.endswith(f" {version_in(release)}"):
            raise Refusal(f"It answers {answered!r}, not as {version_in(release)}")
        output_of(
            [
                *(release / "provisioning" / "stack", "manage", "check"),
                *("--database", "default"),
            ],
            failing="manage.py check",
        )


def delete_older(*keep: Path) -> None:
    """Delete the releases before the last one: each takes 600 MB."""
    for folder in RELEASES.iterdir():
        if folder.is_dir() and folder not in keep:
            shutil.rmtree(folder, ignore_errors=True)

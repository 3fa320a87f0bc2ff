"""provisioning/stack backup and restore."""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import ssl
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, caller_path, listen, positive_integer, step
from provisioning.installation.backups.files import FileRepository
from provisioning.installation.backups.records import archive_log, record_replica
from provisioning.installation.backups.replaying import (
    JOURNAL,
    add_journal_option,
    collect_journal,
    given_journal,
    replay_erasures,
)
from provisioning.installation.backups.repository import PASSWORDS, Repository
from provisioning.installation.backups.restoring import (
    backup_before,
    parse_time,
    restored_database,
    until_time,
)
from provisioning.installation.playbook import run_playbook
from provisioning.installation.postgresql import run_sql
from provisioning.installation.promotion import answers
from provisioning.installation.stack_folder import stack_folder
from provisioning.installation.up import (
    PORTS,
    StackOptions,
    keep_options,
    merge_options,
    up,
    variables_of,
)

# Of a stack beside the one that serves: it sends nobody an e-mail, begins nothing
# by itself, and leaves the other's backups alone.
QUIET = {"backup_repository": "none", "beats": "no"}
LATEST = "latest"


def add_backup_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--full", action="store_true", help="Everything, not what has changed.")
    add(
        "--keys",
        type=caller_path,
        metavar="FILE",
        help="The keys alone, encrypted with the passphrase in this file, which is"
        " kept elsewhere. Without the access-code key, login cards cannot be printed"
        " again.",
    )


def add_restore_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--at",
        required=True,
        metavar="TIME",
        help="2026-11-24T09:30:00 (UTC), or latest: all that was archived.",
    )
    add(
        "--to",
        type=caller_path,
        required=True,
        metavar="FOLDER",
        help="A new or an empty folder.",
    )
    add(
        "--port",
        type=lambda text: positive_integer(text, 65536 - len(PORTS)),
        default=8180,
        help="The first of six ports (8180).",
    )
    add_journal_option(parser)


def backup(folder: Path, *, full: bool, keys: Path | None) -> int:
    """Back up what this host has: the database, uploaded files, or with --keys keys."""
    host = read_host(folder)
    if keys:
        return back_up_keys(host, keys)
    if host["database"]:
        began = datetime.now(UTC)
        certificates = {}
        if servers := host["pgbackrest_servers"]:
            end = first_end(folder / "etc/backup", servers)
            certificates["certificate_ends"] = end
        try:
            figures = back_up_database(folder, host, full=full)
        except Refusal as refusal:
            error = {"error": str(refusal), **certificates}
            keep_result(folder, "backup", began, error, ok=False)
            raise
        # Certificates of destruction say from it when the last backup ends.
        figures |= certificates | {"retention_days": host["retention_days"]}
        keep_result(folder, "backup", began, figures, ok=True)
        print(json.dumps(figures))
    if host["files"]:
        with step("Backing up uploaded files"):
            repository = FileRepository(host["files_repository"], host["environment"])
            days = host["retention_days"]
            added = repository.back_up(Path(host["files"]), retention_days=days)
        print(f"{added:,} bytes of files are new. Keys are backed up apart: --keys")
    return 0


def read_host(folder: Path) -> dict[str, Any]:
    """Return what the role `backup` wrote about this host's backups."""
    Repository.of_stack(folder)
    host: dict[str, Any] = json.loads((folder / "etc/backup/backup.json").read_text())
    return host


def back_up_database(
    folder: Path, host: dict[str, Any], *, full: bool
) -> dict[str, Any]:
    repository = Repository.of_stack(folder)
    run, port = folder / "run", host["replica_port"]
    has_replica = bool(port) and answers(run, port, "SELECT pg_is_in_recovery()")
    if port and not has_replica:
        print("The replica does not follow: the primary is read instead", flush=True)
    # A node of a cluster has a part of each table alone.
    is_cluster = len(host.get("stanzas", ())) > 1
    records = has_replica and not is_cluster
    began = time.monotonic()
    with step("Backing up the database"):
        made = repository.back_up("full" if full else "incr", from_standby=has_replica)
    figures = {
        "label": made.label,
        "type": made.type,
        "seconds": round(time.monotonic() - began, 1),
        "database_bytes": made.size,
        "bytes": made.added,
        "recorded": records,
        **({"node": host["stanza"]} if is_cluster else {}),
    }
    if records:
        with step("Recording rows and checksums"):
            repository.keep_record(made, record_replica(run, port))
    return figures


def primary_of(folder: Path, host: dict[str, Any]) -> dict[str, Any]:
    """Return how `run_sql` reaches the primary from this host, as the role `backup`."""
    passfiles = [folder / "etc" / name / "pgpass" for name in PASSWORDS]
    return {
        "run": Path(host["primary_host"]),
        "port": host["primary_port"],
        "user": "backup",
        "passfile": next(path for path in passfiles if path.exists()),
    }


def archive_running_log(folder: Path, host: dict[str, Any]) -> None:
    """Archive what the running primary has written up to now, if it runs."""
    try:
        with step("Archiving the log of the running stack"):
            archive_log(**primary_of(folder, host), database="postgres")
    except Refusal as refusal:
        print(f"Without its last minute: {refusal}", flush=True)


def keep_result(
    folder: Path, kind: str, began: datetime, details: dict[str, Any], *, ok: bool
) -> None:
    """Store a result for /metrics and the engineers' page.

    A failure is only printed: the primary may be down.
    """
    text = json.dumps(details).replace("'", "''")
    statement = (
        "INSERT INTO survey_backuprun (kind, ok, started_at, ended_at, details)"  # noqa: S608
        f" VALUES ('{kind}', {ok}, '{began.isoformat()}', now(), '{text}')"
    )
    primary = primary_of(folder, read_host(folder))
    try:
        run_sql(statement, **primary, failing="The result can't be stored")
    except Refusal as refusal:
        print(refusal, flush=True)


def back_up_keys(host: dict[str, Any], passphrase: Path) -> int:
    if not host["keys"]:
        raise Refusal(
            "The keys of a fleet are on the machine that runs Ansible, in the folder"
            " `secrets` or a vault; back them up there (docs/guides/backups.md)"
        )
    if not passphrase.is_file() or not passphrase.read_text().strip():
        raise Refusal(f"{passphrase} has no passphrase in it")
    environment = {
        **host["environment"],
        "RESTIC_PASSWORD": passphrase.read_text().strip(),
    }
    with step("Backing up the keys"):
        repository = FileRepository(host["keys_repository"], environment)
        repository.back_up(Path(host["keys"]), retention_days=3650)
    print(
        "Keep the passphrase away from this machine. Without the keys no backup can"
        " be read; without the access-code key login cards cannot be printed again,"
        " and people whose code is lost cannot log in"
    )
    return 0


def restore(
    folder: Path,
    *,
    at: str,
    to: Path,
    port: int,
    settings: Sequence[tuple[str, str]],
    journal: Path | None = None,
) -> int:
    """Build a new stack in another folder, as of any second; see --help."""
    home = stack_folder(str(to))
    if home.exists() and any(home.iterdir()):
        raise Refusal(f"{home} is not empty; name another folder")
    options = configured(folder, settings)
    host, repository = read_host(folder), Repository.of_stack(folder)
    # A fleet's host knows it from the playbook alone.
    has_bucket = bool(options.settings.get("files_bucket") or host.get("files_bucket"))
    given = given_journal(journal, has_bucket=has_bucket)
    backups = repository.backups()
    when = datetime.now(UTC) if at == LATEST else parse_time(at)
    chosen = backup_before(backups, when)
    until = [f"--set={chosen.label}"] if at == LATEST else until_time(chosen, when)
    for number in range(port, port + len(PORTS)):
        listen(number).close()
    archive_running_log(folder, host)
    began = time.monotonic()
    settings_to_keep = {
        name: value
        for name, value in options.settings.items()
        if not name.startswith(("mail_", "backup_"))
    }
    try:
        keep_options(home, StackOptions(port=port, settings=settings_to_keep | QUIET))
        shutil.copytree(folder / "secrets", home / "secrets")
        files = FileRepository(host["files_repository"], host["environment"])
        entries = given or collect_journal(home / "journal", files, host["files"])
        with restored_database(repository, home, until) as run:
            print(f"Restored {chosen.label} and the log after it", flush=True)
            replay_erasures(home, run, entries, settings_to_keep)
        shutil.rmtree(home / "etc" / "restore")
        include = f"include '{home}/etc/primary/postgresql.conf'\n"
        (home / "data/primary/postgresql.conf").write_text(include)
        # Files of a bucket are where they were.
        if not has_bucket:
            restore_files(home, files, entries, when)
        shutil.rmtree(home / "journal", ignore_errors=True)
    except BaseException:
        # So that the same folder can be used again.
        shutil.rmtree(home)
        raise
    up(home, port=None, settings=())
    print(
        f"Restored in {time.monotonic() - began:.0f} s. It sends no e-mail and starts"
        " no job by itself.\n"
        f"GROUNDSWELL_STACK={home} provisioning/stack down stops it;"
        " docs/guides/backups.md says how to copy rows out of it"
    )
    return 0


def configured(folder: Path, settings: Sequence[tuple[str, str]]) -> StackOptions:
    """Write the files of a stack if only its keys are left, and return its options."""
    if not (folder / "secrets" / "backup_passphrase").exists():
        raise Refusal(
            f"{folder}/secrets has no backup_passphrase, without which no backup can be"
            " read; restore the keys first (docs/guides/backups.md)"
        )
    options = merge_options(folder, None, settings)
    if not (folder / "etc" / "backup").exists():
        variables = variables_of(folder, options) | {"files_only": True}
        run_playbook(folder, variables, "--tags=files", quietly=True)
    return options


def restore_files(
    home: Path, files: FileRepository, journal: Path, when: datetime
) -> None:
    with step("Restoring uploaded files"):
        (home / "files").mkdir(mode=0o700, exist_ok=True)
        files.restore(home / "files", at=when)
        # The next restore needs what is younger than these files, too.
        shutil.copytree(journal, home / "files" / JOURNAL, dirs_exist_ok=True)


SECONDS = 5


def first_end(etc: Path, servers: Sequence[str]) -> float | None:
    """Return when the first certificate ends that these servers show.

    In seconds since 1970. Also that of a server that was given a new one and not
    reloaded. Servers that don't answer are left out; None without any.
    """
    # Hosts are called by numbers, which Python doesn't look for among the names.
    context = ssl.create_default_context(cafile=str(etc / "ca.pem"))
    context.check_hostname = False
    context.load_cert_chain(etc / "certificate.pem", etc / "certificate.key")
    ends = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            with (
                socket.create_connection((host, int(port)), SECONDS) as connection,
                context.wrap_socket(connection) as encrypted,
            ):
                certificate = encrypted.getpeercert() or {}
        except ssl.SSLCertVerificationError:
            # It has ended, or is of another authority.
            ends.append(0.0)
        except OSError:
            continue
        else:
            ends.append(float(ssl.cert_time_to_seconds(str(certificate["notAfter"]))))
    return min(ends, default=None)

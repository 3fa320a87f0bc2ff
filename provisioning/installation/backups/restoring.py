"""Restore a database from its backups into a new folder."""

from __future__ import annotations

import configparser
import os
import pwd
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from provisioning.commands import Refusal, step
from provisioning.installation.backups.repository import Backup, Repository
from provisioning.installation.postgresql import run_sql, running_server

# Reading the log of a busy day may take that long.
LONGEST_RECOVERY = 24 * 60 * 60
# Nobody connects before the recovery has ended, so it needs none of the primary's
# own sizes.
SETTINGS = """\
listen_addresses = ''
unix_socket_directories = '{run}'
hba_file = '{etc}/pg_hba.conf'
ident_file = '{etc}/pg_ident.conf'
archive_mode = off
hot_standby = off
shared_buffers = 256MB
max_wal_size = 4GB
shared_preload_libraries = 'pg_stat_statements'
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = ''
"""


def parse_time(text: str) -> datetime:
    """Return a time as given to `--at`; without an offset, it is in UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise Refusal(
            f"{text} is not a time such as 2026-11-24T09:30:00 (UTC) or"
            " 2026-11-24T09:30:00-06:00"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def backup_before(backups: Sequence[Backup], time: datetime) -> Backup:
    """Return the last backup that ended before a time."""
    if not backups:
        raise Refusal("There is no backup yet; make one: provisioning/stack backup")
    if time > datetime.now(UTC):
        raise Refusal(f"{time:%Y-%m-%d %H:%M:%S%z} is in the future")
    before = [backup for backup in backups if backup.ended < time]
    if not before:
        raise Refusal(
            f"The first backup ended at {backups[0].ended:%Y-%m-%d %H:%M:%S} UTC;"
            f" {time:%Y-%m-%d %H:%M:%S%z} is before that"
        )
    return before[-1]


def until_time(backup: Backup, time: datetime) -> list[str]:
    """Return pgBackRest's options for all that was committed until then."""
    target = time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    return [
        *(f"--set={backup.label}", "--type=time"),
        *(f"--target={target}", "--target-action=promote"),
    ]


def until_point(backup: Backup, lsn: str) -> list[str]:
    """Return its options for the point of the log at which a record was made."""
    return [
        *(f"--set={backup.label}", "--type=lsn"),
        *(f"--target={lsn}", "--target-exclusive", "--target-action=promote"),
    ]


@contextmanager
def restored_database(
    repository: Repository,
    folder: Path,
    until: Sequence[str],
    *,
    further: str = "",
    programs: Path | None = None,
) -> Iterator[Path]:
    """Restore into `folder`/data/primary; yield the folder of its socket.

    The server accepts connections once it has recovered, and is stopped at the
    end. Raises Refusal if the log does not reach as far as `until`. `further` are
    lines of its configuration, and `programs` others than the distribution's.
    """
    user = repository.user
    data, run, etc = folder / "data/primary", folder / "run", folder / "etc/restore"
    for path in (data, run, etc, folder / "log"):
        path.mkdir(parents=True, exist_ok=True)
    for path in (folder, folder / "data", folder / "etc"):
        # PostgreSQL's user has to pass.
        path.chmod(0o711)
    write_configuration(repository, folder, further)
    reader = Repository(etc / "pgbackrest.conf", stanza=repository.stanza)
    for path in (data, run, etc, *etc.iterdir()):
        shutil.chown(path, user, user) if user else None
    data.chmod(0o700)
    with step("Copying the backup"):
        reader.run(
            "restore",
            *until,
            f"--process-max={os.cpu_count() or 1}",
            failing="The backup can't be restored",
        )
    with ExitStack() as stack:
        with step("Replaying the log"):
            server = running_server(
                data,
                f"--config_file={etc}/postgresql.conf",
                run=run,
                log=folder / "log" / "restore.log",
                programs=programs,
                user=user,
                seconds=LONGEST_RECOVERY,
            )
            stack.enter_context(server)
        # A later start must not look for the log again.
        run_sql("ALTER SYSTEM RESET ALL", run=run, database="postgres")
        yield run


def write_configuration(repository: Repository, folder: Path, further: str) -> None:
    """Write how the server starts, and a pgBackRest that reads the same repository.

    It shares nothing else: the running stack archives with locks of its own.
    """
    etc, work = folder / "etc" / "restore", folder / "data" / "primary"
    known = configparser.RawConfigParser()
    known.read(repository.config)
    shared = {
        name: value
        for name, value in known["global"].items()
        if name.startswith("repo1-") and "retention" not in name
    }
    shared |= {"lock-path": f"{etc}/lock", "spool-path": f"{etc}/spool"}
    lines = ["[global]", *(f"{name} = {value}" for name, value in shared.items())]
    lines += [
        "log-level-console = warn",
        "log-level-file = off",
        f"[{repository.stanza}]",
        f"pg1-path = {work}",
        "",
    ]
    users = {pwd.getpwuid(os.geteuid()).pw_name, repository.user or ""} - {""}
    texts = {
        "pgbackrest.conf": "\n".join(lines),
        "postgresql.conf": SETTINGS.format(run=folder / "run", etc=etc) + further,
        "pg_hba.conf": "local all all peer map=superusers\n",
        "pg_ident.conf": "".join(f"superusers {each} postgres\n" for each in users),
    }
    for name, text in texts.items():
        path = etc / name
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(text)

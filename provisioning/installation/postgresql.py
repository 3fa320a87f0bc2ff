"""Find PostgreSQL's programs, and run statements with psql."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, output_of, reason, wait_until
from provisioning.processes import start_process, stop_process

DATABASE = "groundswell"
INSTALLED = Path("/usr/lib/postgresql")
# By distribution, as /etc/os-release names it.
PACKAGED = {"debian 12": 15, "ubuntu 24.04": 16, "debian 13": 17}
OLDEST = min(PACKAGED.values())


def postgresql_version(*folders: Path) -> int:
    """Return the version of the first data folder that exists, or the usual version.

    That is the distribution's, or the oldest that is installed and supported where
    that one is not. So data stay on their version until they are upgraded.
    """
    for folder in folders:
        with suppress(FileNotFoundError):
            return int((folder / "PG_VERSION").read_text())
    installed = [version for version in installed_versions() if version >= OLDEST]
    packaged = packaged_version()
    if packaged and (packaged in installed or not installed):
        return packaged
    if not installed:
        raise Refusal(
            f"PostgreSQL {OLDEST} or newer is missing (apt-get install postgresql)"
        )
    return installed[0]


def packaged_version() -> int | None:
    """Return the version in the packages of this distribution, if it is known."""
    with suppress(OSError):
        release = platform.freedesktop_os_release()
        return PACKAGED.get(f"{release['ID']} {release.get('VERSION_ID')}")
    return None


def installed_versions() -> list[int]:
    return sorted(
        int(program.parent.parent.name)
        for program in INSTALLED.glob("*/bin/postgres")
        if program.parent.parent.name.isdecimal()
    )


def postgresql_programs(*folders: Path) -> Path:
    """Return the folder of PostgreSQL's programs, for these data folders."""
    return programs_of(postgresql_version(*folders))


def programs_of(version: int) -> Path:
    programs = INSTALLED / str(version) / "bin"
    if not (programs / "postgres").exists():
        raise Refusal(
            f"PostgreSQL {version} is missing (apt-get install postgresql-{version})"
        )
    return programs


@contextmanager
def running_server(
    data: Path,
    *options: str,
    run: Path,
    log: Path,
    port: int = 5432,
    programs: Path | None = None,
    user: str | None = None,
    seconds: float = 120,
    end_by: int = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server of a data folder; raise Refusal unless it accepts connections.

    `run` is the folder of its socket. `end_by` is also sent when this process ends.
    """
    programs = programs or postgresql_programs(data)
    with log.open("wb") as output:
        server = start_process(
            [programs / "postgres", "-D", data, *options],
            output=output,
            cwd=Path("/"),
            user=user,
            parent_signal=end_by,
        )

    def ends_or_accepts() -> bool:
        return server.poll() is not None or accepts(run, port, programs)

    try:
        wait_until(ends_or_accepts, seconds=seconds)
        if not accepts(run, port, programs):
            raise Refusal(f"PostgreSQL does not start: {why_ended(log)}")
        yield server
    finally:
        server.send_signal(end_by)
        stop_process(server, seconds=60)


def accepts(run: Path, port: int, programs: Path | None = None) -> bool:
    """Return whether a server accepts connections; one that recovers does not."""
    pg_isready = f"{programs or postgresql_programs()}/pg_isready"
    return not subprocess.call(
        [pg_isready, "--quiet", "--username=postgres", f"--host={run}"]
        + [f"--port={port}"]
    )


def superuser_connection(
    run: Path, port: int = 5432, *, database: str = DATABASE, patience: int = 5
) -> Any:
    """Connect by the server's socket, without pgbouncer, and with autocommit."""
    # Not at the top: commands import this before the environment is installed.
    import psycopg2

    connection = psycopg2.connect(
        f"host={run} port={port} user=postgres dbname={database}"
        f" connect_timeout={patience}"
    )
    connection.autocommit = True
    return connection


def why_ended(log: Path) -> str:
    """Return the fatal line of a server's log, without what connections were told."""
    text = log.read_text(errors="replace")
    fatal = re.findall("(?:FATAL|PANIC): +(?! |the database system is)(.+)", text)
    return fatal[-1] if fatal else reason(text)


def run_sql(
    statements: str,
    *,
    run: Path,
    port: int = 5432,
    database: str = DATABASE,
    user: str = "postgres",
    passfile: Path | None = None,
    failing: str = "PostgreSQL refuses",
) -> list[list[str]]:
    """Run statements as the superuser, and return the rows of all of them.

    `run` is the folder of the server's socket. Another user needs a password.
    """
    output = output_of(
        [str(postgresql_programs() / "psql"), "--no-psqlrc", "--quiet", "--no-align"]
        + ["--tuples-only", "--field-separator=\t", "--set=ON_ERROR_STOP=1"]
        + [f"--host={run}", f"--port={port}", f"--username={user}"]
        + [f"--dbname={database}"],
        failing=failing,
        env={
            **os.environ,
            "PGCONNECT_TIMEOUT": "3",
            # Of several servers, the primary.
            **(
                {"PGPASSFILE": str(passfile), "PGTARGETSESSIONATTRS": "read-write"}
                if passfile
                else {}
            ),
        },
        input_text=statements,
    )
    return [line.split("\t") for line in output.split("\n") if line]

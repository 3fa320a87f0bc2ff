"""Find PostgreSQL's programs, and run statements with psql."""

from __future__ import annotations

import os
from pathlib import Path

from provisioning.commands import Refusal, output_of

DATABASE = "groundswell"


def postgresql_programs() -> Path:
    """Return the folder of PostgreSQL's programs: 15 if possible, or newer."""
    installed = [
        folder
        for folder in Path("/usr/lib/postgresql").glob("*/bin")
        if (folder / "postgres").exists() and int(folder.parent.name) >= 15
    ]
    if not installed:
        raise Refusal("PostgreSQL 15 or newer is missing (apt-get install postgresql)")
    return min(installed, key=lambda folder: int(folder.parent.name))


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
    return [line.split("\t") for line in output.splitlines() if line]

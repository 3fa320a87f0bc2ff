"""The application that is measured: the stack that runs here, or a private one."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, output_of, step
from provisioning.in_django import arguments_for
from provisioning.installation.environment import PRODUCTION, STACK, prepare_environment
from provisioning.installation.postgresql import DATABASE, run_sql
from provisioning.installation.servers import private_servers
from provisioning.installation.stack_folder import (
    addresses_of,
    environment_of,
    stack_folder,
)
from provisioning.installation.static_files import collect_static
from provisioning.measure.load.target import Target, target_of

SQL = Path(__file__).with_name("sql")
SCRATCH = ROOT / ".bench"


def sql_file(name: str, **variables: object) -> str:
    """Return the statements of a file in the folder `sql`, with psql's variables."""
    lines = [f"\\set {variable} '{value}'\n" for variable, value in variables.items()]
    return "".join(lines) + (SQL / f"{name}.sql").read_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A checkout's application, with the settings and servers that it uses."""

    environment: Mapping[str, str]
    checkout: Path = ROOT
    # The folder of the servers' sockets.
    run: Path = Path()

    @property
    def python(self) -> Path:
        return self.checkout / ".venv" / "bin" / "python"

    def manage(self, *arguments: str, nice: int = 0) -> str:
        return self.run_python(
            self.checkout / "manage.py",
            *arguments,
            failing=f"manage.py {arguments[0]} failed",
            nice=nice,
        )

    def run_python(self, *arguments: str | Path, failing: str, nice: int = 0) -> str:
        return output_of(
            ["nice", f"-n{nice}", self.python, *arguments],
            failing=failing,
            env={**self.environment, "PYTHONPATH": str(self.checkout)},
            # Celery puts this folder before all others while it loads the settings.
            cwd=self.checkout,
        )

    def call(self, path: str, /, **arguments: object) -> Any:
        """Run a function of `provisioning` in the application; return its result."""
        printed = self.run_python(
            *arguments_for(path, **arguments),
            failing=f"{path.rpartition('.')[2]} failed",
        )
        return json.loads(printed.splitlines()[-1])

    def sql(
        self,
        statements: str,
        *,
        port: int = 5432,
        failing: str = "PostgreSQL refuses",
    ) -> list[list[str]]:
        """Return rows from the primary or the replica itself, as its superuser."""
        return run_sql(statements, run=self.run, port=port, failing=failing)

    def open_rehearsal(
        self, *options: str, command: str = "open_rehearsal"
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the description of a rehearsal, and its people's access codes."""
        # A folder that only the application may read.
        with tempfile.TemporaryDirectory() as folder:
            codes = Path(folder) / "codes"
            printed = self.manage(command, "--json", f"--codes={codes}", *options)
            return json.loads(printed), codes.read_text().split()

    def collect_static(self) -> None:
        folder = Path(self.environment["GROUNDSWELL_STATIC_ROOT"])
        collect_static(folder, self.environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Application):
    folder: Path
    target: Target

    @property
    def port(self) -> int:
        """nginx's port; 0 where its address is a Unix socket."""
        return self.target.address[1] if isinstance(self.target.address, tuple) else 0


def running_stack(
    *, folder: Path | None = None, address: str = "", checkout: Path = ROOT
) -> Stack:
    """Return the stack in this folder; raise Refusal if it does not run."""
    folder = (folder or stack_folder()).absolute()
    if not (folder / "etc" / "stack.json").exists():
        raise Refusal(
            f"There is no stack in {folder}; start one: provisioning/stack up"
        )
    address = address or addresses_of(folder)["address"].rstrip("/")
    target = target_of(address)
    with socket.socket(target.family, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(target.address):
            raise Refusal(
                f"Nothing answers at {address}; start it: provisioning/stack up"
            )
    return Stack(
        folder=folder,
        run=folder / "run",
        target=target,
        checkout=checkout,
        environment={**os.environ, **environment_of(folder, "manage")},
    )


@contextmanager
def private_application(
    *, backs_up: bool = False, **variables: str
) -> Iterator[Application]:
    """Create the tables on private servers, which are deleted afterwards."""
    prepare_environment(PRODUCTION, STACK)
    with private_servers(backs_up=backs_up) as run:
        servers = {"GROUNDSWELL_TEST_SERVERS": str(run), **variables}
        servers["GROUNDSWELL_TEST_DATABASE"] = DATABASE
        with _migrated("settings.browser_test_server", servers, run) as application:
            yield application


@contextmanager
def sqlite_application(**variables: str) -> Iterator[Application]:
    """Create the tables on SQLite, in a folder that is deleted afterwards."""
    prepare_environment(PRODUCTION)
    with _migrated("settings.embedded", variables) as application:
        yield application


@contextmanager
def _migrated(
    settings: str, variables: Mapping[str, str], run: Path = Path()
) -> Iterator[Application]:
    # On the disk of the checkout, since /tmp may be in memory; ignored by git.
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": settings,
            "GROUNDSWELL_DATA": folder,
            "GROUNDSWELL_FILES": f"{folder}/files",
            "GROUNDSWELL_STATIC_ROOT": f"{folder}/static",
            **variables,
        }
        application = Application(environment=environment, run=run)
        with step(f"Creating the tables of {settings}"):
            application.manage("migrate", "--verbosity=0")
        yield application

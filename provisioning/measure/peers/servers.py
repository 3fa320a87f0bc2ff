"""Serve a peer's survey on the running stack's PostgreSQL."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from provisioning.commands import ROOT, Refusal, fetch, listen, output_of, wait_until
from provisioning.installation.environment import PYTHON
from provisioning.installation.postgresql import run_sql
from provisioning.measure.benchmarks.stack import SCRATCH
from provisioning.measure.load.target import Target, target_of
from provisioning.measure.peers.otree_project import write_project
from provisioning.measure.peers.visitors import Site
from provisioning.processes import start_process, stop_process

PLAIN = "provisioning.measure.peers.plain_survey"
OTREE = "6.0.15"
# Beside what oTree asks for itself.
DRIVER = "psycopg2-binary==2.9.13"
# Of the peer's server, until it answers.
PATIENCE = 60.0


class Shape(NamedTuple):
    pages: int
    items: int
    people: int


class Peer(NamedTuple):
    target: Target
    # Leads the group of the server's processes.
    pid: int
    site: Site
    codes: list[str]
    # Counts the answers to the first page's questions, of everyone.
    count_answers: str


class Database(NamedTuple):
    run: Path
    name: str
    password: str

    def ask(self, statements: str) -> list[list[str]]:
        return run_sql(statements, run=self.run, database=self.name)


@contextmanager
def database_of(run: Path, name: str) -> Iterator[Database]:
    """Create an empty database and a role of its name; drop both afterwards."""
    password = secrets.token_urlsafe(24)
    remove = f"DROP DATABASE IF EXISTS {name} WITH (FORCE); DROP ROLE IF EXISTS {name};"
    run_sql(
        f"{remove} CREATE ROLE {name} LOGIN PASSWORD '{password}';"
        f" CREATE DATABASE {name} OWNER {name};",
        run=run,
    )
    try:
        yield Database(run, name, password)
    finally:
        run_sql(remove, run=run)


def plain_database(database: Database, *, careful: bool) -> dict[str, object]:
    """Return Django's settings: as they come, or with what costs a line each.

    Careful is a transaction for each request, and connections that are kept.
    """
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": str(database.run),
        "PORT": "5432",
        "NAME": database.name,
        "USER": database.name,
        "PASSWORD": database.password,
        "ATOMIC_REQUESTS": careful,
        "CONN_MAX_AGE": None if careful else 0,
    }


@contextmanager
def plain_survey(
    database: Mapping[str, object], shape: Shape, *, processes: int
) -> Iterator[Peer]:
    """Serve the survey of `plain_survey` by so many processes."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": f"{PLAIN}.settings",
        "PLAIN_SURVEY_DATABASE": json.dumps(database),
        "PLAIN_SURVEY_KEY": secrets.token_urlsafe(50),
    }
    output_of(
        [PYTHON, "-m", f"{PLAIN}.prepare", *map(str, shape)],
        failing="The plain survey can't be prepared",
        env=environment,
    )
    with listen(0) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = start_process(
            [str(PYTHON), "-m", "gunicorn", f"{PLAIN}.wsgi", f"--workers={processes}"]
            + ["--log-level=warning", "--no-control-socket"]
            + [f"--bind=fd://{listener.fileno()}"],
            cwd=ROOT,
            env=environment,
            pass_fds=(listener.fileno(),),
        )
    site = Site(
        start="/start/{code}/",
        page="/pages/{page}/",
        end="/thanks/",
        answer="answer-{item}",
        pages=shape.pages,
        items=shape.items,
    )
    with _served(server, f"{address}/thanks/", "The plain survey"):
        yield Peer(
            target_of(address),
            server.pid,
            site,
            [f"person-{number}" for number in range(shape.people)],
            "SELECT count(*) FROM plain_survey_answer a JOIN plain_survey_question q"
            " ON q.id = a.question_id WHERE q.page = 1",
        )


def install_otree() -> Path:
    """Return the environment of oTree, made where it is missing. Raises Refusal."""
    folder = SCRATCH / f"otree-{OTREE}"
    stamp = folder / "installed"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        output_of([PYTHON, "-m", "venv", folder], failing="Can't create an environment")
        output_of(
            [f"{folder}/bin/pip", "install", "--quiet", "--no-input"]
            + [f"otree=={OTREE}", DRIVER],
            failing="oTree can't be installed",
        )
        stamp.touch()
    return folder


@contextmanager
def otree(environment: Path, database: Database, shape: Shape) -> Iterator[Peer]:
    """Serve a survey by oTree's own server, which is one process."""
    programs = environment / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, pages=shape.pages, items=shape.items)
        variables = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "DATABASE_URL": f"postgresql://{database.name}:{database.password}@/"
            f"{database.name}?host={database.run}&port=5432",
            "OTREE_PRODUCTION": "1",
            "OTREE_ADMIN_PASSWORD": secrets.token_urlsafe(24),
        }
        output_of(
            [programs / "otree", "create_session", "survey", str(shape.people)],
            failing="oTree can't create a session",
            env=variables,
            cwd=folder,
        )
        codes = database.ask("SELECT code FROM otree_participant ORDER BY id")
        with listen(0) as probe:
            port = probe.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        server = start_process(
            [programs / "otree", "prodserver", f"127.0.0.1:{port}"],
            output=subprocess.DEVNULL,
            cwd=folder,
            env=variables,
        )
        site = Site(
            start="/InitializeParticipant/{code}",
            page="/p/{code}/survey/Page{page}/{page}",
            end="/OutOfRangeNotification/{code}",
            answer="q{page}_{item}",
            pages=shape.pages,
            items=shape.items,
        )
        first = ", ".join(f"q1_{item}" for item in range(1, shape.items + 1))
        with _served(server, f"{address}/static/otree/js/formInputs.js", "oTree"):
            yield Peer(
                target_of(address),
                server.pid,
                site,
                [code for [code] in codes],
                f"SELECT coalesce(sum(num_nonnulls({first})), 0) FROM survey_player",  # noqa: S608
            )


@contextmanager
def _served(server: subprocess.Popen[bytes], address: str, name: str) -> Iterator[None]:
    """Wait until a page is served; end the server and all that it has started."""
    try:
        wait_until(
            lambda: server.poll() is not None or fetch(address)[0] == 200,
            seconds=PATIENCE,
        )
        if server.poll() is not None or fetch(address)[0] != 200:
            raise Refusal(f"{name} does not start")
        yield
    finally:
        stop_process(server)
        # oTree's second process outlives the first.
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)

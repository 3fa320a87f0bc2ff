"""Start private servers, and check that all of them end."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import psutil
import psycopg2
import pytest
from django.conf import settings

from provisioning.commands import wait_until
from provisioning.tests.conftest import copied, environment, equipped
from settings.tests.patience import patience

pytestmark = pytest.mark.slow


def asked(folder: Path, port: int, question: str) -> str:
    connection = psycopg2.connect(
        host=str(folder), port=port, user="groundswell", dbname="groundswell"
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute(question)
            return cursor.fetchone()[0]
    finally:
        connection.close()


def at_work_in(folder: Path) -> list[str]:
    return [
        process.info["name"]
        for process in psutil.process_iter(["name", "cmdline"])
        if any(str(folder) in part for part in process.info["cmdline"] or ())
    ]


@pytest.mark.skipif(not settings.SERVERS, reason="SQLite needs no servers")
def test_commits_are_flushed_and_roles_have_timeouts():
    """On the private servers that these tests run on."""
    for setting, value in {
        "fsync": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "lock_timeout": "1s",
        "statement_timeout": "3s",
        "timezone": "UTC",
        "listen_addresses": "",
    }.items():
        assert asked(Path(settings.SERVERS), 6432, f"SHOW {setting}") == value, setting


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return equipped(copied(tmp_path_factory.mktemp("servers") / "a checkout"))


# SIGINT ends commands in the same way; provisioning/tests/test_demo.py sends it.
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_server_outlives_the_command(checkout, number):
    process = subprocess.Popen(
        [checkout / "provisioning" / "test", "--servers"],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        # Before it, what is prepared.
        line = next(line for line in process.stdout if line.startswith("export "))
        folder = Path(line.removeprefix("export GROUNDSWELL_TEST_SERVERS=").strip())
        assert len(at_work_in(folder)) >= 4
        process.send_signal(number)
        status = process.wait(timeout=patience(30))

    # Looking at every process takes a while.
    wait_until(lambda: not at_work_in(folder), seconds=patience(10), pause=0.5)
    assert at_work_in(folder) == []
    if number == signal.SIGKILL:
        subprocess.run(["rm", "-r", folder], check=True)
    else:
        assert (status, folder.exists()) == (0, False)

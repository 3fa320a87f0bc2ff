"""RabbitMQ's folder after an upgrade of the distribution."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from provisioning.installation.environment import ROLES

SCRIPT = (ROLES / "queue/templates/start.j2").read_text()
# What is done before the server starts.
CHECK = SCRIPT[SCRIPT.index("server=$(") : SCRIPT.index("# The port mapper")]


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "mnesia").mkdir()
    return tmp_path


def start(folder: Path, version: str) -> list[str]:
    """Check the folder as a server of this version does; return what is in it."""
    script = CHECK.replace(
        "/usr/lib/rabbitmq/lib/rabbitmq_server-*", f"rabbitmq_server-{version}"
    )
    subprocess.run(["sh", "-euc", script], check=True, env={"HOME": str(folder)})
    return sorted(
        path.name.rpartition("-")[0] or path.name for path in folder.iterdir()
    )


def test_a_folder_from_before_the_file_is_that_of_version_3(folder):
    assert start(folder, "3.10.8") == ["mnesia", "version"]
    assert start(folder, "3.12.1") == ["mnesia", "version"]


def test_a_folder_of_another_version_is_put_aside_once(folder):
    start(folder, "3.10.8")
    assert start(folder, "4.0.5") == ["mnesia-3", "version"]
    (folder / "mnesia").mkdir()
    assert start(folder, "4.0.5") == ["mnesia", "mnesia-3", "version"]


def test_a_new_folder_is_of_the_version_that_starts(tmp_path):
    assert start(tmp_path, "4.0.5") == ["version"]
    assert (tmp_path / "version").read_text() == "4\n"

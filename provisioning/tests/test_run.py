"""`provisioning/run` finds commands by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.commands import ROOT, VERSION
from provisioning.run import COMMANDS
from provisioning.tests.conftest import run


def test_without_a_name_it_lists_the_commands():
    done = run(ROOT, "run")
    assert (done.returncode, done.stderr) == (0, "")
    listed = done.stdout.splitlines()[-len(COMMANDS) :]
    assert [line.split()[0] for line in listed] == sorted(COMMANDS)
    assert done.stdout == run(ROOT, "run", "--help").stdout


def test_every_command_prints_the_version():
    files = [path for path in (ROOT / "provisioning").iterdir() if is_command(path)]
    assert len(files) >= 10
    calls = [(path.name,) for path in files]
    for call in [*calls, ("run", "capacity"), ("run", "sbom")]:
        done = run(ROOT, *call, "--version")
        assert (done.returncode, done.stdout) == (0, f"{VERSION}\n"), call


def is_command(path: Path) -> bool:
    return path.is_file() and path.stat().st_mode & 0o100 != 0


def test_an_unknown_name_is_refused():
    done = run(ROOT, "run", "querys")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no command querys" in done.stderr


def test_a_command_gets_its_arguments_and_its_name():
    done = run(ROOT, "run", "capacity", "--no-such-option")
    assert done.returncode == 2
    assert "provisioning/run capacity: error: unrecognized arg" in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_a_help_text(name):
    done = run(ROOT, "run", name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: provisioning/run {name} ")

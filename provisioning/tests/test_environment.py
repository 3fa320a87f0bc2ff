from __future__ import annotations

import subprocess
import sys

import pytest

from provisioning import environment
from provisioning.commands import ROOT, reason

pytestmark = pytest.mark.once


@pytest.fixture
def venv(tmp_path, monkeypatch):
    """A `.venv` that is complete, of requirements that can be changed."""
    for name in ("PRODUCTION", "TESTS", "STACK"):
        listed = tmp_path / f"{name}.txt"
        listed.write_text("django==5.2.19\n")
        monkeypatch.setattr(environment, name, listed)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "PYTHON", sys.executable)
    stamp = environment.stamp_of(environment.PRODUCTION)
    stamp.parent.mkdir(parents=True)
    stamp.touch()
    return tmp_path / ".venv"


def test_a_complete_environment_is_used_as_it_is(venv):
    assert environment.is_usable()


def test_other_requirements_ask_for_a_new_environment(venv):
    environment.PRODUCTION.write_text("django==5.2.20\n")
    assert not environment.is_usable()


def test_an_interrupted_installation_asks_for_a_new_environment(venv):
    environment.stamp_of(environment.PRODUCTION).unlink()
    assert not environment.is_usable()


def test_a_broken_python_asks_for_a_new_environment(venv, monkeypatch):
    monkeypatch.setattr(environment, "PYTHON", venv / "bin" / "python")
    assert not environment.is_usable()


@pytest.mark.parametrize(
    ("raised", "status", "says"),
    [
        ("OSError(28, 'No space', '/x')", 1, "demo: The disk is full: /x\n"),
        ("OSError(13, 'No', '/x')", 1, "demo: Not writable for this user: /x\n"),
        ("OSError(30, 'No', '/x')", 1, "demo: Not writable for this user: /x\n"),
        ("commands.Refusal('The reason')", 1, "demo: The reason\n"),
        ("commands.Stopped(15)", 143, ""),
    ],
)
def test_whatever_ends_a_command_is_one_line(raised, status, says):
    program = (
        "from provisioning import commands\n"
        f"def main(): raise {raised}\n"
        "raise SystemExit(commands.run_command('demo', main))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (status, says)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Reading\nE: Unable to locate package x\nW: old\n", "E: Unable to locate"),
        ("Traceback\n  File\nValueError: because\n", "ValueError: because"),
        ("OSError: [Errno 28] No space left on device\nmore", "the disk is full"),
        ("", "it gave no reason"),
    ],
)
def test_the_telling_line_of_an_output_is_found(output, line):
    assert reason(output).startswith(line)

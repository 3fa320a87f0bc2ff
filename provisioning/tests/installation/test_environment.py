from __future__ import annotations

import os
import sys

import pytest

from provisioning.commands import Refusal
from provisioning.installation import environment


@pytest.fixture
def venv(tmp_path, monkeypatch):
    """A complete `.venv`, with requirements that a test can change."""
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


def test_a_complete_environment_is_used(venv):
    assert environment.is_usable()


def test_changed_requirements_need_a_new_environment(venv):
    environment.PRODUCTION.write_text("django==5.2.20\n")
    assert not environment.is_usable()


def test_an_interrupted_installation_needs_a_new_environment(venv):
    environment.stamp_of(environment.PRODUCTION).unlink()
    assert not environment.is_usable()


def test_a_broken_python_needs_a_new_environment(venv, monkeypatch):
    monkeypatch.setattr(environment, "PYTHON", venv / "bin" / "python")
    assert not environment.is_usable()


def test_the_stamp_depends_on_the_requirements(venv):
    before = environment.stamp_of(environment.STACK)
    assert before.name.startswith("STACK-")
    environment.STACK.write_text("psutil==7.0.0\n")
    assert environment.stamp_of(environment.STACK) != before


def test_packages_are_compiled_without_their_tests(venv, tmp_path, monkeypatch):
    package = venv / "lib" / "python3" / "site-packages" / "example"
    (package / "tests").mkdir(parents=True)
    for name in ("used.py", "tests/unused.py"):
        (package / name).touch()
    (tmp_path / "locked.txt").touch()
    monkeypatch.setattr(environment, "lock_of", lambda path: tmp_path / "locked.txt")
    environment._install([environment.TESTS, environment.STACK])
    assert [path.name.split(".")[0] for path in venv.rglob("*.pyc")] == ["used"]
    assert environment.stamp_of(environment.TESTS).exists()
    assert environment.stamp_of(environment.STACK).exists()


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("NewConnectionError: failed", "The package registry can't be reached"),
        ("Temporary failure in name resolution", "PIP_INDEX_URL"),
        ("ERROR: No version\nERROR: No matching one", "ERROR: No matching one"),
        ("", "it gave no reason"),
    ],
)
def test_pips_failures_become_one_sentence(output, problem):
    assert problem in environment.why_not_installed(output)


def test_another_user_than_root_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Refusal, match=r"sudo apt-get install .* nginx redis$"):
        environment.install_packages(["nginx", "redis"])


def test_a_failed_management_command_is_named(venv):
    with pytest.raises(Refusal, match=r"^manage\.py no_such_command failed: "):
        environment.manage("no_such_command", environment={**os.environ})


@pytest.fixture
def missing(tmp_path, monkeypatch):
    """Return the packages that would be installed for a list of the role web."""

    def missing(listed="", **options):
        packages = []
        monkeypatch.setattr(environment, "install_packages", packages.extend)
        (tmp_path / "web" / "packages.txt").write_text(listed)
        environment.install_missing_packages(**options)
        return packages

    for role in environment.TEST_ROLES:
        (tmp_path / role).mkdir()
        (tmp_path / role / "packages.txt").touch()
    monkeypatch.setattr(environment, "ROLES", tmp_path)
    return missing


def test_a_package_is_missing_without_its_program(missing):
    assert missing("coreutils ls\nnone no-such-program\n") == ["none"]


def test_a_package_may_be_recognised_by_a_file(missing, tmp_path):
    (tmp_path / "web" / "tzdata").touch()
    listed = f"tzdata {tmp_path}/web/tz*\nnone {tmp_path}/web/none*\n"
    assert missing(listed) == ["none"]


def test_the_tests_need_a_browser_and_valgrind_as_well(missing, monkeypatch):
    monkeypatch.setattr(environment, "path_of_program", lambda name: "")
    assert missing() == []
    monkeypatch.setattr(environment, "freedesktop_os_release", lambda: {"ID": "debian"})
    assert missing(for_tests=True) == [environment.COUNTER, environment.BROWSER]
    # No package of Ubuntu has one, and apt would install none of the others either.
    monkeypatch.setattr(environment, "freedesktop_os_release", lambda: {"ID": "ubuntu"})
    assert missing(for_tests=True) == [environment.COUNTER]


def test_the_tests_need_the_program_that_checks_firewall_rules(missing, tmp_path):
    (tmp_path / "firewall" / "packages.txt").write_text("none no-such-program\n")
    assert missing() == []
    assert "none" in missing(for_tests=True)


@pytest.mark.parametrize("listed", ["", "none no-such-program\n"])
def test_chromium_does_if_its_headless_shell_cannot_be_installed(
    missing, monkeypatch, listed
):
    def refuse(packages):
        raise Refusal("apt-get can't install them")

    missing(listed)
    monkeypatch.setattr(environment, "install_packages", refuse)
    there = ("chromium", environment.COUNTER)
    monkeypatch.setattr(
        environment, "path_of_program", lambda name: name if name in there else ""
    )
    if listed:
        with pytest.raises(Refusal):
            environment.install_missing_packages(for_tests=True)
    else:
        environment.install_missing_packages(for_tests=True)

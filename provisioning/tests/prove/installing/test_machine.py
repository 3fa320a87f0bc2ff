from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.prove.installing import machine
from provisioning.prove.installing.machine import Mirror


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """Record commands instead of running them; return them."""
    commands = []

    def output_of(command, **options):
        commands.append([str(part) for part in command])
        (tmp_path / "etc/apt").mkdir(parents=True, exist_ok=True)
        return ""

    monkeypatch.setattr(machine, "output_of", output_of)
    monkeypatch.setattr(machine.shutil, "copytree", lambda *paths, **options: None)
    return commands


def test_ubuntus_packages_come_from_one_address_and_universe(tmp_path, commands):
    mirror = Mirror.of_suite("noble", "http://mirror.example/ubuntu")
    machine.make_root(tmp_path, "noble", mirror)
    assert (tmp_path / "etc/apt/sources.list").read_text().splitlines() == [
        f"deb http://mirror.example/ubuntu {pocket} main universe"
        for pocket in ("noble", "noble-updates", "noble-security")
    ]
    assert "--no-check-gpg" in commands[0]
    assert commands[0][-4:] == [
        *("noble", str(tmp_path), "http://mirror.example/ubuntu", "gutsy")
    ]


def test_debians_packages_come_from_where_this_machine_gets_them(tmp_path, commands):
    (tmp_path / "sources.list").write_text(
        "deb http://mirror.example/debian bookworm main\n"
        "deb http://mirror.example/debian-security bookworm-security main\n"
    )
    mirror = Mirror.of_this_machine(tmp_path)
    assert mirror.sources("trixie").splitlines() == [
        "deb http://mirror.example/debian trixie main",
        "deb http://mirror.example/debian trixie-updates main",
        "deb http://mirror.example/debian-security trixie-security main",
    ]
    machine.make_root(tmp_path, "trixie", mirror)
    assert "--no-check-gpg" not in commands[0]
    assert commands[0][-1] == "http://mirror.example/debian"
    (tmp_path / "sources.list").unlink()
    with pytest.raises(Refusal, match="names no mirror"):
        Mirror.of_this_machine(tmp_path / Path("sources"))

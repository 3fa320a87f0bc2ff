from __future__ import annotations

import subprocess

import pytest

from provisioning.commands import Refusal
from provisioning.installation import time_zone as module
from provisioning.installation.stack import parser
from provisioning.installation.time_zone import zone_of_machine
from provisioning.installation.up import StackOptions, variables_of


@pytest.fixture
def localtime(tmp_path, monkeypatch):
    """Return a machine's /etc/localtime, which does not exist, without systemd."""
    link = tmp_path / "etc" / "localtime"
    link.parent.mkdir()
    monkeypatch.setattr(module, "LOCALTIME", link)
    monkeypatch.setenv("PATH", str(tmp_path))
    return link


def add_zone(link, name):
    path = link.parent.parent / "share" / "zoneinfo" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_link_names_the_zone(localtime):
    localtime.symlink_to(add_zone(localtime, "America/Indiana/Knox"))
    assert zone_of_machine() == "America/Indiana/Knox"


def test_an_older_name_leads_to_the_city(localtime):
    older = add_zone(localtime, "US/Other").with_name("Central")
    older.symlink_to(add_zone(localtime, "America/Chicago"))
    localtime.symlink_to(older)
    assert zone_of_machine() == "America/Chicago"


def test_a_copied_file_leaves_it_to_systemd(localtime, tmp_path):
    localtime.write_bytes(b"TZif2")
    program = tmp_path / "timedatectl"
    program.write_text("#!/bin/sh\necho Pacific/Honolulu\n")
    program.chmod(0o755)
    assert zone_of_machine() == "Pacific/Honolulu"


def test_a_machine_without_a_zone_asks_for_one(localtime):
    with pytest.raises(Refusal, match="add --time-zone"):
        zone_of_machine()


def test_the_option_goes_before_the_machine(localtime, tmp_path):
    options = parser().parse_args(["up", "--time-zone=Asia/Kolkata", "--set=a=1"])
    assert options.settings == [("time_zone", "Asia/Kolkata"), ("a", "1")]
    variables = variables_of(tmp_path, StackOptions(0, dict(options.settings)))
    assert variables["time_zone"] == "Asia/Kolkata"


def test_this_machine_has_a_zone():
    assert zone_of_machine()
    assert subprocess.run(["test", "-e", "/etc/localtime"]).returncode == 0

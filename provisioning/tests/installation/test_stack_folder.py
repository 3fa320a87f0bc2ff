from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioning.commands import ROOT, Refusal
from provisioning.installation import stack_folder as module
from provisioning.installation.stack_folder import (
    addresses_of,
    environment_of,
    is_readable_by_all,
    stack_folder,
)
from provisioning.installation.up import refuse_installed


@pytest.fixture
def as_user(monkeypatch):
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    monkeypatch.delenv("GROUNDSWELL_STACK", raising=False)


def test_the_stack_is_in_the_checkout(as_user):
    assert stack_folder() == ROOT / ".stack"


@pytest.mark.parametrize(
    ("checkout", "folder"),
    [(str(ROOT), "served"), ("/srv/elsewhere", ".stack"), ("", ".stack")],
)
def test_a_fleets_host_has_its_servers_where_the_playbook_put_them(
    checkout, folder, as_user, monkeypatch, tmp_path
):
    served = tmp_path / "served"
    monkeypatch.setattr(module, "FLEET_FOLDER", served)
    assert stack_folder() == ROOT / ".stack"
    (served / "etc").mkdir(parents=True)
    written = json.dumps({"checkout_of_fleet": checkout})
    (served / "etc/stack.json").write_text(written)
    assert stack_folder().name == folder
    assert stack_folder("/srv/stack") == Path("/srv/stack")


def test_a_fleets_host_is_not_made_a_stack(tmp_path):
    (tmp_path / "etc").mkdir()
    described = tmp_path / "etc/stack.json"
    described.write_text(json.dumps({"checkout_of_fleet": "/srv/code"}))
    with pytest.raises(Refusal, match="of a host of a fleet: run its playbook"):
        refuse_installed(tmp_path)
    # A stack says nothing of a fleet, nor does what an older release has written.
    for stack in ({"checkout_of_fleet": ""}, {}):
        described.write_text(json.dumps(stack))
        refuse_installed(tmp_path)


def test_the_environment_may_name_another_folder(as_user, monkeypatch):
    monkeypatch.setenv("GROUNDSWELL_STACK", "/srv/stack")
    assert stack_folder() == Path("/srv/stack")


def test_a_path_too_long_for_sockets_is_refused(as_user, monkeypatch):
    monkeypatch.setenv("GROUNDSWELL_STACK", "/" + "x" * module.LONGEST)
    with pytest.raises(Refusal, match="too long for the paths of sockets"):
        stack_folder()
    monkeypatch.setenv("GROUNDSWELL_STACK", "/" + "x" * (module.LONGEST - 1))
    assert len(str(stack_folder())) == module.LONGEST


@pytest.mark.parametrize("name", ["a stack", "stack%1", "stack'"])
def test_a_path_that_configurations_cannot_name_is_refused(as_user, monkeypatch, name):
    monkeypatch.setenv("GROUNDSWELL_STACK", f"/srv/{name}")
    with pytest.raises(Refusal, match="has a space or a sign in it"):
        stack_folder()


def test_root_uses_a_folder_that_the_servers_may_enter(monkeypatch, tmp_path):
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "is_readable_by_all", lambda path: False)
    monkeypatch.delenv("GROUNDSWELL_STACK", raising=False)
    assert stack_folder() == module.SYSTEM_FOLDER
    monkeypatch.setenv("GROUNDSWELL_STACK", "/srv/stack")
    with pytest.raises(Refusal, match="servers' user may not enter"):
        stack_folder()


def test_a_private_parent_hides_a_file_from_other_users(tmp_path):
    folder = tmp_path / "parent"
    folder.mkdir(mode=0o700)
    (folder / "file").touch(mode=0o644)
    assert not is_readable_by_all(folder / "file")
    # What does not exist yet is judged by its nearest parent.
    assert not is_readable_by_all(folder / "missing" / "file")


def test_variables_of_a_program_are_read_as_a_shell_would(tmp_path):
    folder = tmp_path / "etc" / "app"
    folder.mkdir(parents=True)
    (folder / "manage.env").write_text("# comment\nA='x y'\nB=1=2\n")
    assert environment_of(tmp_path, "manage") == {"A": "x y", "B": "1=2"}


def test_without_a_stack_the_command_that_starts_one_is_named(tmp_path):
    with pytest.raises(Refusal, match="provisioning/stack up"):
        environment_of(tmp_path, "manage")


def test_addresses_are_read_from_the_stack(tmp_path):
    (tmp_path / "etc").mkdir()
    addresses = {"address": "http://x/", "monitoring": "http://y/"}
    (tmp_path / "etc" / "stack.json").write_text(json.dumps(addresses))
    assert addresses_of(tmp_path) == addresses

from __future__ import annotations

import os
import socket

import pytest

from provisioning.commands import ROOT, Refusal
from provisioning.installation import up as module
from provisioning.installation.up import (
    PORTS,
    StackOptions,
    keep_options,
    merge_options,
    refuse_other_owner,
    up,
    variables_of,
)


def options(home, *settings, port=None):
    return merge_options(home, port, settings)


def test_port_and_settings_are_kept_until_they_are_changed(tmp_path, capsys):
    keep_options(
        tmp_path, options(tmp_path, ("commit_delay", "9"), ("x", "1"), port=9000)
    )
    assert capsys.readouterr().out == ""
    assert options(tmp_path) == StackOptions(9000, {"commit_delay": "9", "x": "1"})
    printed = "As the last time: --port=9000 --set=commit_delay=9 --set=x=1\n"
    assert capsys.readouterr().out == printed
    assert options(tmp_path, ("x", "2"), port=9100).settings["x"] == "2"
    assert (tmp_path / "etc" / "chosen.json").stat().st_mode & 0o777 == 0o600


def test_an_empty_option_is_forgotten(tmp_path):
    keep_options(tmp_path, StackOptions(9000, {"commit_delay": "9"}))
    assert options(tmp_path, ("commit_delay", ""), port=0) == StackOptions(0, {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_root_leaves_another_users_stack_alone(tmp_path):
    refuse_other_owner(tmp_path, "nobody")
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(Refusal, match="belongs to another user"):
        refuse_other_owner(tmp_path, "nobody")


def test_unreadable_options_are_refused(tmp_path):
    keep_options(tmp_path, StackOptions(9000, {}))
    (tmp_path / "etc" / "chosen.json").write_text("[")
    with pytest.raises(Refusal, match="chosen.json can't be read; delete it"):
        options(tmp_path)


def test_the_usual_ports_are_kept_without_an_option(tmp_path):
    variables = variables_of(tmp_path, StackOptions(0, {}))
    assert {name: variables[name] for name in PORTS} == PORTS


def test_ports_follow_the_first_one(tmp_path):
    variables = variables_of(tmp_path, StackOptions(9000, {}))
    assert [variables[name] for name in PORTS] == list(range(9000, 9006))


def test_settings_replace_the_machines_own_values(tmp_path):
    variables = variables_of(
        tmp_path, StackOptions(0, {"server_user": "web", "x": "1"})
    )
    assert (variables["server_user"], variables["x"]) == ("web", "1")
    assert (variables["home"], variables["checkout"]) == (str(tmp_path), str(ROOT))


def test_root_runs_servers_as_another_user(tmp_path, monkeypatch):
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "is_readable_by_all", lambda path: False)
    variables = variables_of(tmp_path, StackOptions(0, {}))
    # Only root can read this checkout.
    assert (variables["server_user"], variables["app_user"]) == ("groundswell", "root")


def test_used_ports_are_refused_before_the_long_work(tmp_path, monkeypatch):
    monkeypatch.setattr(
        module, "install_missing_packages", lambda: pytest.fail("too late")
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Refusal, match=f"Port {port} is taken by another program"):
            up(tmp_path, port=0, settings=[("nginx_monitoring_port", str(port))])


def test_a_new_folder_has_no_other_owner(tmp_path):
    refuse_other_owner(tmp_path / "new", "nobody")
    refuse_other_owner(tmp_path, "no-such-user")

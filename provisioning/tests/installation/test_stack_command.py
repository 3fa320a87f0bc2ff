from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.installation import stack as stack_command
from provisioning.installation.backups.cluster import restore_cluster, restore_point
from provisioning.installation.stack import (
    down,
    parser,
    print_logs,
    put_aside,
    refuse_unmovable,
    reload,
)


def test_options_are_read():
    options = parser().parse_args(["up", "--port=9000", "--set=a=1", "--set=b=x=y"])
    assert (options.port, options.settings) == (9000, [("a", "1"), ("b", "x=y")])


def test_an_empty_port_means_the_usual_ones():
    assert parser().parse_args(["up", "--port="]).port == 0
    assert parser().parse_args(["up"]).port is None


def test_options_of_a_cluster_are_read():
    assert vars(parser().parse_args(["restore_point"])) == {"run": restore_point}
    arguments = ["restore_cluster", "--point=2026-11-30T16:15:00Z-db1", "--to=/srv/new"]
    assert vars(parser().parse_args(arguments)) == {
        "run": restore_cluster,
        "point": "2026-11-30T16:15:00Z-db1",
        "to": Path("/srv/new"),
        "node": None,
    }
    assert parser().parse_args([*arguments, "--node=2"]).node == 2


def test_files_are_those_of_the_callers_folder(monkeypatch):
    monkeypatch.setenv("CALLER_FOLDER", "/home/maya")
    arguments = ["restore_cluster", "--point=a", "--to=restored"]
    assert parser().parse_args(arguments).to == Path("/home/maya/restored")
    arguments = ["restore", "--at=latest", "--to=restored"]
    assert parser().parse_args(arguments).to == Path("/home/maya/restored")
    arguments = ["backup", "--keys=passphrase"]
    assert parser().parse_args(arguments).keys == Path("/home/maya/passphrase")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("restore_point", "Make a point that all nodes of a cluster share."),
        ("restore_cluster", "Only this node; 0 is the coordinator."),
        ("restore", "latest: all that was archived."),
        ("down", "Stop every server; the data stay."),
    ],
)
def test_each_command_has_help(command, words, capsys):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([command, "--help"])
    assert ended.value.code == 0
    assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "wrong",
    [
        ["restore_point", "--point=2026-11-30T16:15:00Z-db1"],
        ["restore_cluster", "--to=/srv/new"],
        ["restore_cluster", "--point=2026-11-30T16:15:00Z-db1"],
        ["restore_cluster", "--point=a", "--to=b", "--node=first"],
        ["up", "--port=0"],
        # Four more ports follow it.
        ["up", "--port=65532"],
        ["up", "--port=x"],
        ["up", "--set=a"],
        ["rebuild", "--set=a b=1"],
        ["promote", "--although"],
        ["restart"],
        [],
    ],
)
def test_wrong_options_end_with_usage(wrong, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["provisioning/stack"])
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(wrong)
    assert ended.value.code == 2
    assert "usage: provisioning/stack" in capsys.readouterr().err


def test_nothing_is_stopped_where_nothing_runs(tmp_path, capsys):
    assert down(tmp_path) == 0
    assert capsys.readouterr().out == "Nothing is running.\n"


def test_workers_are_reloaded_only_where_they_run(tmp_path):
    with pytest.raises(Refusal, match="start it with provisioning/stack up"):
        reload(tmp_path)


def test_a_missing_log_is_named(tmp_path):
    with pytest.raises(Refusal, match="There is no log of nginx in "):
        print_logs(tmp_path, program="nginx", follow=False)
    with pytest.raises(Refusal, match="There is no log of anything in "):
        print_logs(tmp_path, program=None, follow=False)


def test_a_programs_logs_are_printed(tmp_path, capfd):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "nginx-error.log").write_text("an error\n")
    (tmp_path / "log" / "redis.log").write_text("a start\n")
    assert print_logs(tmp_path, program="nginx", follow=False) == 0
    assert capfd.readouterr().out.strip().endswith("an error")


def test_a_second_rebuild_leaves_what_the_first_put_aside(tmp_path, monkeypatch):
    home = tmp_path / ".stack"
    for number in (1, 2):
        home.mkdir()
        (home / "answers").write_text(str(number))
        stamp = f"20260101-00000{number}"
        monkeypatch.setattr(
            stack_command.time, "strftime", lambda _, stamp=stamp: stamp
        )
        put_aside(home)
    stopped_answers = sorted(tmp_path.glob(".stack.before-*/answers"))
    assert [answers.read_text() for answers in stopped_answers] == ["1", "2"]


def test_a_symbolic_link_is_not_put_aside(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Refusal, match="symbolic link"):
        refuse_unmovable(tmp_path / "link")
    refuse_unmovable(tmp_path)

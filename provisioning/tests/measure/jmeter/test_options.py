from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter.options import (
    caller_path,
    check_target,
    run_parser,
)
from provisioning.tests.measure.jmeter.commands import run_jmeter_command


@pytest.mark.parametrize("name", ["install", "run", "replay", "ladder", "server"])
def test_each_command_has_a_help_text(name):
    done = run_jmeter_command(name, "--help")
    assert done.returncode == 0
    assert f"usage: jmeter/{name}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rate", "0"), "0 is not a number above 0"),
        (("--rate", "9", "--host", "192.0.2.1"), "192.0.2.1 is not this machine"),
        (("--rate", "9", "--remote", "127.0.0.1"), "--remote needs the --codes"),
        (("--rate", "9", "--codes", "x.csv"), "--codes and --pages belong together"),
        (("--rate", "9", "--slo", "/nowhere.json"), "/nowhere.json"),
    ],
)
def test_wrong_options_are_refused_with_one_line(arguments, says):
    done = run_jmeter_command("run", *arguments)
    assert done.returncode
    last = done.stderr.splitlines()[-1]
    assert last.startswith("jmeter/run: ")
    assert says in last
    assert "Traceback" not in done.stderr


def options_of(*arguments: str) -> argparse.Namespace:
    return run_parser("Runs.").parse_args(arguments)


def test_another_machine_is_loaded_only_with_permission():
    with pytest.raises(Refusal, match="is not this machine"):
        check_target(options_of("--host", "192.0.2.1"))
    check_target(options_of("--host", "192.0.2.1", "--elsewhere"))
    check_target(options_of("--host", "127.0.0.9"))
    data = ("--codes", "c.csv", "--pages", "p.properties")
    with pytest.raises(Refusal, match=r"192\.0\.2\.7 is not this machine"):
        check_target(options_of(*data, "--remote", "127.0.0.1,192.0.2.7:1099"))
    with pytest.raises(Refusal, match="need --keystore"):
        check_target(options_of(*data, "--remote", "192.0.2.7", "--elsewhere"))


def test_paths_are_relative_to_the_caller(monkeypatch):
    monkeypatch.setenv("CALLED_FROM", "/home/maya")
    assert caller_path("codes.csv") == Path("/home/maya/codes.csv")
    assert caller_path("/srv/codes.csv") == Path("/srv/codes.csv")


def test_load_servers_are_listed_with_or_without_ports():
    assert options_of("--remote", "a, b:1099").remote == ["a", "b:1099"]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--remote", "a b"),
        ("--port", "0"),
        ("--port", "70000"),
        ("--think", "-1"),
        ("--survey-pages", "0"),
        ("--shape", "week"),
    ],
)
def test_wrong_options_end_with_usage(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        options_of(*wrong)
    assert ended.value.code == 2
    assert wrong[0] in capsys.readouterr().err

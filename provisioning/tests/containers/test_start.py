"""A container starts what the supervisor would start, and tells its health."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioning.containers import configure, health, start
from provisioning.containers.engine import COMPOSE
from provisioning.containers.trial import ONCE
from provisioning.installation.playbook import ANSIBLE
from provisioning.tests.containers.test_files import last, services, target_of
from provisioning.tests.installation.rendered_files import play

SECRET = re.compile(r"SECRET_KEY='(\w+)'")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the playbook writes for containers."""
    folder = tmp_path_factory.mktemp("containers") / "home"
    play(
        folder.parent,
        f"--inventory={configure.INVENTORY}",
        "--tags=files",
        home=str(folder),
        allowed_hosts="survey.example.org",
        time_zone="America/Chicago",
        mail_key='a # key of "us" $5',
    )
    return folder


@pytest.fixture
def etc(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(start, "ETC", home / "etc")
    monkeypatch.setattr(configure, "HOME", home)
    return home / "etc"


def programs_of(service: str) -> list[str]:
    described = services()[service]
    command = described.get("command")
    return command or yaml.safe_load(last(target_of(described), "CMD"))


def serving() -> list[str]:
    return [name for name in services() if name not in ONCE]


@pytest.mark.parametrize("service", serving())
def test_each_service_is_a_program_of_the_roles_and_stops_as_there(service, etc):
    for program in programs_of(service):
        section = start.section_of(program)
        command, _ = start.command_of(section)
        # nginx and the pools are started without their scripts.
        scripts = program in ("nginx", "rabbitmq") or "socket" in section
        assert (command[0] == "/bin/sh") == scripts
    described = services()[service]
    signal = described.get("stop_signal", "SIGTERM").removeprefix("SIG")
    assert signal == section.get("stopsignal", "TERM")
    assert last(target_of(described), "STOPSIGNAL") == signal
    if "stop_grace_period" in described:
        waits = int(section.get("stopwaitsecs", "10"))
        assert int(described["stop_grace_period"].removesuffix("s")) >= waits


def test_a_worker_gets_its_options_and_its_environment(etc):
    command, environment = start.command_of(start.section_of("scan_worker"))
    assert command[:3] == ["nice", "-n", "10"]
    assert command[command.index("--hostname") + 1] == "scans@%h"
    assert environment["GROUNDSWELL_DATABASE_USER"] == "worker"
    assert environment["GROUNDSWELL_EMAIL_KEY"] == 'a # key of "us" $5'


def test_a_variable_of_the_orchestrator_counts(etc, monkeypatch):
    monkeypatch.setenv("GROUNDSWELL_DATABASE_HOST", "another")
    _, environment = start.command_of(start.section_of("worker"))
    assert environment["GROUNDSWELL_DATABASE_HOST"] == "another"


def test_a_program_that_is_not_mounted_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "ETC", tmp_path)
    with pytest.raises(SystemExit, match="no program taking: mount"):
        start.section_of("taking")


def test_each_container_has_its_own_secrets_only(etc, tmp_path):
    for name, paths in configure.MOUNTED.items():
        configure.hand_out(tmp_path / name, paths)
    texts = {
        name: "".join(
            path.read_text() for path in (tmp_path / name).rglob("*") if path.is_file()
        )
        for name in configure.MOUNTED
    }
    [respondents] = SECRET.findall((etc / "app/taking.env").read_text())
    [staff] = SECRET.findall((etc / "app/console.env").read_text())
    # The secret is there to leak.
    assert staff in "".join(texts.values())
    assert {name for name in texts if staff in texts[name]} == {
        *("console", "worker", "release")
    }
    assert {name for name in texts if respondents in texts[name]} == {"taking"}
    owner = re.search("DATABASE_PASSWORD='(.+)'", (etc / "app/manage.env").read_text())
    assert owner is not None
    # PostgreSQL itself gives each role its password.
    assert {name for name in texts if owner[1] in texts[name]} == {
        *("release", "postgresql")
    }


def test_what_a_version_no_longer_writes_is_deleted(etc, tmp_path):
    (tmp_path / "nginx").mkdir()
    (tmp_path / "nginx" / "old.conf").write_text("of the version before")
    configure.hand_out(tmp_path, ("nginx",))
    assert not (tmp_path / "nginx" / "old.conf").exists()
    assert (tmp_path / "nginx" / "nginx.conf").exists()


def test_variables_that_cannot_be_read_are_named():
    with pytest.raises(Exception, match="GROUNDSWELL_VARIABLES is not JSON"):
        configure.variables_of({"GROUNDSWELL_VARIABLES": "taking_workers=8"})
    with pytest.raises(Exception, match="is no object"):
        configure.variables_of({"GROUNDSWELL_VARIABLES": "8"})
    variables = configure.variables_of(
        {
            "GROUNDSWELL_HOSTS": "a.example.org",
            "GROUNDSWELL_EMAIL_KEY": "",
            "GROUNDSWELL_FEED_NETWORKS": "10.0.0.0/8,10.1.0.0/16",
            "GROUNDSWELL_VARIABLES": '{"taking_workers": 8}',
        }
    )
    assert variables == {
        "allowed_hosts": "a.example.org,localhost",
        "feed_networks": ["10.0.0.0/8", "10.1.0.0/16"],
        "taking_workers": 8,
    }


def test_without_a_name_it_is_that_of_this_machine():
    assert configure.variables_of({}) == {"allowed_hosts": "localhost"}


@pytest.mark.parametrize("name", ["taking", "console", "worker", "manage"])
def test_an_environment_is_read_as_a_shell_reads_it(name, etc):
    file = etc / "app" / f"{name}.env"
    shell = subprocess.run(
        [
            "sh",
            "-c",
            f"set -a; . {file}; exec {sys.executable} -c 'import os, json;"
            " print(json.dumps(dict(os.environ)))'",
        ],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    by_shell = yaml.safe_load(shell.stdout)
    for variable in ("PWD", "_", "SHLVL", "OLDPWD", "LC_CTYPE"):
        by_shell.pop(variable, None)
    assert start.read_environment(file.read_text()) == by_shell


def test_nginx_is_reloaded_as_often_as_on_a_server(etc):
    section = start.section_of("nginx_renewal")
    assert re.search(r"sleep (\d+);", section["command"])


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A socket that answers each connection with the bytes it is given."""
    monkeypatch.setattr(health, "RUN", tmp_path)

    def serve(answer: bytes) -> None:
        path = tmp_path / "taking.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()

        def reply() -> None:
            with listener, listener.accept()[0] as connection:
                connection.recv(1024)
                connection.sendall(answer)

        threading.Thread(target=reply, daemon=True).start()

    return serve


def status(monkeypatch: pytest.MonkeyPatch, program: str) -> int:
    monkeypatch.setattr(sys, "argv", ["health.py", program])
    return health.main()


def test_a_pool_is_healthy_when_a_worker_answers(pool, monkeypatch, capsys):
    assert status(monkeypatch, "taking") == 1
    assert "No such file" in capsys.readouterr().out
    pool(b"HTTP/1.0 200 OK\r\n\r\n")
    assert status(monkeypatch, "taking") == 0
    pool(b"HTTP/1.0 500 Internal Server Error\r\n\r\n")
    assert status(monkeypatch, "taking") == 1
    assert "500" in capsys.readouterr().out


def test_a_worker_is_healthy_when_it_is_connected(monkeypatch, capsys):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        monkeypatch.setattr(health, "QUEUE_PORT", listener.getsockname()[1])
        assert status(monkeypatch, "beat") == 1
        assert capsys.readouterr().out == "beat: is not connected to RabbitMQ\n"
        with socket.create_connection(listener.getsockname()):
            assert status(monkeypatch, "beat") == 0


def test_a_pools_socket_replaces_one_that_a_killed_container_left(tmp_path):
    """In a process of its own, for it hands descriptor 3 over."""
    path = tmp_path / "taking.sock"
    section = {
        "socket": f"unix://{path}",
        "socket_mode": "0700",
        "socket_backlog": "8",
    }
    script = (
        "import os, socket; from provisioning.containers.start import open_socket\n"
        f"environment = open_socket({section!r})\n"
        "taken = socket.socket(fileno=3)\n"
        f"caller = socket.socket(socket.AF_UNIX); caller.connect({str(path)!r})\n"
        "taken.accept()\n"
        "is_mine = environment['LISTEN_PID'] == str(os.getpid())\n"
        "print(environment['LISTEN_FDS'], is_mine)\n"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True
        )
        assert (done.stdout, done.stderr) == ("1 True\n", "")
        assert os.stat(path).st_mode & 0o777 == 0o700


def test_the_compose_file_and_the_inventory_are_there():
    assert COMPOSE.exists()
    assert (ANSIBLE / "inventories/containers/hosts.yml").exists()

"""A database host whose clock is wrong runs no etcd, and restarts its Patroni."""

from __future__ import annotations

import json
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment

from provisioning.installation.environment import ROLES, path_of_program
from provisioning.processes import is_alive, start_process, stop_process
from provisioning.prove.shifted_clock import shift_clock
from settings.tests.patience import eventually

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="clocks are shifted on x86-64 alone"
)
HOUR = 3600
TEMPLATE = ROLES / "failover" / "templates" / "clock" / "watch_clock.j2"
ADDRESSES = {"db1": "127.0.0.1", "db2": "127.0.0.2", "db3": "127.0.0.3"}


class Host:
    """The host whose clock is watched, the members of etcd on two others."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        with socket.create_server(("127.0.0.2", 0)) as server:
            self.port = server.getsockname()[1]
        # Any HTTP server dates its replies, as etcd does.
        member = [sys.executable, "-m", "http.server", str(self.port), "--bind"]
        self.members = [self.start(*member, ADDRESSES[name]) for name in ("db2", "db3")]
        self.etcd = self.pretend(f"/usr/bin/etcd --data-dir {folder}/etcd")
        self.patroni = self.pretend(f"/usr/bin/patroni {folder}/database/patroni.yml")
        program = folder / "watch_clock"
        program.write_text(self.rendered())
        self.watch = self.start(sys.executable, program)

    def start(self, *command: str | Path) -> int:
        process = start_process(command, output=subprocess.DEVNULL, cwd=self.folder)
        self.stack.callback(stop_process, process)
        return process.pid

    def pretend(self, name: str) -> int:
        """Start a program under another one's name."""
        return self.start("bash", "-c", f"exec -a '{name}' sleep 600")

    def rendered(self) -> str:
        environment = Environment(autoescape=False)  # noqa: S701
        environment.filters |= {
            "difference": lambda names, excluded: [*(set(names) - set(excluded))],
            "extract": lambda name, hosts, key: hosts[name][key],
            "to_json": json.dumps,
        }
        return environment.from_string(TEMPLATE.read_text()).render(
            groups={"failover": list(ADDRESSES)},
            hostvars={
                name: {"ansible_host": address} for name, address in ADDRESSES.items()
            },
            inventory_hostname="db1",
            etcd_client_port=self.port,
            patroni_ttl=7,
            run=self.folder,
            data=self.folder,
            etc=self.folder,
        )

    def is_wrong(self) -> bool:
        return (self.folder / "wrong_clock").exists()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with ExitStack() as stack:
        yield Host(tmp_path, stack)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR, 10])
def test_etcd_stops_until_the_clock_is_right_again(host, seconds):
    # Where the members answer, and agree, nothing happens.
    time.sleep(3)
    assert not host.is_wrong()
    shift_clock([host.watch], seconds)
    eventually(host.is_wrong)
    eventually(lambda: not is_alive(host.etcd))
    shift_clock([host.watch], 0)
    eventually(lambda: not host.is_wrong())


def test_patroni_restarts_after_a_jump_back_alone(host):
    shift_clock([host.watch], HOUR)
    eventually(host.is_wrong)
    assert is_alive(host.patroni)
    shift_clock([host.watch], 0)
    eventually(lambda: not is_alive(host.patroni))


def test_a_host_whose_clock_is_right_goes_on_beside_a_wrong_one(host):
    shift_clock(host.members[:1], HOUR)
    time.sleep(4)
    assert not host.is_wrong()
    # The twin: both others agree that it is this one.
    shift_clock(host.members[1:], HOUR)
    eventually(host.is_wrong)


class Etcd:
    """One member, asked by either protocol."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        address = f"http://127.0.0.1:{self.port}"
        options = [f"--listen-client-urls={address}", f"--data-dir={folder}/etcd"]
        options += [f"--advertise-client-urls={address}", "--enable-v2"]
        # The system chooses the port, which nobody asks.
        options += ["--listen-peer-urls=http://127.0.0.1:0"]
        self.process = start_process(["etcd", *options], output=subprocess.DEVNULL)
        eventually(self.is_healthy, 30)

    def is_healthy(self) -> bool:
        with suppress(OSError):
            return self.ask("GET", "/health") == {"health": "true"}
        return False

    def ask(self, method: str, path: str, body: str = "") -> dict[str, Any]:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            connection.request(method, path, body, form if method == "PUT" else {})
            return json.load(connection.getresponse())

    def lease(self, key: str) -> Any:
        """Return the seconds left by the second protocol; None once it has ended."""
        return self.ask("GET", f"/v2/keys/{key}").get("node", {}).get("ttl")


@pytest.mark.skipif(not path_of_program("etcd"), reason="etcd is not installed")
def test_leases_follow_the_time_of_day_by_the_second_protocol_alone(tmp_path):
    etcd = Etcd(tmp_path)
    try:
        granted = etcd.ask("POST", "/v3/lease/grant", '{"TTL": 60}')["ID"]
        etcd.ask("PUT", "/v2/keys/short", "value=1&ttl=60")
        assert etcd.lease("short") > 30
        shift_clock([etcd.process.pid], HOUR)
        eventually(lambda: etcd.lease("short") is None)
        etcd.ask("PUT", "/v2/keys/long", "value=1&ttl=60")
        shift_clock([etcd.process.pid], 0)
        assert etcd.lease("long") > HOUR
        by_third = etcd.ask("POST", "/v3/lease/timetolive", f'{{"ID": "{granted}"}}')
        assert 0 < int(by_third["TTL"]) <= 60
    finally:
        stop_process(etcd.process)

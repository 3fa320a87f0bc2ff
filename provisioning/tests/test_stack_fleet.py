"""The fleet's inventory fills in the same templates."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioning.installation.ansible_here import (
    ANSIBLE,
    ansible_environment,
    playbook,
)

pytestmark = pytest.mark.once

INVENTORY = f"--inventory={ANSIBLE / 'inventories' / 'fleet.example'}"


def played(folder: Path, *options: str, **variables: Any) -> str:
    done = subprocess.run(
        playbook(ANSIBLE / "site.yml", INVENTORY, *options, variables=variables),
        env=ansible_environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def fleet() -> Iterator[Path]:
    """Every host's files, in a folder by its name."""
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    played(
        folder,
        "--tags=files",
        "--forks=9",
        files_only=True,
        home=f"{folder}/{{{{ inventory_hostname }}}}",
        secrets=str(folder / "secrets"),
        server_user="",
        ansible_connection="local",
        ansible_become=False,
        ansible_python_interpreter=sys.executable,
    )
    yield folder
    shutil.rmtree(folder)


def test_the_playbook_is_understood(tmp_path):
    played(tmp_path, "--syntax-check")


def test_every_host_has_its_programs_and_nobody_elses(fleet):
    programs = {
        host.name: {ini.parent.name for ini in host.glob("etc/*/supervisor.ini")}
        for host in fleet.iterdir()
        if (host / "etc").is_dir()
    }
    assert all("logs" in names for names in programs.values())
    web = {"nginx", "taking", "console", "pgbouncer"}
    assert {host: names - {"logs"} for host, names in programs.items()} == {
        "db1": {"primary"},
        "db2": {"replica"},
        "db3": {"replica"},
        "cache1": {"memcached", "redis"},
        "queue1": {"rabbitmq"},
        "web1": web,
        "web2": web,
        "worker1": {"worker", "pgbouncer"},
        "load1": set(),
    }


def test_no_template_is_left_half_filled(fleet):
    written = [path for path in fleet.glob("*/etc/**/*") if path.is_file()]
    assert len(written) > 100
    for path in written:
        text = path.read_text()
        assert "{{" not in text, path
        assert "{%" not in text, path
        assert path.stat().st_mode & 0o077 == 0, path
    for path in fleet.glob("*/etc/*/supervisor.ini"):
        configparser.RawConfigParser().read(path)


def test_hosts_find_one_another_by_address_and_password(fleet):
    def etc(path: str) -> str:
        host, _, name = path.partition("/")
        return (fleet / host / "etc" / name).read_text()

    password = (fleet / "secrets" / "postgresql_taking").read_text().strip()
    assert f"ALTER ROLE taking  PASSWORD '{password}'" in etc("db1/primary/roles.sql")
    assert f'"taking" "{password}"' in etc("web1/pgbouncer/users.txt")
    assert "taking = host=10.0.0.11 port=5432" in etc("web2/pgbouncer/pgbouncer.ini")
    assert "ARRAY['db2', 'db3']" in etc("db1/primary/roles.sql")
    assert "primary_slot_name = 'db3'" in etc("db3/replica/postgresql.conf")
    assert "hostssl all groundswell,taking" in etc("db1/primary/pg_hba.conf")
    redis = (fleet / "secrets" / "redis_password").read_text().strip()
    assert f"requirepass {redis}" in etc("cache1/redis/redis.conf")
    assert f"redis://:{redis}@10.0.0.21:6379/0" in etc("web1/app/taking.env")
    queue = (fleet / "secrets" / "queue_password").read_text().strip()
    assert f"default_pass = {queue}" in etc("queue1/rabbitmq/rabbitmq.conf")
    assert f":{queue}@10.0.0.31:5672//" in etc("worker1/app/worker.env")
    # Nobody is trusted by address, nor is the whole world listened to.
    assert "trust" not in etc("db1/primary/pg_hba.conf").replace(
        "local all all trust", ""
    ).replace("local replication all trust", "")


def test_one_host_migrates_and_one_keeps_time(fleet):
    def has(host: str, path: str, text: str) -> bool:
        return text in (fleet / host / "etc" / path).read_text()

    hosts = ("web1", "web2", "worker1")
    assert [has(host, "app/release", "migrate") for host in hosts] == [1, 0, 0]
    assert has("worker1", "worker/supervisor.ini", "[program:beat]")


def test_sizes_come_from_the_machine(fleet):
    (line,) = [
        line
        for line in (fleet / "db1/etc/primary/server.conf").read_text().splitlines()
        if line.startswith("shared_buffers")
    ]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    assert abs(int(line.removeprefix("shared_buffers = ")[:-2]) - memory / 4) < 16

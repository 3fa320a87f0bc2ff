"""A fleet's servers are encrypted, and its clients refuse other ones.

Real servers with the configuration of an example fleet whose hosts are this machine.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from kombu import Connection

from provisioning.commands import ROOT as REPOSITORY
from provisioning.commands import listen, wait_until
from provisioning.installation.environment import ROLES
from provisioning.installation.postgresql import postgresql_programs
from provisioning.processes import start_process, stop_process
from provisioning.tests.installation.rendered_files import render_fleet
from settings import servers
from settings.infrastructure import cache_backends
from settings.infrastructure.cache_backends import (
    KeepAliveMemcached,
    KeepAliveRedis,
    RedisUnavailable,
)
from settings.monitoring.answers import Answer
from settings.monitoring.dependency_checks import check_memcached, check_rabbitmq
from settings.tests.patience import patience

HERE = "127.0.0.1"
ROOT = os.geteuid() == 0
# PostgreSQL and pgbouncer refuse to run as root.
USER = "postgres" if ROOT else pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(scope="module")
def fleet() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    render_fleet(
        folder,
        "--limit=db1,cache1,queue1,web1",
        "--skip-tags=backup,haproxy,web,firewall,chrony",
        ansible_host=HERE,
    )
    make_certificate(folder, "another", "another", HERE)
    make_certificate(folder, "secrets/backup_certificates", "elsewhere", "10.0.0.99")
    yield folder
    shutil.rmtree(folder)


def make_certificate(fleet: Path, authority: str, folder: str, host: str) -> None:
    script = ROLES / "common/files/make_certificates.sh"
    command = ["sh", script, fleet / authority, fleet / folder, "x", "10", host]
    subprocess.run(command, check=True, capture_output=True)


# Which certificate a server shows, and whether its clients accept it.
SHOWN = {
    "its own": True,
    "of another authority": False,
    "of another host": False,
}
shows = pytest.mark.parametrize(("shown", "accepted"), SHOWN.items())


def show(fleet: Path, etc: Path, shown: str) -> None:
    """Give a server this certificate; its own is kept for the next test."""
    source = {
        "its own": fleet / "secrets/server_certificates" / HERE,
        "of another authority": fleet / "another" / HERE,
        "of another host": fleet / "elsewhere/10.0.0.99",
    }[shown]
    for kind in ("pem", "key"):
        shutil.copy(f"{source}.{kind}", etc / f"certificate.{kind}")


def free_port() -> int:
    with closing(listen(0)) as probe:
        return probe.getsockname()[1]


@contextmanager
def running(
    command: list[str], log: Path, is_ready: Callable[[], bool], user: str | None = None
) -> Iterator[None]:
    with log.open("w") as output:
        process = start_process(command, output=output, cwd=Path("/"), user=user)
    try:
        ready = wait_until(is_ready, seconds=patience(30), pause=0.05)
        assert ready and process.poll() is None, log.read_text()
        yield
    finally:
        stop_process(process, seconds=5)


def answers(port: int) -> bool:
    # A complete handshake, whatever the certificate.
    command = ["openssl", "s_client", "-connect", f"{HERE}:{port}"]
    done = subprocess.run(command, input=b"", capture_output=True)
    return b"BEGIN CERTIFICATE" in done.stdout


def value_of(fleet: Path, name: str, program: str = "console") -> str:
    text = (fleet / f"web1/etc/app/{program}.env").read_text()
    return re.search(f"(?m)^{name}='?([^'\n]*)'?$", text)[1]


@pytest.fixture(autouse=True)
def closed_breakers(monkeypatch):
    monkeypatch.setattr(cache_backends, "_breakers", {})


@contextmanager
def redis_server(fleet: Path, folder: Path) -> Iterator[str]:
    """Start the fleet's Redis; return its address as the application has it."""
    port = free_port()
    conf = (fleet / "cache1/etc/redis/redis.conf").read_text()
    assert "port 0\n" in conf
    (folder / "redis.conf").write_text(
        conf.replace("tls-port 6379", f"tls-port {port}")
    )
    command = ["redis-server", str(folder / "redis.conf")]
    with running(command, folder / "redis.log", lambda: answers(port)):
        yield value_of(fleet, "GROUNDSWELL_REDIS").replace(":6379", f":{port}")


def redis_works(address: str) -> bool:
    cache = KeepAliveRedis(address, {})
    try:
        cache.set("x", "1")
    except RedisUnavailable:
        return False
    return cache.get("x") == "1"


@shows
def test_sessions_are_stored_in_a_redis_that_is_verified(
    fleet, tmp_path, shown, accepted
):
    show(fleet, fleet / "cache1/etc/redis", shown)
    with redis_server(fleet, tmp_path) as address:
        assert redis_works(address) is accepted
        # Nothing is said in plain text.
        assert not redis_works(address.replace("rediss:", "redis:").partition("?")[0])
        # The twin: a client that does not verify says its password to anybody.
        assert redis_works(f"{address}&ssl_cert_reqs=none&ssl_check_hostname=false")


@shows
def test_memcached_is_verified(fleet, tmp_path, settings, shown, accepted):
    show(fleet, fleet / "cache1/etc/memcached", shown)
    ini = (fleet / "cache1/etc/memcached/supervisor.ini").read_text()
    command = shlex.split(re.search("command = (.*)", ini)[1])
    port = free_port()
    command[command.index("11211")] = str(port)
    if ROOT:
        command += ["-u", "root"]
    with running(command, tmp_path / "log", lambda: answers(port)):
        ca = value_of(fleet, "GROUNDSWELL_CA")
        assert memcached_works(port, ca) is accepted
        assert not memcached_works(port, ca="")
        settings.CACHES = caches(port, ca)
        assert is_seen(check_memcached) is accepted


def is_seen(check: Callable[[], Answer]) -> bool:
    """Return whether /readyz says that a server is there."""
    with suppress(OSError):
        return check().ok is True
    return False


def caches(port: int, ca: str) -> dict[str, dict[str, Any]]:
    addresses = [f"{HERE}:{port}"]
    return servers.caches(memcached=addresses, redis="", messages_redis="", ca=ca)


def memcached_works(port: int, ca: str) -> bool:
    configured = caches(port, ca)["default"]
    cache = KeepAliveMemcached(configured["LOCATION"], configured)
    cache.set("x", "1")
    return cache.get("x") == "1"


def test_the_broker_is_verified(fleet, tmp_path, settings):
    """One server, because RabbitMQ takes seconds to start."""
    etc = fleet / "queue1/etc/rabbitmq"
    ports = {"5671": free_port(), "25672": free_port(), "4371": free_port()}
    for name in ("rabbitmq.conf", "start"):
        text = (etc / name).read_text()
        for usual, port in ports.items():
            text = re.sub(rf"\b{usual}\b", str(port), text)
        (etc / name).write_text(text.replace("groundswell@", f"g{ports['5671']}@"))
    epmd = ["/usr/bin/epmd", "-port", str(ports["4371"]), "-address", HERE]
    port = ports["5671"]
    with ExitStack() as stack:
        stack.enter_context(running(epmd, tmp_path / "epmd", lambda: True))
        command = ["sh", str(etc / "start")]
        stack.enter_context(running(command, tmp_path / "log", lambda: answers(port)))
        address = value_of(fleet, "GROUNDSWELL_BROKER").replace("5671", str(port))
        ca = value_of(fleet, "GROUNDSWELL_CA")
        tls = tls_settings(address, ca)
        assert broker_works(address, tls)
        settings.CELERY_BROKER_URL = address
        settings.CELERY_BROKER_USE_SSL = tls
        assert is_seen(check_rabbitmq)
        foreign_tls = {**tls, "ca_certs": str(fleet / "another/ca.pem")}
        assert not broker_works(address, foreign_tls)
        settings.CELERY_BROKER_USE_SSL = foreign_tls
        assert not is_seen(check_rabbitmq)
        # It has no listener for plain text.
        assert not broker_works(address.replace("amqps:", "amqp:"), tls=False)
        # The certificate lacks this name, so it is another host's.
        address = address.replace(HERE, "localhost")
        tls = tls_settings(address, ca)
        assert not broker_works(address, tls)
        # The twin: any certificate of the authority would do.
        del tls["server_hostname"]
        assert broker_works(address, tls)


def tls_settings(address: str, ca: str) -> dict[str, object]:
    """Return what the application's settings say about the broker."""
    program = "import json; from settings import stack"
    program += "; print(json.dumps(stack.CELERY_BROKER_USE_SSL))"
    environment = {
        **os.environ,
        "GROUNDSWELL_SECRET_KEY": "x",
        "GROUNDSWELL_ACCESS_CODE_KEYS": "1=x",
        "GROUNDSWELL_HOSTS": "x.example.org",
        "GROUNDSWELL_TIME_ZONE": "UTC",
        "GROUNDSWELL_BROKER": address,
        "GROUNDSWELL_CA": ca,
    }
    command = [sys.executable, "-c", program]
    return json.loads(subprocess.check_output(command, env=environment, cwd=REPOSITORY))


def broker_works(address: str, tls: dict[str, object] | bool) -> bool:
    with closing(Connection(address, ssl=tls, connect_timeout=3)) as connection:
        try:
            connection.connect()
        except OSError:
            return False
    return True


@pytest.fixture
def database(fleet, shown) -> Iterator[tuple[Path, int]]:
    """Start PostgreSQL with a certificate."""
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    shutil.chown(folder, USER)
    programs = postgresql_programs()
    port = free_port()
    as_user = ["runuser", "-u", USER, "--"] if ROOT else []
    initdb = [programs / "initdb", "-D", folder / "data", "-U", "postgres"]
    options = ["--no-sync", "--auth=trust"]
    subprocess.run([*as_user, *initdb, *options], check=True, capture_output=True)
    (folder / "data/pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
    command = [str(programs / "postgres"), "-D", str(folder / "data")]
    command += ["-c", f"port={port}", "-c", "ssl=on", "-c", "fsync=off"]
    command += ["-c", f"unix_socket_directories={folder}"]
    show(fleet, folder, shown)
    for kind, name in (("pem", "ssl_cert_file"), ("key", "ssl_key_file")):
        shutil.chown(folder / f"certificate.{kind}", USER)
        command += ["-c", f"{name}={folder}/certificate.{kind}"]

    def is_ready() -> bool:
        try:
            make_role(port)
        except psycopg2.OperationalError:
            return False
        return True

    with running(command, folder / "log", is_ready, user=USER if ROOT else None):
        yield folder, port
    shutil.rmtree(folder)


def make_role(port: int) -> None:
    with closing(
        psycopg2.connect(host=HERE, port=port, user="postgres", dbname="postgres")
    ) as connection:
        connection.autocommit = True
        connection.cursor().execute("CREATE ROLE taking LOGIN")


@shows
def test_pgbouncer_verifies_postgresql(fleet, database, accepted):
    folder, database_port = database
    port = free_port()
    etc = fleet / "web1/etc/pgbouncer"
    ini = (etc / "pgbouncer.ini").read_text()
    assert "server_tls_sslmode = verify-full\n" in ini
    for old, new in {
        "port=5432 dbname=groundswell": f"port={database_port} dbname=postgres",
        "listen_port = 6432": f"listen_port = {port}",
        str(fleet / "web1/run"): str(folder),
        str(etc): str(folder),
        "query_wait_timeout = 4": "query_wait_timeout = 1",
        value_of(fleet, "GROUNDSWELL_CA"): f"{folder}/ca.pem",
    }.items():
        assert old in ini
        ini = ini.replace(old, new)
    (folder / "pgbouncer.ini").write_text(ini)
    shutil.copy(etc / "users.txt", folder)
    shutil.copy(value_of(fleet, "GROUNDSWELL_CA"), folder / "ca.pem")
    for path in folder.glob("*.*"):
        shutil.chown(path, USER)
    command = ["/usr/sbin/pgbouncer", str(folder / "pgbouncer.ini")]
    log, socket = folder / "pgbouncer.log", folder / f".s.PGSQL.{port}"
    password = value_of(fleet, "GROUNDSWELL_DATABASE_PASSWORD", "taking")
    address = {"host": str(folder), "port": port, "dbname": "taking", "user": "taking"}
    with running(command, log, socket.exists, user=USER if ROOT else None):
        try:
            connection = psycopg2.connect(**address, password=password)
        except psycopg2.OperationalError:
            assert not accepted
            assert "TLS handshake" in log.read_text()
            return
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            assert cursor.fetchone() == (True,)
    assert accepted


@shows
def test_migrations_verify_postgresql(fleet, database, accepted):
    """They go by HAProxy's address of their host, which the certificate has."""
    _, port = database
    configured = servers.postgresql(
        host=HERE,
        port=port,
        name="postgres",
        user="taking",
        password="",
        ca=value_of(fleet, "GROUNDSWELL_CA", "manage"),
    )
    address = {"host": HERE, "port": port, "user": "taking", "dbname": "postgres"}
    try:
        psycopg2.connect(**address, **configured["OPTIONS"]).close()
    except psycopg2.OperationalError as error:
        assert not accepted
        assert re.search("certificate verify failed|does not match host", str(error))
    else:
        assert accepted
    # The twin: without the authority, it says its password to any server.
    psycopg2.connect(**address).close()

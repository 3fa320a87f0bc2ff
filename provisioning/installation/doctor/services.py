"""Checks of programs: the supervisor's, caches, queue, nginx, and what listens."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import IO

from provisioning.commands import fetch
from provisioning.installation.doctor.findings import (
    ERROR,
    WARNING,
    Facts,
    Finding,
    Server,
    Unavailable,
    call,
    size,
)
from provisioning.installation.stack_folder import addresses_of
from provisioning.installation.supervisor import Supervisor
from provisioning.monitoring import thresholds

# Ends of one program within so many minutes that are no accident.
LOOP_ENDS, LOOP_MINUTES = 3, 15
# What Debian's programs and the owner may offer: SSH, and DHCP's own clients.
OPEN_PORTS = frozenset({22, 80, 443})
EXIT = re.compile(r"^([\d-]+ [\d:]+),\d+ \w+ exited: (\S+)", re.MULTILINE)
# States of TCP in /proc/net/tcp.
LISTENS = "0A"
SETTINGS = ("maxmemory", "maxmemory-policy", "save", "appendonly")
UNITS = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def read_programs(server: Server) -> Facts:
    socket.setdefaulttimeout(5)
    supervisor = Supervisor(server.home)
    try:
        programs = supervisor.programs()
    except OSError:
        return {"runs": False, "stopped": [], "workers": 0, "ends": {}, "healthz": 0}
    log = server.home / "log" / "supervisord.log"
    text = log.read_text(errors="replace")[-200_000:] if log.exists() else ""
    since = time.time() - LOOP_MINUTES * 60
    ends = Counter(
        program
        for at, program in EXIT.findall(text)
        if datetime.strptime(at, "%Y-%m-%d %H:%M:%S").timestamp() > since
    )
    return {
        "runs": True,
        "stopped": [
            [each["name"], each["statename"].lower()]
            for each in programs
            if each["statename"] != "RUNNING"
        ],
        "workers": sum(
            each["statename"] == "RUNNING" and each["name"].endswith("worker")
            for each in programs
        ),
        "ends": dict(ends),
        "healthz": fetch(f"{addresses_of(server.home)['monitoring']}healthz")[0],
    }


def judge_programs(server: Server, facts: Facts) -> Iterator[Finding]:
    start = (
        "sudo systemctl start groundswell"
        if server.is_installed
        else "provisioning/stack up"
    )
    if not facts["runs"]:
        yield Finding(
            "programs.supervisor",
            ERROR,
            "No program runs: the supervisor does not answer",
            f"{start}; then journalctl -u groundswell",
        )
        return
    for name, state in facts["stopped"]:
        yield Finding(
            "programs.stopped",
            ERROR,
            f"The program {name} does not run ({state})",
            f"{server.command}/stack logs {name} says why; {server.home}/etc/start"
            f" {name} starts it",
        )
    for name, number in facts["ends"].items():
        if number >= LOOP_ENDS:
            yield Finding(
                "programs.loop",
                ERROR,
                f"The program {name} has ended {number} times in {LOOP_MINUTES}"
                " minutes, and is started again and again",
                f"{server.command}/stack logs {name} says why it ends",
            )
    if not facts["workers"]:
        yield Finding(
            "jobs.workers",
            ERROR,
            "No worker runs: rosters, exports, e-mails and response rates wait",
            f"{server.command}/stack logs worker; then {start}",
        )
    if facts["healthz"] != 200:
        yield Finding(
            "programs.healthz",
            ERROR,
            "The application does not answer nginx"
            + (f" (status {facts['healthz']})" if facts["healthz"] else ""),
            f"{server.command}/stack logs taking_0, then {server.command}/stack reload",
        )


def redis(path: Path, *commands: tuple[str, ...]) -> list[str]:
    """Return the replies to commands of Redis. Raises OSError if it is away."""
    replies = []
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(4)
        connection.connect(str(path))
        with connection.makefile("rb") as file:
            for command in commands:
                parts = "".join(f"${len(part)}\r\n{part}\r\n" for part in command)
                connection.sendall(f"*{len(command)}\r\n{parts}".encode())
                replies.append(read_reply(file))
    return replies


def read_reply(file: IO[bytes]) -> str:
    """Read one reply of Redis as text: lines of an array are joined by spaces."""
    line = file.readline().decode().strip()
    if line.startswith("$"):
        length = int(line[1:])
        return file.read(length + 2)[:-2].decode() if length >= 0 else ""
    if line.startswith("*"):
        return " ".join(read_reply(file) for _ in range(int(line[1:])))
    return line


def read_redis(server: Server) -> Facts:
    facts: Facts = {}
    for name in ("redis", "redis-messages"):
        file = server.home / "etc" / name / "redis.conf"
        if not file.exists():
            continue
        if re.search(r"^requirepass", file.read_text(), re.M):
            continue
        wanted = {}
        for line in file.read_text().splitlines():
            setting, _, value = line.partition(" ")
            if setting in SETTINGS:
                wanted[setting] = in_bytes(value.strip('"'))
        try:
            info, *present = redis(
                server.home / "run" / f"{name}.sock",
                ("INFO",),
                *(("CONFIG", "GET", setting) for setting in wanted),
            )
        except OSError as error:
            facts[name] = {"problem": error.strerror or type(error).__name__}
            continue
        figures = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        facts[name] = {
            "problem": "",
            "used": int(figures.get("used_memory", 0)),
            "most": int(figures.get("maxmemory", 0)),
            "policy": figures.get("maxmemory_policy", ""),
            "write_failed": "err"
            in (
                figures.get("rdb_last_bgsave_status"),
                figures.get("aof_last_write_status"),
            ),
            "differs": [
                [setting, reply.partition(" ")[2], value]
                for (setting, value), reply in zip(wanted.items(), present, strict=True)
                if reply.partition(" ")[2] != value
            ],
        }
    return facts


def in_bytes(value: str) -> str:
    """Return "268435456" for "256mb", as Redis itself writes it."""
    unit = UNITS.get(value[-2:].lower())
    return str(int(value[:-2]) * unit) if unit and value[:-2].isdecimal() else value


def judge_redis(server: Server, facts: Facts) -> Iterator[Finding]:
    for name, figures in facts.items():
        if figures["problem"]:
            yield Finding(
                "redis.down",
                ERROR,
                f"{name} does not answer: {figures['problem']}",
                f"{server.command}/stack logs {name}; pages are saved meanwhile, new"
                " logins wait",
            )
            continue
        evicts = figures["policy"] != "noeviction"
        if (
            figures["most"]
            and not evicts
            and (figures["used"] > thresholds.REDIS_FULL * figures["most"])
        ):
            yield Finding(
                "redis.full",
                ERROR,
                f"{name} has used {size(figures['used'])} of {size(figures['most'])}:"
                " at its limit nobody new gets in",
                "a larger limit: --set redis_maxmemory=…; provisioning/run capacity",
            )
        for setting, present, wanted in figures["differs"]:
            yield Finding(
                "redis.settings",
                WARNING,
                f"{name} runs with {setting} {present or '(empty)'} instead of"
                f" {wanted or '(empty)'}: it may end sessions, or stop for its disk",
                f"{server.command}/install (or stack up) starts it as configured",
            )
        if figures["write_failed"]:
            yield Finding(
                "redis.persistence",
                WARNING,
                f"{name} can't write its data to the disk",
                "is the disk full? It needs no file: CONFIG SET save ''",
            )


def read_memcached(server: Server) -> Facts:
    path = server.home / "run" / "memcached.sock"
    try:
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.settimeout(4)
            connection.connect(str(path))
            connection.sendall(b"version\r\n")
            answers = connection.recv(100).startswith(b"VERSION")
    except OSError as error:
        return {"problem": error.strerror or type(error).__name__}
    return {"problem": "" if answers else "another program answers"}


def judge_memcached(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["problem"]:
        yield Finding(
            "memcached.down",
            WARNING,
            f"Memcached does not answer ({facts['problem']}): pages are slower",
            f"{server.command}/stack logs memcached; pages are saved meanwhile",
        )


def read_queue(server: Server) -> Facts:
    """Connect to RabbitMQ, and read its greeting to a wrong header."""
    if not server.has_queue:
        return {"problem": ""}
    broker = ""
    with suppress(OSError):
        text = (server.home / "etc" / "app" / "worker.env").read_text()
        broker = next(
            (li for li in text.splitlines() if "GROUNDSWELL_BROKER=" in li), ""
        )
    # The password is between, and is not read.
    place = re.search(r"@([^:/@]+):(\d+)", broker)
    address = (place[1], int(place[2])) if place else ("127.0.0.1", 5672)
    try:
        with closing(socket.create_connection(address, 4)) as connection:
            connection.sendall(b"AMQP\x09\x09\x09\x09")
            answers = connection.recv(8).startswith(b"AMQP")
    except OSError as error:
        return {"problem": error.strerror or type(error).__name__}
    return {"problem": "" if answers else "another program answers"}


def judge_queue(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["problem"]:
        yield Finding(
            "queue.down",
            WARNING,
            f"RabbitMQ does not answer ({facts['problem']}): jobs wait",
            f"{server.command}/stack logs rabbitmq; pages are saved meanwhile, and no"
            " job is lost",
        )


def read_nginx(server: Server) -> Facts:
    configuration = server.home / "etc" / "nginx" / "nginx.conf"
    if os.geteuid() != 0 and server.is_installed:
        raise Unavailable("only root may read it")
    status, printed = call(
        [shutil.which("nginx") or "/usr/sbin/nginx", "-t", "-q"]
        + ["-e", "stderr", "-c", configuration]
    )
    return {"problem": printed.partition("] ")[2] or printed if status else ""}


def judge_nginx(server: Server, facts: Facts) -> Iterator[Finding]:
    if facts["problem"]:
        yield Finding(
            "nginx.configuration",
            ERROR,
            f"nginx can't read its configuration: {facts['problem']}. It goes on with"
            " the old one until its next start",
            f"{server.command}/install writes it anew",
        )


def read_ports(server: Server) -> Facts:
    """Read which ports others may reach, and which the firewall closes."""
    listening = set()
    for name in ("tcp", "tcp6"):
        file = Path("/proc/net") / name
        for line in file.read_text().splitlines()[1:] if file.exists() else ():
            _, local, _, state, *_ = line.split()
            address, _, port = local.partition(":")
            if state == LISTENS and not is_loopback(address):
                listening.add(int(port, 16))
    rules = server.home / "etc" / "firewall" / "rules.nft"
    status, table = call(["nft", "list", "table", "inet", "groundswell"])
    return {
        "listening": sorted(listening),
        "guarded": sorted(guarded_ports(rules.read_text()) if rules.exists() else ()),
        "closed": sorted(guarded_ports(table) if status == 0 else ()),
        "missing": "" if status == 0 else table,
    }


def is_loopback(address: str) -> bool:
    """Tell of an address as /proc/net/tcp has it: words in the machine's order."""
    words = [address[at : at + 8] for at in range(0, len(address), 8)]
    number = b"".join(bytes.fromhex(word)[::-1] for word in words)
    parsed = ip_address(number)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)


def guarded_ports(rules: str) -> set[int]:
    dropped = re.findall(r"^\s*tcp dport \{?([\d, ]+)\}? drop", rules, re.MULTILINE)
    return {int(port) for ports in dropped for port in ports.split(",")}


def judge_ports(server: Server, facts: Facts) -> Iterator[Finding]:
    if missing := set(facts["guarded"]) - set(facts["closed"]):
        yield Finding(
            "firewall.off",
            ERROR,
            "The firewall is off: nothing closes the ports"
            f" {', '.join(map(str, sorted(missing)))}",
            "sudo systemctl restart groundswell-firewall",
        )
    for port in facts["listening"]:
        if port not in OPEN_PORTS and port not in facts["closed"]:
            yield Finding(
                "ports.open",
                WARNING,
                f"A program listens on port {port}, and other machines may reach it",
                f"sudo ss -ltnp 'sport = :{port}' names it: stop it, let it listen on"
                " 127.0.0.1, or close the port in your own firewall",
            )

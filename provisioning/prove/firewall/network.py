"""The network of the measurement: a host with a firewall, and respondents."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from provisioning.commands import Refusal, output_of
from provisioning.installation.playbook import (
    ANSIBLE,
    ansible_environment,
    playbook_command,
)
from provisioning.prove.failovers.host import Host, run

ADDRESS = "10.0.0.1"
PORT = 8480
# The firewall counts connections by address: those that idle have one of their own.
RESPONDENTS, SCHOOL = "10.0.0.98", "10.0.0.99"
CLONE_NEWNET = 0x40000000
PROC = Path("/proc/sys/net")
HOSTS = """
fleet:
  hosts:
    web1: {{ansible_host: {address}}}
  children:
    failover: {{hosts: {{web1: }}}}
    cache: {{hosts: {{web1: }}}}
    queue: {{hosts: {{web1: }}}}
    web: {{hosts: {{web1: }}}}
    worker: {{hosts: {{web1: }}}}
    load: {{hosts: {{}}}}
"""
TABLE = "inet groundswell"
# Of an entry that lasts longer than the measurement.
ENTRY_SECONDS = 900
PORTS_OF_ADDRESS = 60_000
# Entries that may end between two looks.
SPARE = 100


def connect_respondents(folder: Path) -> Host:
    """Make the namespace that requests come from, and connect it to this one."""
    run("ip link set lo up")
    run("ip link add bridge type bridge")
    run(f"ip address add {ADDRESS}/24 dev bridge")
    run("ip link set bridge up")
    host = Host.connected("people", RESPONDENTS, folder / "people")
    host.run(f"ip address add {SCHOOL}/24 dev eth0")
    return host


@contextmanager
def network_of(host: Host) -> Iterator[None]:
    """Let this process, and those that it starts, be in another network."""
    with (
        Path("/proc/self/ns/net").open() as here,
        Path(f"/proc/{host.holder.pid}/ns/net").open() as there,
    ):
        enter(there.fileno())
        try:
            yield
        finally:
            enter(here.fileno())


def enter(network: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "The network can't be entered")


# Rules


def write_rules(folder: Path) -> Path:
    """Write the rules of a fleet whose servers are all on this host."""
    inventory = folder / "inventory"
    inventory.mkdir()
    (inventory / "hosts.yml").write_text(HOSTS.format(address=ADDRESS))
    example = ANSIBLE / "inventories" / "fleet.example"
    (inventory / "group_vars").symlink_to(example / "group_vars")
    variables: dict[str, object] = {
        "files_only": True,
        "home": str(folder / "rules"),
        "secrets": str(folder / "secrets"),
        "server_user": "",
        "encrypts": False,
        "gathers_facts": False,
        "public_ports": [PORT],
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
    }
    roles = "primary,replica,failover,backup,cache,queue,haproxy,pgbouncer,application"
    command = playbook_command(
        f"--inventory={inventory}",
        "--tags=files",
        f"--skip-tags={roles},web,worker,load,chrony,kernel",
        variables=variables,
    )
    output_of(
        command,
        failing="Ansible writes no rules",
        env=ansible_environment(folder),
        cwd=ANSIBLE,
    )
    return folder / "rules" / "etc" / "firewall" / "rules.nft"


def load_rules(rules: Path, *, tracks_everything: bool) -> None:
    nft("--file", str(rules))
    if tracks_everything:
        for chain in ("untracked_in", "untracked_out"):
            nft("flush", "chain", *TABLE.split(), chain)


def remove_rules() -> None:
    with suppress(Refusal):
        nft("delete", "table", *TABLE.split())


def nft(*arguments: str) -> None:
    output_of(["nft", *arguments], failing="nftables refuses")


# The kernel's table of connections


def read_number(name: str) -> int:
    """Return a setting of the network, such as "core/somaxconn"."""
    return int((PROC / name).read_text())


def tracked() -> int:
    return read_number("netfilter/nf_conntrack_count")


def forget_connections() -> None:
    output_of(["conntrack", "--flush"], failing="The table is not emptied")


def fill_table(*, refill: bool = False) -> int:
    """Fill the table with connections that the kernel may not drop; return its size.

    `refill` fills what has become free since.
    """
    most = read_number("netfilter/nf_conntrack_max")
    numbers = range(most, 2 * most) if refill else range(most)
    # Not checked: in the end it is refused for the want of room, as it should be.
    subprocess.run(
        ["conntrack", "--load-file", "-"],
        input="\n".join(map(entry, numbers)) + "\n",
        capture_output=True,
        text=True,
    )
    if tracked() < most - SPARE:
        raise Refusal(f"The table has {tracked():,} connections of {most:,}")
    return most


def entry(number: int) -> str:
    address, port = divmod(number, PORTS_OF_ADDRESS)
    return (
        f"-I -p tcp -s 10.9.{address >> 8}.{address & 255} -d {ADDRESS}"
        f" --sport {port + 1024} --dport {PORT} --state ESTABLISHED"
        f" -u ASSURED,SEEN_REPLY -t {ENTRY_SECONDS}"
    )


# Connections


# nginx answers it alone: the connection is measured, not the application.
REQUEST = f"GET /static/none HTTP/1.1\r\nHost: {ADDRESS}:{PORT}\r\n"


def ask(connection: socket.socket, *, closes: bool = False) -> bool:
    """Return whether a request of this connection is answered."""
    lines = REQUEST + ("Connection: close\r\n\r\n" if closes else "\r\n")
    try:
        connection.sendall(lines.encode())
        return connection.recv(65536).startswith(b"HTTP/1.1 ")
    except OSError:
        return False


def connected(
    address: tuple[str, int] = (ADDRESS, PORT), *, source: str, timeout: float
) -> socket.socket | None:
    with suppress(OSError):
        return socket.create_connection(address, timeout, (source, 0))
    return None


def connections_per_second(source: str, seconds: float) -> tuple[float, int]:
    """Open connections with a request each, one after another; return those a second.

    And how many got no answer.
    """
    began, answered, failed = time.monotonic(), 0, 0
    while time.monotonic() < began + seconds:
        connection = connected(source=source, timeout=1.0)
        if connection and ask(connection, closes=True):
            answered += 1
        else:
            failed += 1
        if connection:
            connection.close()
    return answered / (time.monotonic() - began), failed


def share_connected(address: tuple[str, int], *, source: str, tries: int) -> float:
    """Return which share of new connections is accepted within a second."""
    opened = 0
    for _ in range(tries):
        if connection := connected(address, source=source, timeout=1.0):
            opened += 1
            connection.close()
    return opened / tries


@contextmanager
def idle_connections(count: int) -> Iterator[Sequence[socket.socket]]:
    """Keep so many connections of one address, each after its first request."""
    wanted = count + 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard_limit())))
    with ExitStack() as stack:
        opened: list[socket.socket] = []
        for _ in range(count):
            connection = connected(source=SCHOOL, timeout=20.0)
            if not connection or not ask(connection):
                raise Refusal(f"Connection {len(opened) + 1:,} gets no answer")
            opened.append(stack.enter_context(connection))
        yield opened


def hard_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def waiting_places(backlog: int) -> int:
    """Return how many clients may wait for a Unix socket with this backlog."""
    name = f"\0groundswell-{os.getpid()}"
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(name)
        listener.listen(backlog)
        for count in range(2 * backlog):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            if client.connect_ex(name):
                return count
    return 2 * backlog

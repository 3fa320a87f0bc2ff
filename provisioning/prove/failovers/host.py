"""One host of the drill: a network namespace, a disk, and a supervisor."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning import processes
from provisioning.commands import Refusal, output_of, wait_until
from provisioning.installation.environment import PYTHON
from provisioning.installation.postgresql import DATABASE, superuser_connection
from provisioning.installation.supervisor import Supervisor
from provisioning.prove.power_loss.disk_plugin import FLUSH_SECONDS
from provisioning.prove.power_loss.recorded_disk import DISK, mount_disk, serve_disk
from provisioning.prove.shifted_clock import shift_clock

NAME = "watchdog"
TIMEOUT = re.compile(rb"Ctimeout=(\d+)\n")
# What ends the watch, as the last that is written before the device is closed.
STOP = b"V"


class Watchdog:
    def __init__(self, device: Path, reset: Callable[[], None]) -> None:
        os.mkfifo(device)
        # Patroni's user writes there.
        device.chmod(0o622)
        self.reset = reset
        # Off, it resets nothing: a machine without a watchdog.
        self.is_on = True
        self.resets = 0
        self.timeout = 60
        # When it resets the host; None: it does not.
        self.ends: float | None = None
        # Open for both, so that it stays open when Patroni closes it.
        self.pipe = os.open(device, os.O_RDWR)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            ready, _, _ = select.select([self.pipe], [], [], 0.1)
            if ready:
                message = os.read(self.pipe, 4096)
                for seconds in TIMEOUT.findall(message):
                    self.timeout = int(seconds)
                self.ends = time.monotonic() + self.timeout
                if message.endswith(STOP):
                    self.ends = None
            elif self.ends is not None and time.monotonic() > self.ends:
                self.ends = None
                if self.is_on:
                    self.resets += 1
                    self.reset()


USER = "postgres"
DISK_SIZE = 1500 << 20
BALLAST = "ballast"
PARTITION = """
table inet partition {{
    chain input {{
        type filter hook input priority -10;
        ip saddr {{ {addresses} }} drop
    }}
    chain output {{
        type filter hook output priority -10;
        ip daddr {{ {addresses} }} drop
    }}
}}
"""


@dataclass
class Host:
    name: str
    address: str
    folder: Path
    # Keeps the namespace while nothing else runs in it.
    holder: subprocess.Popen[bytes]
    supervisor: subprocess.Popen[bytes] | None = None
    clock: ShiftedClock | None = None
    watchdog: Watchdog | None = None

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    @classmethod
    def connected(cls, name: str, address: str, folder: Path) -> Host:
        """Make the namespace, and connect it to the bridge."""
        holder = processes.start_process(["unshare", "--net", "sleep", "infinity"])
        here = os.readlink("/proc/self/ns/net")
        place = Path(f"/proc/{holder.pid}/ns/net")
        wait_until(lambda: os.readlink(place) != here, seconds=10)
        host = cls(name, address, folder, holder)
        run(f"ip link add {name} type veth peer name eth0 netns {holder.pid}")
        run(f"ip link set {name} master bridge up")
        host.run(f"ip address add {address}/24 dev eth0")
        host.run("ip link set eth0 up")
        host.run("ip link set lo up")
        return host

    # Programs

    def inside(self, *command: str | Path) -> list[str]:
        """Return a command that runs in this host's network."""
        network = f"--net=/proc/{self.holder.pid}/ns/net"
        return ["nsenter", network, *map(str, command)]

    def run(self, command: str, env: dict[str, str] | None = None) -> str:
        failing = f"{self.name}: {command}"
        return output_of(self.inside(*command.split()), failing=failing, env=env)

    def mount_disk(self) -> None:
        """Mount a separate disk for the data, whose flushes can be slowed down."""
        data = self.folder / "data"
        serve_disk(self.disk, DISK_SIZE)
        mount_disk(self.disk / DISK, data)
        run(f"chown {USER}:{USER} {data}")

    def start(self) -> None:
        command = [str(PYTHON.with_name("supervisord")), "--nodaemon"]
        settings = f"--configuration={self.folder}/etc/supervisord.conf"
        self.supervisor = processes.start_process(
            self.inside(*command, settings),
            output=subprocess.DEVNULL,
            cwd=self.folder,
            env=os.environ,
        )

    def pids(self) -> list[int]:
        """Return the supervisor, then every other program of the host.

        By their network: Patroni is not the parent of PostgreSQL.
        """
        assert self.supervisor is not None  # noqa: S101
        network = os.readlink(f"/proc/{self.holder.pid}/ns/net")
        members = []
        for pid in processes.all_stats():
            # A process may end in between.
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/net") == network:
                    members.append(pid)
        first = self.supervisor.pid
        return [first, *(pid for pid in members if pid not in (first, self.holder.pid))]

    def patroni(self) -> list[int]:
        with closing(Supervisor(self.folder)) as supervisor:
            return supervisor.pids("database")

    def postmasters(self) -> list[int]:
        return [
            pid
            for pid in self.pids()
            if "bin/postgres -D" in processes.command_line(pid)
        ]

    def kill(self) -> None:
        """Kill every program as the loss of the machine would; none comes back."""
        if self.watchdog:
            self.watchdog.ends = None
        supervisor, *programs = self.pids()
        processes.send_signal([supervisor], signal.SIGSTOP)
        processes.kill_together(programs)

    def suspend(self) -> None:
        processes.send_signal(self.pids(), signal.SIGSTOP)

    def resume(self) -> None:
        processes.send_signal(reversed(self.pids()), signal.SIGCONT)
        # The supervisor gives up programs that can't start on a full disk.
        with suppress(OSError), closing(Supervisor(self.folder)) as supervisor:
            for program in supervisor.programs():
                if program["statename"] in ("FATAL", "EXITED", "STOPPED"):
                    supervisor.calls.startProcess(
                        f"{program['group']}:{program['name']}", False
                    )

    # Network, disk and clock

    def partition(self, addresses: list[str]) -> None:
        """Drop all packets from and to these addresses."""
        rules = PARTITION.format(addresses=", ".join(addresses))
        output_of(
            self.inside("nft", "--file", "-"),
            failing="nftables refuses the partition",
            input_text=rules,
        )

    def disconnect(self) -> None:
        run(f"ip link set {self.name} down")

    def reconnect(self) -> None:
        run(f"ip link set {self.name} up")
        with suppress(Refusal):
            self.run("nft delete table inet partition")

    def fill_disk(self) -> None:
        data = self.folder / "data"
        free = os.statvfs(data)
        # fallocate alone leaves what is kept for the file system's own tables.
        with (data / BALLAST).open("wb") as file:
            with suppress(OSError):
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)
            with suppress(OSError):
                while True:
                    os.write(file.fileno(), bytes(4096))

    def empty_disk(self) -> None:
        (self.folder / "data" / BALLAST).unlink(missing_ok=True)

    def slow_down_disk(self, seconds: float) -> None:
        """Let each flush take so long, until `speed_up_disk` also ends the last."""
        (self.disk / FLUSH_SECONDS).write_text(f"{seconds}")

    def speed_up_disk(self) -> None:
        (self.disk / FLUSH_SECONDS).unlink(missing_ok=True)

    def shift_clock(self, seconds: int) -> None:
        """Let the host's programs read another time of day; 0: the right one."""
        if self.clock:
            self.clock.stop()
            shift_clock(self.pids(), 0)
        self.clock = ShiftedClock(self, seconds) if seconds else None

    # PostgreSQL, by its socket: no partition is in the way

    def connect(self, database: str = DATABASE) -> Any:
        return superuser_connection(self.folder / "run", database=database, patience=2)

    def query(self, sql: str) -> Any:
        """Return the first row; None if there is none, or no answer."""
        import psycopg2

        with suppress(psycopg2.Error), closing(self.connect("postgres")) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SET statement_timeout = '2s'; {sql}")
            return cursor.fetchone()
        return None


class ShiftedClock:
    """Another time of day for a host's programs, also those that start later."""

    def __init__(self, host: Host, seconds: int) -> None:
        shift_clock(host.pids(), seconds)
        self.is_over = threading.Event()
        self.thread = threading.Thread(
            target=self._keep, args=[host, seconds], daemon=True
        )
        self.thread.start()

    def _keep(self, host: Host, seconds: int) -> None:
        while not self.is_over.wait(0.05):
            # One that waits for its disk can't be stopped now.
            with suppress(Refusal):
                shift_clock(host.pids(), seconds)

    def stop(self) -> None:
        self.is_over.set()
        self.thread.join()


def run(command: str) -> None:
    output_of(command.split(), failing=command)

"""Hosts of a fleet: each a machine of its own, all of them at one switch.

The switch is a bridge in a network namespace, and the way out of it is slirp4netns. A
host has its own changes on top of one fresh Debian.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import output_of
from provisioning.processes import start_process, stop_process
from provisioning.prove.installing.machine import NAME_SERVER, Machine

SWITCH = "switch"
GATEWAY = "10.0.0.1"
# Hosts reach package registries by the address that slirp4netns gives to the switch.
MASQUERADE = """
table ip outside {
    chain postrouting {
        type nat hook postrouting priority srcnat;
        oifname tap0 masquerade
    }
}
"""


def in_namespace(name: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", name, *command]


def run(command: str, *, at: str = "", input_text: str | None = None) -> str:
    """Run a command, in a network namespace if one is named."""
    words = command.split()
    return output_of(
        in_namespace(at, *words) if at else words,
        failing=command,
        input_text=input_text,
    )


class Switch:
    """The network of all hosts; who drills is connected to it."""

    def __init__(self, folder: Path) -> None:
        run(f"ip netns add {SWITCH}")
        run("ip link set lo up", at=SWITCH)
        run("ip link add bridge type bridge", at=SWITCH)
        run(f"ip address add {GATEWAY}/24 dev bridge", at=SWITCH)
        run("ip link set bridge up", at=SWITCH)
        run("sysctl -q net.ipv4.ip_forward=1", at=SWITCH)
        run("nft --file -", at=SWITCH, input_text=MASQUERADE)
        with (folder / "switch.log").open("w") as log:
            start_process(
                ["slirp4netns", "--configure", "--netns-type=path"]
                + [f"/run/netns/{SWITCH}", "tap0"],
                output=log,
            )


@dataclass
class Host(Machine):
    """A host of the fleet, by its name and address."""

    base: Path = Path()
    address: str = ""
    # Folders outside that lie at these places in it, as a file server's would.
    shared: Sequence[tuple[Path, str]] = ()

    @property
    def changes(self) -> Path:
        return self.folder / "changes"

    @property
    def label(self) -> str:
        """Return how it calls itself."""
        return self.name.rpartition("-")[2]

    def prepare(self) -> None:
        """Make its root; what is written there before its start is on its disk."""
        for path in (self.changes, self.folder / "work", self.root):
            path.mkdir(parents=True)
        run(
            f"mount -t overlay overlay -o lowerdir={self.base},"
            f"upperdir={self.changes},workdir={self.folder}/work {self.root}"
        )
        (self.root / "etc/hostname").write_text(f"{self.label}\n")
        (self.root / "etc/hosts").write_text(f"127.0.0.1 localhost {self.label}\n")
        (self.root / "etc/resolv.conf").write_text(f"nameserver {NAME_SERVER}\n")

    def power_on(self) -> None:
        """Connect it to the switch, and let it boot.

        Not from another thread: what that starts ends with it. Its card is the same
        after each start, as a machine's is: a new one would be unknown for eight
        seconds to who remembers the former.
        """
        run(f"ip netns add {self.name}")
        number = ":".join(f"{int(part):02x}" for part in self.address.split("."))
        card = f"eth0 address 02:00:{number} netns {self.name}"
        run(f"ip link add {self.label} type veth peer name {card}", at=SWITCH)
        run(f"ip link set {self.label} master bridge up", at=SWITCH)
        for command in (
            "ip link set lo up",
            f"ip address add {self.address}/24 dev eth0",
            "ip link set eth0 up",
            f"ip route add default via {GATEWAY}",
        ):
            run(command, at=self.name)
        super().power_on()

    def processes(self) -> list[subprocess.Popen[bytes]]:
        return [self.container]

    def mounts(self) -> list[str]:
        return [f"--bind={folder}:{place}" for folder, place in self.shared]

    def kill(self) -> float:
        """Lose it as by a power cut; return when.

        Its cable goes first: a machine without power tells nobody that its connections
        are closed. Its network and firewall are made anew at the next start.
        """
        began = time.time()
        run(f"ip link set {self.label} down", at=SWITCH)
        self.cut_power()
        self.remove_network()
        return began

    def cut_power(self) -> None:
        if leader := self.leader:
            with suppress(ProcessLookupError):
                os.kill(leader, signal.SIGKILL)
        stop_process(self.container)

    def remove_network(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True)
        # It would end with the namespace, and a moment later.
        subprocess.run(
            in_namespace(SWITCH, "ip", "link", "delete", self.label),
            capture_output=True,
        )

"""Mount a file system on a disk that records every write and flush."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provisioning.commands import Refusal, output_of, wait_until
from provisioning.power_loss_images import recorder
from provisioning.processes import start_process, stop_process

SIZE = 2 << 30
# All blocks of the disk are written as a whole, or not at all.
BLOCK = 4096
FORMAT = ("mkfs.ext4", "-q", "-F", f"-b{BLOCK}", "-Jsize=32", "-Enodiscard")


@contextmanager
def recorded_disk(folder: Path, mounted_at: Path) -> Iterator[Path]:
    """Mount an empty ext4 over a folder; yield the log of its disk.

    nbdkit serves the disk, nbdfuse shows it as a file, and a loop device on that
    file hands over each flush of the file system. Call it in a mount namespace
    of its own: then nothing remains of it, however this process ends.
    """
    served = folder / "served"
    served.mkdir(parents=True)
    with (folder / "content").open("wb") as file:
        file.truncate(SIZE)
    nbdfuse = ["nbdfuse", f"{served}/disk", "--command", "nbdkit", "-s"]
    plugin = ["--exit-with-parent", "python", recorder.__file__, f"folder={folder}"]
    with (folder / "server.log").open("wb") as output:
        server = start_process([*nbdfuse, *plugin], output=output)
    try:
        if not wait_until((served / "disk").exists, seconds=20):
            raise Refusal(f"nbdfuse: {(folder / 'server.log').read_text().strip()}")
        mount_disk(served / "disk", mounted_at)
        try:
            yield folder / "log"
        finally:
            output_of(["umount", mounted_at], failing="The disk stays mounted")
    finally:
        subprocess.run(["umount", served], capture_output=True)
        stop_process(server)
        os.unlink(folder / "content")


def mount_disk(file: Path, mounted_at: Path) -> None:
    output_of([*FORMAT, file], failing="mkfs.ext4 failed")
    attach = ["losetup", "--find", "--show", f"--sector-size={BLOCK}", str(file)]
    device = output_of(attach, failing="No loop device").strip()
    try:
        output_of(["mount", device, mounted_at], failing="The disk is not mounted")
    finally:
        # It stays until the file system is unmounted, by whomever.
        output_of(["losetup", "--detach", device], failing="The device stays")
    (mounted_at / "lost+found").rmdir()

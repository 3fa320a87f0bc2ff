"""Mount a file system on a disk that records every write and flush."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provisioning.commands import Refusal, output_of, wait_until
from provisioning.processes import start_process, stop_process
from provisioning.prove.power_loss import disk_plugin
from provisioning.prove.power_loss.disk_plugin import CONTENT, LOG

SIZE = 2 << 30
# In the folder of a disk: the file that stands for it.
DISK = "served/disk"
# All blocks of the disk are written as a whole, or not at all.
BLOCK = 4096
FORMAT = ("mkfs.ext4", "-q", "-F", f"-b{BLOCK}", "-Jsize=32", "-Enodiscard")


@contextmanager
def recorded_disk(folder: Path, mounted_at: Path) -> Iterator[Path]:
    """Mount an empty ext4 over a folder; yield the log of its disk.

    Call it in a mount namespace of its own: then nothing remains of it, however
    this process ends.
    """
    server = serve_disk(folder, SIZE, "records=yes")
    try:
        mount_disk(folder / DISK, mounted_at)
        try:
            yield folder / LOG
        finally:
            output_of(["umount", mounted_at], failing="The disk stays mounted")
    finally:
        subprocess.run(["umount", (folder / DISK).parent], capture_output=True)
        stop_process(server)
        os.unlink(folder / CONTENT)


def serve_disk(folder: Path, size: int, *options: str) -> subprocess.Popen[bytes]:
    """Make a disk of which our plugin of nbdkit sees each request.

    nbdkit serves the disk, nbdfuse shows it as a file, and a loop device on that
    file hands over each flush of the file system.
    """
    served = folder / DISK
    served.parent.mkdir(parents=True)
    with (folder / CONTENT).open("wb") as file:
        file.truncate(size)
    nbdfuse = ["nbdfuse", str(served), "--command", "nbdkit", "-s"]
    plugin = ["--exit-with-parent", "python", disk_plugin.__file__, f"folder={folder}"]
    with (folder / "server.log").open("wb") as output:
        server = start_process([*nbdfuse, *plugin, *options], output=output)
    if not wait_until(served.exists, seconds=20):
        stop_process(server)
        raise Refusal(f"nbdfuse: {(folder / 'server.log').read_text().strip()}")
    return server


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

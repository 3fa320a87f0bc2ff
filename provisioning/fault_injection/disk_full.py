"""Put PostgreSQL's log on a file system of its own, which can be filled.

It is memory, mounted where only this command and its children see it (in a
mount namespace of their own), so that nothing remains of it. To fill it, it is
made as small as its content.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

# Set by provisioning/faults once it runs in a mount namespace of its own.
MARK = "GROUNDSWELL_OWN_MOUNTS"
SIZE = 3 * 2**30
# mount(2)
REMOUNT = 32


@dataclass
class LogDisk:
    """Mount a file system over one folder, and move its content in and out."""

    folder: Path
    is_mounted: bool = False

    def mount(self) -> None:
        owner, copy = self._copy_content()
        _mount(self.folder, f"size={SIZE},mode=0700")
        self.is_mounted = True
        self._restore_content(owner, copy)

    def unmount(self) -> None:
        if not self.is_mounted:
            return
        owner, copy = self._copy_content()
        libc = ctypes.CDLL(None, use_errno=True)
        _check(libc.umount2(bytes(self.folder), 0), self.folder)
        self.is_mounted = False
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._restore_content(owner, copy)

    def fill(self) -> None:
        usage = os.statvfs(self.folder)
        used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        _mount(self.folder, f"size={used}", REMOUNT)

    def empty(self) -> None:
        _mount(self.folder, f"size={SIZE}", REMOUNT)

    def _copy_content(self) -> tuple[os.stat_result, Path]:
        copy = self.folder.with_name(f"{self.folder.name}.apart")
        shutil.copytree(self.folder, copy)
        return self.folder.stat(), copy

    def _restore_content(self, owner: os.stat_result, copy: Path) -> None:
        shutil.copytree(copy, self.folder, dirs_exist_ok=True)
        shutil.rmtree(copy)
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, owner.st_uid, owner.st_gid)
        os.sync()


def _mount(folder: Path, options: str, flags: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    status = libc.mount(b"tmpfs", bytes(folder), b"tmpfs", flags, options.encode())
    _check(status, folder)


def _check(status: int, folder: Path) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))

"""A file system of its own for PostgreSQL's log, which can be made full.

It is memory, mounted where only this command and its children see it (a
mount namespace of their own), so that nothing of it is left whatever happens.
Full is done by making it as small as what it holds.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

# Set by provisioning/faults once it stands in a namespace of its own.
MARK = "GROUNDSWELL_OWN_MOUNTS"
SIZE = 3 * 2**30
REMOUNT = 32


@dataclass
class Wall:
    """Around one folder, whose content it takes over and gives back."""

    folder: Path
    built: bool = False

    def build(self) -> None:
        owner = self.folder.stat()
        apart = self.folder.with_name(f"{self.folder.name}.apart")
        shutil.copytree(self.folder, apart)
        _mount(self.folder, f"size={SIZE},mode=0700")
        self.built = True
        self._fill_from(apart, owner)

    def tear_down(self) -> None:
        if not self.built:
            return
        owner = self.folder.stat()
        apart = self.folder.with_name(f"{self.folder.name}.apart")
        shutil.copytree(self.folder, apart)
        _unmount(self.folder)
        self.built = False
        for one in self.folder.iterdir():
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        self._fill_from(apart, owner)

    def close(self) -> None:
        known = os.statvfs(self.folder)
        used = (known.f_blocks - known.f_bfree) * known.f_frsize
        _mount(self.folder, f"size={used}", REMOUNT)

    def open(self) -> None:
        _mount(self.folder, f"size={SIZE}", REMOUNT)

    def _fill_from(self, apart: Path, owner: os.stat_result) -> None:
        shutil.copytree(apart, self.folder, dirs_exist_ok=True)
        shutil.rmtree(apart)
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, owner.st_uid, owner.st_gid)
        os.sync()


def _mount(folder: Path, options: str, flags: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", bytes(folder), b"tmpfs", flags, options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))


def _unmount(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(bytes(folder), 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))

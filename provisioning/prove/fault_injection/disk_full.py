"""Put PostgreSQL's log on a file system of its own, which can be filled.

It is memory, mounted where only this command and its children see it (in a
mount namespace of their own), so that nothing remains of it. To fill it, it is
made as small as its content.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Set by provisioning/faults once it runs in a mount namespace of its own.
MARK = "GROUNDSWELL_OWN_MOUNTS"
SIZE = 3 * 2**30


@dataclass
class LogDisk:
    """Mount a file system over one folder, and move its content in and out."""

    folder: Path

    def mount(self) -> None:
        with self._content_kept():
            options = f"size={SIZE},mode=0700"
            run("mount", "-t", "tmpfs", "-o", options, "tmpfs", self.folder)

    def unmount(self) -> None:
        if self.folder.is_mount():
            with self._content_kept():
                run("umount", self.folder)

    def fill(self) -> None:
        usage = os.statvfs(self.folder)
        self._resize((usage.f_blocks - usage.f_bfree) * usage.f_frsize)

    def empty(self) -> None:
        self._resize(SIZE)

    def _resize(self, size: int) -> None:
        run("mount", "-o", f"remount,size={size}", self.folder)

    @contextmanager
    def _content_kept(self) -> Iterator[None]:
        copy = self.folder.with_name(f"{self.folder.name}.apart")
        run("cp", "--archive", self.folder, copy)
        yield
        # What was there before the file system is in the way.
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        run("cp", "--archive", "--no-target-directory", copy, self.folder)
        shutil.rmtree(copy)
        os.sync()


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True)

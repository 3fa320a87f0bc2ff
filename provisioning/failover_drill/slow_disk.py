"""Serve a disk with slow flushes, as a plugin of nbdkit.

nbdkit loads this file into Debian's Python, so it uses the standard library only.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

# What the disk holds.
CONTENT = "content"
# Holds the seconds of a flush; without this file, it takes none.
FLUSH_SECONDS = "flush_seconds"

API_VERSION = 2
# nbdkit's number for requests that are served side by side.
PARALLEL = 3
disk: dict[str, int] = {}
folder = Path()


def thread_model() -> int:
    # What needs no flush is served meanwhile.
    return PARALLEL


def config(key: str, value: str) -> None:
    global folder
    if key != "folder":
        raise ValueError(f"unknown option {key}")
    folder = Path(value)
    disk["content"] = os.open(folder / CONTENT, os.O_RDWR)


def open(readonly: bool) -> object:
    return disk


def get_size(handle: object) -> int:
    return os.fstat(disk["content"]).st_size


def pread(handle: object, buffer: bytearray, offset: int, flags: int) -> None:
    os.preadv(disk["content"], [buffer], offset)


def pwrite(handle: object, data: bytes, offset: int, flags: int) -> None:
    os.pwrite(disk["content"], data, offset)


def flush(handle: object, flags: int) -> None:
    began = time.monotonic()
    # Asked again and again, so that a flush ends when the disk is well again.
    while time.monotonic() - began < flush_seconds():
        time.sleep(0.01)


def flush_seconds() -> float:
    with suppress(FileNotFoundError):
        # Empty while it is being written.
        return float((folder / FLUSH_SECONDS).read_text() or "inf")
    return 0.0

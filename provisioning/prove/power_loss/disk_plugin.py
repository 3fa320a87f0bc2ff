"""Serve a disk that records its writes, or whose flushes can be slowed down.

A plugin of nbdkit, which loads this file into Debian's Python, so it uses the standard
library only.
"""

from __future__ import annotations

import os
import struct
import time
from contextlib import suppress
from pathlib import Path

# Seconds since 1970, offset and length, followed by the bytes. A record
# without bytes is a flush: what came before it survives a power failure.
HEADER = struct.Struct("<dQQ")
# In the disk's folder: what it holds; the record; and the seconds of a flush, which
# takes none without this file.
CONTENT, LOG, FLUSH_SECONDS = "content", "log", "flush_seconds"

API_VERSION = 2
# nbdkit's numbers for requests that come one at a time, or side by side.
SERIALIZED, PARALLEL = 1, 3
disk: dict[str, int] = {}
folder = Path()


def config(key: str, value: str) -> None:
    global folder
    if key == "folder":
        folder = Path(value)
        disk["content"] = os.open(folder / CONTENT, os.O_RDWR)
    elif key == "records":
        disk["log"] = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    else:
        raise ValueError(f"unknown option {key}")


def thread_model() -> int:
    # Beside a slow flush, what needs none is served.
    return SERIALIZED if "log" in disk else PARALLEL


def open(readonly: bool) -> object:
    return disk


def get_size(handle: object) -> int:
    return os.fstat(disk["content"]).st_size


def pread(handle: object, buffer: bytearray, offset: int, flags: int) -> None:
    os.preadv(disk["content"], [buffer], offset)


def pwrite(handle: object, data: bytes, offset: int, flags: int) -> None:
    if "log" in disk:
        # The time before the write is done: an answer that waits for it is
        # acknowledged later.
        header = HEADER.pack(time.time(), offset, len(data))
        os.writev(disk["log"], [header, data])
    os.pwrite(disk["content"], data, offset)


def flush(handle: object, flags: int) -> None:
    if "log" in disk:
        os.write(disk["log"], HEADER.pack(time.time(), 0, 0))
    began = time.monotonic()
    # Asked again and again, so that a flush ends when the disk is well again.
    while time.monotonic() - began < flush_seconds():
        time.sleep(0.01)


def flush_seconds() -> float:
    with suppress(FileNotFoundError):
        # Empty while it is being written.
        return float((folder / FLUSH_SECONDS).read_text() or "inf")
    return 0.0

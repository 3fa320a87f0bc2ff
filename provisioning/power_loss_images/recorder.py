"""Serve a disk that records every write and flush: a plugin of nbdkit.

nbdkit loads this file into Debian's Python, so it uses the standard library only.
Requests come one at a time.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

# Seconds since 1970, offset and length, followed by the bytes. A record
# without bytes is a flush: what came before it survives a power failure.
HEADER = struct.Struct("<dQQ")

API_VERSION = 2
files: dict[str, int] = {}


def config(key: str, value: str) -> None:
    if key != "folder":
        raise ValueError(f"unknown option {key}")
    folder = Path(value)
    files["content"] = os.open(folder / "content", os.O_RDWR)
    files["log"] = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def open(readonly: bool) -> object:
    return files


def get_size(handle: object) -> int:
    return os.fstat(files["content"]).st_size


def pread(handle: object, buffer: bytearray, offset: int, flags: int) -> None:
    os.preadv(files["content"], [buffer], offset)


def pwrite(handle: object, data: bytes, offset: int, flags: int) -> None:
    # The time before the write is done: an answer that waits for it is
    # acknowledged later.
    header = HEADER.pack(time.time(), offset, len(data))
    os.writev(files["log"], [header, data])
    os.pwrite(files["content"], data, offset)


def flush(handle: object, flags: int) -> None:
    os.write(files["log"], HEADER.pack(time.time(), 0, 0))

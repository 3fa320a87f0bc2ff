"""Shift the clock of running programs, and of nothing else on the machine.

A program reads the time of day by functions of the vDSO, a page of code that the
kernel puts into its memory; here they are replaced in the program's own copy. So
it makes no difference whether it uses libc, as PostgreSQL does, or not, as etcd
does. A time namespace moves no time of day, and a preloaded library reaches libc
alone. Monotonic clocks go on as before. What such a program forks has its clock;
what it executes has the machine's, until that is shifted too.
"""

from __future__ import annotations

import os
import platform
import signal
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from provisioning.commands import Refusal
from provisioning.processes import send_signal, stat_of

# Machine code for x86-64: ask the kernel, then add so many seconds.
GET_TIME = bytes.fromhex("b8e4000000 0f05 85ff 7507 488106")  # clock_gettime
GET_TIME_OF_DAY = bytes.fromhex("b860000000 0f05 4885ff 7407 488107")
TIME = bytes.fromhex("b8c9000000 0f05 4805")
RETURN = bytes.fromhex("c3")
STORE_AND_RETURN = bytes.fromhex("4885ff 7403 488907 c3")
REPLACED: dict[str, Callable[[bytes], bytes]] = {
    "__vdso_clock_gettime": lambda seconds: GET_TIME + seconds + RETURN,
    "__vdso_gettimeofday": lambda seconds: GET_TIME_OF_DAY + seconds + RETURN,
    "__vdso_time": lambda seconds: TIME + seconds + STORE_AND_RETURN,
}
# Of the ELF format.
SYMBOL_TABLE = 11
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
PATIENCE = 30
# Continued and stopped at once, a process on a busy machine has not moved.
PAUSE = 0.005


class Function(NamedTuple):
    offset: int
    code: bytes


def shift_clock(pids: Iterable[int], seconds: int) -> None:
    """Let these processes read a clock that is so far ahead; 0: the right one."""
    if platform.machine() != "x86_64":
        raise Refusal("Clocks are shifted on x86-64 alone")
    added = struct.pack("<i", seconds)
    code = {}
    for name, make_code in REPLACED.items():
        function = functions()[name]
        code[function.offset] = make_code(added) if seconds else function.code
        if len(code[function.offset]) > len(function.code):
            raise Refusal(f"There is no room for another {name}")
    for pid in pids:
        try:
            _replace(pid, code)
        except PermissionError:
            raise Refusal(f"Only root may shift the clock of process {pid}") from None
        except (OSError, StopIteration):
            # It has ended.
            continue


def _replace(pid: int, code: Mapping[int, bytes]) -> None:
    start, end = _vdso(pid)
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        if all(
            os.pread(memory.fileno(), len(each), start + offset) == each
            for offset, each in code.items()
        ):
            return
    was_stopped = _is_stopped(pid)
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        send_signal([pid], signal.SIGSTOP)
        try:
            deadline = time.monotonic() + 1
            while not _is_stopped(pid) and time.monotonic() < deadline:
                time.sleep(0.001)
            # Every thread stands still, and executes none of these functions next.
            if _is_stopped(pid) and not any(
                start <= int(task.read_text().split()[-1], 16) < end
                for task in Path(f"/proc/{pid}/task").glob("*/syscall")
            ):
                with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
                    for offset, each in code.items():
                        os.pwrite(memory.fileno(), each, start + offset)
                return
        finally:
            if not was_stopped:
                send_signal([pid], signal.SIGCONT)
        time.sleep(PAUSE)
    raise Refusal(f"Process {pid} does not stop outside of the vDSO")


def _vdso(pid: int) -> tuple[int, int]:
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    line = next(line for line in maps if line.endswith("[vdso]"))
    start, _, end = line.split()[0].partition("-")
    return int(start, 16), int(end, 16)


def _is_stopped(pid: int) -> bool:
    stats = [stat_of(int(task)) for task in os.listdir(f"/proc/{pid}/task")]
    return all(stat is None or stat.state in "TtZX" for stat in stats)


@cache
def functions() -> dict[str, Function]:
    """Return the vDSO's functions; all processes have the same."""
    start, end = _vdso(os.getpid())
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        image = os.pread(memory.fileno(), end - start, start)
    [sections_at] = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [
        SECTION.unpack_from(image, sections_at + size * number)
        for number in range(count)
    ]
    symbols = next(each for each in sections if each[1] == SYMBOL_TABLE)
    names = sections[symbols[6]][4]
    by_name = {}
    for at in range(symbols[4], symbols[4] + symbols[5], SYMBOL.size):
        name, _, _, _, offset, length = SYMBOL.unpack_from(image, at)
        name_at = names + name
        text = image[name_at : image.index(b"\0", name_at)].decode()
        by_name[text] = Function(offset, image[offset : offset + length])
    return by_name

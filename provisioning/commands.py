"""What the commands share: one line for each step, one line when they refuse.

Runs on a bare machine before anything is installed: standard library only.
"""

from __future__ import annotations

import errno
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from provisioning.processes import as_user

ROOT = Path(__file__).resolve().parent.parent

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Refusal(Exception):
    """Why a command can't go on, in one line for the person who typed it."""


class Stopped(BaseException):
    """Ctrl-C, SIGTERM, or the terminal was closed."""

    def __init__(self, number: int) -> None:
        self.number = number


def run_command(name: str, main: Callable[[], int]) -> int:
    """The exit status of `main`: whatever ends it, no traceback is printed."""
    for number in STOPPING:
        signal.signal(number, _stop)
    try:
        return main()
    except Refusal as refusal:
        problem = str(refusal)
    except OSError as error:
        problem = _sentence(error)
    except Stopped as stopped:
        return 128 + stopped.number
    print(f"{name}: {problem}", file=sys.stderr, flush=True)
    return 1


def _stop(number: int, frame: FrameType | None) -> None:
    # Tidying up must not be interrupted by an impatient second Ctrl-C.
    for each in STOPPING:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)


def _sentence(error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full{where}"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"Not writable for this user{where}"
    return f"{error.strerror or error}{where}"


@contextmanager
def step(name: str) -> Iterator[None]:
    """Says what is being done, and how long it took."""
    print(f"{name} ... ", end="", flush=True)
    began = time.monotonic()
    try:
        yield
    except BaseException:
        print(flush=True)
        raise
    print(f"{time.monotonic() - began:.1f} s", flush=True)


def output_of(
    command: Sequence[str | Path],
    *,
    failing: str,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
) -> str:
    """What the command prints; where it fails, a refusal that gives the reason."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=ROOT if user is None else "/",
        env=env,
        **as_user(user),
    )
    if done.returncode:
        raise Refusal(f"{failing}: {reason(done.stderr or done.stdout)}")
    return done.stdout


def reason(output: str) -> str:
    """The line of a failed program's output that says the most."""
    if "No space left on device" in output:
        return "the disk is full"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR:", "E:"))]
    return (errors or lines or ["it gave no reason"])[-1]


def undelayed(listener: socket.socket) -> socket.socket:
    """For a listener that gunicorn inherits, since it does this for its own only.

    Head and body of a reply are two writes, and the second would wait for the
    browser's delayed acknowledgement: 44 ms a request instead of one or two.
    """
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

"""Shared parts of the commands: refusals in one line, and a line for each step.

Commands run on a bare machine before anything is installed, so this uses the
standard library only.
"""

from __future__ import annotations

import argparse
import csv
import errno
import http.client
import json
import math
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# As `--version` prints it: groundswell 1.0.0.
VERSION = f"{PROJECT['name']} {PROJECT['version']}"

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Refusal(Exception):
    """An error that ends a command with one line instead of a traceback."""


class Stopped(BaseException):
    """Ctrl-C, SIGTERM, or a closed terminal."""

    def __init__(self, number: int) -> None:
        self.number = number


def run_command(name: str, main: Callable[[], int]) -> int:
    """Return the exit status of `main`; print one line instead of a traceback."""

    def stop(number: int, frame: FrameType | None) -> None:
        # A second Ctrl-C must not interrupt the clean-up of the first.
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    try:
        return main()
    except Refusal as refusal:
        problem = str(refusal)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            problem = f"The disk is full{place}"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            problem = f"Not writable for this user{place}"
        else:
            problem = f"{error.strerror or error}{place}"
    except Stopped as stopped:
        return 128 + stopped.number
    print(f"{name}: {problem}", file=sys.stderr, flush=True)
    return 1


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print what is being done, then how long it took."""
    print(f"{name} ... ", end="", flush=True)
    began = time.monotonic()
    try:
        yield
    except BaseException:
        print(flush=True)
        raise
    print(f"{time.monotonic() - began:.1f} s", flush=True)


@contextmanager
def scratch_folder(
    parent: Path = Path("/tmp"),  # noqa: S108
    *,
    keep: bool = False,
) -> Iterator[Path]:
    """Make a folder that all users may enter, and delete it.

    Its path is short, because of the sockets that servers put into it.
    """
    folder = Path(tempfile.mkdtemp(prefix="gs-", dir=parent))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        if keep:
            print(f"Logs are kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def wait_until(
    happened: Callable[[], object], *, seconds: float, pause: float = 0.05
) -> bool:
    """Return whether `happened` became true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns as wide as their cells; columns with figures to the right."""
    columns = []
    for column in zip(
        *([str(cell) for cell in row] for row in (header, *rows)), strict=True
    ):
        width = max(map(len, column))
        has_figures = any(cell[:1].isdigit() for cell in column[1:])
        align = str.rjust if has_figures else str.ljust
        columns.append([align(cell, width) for cell in column])
    for row in zip(*columns, strict=True):
        print("  ".join(row).rstrip(), flush=True)


def print_figures(figures: Mapping[str, object], indent: str = "  ") -> None:
    """Print a figure in each line, and those of an object below its name."""
    for name, value in figures.items():
        label = f"{indent}{str(name).replace('_', ' ')}"
        print(f"{label:<40}{'' if isinstance(value, Mapping) else value}", flush=True)
        if isinstance(value, Mapping):
            print_figures(value, f"{indent}  ")


def missed(
    figures: Mapping[str, Any], *, least: Mapping[str, float], most: Mapping[str, float]
) -> list[str]:
    """Say which figures are below the least, or above the most, that is required."""
    below = [name for name, limit in least.items() if figures[name] < limit]
    above = [name for name, limit in most.items() if figures[name] > limit]
    return [
        *(f"{name} is {figures[name]}, below {least[name]:g}" for name in below),
        *(f"{name} is {figures[name]}, above {most[name]:g}" for name in above),
    ]


def print_verdict(shortcomings: Sequence[str], void: str = "") -> None:
    for shortcoming in shortcomings:
        print(f"Not as required: {shortcoming}")
    verdict = "NOT as required" if shortcomings else "Every requirement holds"
    print(f"Void: {void}" if void else verdict, flush=True)


def conclude(
    figures: Mapping[str, Any], shortcomings: Sequence[str], void: str = ""
) -> int:
    """Print what is not as required, and all figures as JSON; return the exit status.

    With `missed`, the sentences, and `passed`. A run that proves nothing is void.
    """
    print_verdict(shortcomings, void)
    passed = not shortcomings and not void
    verdict = {"missed": shortcomings, "passed": passed}
    print(json.dumps({**figures, **verdict}), flush=True)
    return 2 if void else int(not passed)


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def output_of(
    command: Sequence[str | Path],
    *,
    failing: str,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    input_text: str | None = None,
    cwd: Path = ROOT,
) -> str:
    """Return the output of a command; raise Refusal with its reason if it fails."""
    done = subprocess.run(
        command,
        # An empty input, not the terminal: no command may ask back.
        input=input_text or "",
        capture_output=True,
        text=True,
        errors="replace",
        cwd=cwd if user is None else "/",
        env=env,
        # Without any of root's other groups.
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    if done.returncode:
        raise Refusal(f"{failing}: {reason(done.stderr or done.stdout)}")
    return done.stdout


def reason(output: str) -> str:
    """Return the line of a failed program's output that explains the most."""
    if "No space left on device" in output:
        return "the disk is full"
    # PostgreSQL's last lines only point at the place of the error.
    lines = [
        line.strip()
        for line in output.splitlines()
        if line.strip(" ^") and not line.startswith("LINE ")
    ]
    errors = [line for line in lines if line.startswith(("ERROR:", "E:"))]
    return (errors or lines or ["it gave no reason"])[-1]


def listen(port: int) -> socket.socket:
    """Listen on a port of this machine; 0 chooses one.

    Connections get TCP_NODELAY, which gunicorn sets on listeners of its own only.
    A reply's head and body are two writes, and the second would wait for the
    browser's delayed acknowledgement: 44 ms a request instead of one or two.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=2048)
    except PermissionError:
        raise Refusal(
            f"Only root may serve on port {port}; choose another with --port"
        ) from None
    except OSError:
        raise Refusal(
            f"Port {port} is taken by another program; choose one with --port"
        ) from None
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def fetch(address: str) -> tuple[int, bytes]:
    """Return a page's status and body; status 0 where nothing answers."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=5)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", parts.path)
        reply = connection.getresponse()
        return reply.status, reply.read()
    return 0, b""


def refuse_unless_served(address: str) -> None:
    if (status := fetch(address)[0]) != 200:
        raise Refusal(f"The login page is not served; its status is {status or None}")


# Options


class _TextFormatter(argparse.RawDescriptionHelpFormatter):
    """Keep the lines of a text that has several, and wrap a text that has one."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def command_parser(
    description: str | None, epilog: str = "", **numbers: tuple[float, str]
) -> argparse.ArgumentParser:
    """Return a parser of the command that was called; it wants whole names.

    `numbers` are options above 0, each with its default and its meaning.
    """
    parser = argparse.ArgumentParser(
        prog=sys.argv[0],
        description=description,
        epilog=epilog,
        formatter_class=_TextFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=VERSION)
    for name, (default, meaning) in numbers.items():
        parser.add_argument(
            f"--{name}",
            type=positive_integer if isinstance(default, int) else positive_number,
            default=default,
            help=f"{meaning} ({default:,})",
        )
    return parser


def seed_of(options: argparse.Namespace) -> int:
    """Return the seed that was given, or draw one; print it."""
    seed: int | None = options.seed
    seed = secrets.randbelow(10**9) if seed is None else seed
    print(f"Seed {seed}", flush=True)
    return seed


def positive_integer(text: str, most: float = math.inf) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        bounds = "a number above 0" if most == math.inf else f"between 1 and {most}"
        raise argparse.ArgumentTypeError(f"{text} is not {bounds}")
    return int(text)


def caller_path(text: str) -> Path:
    """Return the path of a file as the caller sees it; commands run elsewhere."""
    return Path(os.environ.get("CALLER_FOLDER", ""), text)


port_number = partial(positive_integer, most=65535)


def positive_number(text: str) -> float:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number

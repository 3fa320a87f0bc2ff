"""Parse the options of JMeter's commands, and refuse targets elsewhere."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Container
from functools import partial
from pathlib import Path

from provisioning.commands import (
    ROOT,
    Refusal,
    command_parser,
    port_number,
    positive_integer,
    positive_number,
)
from provisioning.measure.jmeter.shapes import SHAPES
from provisioning.measure.load.target import is_loopback

LEVELS = ROOT / "jmeter" / "slo.json"
STACK_MANAGE = f"{ROOT / 'provisioning' / 'stack'} manage"


def run_parser(description: str | None, epilog: str = "") -> argparse.ArgumentParser:
    parser = command_parser(description, epilog)
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="the target; %(default)s")
    add("--port", type=port_number, default=8080, help="of the target; %(default)s")
    add("--protocol", choices=("http", "https"), default="http")
    add_number = partial(add, type=positive_number)
    add_number("--duration", default=60, help="seconds at the rate; %(default)s")
    add("--shape", choices=SHAPES, default="day")
    add_number("--think", help="seconds on a page, not at the bell; 3")
    add_number("--ramp", default=10.0, help="seconds, in a day; %(default)s")
    add_number("--within", help="seconds in which all arrive; bell 20, others 600")
    add("--administration", help="an open rehearsal, whose people answer")
    add_count = partial(add, type=positive_integer)
    add_count("--survey-pages", help="of a made-up survey; 10, heavy 20")
    add_count("--survey-items", help="on each page; 5, heavy 50")
    add("--codes", type=caller_path, help="the CSV file of manage.py jmeter_data")
    add("--pages", type=caller_path, help="its properties file")
    add("--manage", default=STACK_MANAGE, help="instead of provisioning/stack manage")
    add("--slo", type=caller_path, default=LEVELS, help="instead of jmeter/slo.json")
    add("--heap", default="2g", help="of JMeter, at most; %(default)s")
    add("--influxdb", metavar="URL", help="send figures there while it runs")
    servers = "load servers on which jmeter/server runs; needs --codes and --pages"
    add("--remote", type=_remotes, default=[], metavar="HOST[:PORT],…", help=servers)
    add("--keystore", type=caller_path, help="for load servers that are elsewhere")
    elsewhere = "the target is not this machine, and you may load it"
    add("--elsewhere", action="store_true", help=elsewhere)
    add("--output", type=caller_path, help="a new folder for the results")
    return parser


def caller_path(text: str) -> Path:
    """Return a path relative to the folder that the command was called from."""
    return Path(os.environ.get("CALLED_FROM", ".")) / text


def _remotes(text: str) -> list[str]:
    servers = [server.strip() for server in text.split(",")]
    if not all(re.fullmatch(r"[\w.-]+(:\d+)?", server) for server in servers):
        raise argparse.ArgumentTypeError(f"{text} is no list of servers: a,b:1099")
    return servers


def check_target(options: argparse.Namespace) -> None:
    """Refuse load on another machine, unless the caller says that it is allowed."""
    if bool(options.codes) != bool(options.pages):
        raise Refusal("--codes and --pages belong together")
    if options.remote and not options.codes:
        raise Refusal("--remote needs the --codes and --pages that its servers have")
    servers = load_servers(options)
    elsewhere = [host for host in (options.host, *servers) if not is_loopback(host)]
    if elsewhere and not options.elsewhere:
        raise Refusal(
            f"{elsewhere[0]} is not this machine: --elsewhere says that you may load it"
        )
    if not all(map(is_loopback, servers)) and not options.keystore:
        raise Refusal(
            "Load servers elsewhere need --keystore (see docs/guides/rehearsals.md)"
        )


def load_servers(options: argparse.Namespace) -> list[str]:
    return [server.split(":")[0] for server in options.remote]


HEADER = "code,take"
# JMeter knows no quotes.
LINE = re.compile(r"([0-9A-Za-z-]+),([1-9]\d*)")
ADVICE = "manage.py jmeter_data writes such a file"


def read_codes(path: Path, takes: Container[int] | None = None) -> list[str]:
    """Return the lines below the header.

    `takes` are those of the file with the pages. Raises Refusal for a line that JMeter
    would send as something else than a code.
    """
    try:
        # A byte order mark stands in the header, which JMeter skips.
        header, *lines = path.read_text(encoding="utf-8-sig").splitlines() or [""]
    except UnicodeDecodeError:
        raise Refusal(f"{path} is no text in UTF-8: {ADVICE}") from None
    if header != HEADER:
        raise Refusal(
            f"{path}, row 1: the header has to be {HEADER}, with a comma and without"
            f" quotes: {ADVICE}"
        )
    for row, line in enumerate(lines, start=2):
        # The line is not shown: with a code, anyone can answer.
        if (match := LINE.fullmatch(line)) is None:
            raise Refusal(
                f"{path}, row {row}: it has to be a code, a comma and the number of a"
                f" take, without quotes and spaces: {ADVICE}"
            )
        if takes is not None and int(match[2]) not in takes:
            raise Refusal(
                f"{path}, row {row}: the file of --pages has no take {match[2]}: give"
                " the two files that manage.py jmeter_data wrote together"
            )
    return lines

"""Parse the options of JMeter's commands, and refuse targets elsewhere."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import socket
from pathlib import Path

from provisioning.commands import ROOT, Refusal, port_number, positive_integer

LEVELS = ROOT / "jmeter" / "slo.json"
STACK_MANAGE = str(ROOT / "provisioning" / "stack") + " manage"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that `jmeter/run` and `jmeter/ladder` share."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="instead of 127.0.0.1")
    add("--port", type=port_number, default=8080, help="instead of 8080")
    add("--protocol", choices=("http", "https"), default="http")
    add(
        "--duration",
        type=positive_number,
        default=60,
        help="seconds at the rate, not 60",
    )
    add("--shape", choices=("day", "bell"), default="day")
    add(
        "--think", type=positive_number, help="seconds on a page in a day, instead of 3"
    )
    add("--ramp", type=positive_number, default=10.0, help="seconds, in a day: 10")
    add("--within", type=positive_number, default=20.0, help="seconds, at the bell: 20")
    add("--administration", help="an open rehearsal, whose people answer")
    add(
        "--survey-pages",
        type=positive_integer,
        default=10,
        help="of a made-up survey: 10",
    )
    add(
        "--survey-items",
        type=positive_integer,
        default=5,
        help="on each of its pages: 5",
    )
    add("--codes", type=caller_path, help="the CSV file of manage.py jmeter_data")
    add(
        "--pages", type=caller_path, help="the properties file of manage.py jmeter_data"
    )
    add("--manage", default=STACK_MANAGE, help="instead of: provisioning/stack manage")
    add("--slo", type=caller_path, default=LEVELS, help="instead of jmeter/slo.json")
    add("--heap", default="2g", help="of JMeter, at most; instead of 2g")
    add("--influxdb", metavar="URL", help="send figures there while it runs")
    add(
        "--remote",
        type=_remotes,
        default=[],
        metavar="HOST[:PORT],…",
        help="load servers on which jmeter/server runs; needs --codes and --pages",
    )
    add("--keystore", type=caller_path, help="for load servers that are elsewhere")
    add(
        "--elsewhere",
        action="store_true",
        help="the target is not this machine, and you may load it",
    )


def caller_path(text: str) -> Path:
    """Return a path relative to the folder that the command was called from."""
    return Path(os.environ.get("CALLED_FROM", ".")) / text


def positive_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


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
        raise Refusal("Load servers elsewhere need --keystore (see jmeter/README.md)")


def load_servers(options: argparse.Namespace) -> list[str]:
    return [server.split(":")[0] for server in options.remote]


def is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        raise Refusal(f"No address is known for {host}") from None
    return all(ipaddress.ip_address(info[4][0]).is_loopback for info in found)

"""What `jmeter/run` and `jmeter/ladder` can be told."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from provisioning.commands import ROOT

LEVELS = ROOT / "jmeter" / "slo.json"
STACK_MANAGE = str(ROOT / "provisioning" / "stack") + " manage"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What both of them take."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="instead of 127.0.0.1")
    add("--port", type=_port, default=8080, help="instead of 8080")
    add("--protocol", choices=("http", "https"), default="http")
    add("--duration", type=positive, default=60, help="seconds at the rate, not 60")
    add("--shape", choices=("day", "bell"), default="day")
    add("--think", type=positive, help="seconds on a page in a day, instead of 3")
    add("--ramp", type=positive, default=10.0, help="seconds, in a day: 10")
    add("--within", type=positive, default=20.0, help="seconds, at the bell: 20")
    add("--administration", help="a rehearsal that is open: its people answer")
    add("--survey-pages", type=_count, default=10, help="of a made-up survey: 10")
    add("--survey-items", type=_count, default=5, help="on each of its pages: 5")
    add("--codes", type=called_path, help="the CSV file of manage.py jmeter_data")
    add(
        "--pages", type=called_path, help="the properties file of manage.py jmeter_data"
    )
    add("--manage", default=STACK_MANAGE, help="instead of: provisioning/stack manage")
    add("--slo", type=called_path, default=LEVELS, help="instead of jmeter/slo.json")
    add("--heap", default="2g", help="of JMeter, at most; instead of 2g")
    add("--influxdb", metavar="URL", help="sends figures there while it runs")
    add(
        "--remote",
        type=_remotes,
        default=[],
        metavar="HOST[:PORT],…",
        help="load servers on which jmeter/server runs; needs --codes and --pages",
    )
    add("--keystore", type=called_path, help="for load servers that are elsewhere")
    add(
        "--elsewhere",
        action="store_true",
        help="the target is not this machine, and you may load it",
    )


def called_path(text: str) -> Path:
    """As seen from where the command was called, not from the checkout."""
    return Path(os.environ.get("CALLED_FROM", ".")) / text


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 65535")
    return int(text)


def _remotes(text: str) -> list[str]:
    servers = [one.strip() for one in text.split(",")]
    if not all(re.fullmatch(r"[\w.-]+(:\d+)?", one) for one in servers):
        raise argparse.ArgumentTypeError(f"{text} is no list of servers: a,b:1099")
    return servers

"""What `provisioning/stack` can be told."""

from __future__ import annotations

import argparse

from provisioning.installation.up import PORTS


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/stack",
        description="Every server of a real installation on this machine: nginx,"
        " gunicorn, pgbouncer, PostgreSQL with a replica, Memcached, Redis, RabbitMQ"
        " and Celery under one supervisor. Data, logs and configuration lie in"
        " .stack, or in the folder that GROUNDSWELL_STACK names.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser(
        "up", help="start it; where it runs, bring in what changed", allow_abbrev=False
    )
    rebuild = commands.add_parser(
        "rebuild",
        help="put it aside with its data, build it anew, and measure it again",
        allow_abbrev=False,
    )
    for command in (up, rebuild):
        command.add_argument(
            "--port",
            type=_port,
            help="of nginx, instead of 8080; the next ones are for the monitoring"
            " and for RabbitMQ; kept for the next time, until --port= forgets it",
        )
        command.add_argument(
            "--set",
            action="append",
            type=_setting,
            default=[],
            metavar="NAME=VALUE",
            help="a variable of provisioning/ansible, such as commit_delay=1000;"
            " kept for the next time, until --set=NAME= forgets it",
        )
    commands.add_parser("down", help="stop it; the data stay")
    commands.add_parser("status", help="what runs, since when, with how much memory")
    logs = commands.add_parser("logs", help="the last lines of each program's log")
    logs.add_argument("program", nargs="?", help="of this one only")
    logs.add_argument("-f", dest="follow", action="store_true", help="and what follows")
    promotion = commands.add_parser(
        "promote",
        help="put the replica in the place of a primary that is lost",
        allow_abbrev=False,
    )
    promotion.add_argument(
        "--although-it-serves", action="store_true", help="the primary still runs"
    )
    promotion.add_argument(
        "--although-it-lags",
        action="store_true",
        help="the replica's last transaction is old; what came later is lost",
    )
    commands.add_parser("reload", help="restart the workers without losing a request")
    commands.add_parser("manage", help="manage.py with the stack's environment")
    return parser.parse_args()


def _port(text: str) -> int:
    if not text:
        # The usual ones.
        return 0
    last = 65536 - len(PORTS)
    if not text.isdecimal() or not 1 <= int(text) <= last:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {last}")
    return int(text)


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value

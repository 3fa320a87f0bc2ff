"""Whom load may reach: this machine, and what somebody named on purpose."""

from __future__ import annotations

import argparse
import ipaddress
import socket

from provisioning.commands import Refusal


def check_target(options: argparse.Namespace) -> None:
    """Load goes to this machine only, unless somebody says that it may."""
    if bool(options.codes) != bool(options.pages):
        raise Refusal("--codes and --pages belong together")
    if options.remote and not options.codes:
        raise Refusal("--remote needs the --codes and --pages that its servers have")
    far = [one for one in _hosts(options) if not is_loopback(one)]
    if far and not options.elsewhere:
        raise Refusal(
            f"{far[0]} is not this machine: --elsewhere says that you may load it"
        )
    if not all(map(is_loopback, load_servers(options))) and not options.keystore:
        raise Refusal("Load servers elsewhere need --keystore (see jmeter/README.md)")


def _hosts(options: argparse.Namespace) -> list[str]:
    return [options.host, *load_servers(options)]


def load_servers(options: argparse.Namespace) -> list[str]:
    return [one.split(":")[0] for one in options.remote]


def is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        raise Refusal(f"No address is known for {host}") from None
    return all(ipaddress.ip_address(one[4][0]).is_loopback for one in found)


def own_address(options: argparse.Namespace) -> str:
    """The address by which the load servers call back."""
    server = load_servers(options)[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: it only asks which way leads there.
        probe.connect((server, 9))
        address: str = probe.getsockname()[0]
        return address

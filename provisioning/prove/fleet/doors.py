"""Look which guarded ports of a fleet's hosts a host outside of it reaches."""

from __future__ import annotations

import json
from collections.abc import Iterable

from provisioning.commands import Refusal
from provisioning.prove.fleet.fleet import Fleet
from provisioning.prove.fleet.hosts import Host
from provisioning.prove.fleet.inventory import BALANCER

# Prints the doors that open within two seconds: a firewall drops without a word.
KNOCK = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def opens(door):
    try:
        socket.create_connection(tuple(door), timeout=2).close()
    except OSError:
        return False
    return True
doors = json.load(sys.stdin)
with ThreadPoolExecutor(32) as pool:
    print(json.dumps([door for door, is_open in zip(doors, pool.map(opens, doors))
                      if is_open]))
"""
# Who calls whom across the fleet; what members say among themselves is behind these.
Door = tuple[str, int]


def knock(host: Host, doors: Iterable[Door]) -> set[Door]:
    """Return the doors (address and port) that open for a host."""
    asked = json.dumps(list(doors)).encode()
    printed = host.run("python3", "-c", KNOCK, input_bytes=asked)
    return {(address, port) for address, port in json.loads(printed)}


def reachable_doors(fleet: Fleet) -> set[str]:
    """Return the guarded doors that open for a host outside of the fleet.

    Raises Refusal if they do not open for a web host either: a door behind which nobody
    listens is closed by itself, and proves nothing.
    """
    doors = {
        (address, port)
        for guard in fleet.guarded_ports
        if "web" in guard["callers"]
        for address in fleet.groups.get(guard["group"], {}).values()
        for port in guard["ports"]
    }
    if closed := doors - knock(fleet.first("web"), doors):
        raise Refusal(f"A web host does not reach {sorted(closed)}")
    return {f"{host}:{port}" for host, port in knock(fleet.hosts[BALANCER[0]], doors)}

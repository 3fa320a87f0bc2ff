"""Check variables that an owner writes, before anything is written to a host.

`allowed_hosts | host_names` is the list of its names, also of one text with commas.
`variable_problems(allowed_hosts, time_zone)` names what can't be used, and
`cluster_problem` a host that would become another part of a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from ipaddress import ip_address
from zoneinfo import available_timezones

LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)", re.IGNORECASE)
# The names that every system has: of a city. US/Central and EST5EDT are older names,
# which Debian has in a package of their own, and PostgreSQL then lacks.
AREAS = (
    *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia"),
    *("Europe", "Indian", "Pacific", "Etc"),
)


def host_names(allowed_hosts: object) -> list[str]:
    """Return the names of a list, or of a text with commas."""
    if isinstance(allowed_hosts, str):
        return [name.strip() for name in allowed_hosts.split(",")]
    # Ansible's lists may be of a type of its own.
    if isinstance(allowed_hosts, Sequence):
        return [str(name) for name in allowed_hosts]
    return []


def host_problem(name: str) -> str:
    """Return why Django could not compare this name with a request's; or ''."""
    if not name:
        return "a name is empty"
    if "://" in name:
        return f"{name!r} has a scheme; write the name alone"
    if "*" in name:
        return f"{name!r} has a *; .example.org stands for all names below example.org"
    if _is_address(name):
        return ""
    host, colon, _ = name.partition(":")
    if colon:
        return f"{name!r} has a port, or is an IPv6 address without [ ]"
    # A name that begins with a dot stands for itself and all names below.
    labels = host.removeprefix(".").split(".")
    if len(host) > 253 or not all(map(LABEL.fullmatch, labels)):
        return f"{name!r} is not the name of a host"
    if re.fullmatch(r"[\d.]+", host):
        return f"{name!r} is not an address"
    return ""


def time_zone_problem(name: object) -> str:
    if not name:
        return "is not set; name the zone of the state, such as America/Chicago"
    zones = {zone for zone in available_timezones() if zone.split("/")[0] in AREAS}
    if name == "UTC" or name in zones:
        return ""
    by_folded = {zone.casefold(): zone for zone in sorted(zones)}
    folded = str(name).strip().replace(" ", "_").casefold()
    city = folded.rpartition("/")[2]
    close = [key for key in by_folded if key.endswith(f"/{city}")]
    close = close or get_close_matches(folded, by_folded, n=1, cutoff=0.85)
    hint = f"; is it {by_folded[close[0]]}?" if close else ", such as America/Chicago"
    return f"{name!r} is not a zone that is named after a city{hint}"


def variable_problems(allowed_hosts: object, time_zone: object) -> list[str]:
    """Return a sentence for each problem, beginning with the variable's name."""
    names = host_names(allowed_hosts)
    problems = [f"allowed_hosts: {text}" for text in map(host_problem, names) if text]
    if not names:
        problems = ["allowed_hosts: is not set; name the host that browsers ask for"]
    if zone := time_zone_problem(time_zone):
        problems.append(f"time_zone: {zone}")
    return problems


def cluster_problem(deployed: Sequence[str], has_citus: bool, node: int | str) -> str:
    """Return why a host can't be what the inventory says, after its name; or ''.

    `deployed` are lines of the configuration that it has: of Patroni, which begins a
    new database where a node's number is another one, and of the programs.
    """
    groups = [line.split()[1] for line in deployed if line.startswith("  group: ")]
    is_distributed = "GROUNDSWELL_DISTRIBUTED=true" in deployed or bool(groups)
    if is_distributed and not has_citus:
        return (
            "belongs to a cluster: give the inventory of its worker nodes too"
            " (-i inventories/<nodes>)"
        )
    if groups and groups[0] != str(node):
        return f"has the rows of node {groups[0]}, and can't become node {node}"
    has_database = any(line.startswith("scope: ") for line in deployed)
    if has_citus and has_database and not groups:
        return (
            "serves as the only database, and this playbook would start its hosts"
            " without the primary first: run become_cluster.yml (docs/guides/citus.md)"
        )
    return ""


def _is_address(name: str) -> bool:
    """Return whether this is an address, in brackets if it is of IPv6."""
    inner = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        return (ip_address(inner).version == 6) == (inner != name)
    except ValueError:
        return False


class FilterModule:
    def filters(self) -> dict[str, Callable[..., object]]:
        return {
            "host_names": host_names,
            "variable_problems": variable_problems,
            "cluster_problem": cluster_problem,
        }

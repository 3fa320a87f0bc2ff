"""Take surveys over TLS through the balancer until SIGTERM: `load FILE`.

FILE has what `describe` writes. Runs at the switch, in a process of its own, and logs
each attempt as the processes of fault injection do.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provisioning.measure.load.target import Target
from provisioning.prove.fault_injection.load_processes import run_pool
from provisioning.prove.fault_injection.retrying_respondent import Rehearsal
from provisioning.prove.fleet.inventory import BALANCER, NAME

# Pages that are saved each second, by so many people at a time. Each stays for minutes:
# while the cache is away, nobody can log in who would take an empty seat.
RATE = 20
SEATS = 40
PAGES, ITEMS = 20, 5


def describe(
    path: Path,
    described: Mapping[str, Any],
    people: list[tuple[int, str]],
    **options: object,
) -> None:
    """Write the survey, its people (ID and code), and the options of `main`."""
    path.write_text(json.dumps({"survey": described, "people": people, **options}))


def main(file: str) -> None:
    known = json.loads(Path(file).read_text())
    people = [(number, code) for number, code in known["people"]]
    survey = known["survey"]
    rehearsal = Rehearsal(survey["administration_id"], survey, people)
    # Verified, as a browser does it that knows the authority.
    context = ssl.create_default_context(cafile=known["authority"])
    target = Target(socket.AF_INET, (BALANCER[1], 443), NAME, context)
    load = {"target": target, "seats": SEATS, "rate": RATE, "seed": known["seed"]}
    run_pool(rehearsal, Path(known["log"]), load)


if __name__ == "__main__":
    main(*sys.argv[1:])

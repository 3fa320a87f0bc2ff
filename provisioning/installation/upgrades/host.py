"""Upgrade the data folder of a database host, whose server was stopped in order.

For a fleet, in the order of docs/guides/postgresql-upgrade.md. The new folder takes
the place of the old one, which is kept under another name, unless its files are linked.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

from provisioning.commands import Refusal, command_parser, scratch_folder
from provisioning.installation.postgresql import (
    postgresql_programs,
    postgresql_version,
    programs_of,
)
from provisioning.installation.upgrades.comparison import described
from provisioning.installation.upgrades.data_folder import DataUpgrade, upgrade_folder
from provisioning.installation.upgrades.operation import add_version_options


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument("data", type=Path, metavar="FOLDER", help="…/data/database")
    add_version_options(parser)
    options = parser.parse_args()
    return upgrade_data_folder(
        options.data.absolute(), options.to, link=options.link, compare=options.compare
    )


def upgrade_data_folder(data: Path, to: int, *, link: bool, compare: bool) -> int:
    if not (data / "PG_VERSION").exists():
        raise Refusal(f"{data} is no data folder of PostgreSQL")
    if (known := postgresql_version(data)) >= to:
        raise Refusal(f"The data are those of PostgreSQL {known} already")
    began, stamp = time.monotonic(), time.strftime("%Y%m%d-%H%M%S")
    with scratch_folder() as scratch:
        upgrade = DataUpgrade(
            old=data,
            new=data.with_name(f"{data.name}.upgraded"),
            work=scratch / "work",
            old_programs=postgresql_programs(data),
            new_programs=programs_of(to),
            user=data.owner() if os.geteuid() == 0 else None,
            link=link,
        )
        upgrade.prepare()
        shutil.rmtree(upgrade.new, ignore_errors=True)
        figures, before, after = upgrade_folder(upgrade, compares=compare)
    result = {"from": known, "to": to, **described(figures, before, after)}
    result["minutes"] = round((time.monotonic() - began) / 60, 1)
    print(json.dumps(result), flush=True)
    if result["differences"]:
        raise Refusal(f"{data} stays as it is, for something is different")
    former = data.with_name(f"postgresql-{known}-{stamp}")
    data.rename(former)
    upgrade.new.rename(data)
    if link:
        # Its files are the new folder's now, and it must never start again.
        shutil.rmtree(former)
    else:
        print(f"The former data are in {former}", flush=True)
    return 0

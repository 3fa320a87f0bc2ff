"""Bring a version into use: static files, migrations, and what each role may do.

Runs in a container of its own, once for each version, before the programs start. A
second run changes nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from provisioning.commands import output_of, step
from provisioning.containers.start import ETC, HOME
from provisioning.installation.environment import PYTHON, manage

# Where a web server reads them. What was there before stays, for the pages that are
# open in browsers.
SERVED = Path("/served-static")


def main() -> int:
    if SERVED.is_dir():
        with step("Copying static files"):
            shutil.copytree(HOME / "static", SERVED, dirs_exist_ok=True)
    with step("Migrating"):
        manage("migrate", "--verbosity=0", environment=os.environ)
    grants = ETC / "primary" / "grants.sql"
    if grants.exists():
        with step("Granting each role what its pool does"):
            output_of(
                [PYTHON, "-c", RUN_FILE, grants],
                failing="The grants are refused",
            )
    return 0


# As the owner of the tables, in one transaction of the file's own.
RUN_FILE = """
import os, sys, psycopg2
names = dict(host="HOST", port="PORT", dbname="NAME", user="USER", password="PASSWORD")
connection = psycopg2.connect(
    **{name: os.environ[f"GROUNDSWELL_DATABASE_{it}"] for name, it in names.items()}
)
connection.autocommit = True
connection.cursor().execute(open(sys.argv[1]).read())
"""

if __name__ == "__main__":
    sys.exit(main())

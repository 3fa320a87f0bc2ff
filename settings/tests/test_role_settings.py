"""A database role gets all of its settings at once, with each deployment."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.conf import settings

from provisioning.installation.postgresql import postgresql_programs
from settings.tests.patience import eventually

pytestmark = pytest.mark.skipif(not settings.SERVERS, reason="SQLite has no roles")
# A role of the test's own, so that no other test's connection has half of its settings.
ROLE = "settings_probe"
# The script waits here, until the test lets it go on.
GATE = "SELECT pg_advisory_lock({0}), pg_advisory_unlock({0});\n"
SETTINGS = f"SELECT setconfig FROM pg_db_role_setting WHERE setrole = '{ROLE}'::regrole"
WAITING = """
SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted
)
"""
# Advisory locks that nothing else takes.
FIRST_GATE = 731_000


@pytest.fixture
def superuser() -> Iterator[Any]:
    place = {"host": settings.SERVERS, "port": 5432, "user": "postgres"}
    with closing(psycopg2.connect(dbname="postgres", **place)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(f"CREATE ROLE {ROLE}")
        yield cursor
        cursor.execute(f"DROP ROLE {ROLE}")


def statements() -> list[str]:
    """Return what the role wrote to give `taking` its settings, for the test's role."""
    text = (Path(settings.SERVERS) / "etc/primary/roles.sql").read_text()
    [block] = re.findall(
        r"^BEGIN;\nALTER ROLE taking RESET ALL;\n.+?^COMMIT;$", text, re.M | re.S
    )
    return block.replace(" taking ", f" {ROLE} ").splitlines()


def is_waiting(cursor: Any, gate: int) -> bool:
    cursor.execute(WAITING, [gate])
    return bool(cursor.fetchone()[0])


def states_between(cursor: Any, lines: list[str]) -> list[int]:
    """Run statements one by one; return how many settings others see before each."""
    gates = range(FIRST_GATE, FIRST_GATE + len(lines))
    for gate in gates:
        cursor.execute("SELECT pg_advisory_lock(%s)", [gate])
    script = "".join(
        GATE.format(gate) + line + "\n" for gate, line in zip(gates, lines, strict=True)
    )
    psql = subprocess.Popen(
        [postgresql_programs() / "psql", "--no-psqlrc", "--quiet", "--output=/dev/null"]
        + ["--set=ON_ERROR_STOP=1", f"--host={settings.SERVERS}", "--username=postgres"]
        + ["--dbname=postgres"],
        stdin=subprocess.PIPE,
        text=True,
    )
    assert psql.stdin is not None
    psql.stdin.write(script)
    psql.stdin.close()
    seen = []
    for gate in gates:
        eventually(lambda: is_waiting(cursor, gate))  # noqa: B023
        cursor.execute(SETTINGS)
        rows = cursor.fetchall()
        seen.append(len(rows[0][0]) if rows else 0)
        cursor.execute("SELECT pg_advisory_unlock(%s)", [gate])
    assert psql.wait() == 0
    return seen


def test_others_see_all_settings_of_a_role_or_those_from_before(superuser):
    lines = statements()
    wanted = len(lines) - 3
    assert wanted > 5
    # A new role has none until the end, and one that has them keeps them until then.
    assert set(states_between(superuser, lines)) == {0}
    assert set(states_between(superuser, lines)) == {wanted}


def test_without_the_transaction_they_would_see_one_after_another(superuser):
    lines = statements()
    wanted = len(lines) - 3
    one_by_one = lines[1:-1]
    states_between(superuser, one_by_one)
    assert states_between(superuser, one_by_one) == [wanted, *range(wanted)]

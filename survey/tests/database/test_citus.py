"""The tables of the real migrations distribute on Citus, where it was built."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from provisioning.citus.build import programs_with_citus
from provisioning.citus.nodes import Node, new_worker
from survey.database.distribution import DISTRIBUTED, REFERENCE, distribution_sql

pytestmark = pytest.mark.skipif(
    not (settings.SERVERS and programs_with_citus()),
    reason="Citus is not built here; provisioning/cluster builds it",
)


@pytest.fixture(scope="module")
def node(django_db_setup: None) -> Iterator[Node]:
    """Yield a cluster of one node, with the tables of the test database."""
    programs, run = programs_with_citus(), Path(settings.SERVERS)
    assert programs is not None
    number = 100 + os.getpid() % 10_000
    with new_worker(run, number, programs) as node:
        name = connection.settings_dict["NAME"]
        dump = subprocess.run(  # noqa: S603
            [programs / "pg_dump", f"--host={run}", "--port=5432"]
            + ["--username=postgres", "--schema-only", name],
            check=True,
            capture_output=True,
            text=True,
        )
        node.sql(dump.stdout)
        node.sql(f"SELECT citus_set_coordinator_host('{run}', {node.port})")
        shards = f"'{run}', {node.port}, 'shouldhaveshards', true"
        node.sql(f"SELECT citus_set_node_property({shards})")
        node.sql("\n".join(["BEGIN;", *distribution_sql(), "COMMIT;"]))
        yield node


def test_each_table_lies_where_its_layout_says(node):
    kinds = node.sql(
        "SELECT logicalrelid, partmethod, repmodel FROM pg_dist_partition"
        " JOIN pg_class c ON c.oid = logicalrelid WHERE NOT relispartition"
    )
    sharded = {table for table, method, _ in kinds if method == "h"}
    copied = {table for table, method, model in kinds if (method, model) == ("n", "t")}
    assert sharded == {*DISTRIBUTED, "survey_coderoute"}
    assert copied == REFERENCE.keys()


def test_a_code_belongs_to_one_person(node):
    add = "INSERT INTO survey_coderoute VALUES ('\\x01', {})"
    node.sql(add.format(1))
    with pytest.raises(Exception, match="duplicate key"):
        node.sql(add.format(2))


def test_a_page_of_nobody_is_refused(node):
    page = "7, 1, 1, 9, '{1}', '{a}', '{3}', '{}', 0, 9, 0"
    assert node.sql(f"SELECT survey_save_page({page}) IS NULL") == [["t"]]

"""A Citus cluster of two nodes with the tables of the test database."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from django.core.management.commands import flush
from django.db import connection
from django.test import override_settings

from provisioning.prove.citus.build import programs_with_citus
from provisioning.prove.citus.nodes import Node, new_node, write_nodes
from survey.database.distribution import distribution_sql
from survey.tests.database_flush import sql_flush


class Nodes(NamedTuple):
    # It has all shards: a test runs in a transaction, whose saves Citus does not hand
    # over to workers.
    coordinator: Node
    worker: Node


@pytest.fixture(scope="session")
def nodes(django_db_setup: None) -> Iterator[Nodes]:
    programs = programs_with_citus()
    if not (settings.SERVERS and programs):
        pytest.skip("Citus is not built here; provisioning/run cluster builds it")
    run = Path(settings.SERVERS)
    number = os.getpid() % 10_000 * 2
    with ExitStack() as stack:
        enter = stack.enter_context
        ports = [5500 + number, 5501 + number]
        write_nodes(run, ports, programs)
        node, worker = (enter(new_node(run, port, programs)) for port in ports)
        name = connection.settings_dict["NAME"]
        dump = subprocess.run(  # noqa: S603
            [programs / "pg_dump", f"--host={run}", "--port=5432"]
            # Partitions that other tests have left would have the numbers of new ones.
            + ["--exclude-table=survey_response_[0-9]*"]
            + ["--username=postgres", "--schema-only", name],
            check=True,
            capture_output=True,
            text=True,
        )
        node.sql(dump.stdout)
        node.sql(f"SELECT citus_set_coordinator_host('{run}', {node.port})")
        node.sql(f"SELECT citus_add_node('{run}', {worker.port})")
        for each in (node, worker):
            has_shards = str(each is node).lower()
            node.sql(
                f"SELECT citus_set_node_property('{run}', {each.port},"
                f" 'shouldhaveshards', {has_shards})"
            )
        node.sql("\n".join(["BEGIN;", *distribution_sql(), "COMMIT;"]))
        node.sql((run / "etc" / "primary" / "grants.sql").read_text())
        for each in (node, worker):
            # To empty the tables, as on the primary.
            each.sql("GRANT SET ON PARAMETER session_replication_role TO groundswell")
        yield Nodes(node, worker)


def empty_cluster(style: Any, connection: Any, **options: Any) -> list[str]:
    one_by_one = "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'"
    routes = "DELETE FROM survey_coderoute"
    return [one_by_one, routes, *sql_flush(style, connection, **options)]


@pytest.fixture(scope="module")
def product_on_cluster(nodes: Nodes) -> Iterator[None]:
    """Let the application run on the cluster instead of the one primary."""
    before = {name: connection.settings_dict[name] for name in ("PORT", "NAME")}
    connection.close()
    connection.settings_dict |= {"PORT": nodes.coordinator.port, "NAME": "groundswell"}
    with override_settings(IS_DISTRIBUTED=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", empty_cluster)
        yield
    connection.close()
    connection.settings_dict |= before

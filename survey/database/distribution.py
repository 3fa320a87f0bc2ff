"""Write the SQL that lays a database out on the nodes of a Citus cluster.

The models say where each table lies. docs/decisions/0118-citus-layout.md gives the
reasons and prices. One primary needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps

from accounts.tables import tables
from survey.database.sql_files import read_sql

# With their distribution keys. People come first: the others lie beside them.
DISTRIBUTED = {
    model._meta.db_table: model.declaration.key
    for model in tables()
    if model.declaration.key
}
REFERENCE = [
    model._meta.db_table for model in tables() if model.declaration.on_every_node
]
SAVE_FUNCTION = (
    "public.survey_save_page(bigint, bigint, integer, bigint, bigint[], text[], text[],"
    " bigint[], boolean)"
)
ARGUMENT = "person"
HOLD_FUNCTION = "public.survey_hold_shard(bigint)"


def distribution_sql() -> Iterator[str]:
    """Yield the statements that distribute a migrated database, for one transaction.

    The database is one of a coordinator that knows its workers.
    """
    # Citus would otherwise use several connections to a node, and refuse to change
    # tables that depend on each other.
    yield "SET LOCAL citus.multi_shard_modify_mode TO 'sequential';"
    yield "SET LOCAL client_min_messages TO warning;"
    yield "SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO 0;"
    distributed = ", ".join(f"'{table}'" for table in DISTRIBUTED)
    yield read_sql("drop_crossing_constraints").replace("{distributed}", distributed)
    for table in REFERENCE:
        yield f"SELECT create_reference_table('public.{table}');"
    for table, key in DISTRIBUTED.items():
        beside = "none" if table == "survey_respondent" else "public.survey_respondent"
        yield (
            f"SELECT create_distributed_table('public.{table}', '{key}',"
            f" colocate_with => '{beside}');"
        )
    yield read_sql("code_routes")
    yield "SELECT create_distributed_table('public.survey_coderoute', 'digest');"
    yield read_sql("hold_shard")
    yield f"ALTER FUNCTION {HOLD_FUNCTION} OWNER TO groundswell;"
    yield f"SELECT create_distributed_function('{HOLD_FUNCTION}');"
    yield read_sql("save_page")
    yield f"ALTER FUNCTION {SAVE_FUNCTION} OWNER TO groundswell;"
    yield (
        f"SELECT create_distributed_function('{SAVE_FUNCTION}', '{ARGUMENT}',"
        " colocate_with => 'public.survey_respondent');"
    )
    yield from functions_sql()
    yield read_sql("restart_sequences")


def functions_sql() -> Iterator[str]:
    """Yield the functions of a cluster that a migration may have replaced."""
    yield read_sql("functions_on_cluster")


def dropped_references() -> list[tuple[str, str]]:
    """Return tables and columns whose foreign keys to people a cluster drops."""
    fields: list[Any] = [
        field for model in apps.get_models() for field in model._meta.local_fields
    ]
    return [
        (field.model._meta.db_table, field.column)
        for field in fields
        if field.many_to_one or field.one_to_one
        if field.db_constraint
        if field.related_model._meta.db_table == "survey_respondent"
    ]

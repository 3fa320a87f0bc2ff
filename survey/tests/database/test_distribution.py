"""Each table says where it lies on a Citus cluster."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection

from accounts.tables import tables
from survey.database.distribution import (
    DISTRIBUTED,
    distribution_sql,
    dropped_references,
)

MODELS = apps.get_models(include_auto_created=True)


def test_every_model_declares_its_table():
    """A model derives from Table, which says what a cluster, a merge and roles do."""
    declared = {*tables(), *(model for model in MODELS if model._meta.auto_created)}
    packages = ("allauth.", "django.")
    assert [
        model
        for model in MODELS
        if model not in declared and not model.__module__.startswith(packages)
    ] == []


@pytest.mark.parametrize("table", DISTRIBUTED)
def test_every_key_of_a_distributed_table_has_its_distribution_key(table):
    model = next(model for model in MODELS if model._meta.db_table == table)
    column = DISTRIBUTED[table]
    primary_key = [field.column for field in model._meta.pk_fields]
    assert column in primary_key
    without_key = {
        field.name
        for field in model._meta.local_concrete_fields
        if field.unique and not field.primary_key
    }
    # Its codes are unique in survey_coderoute.
    assert without_key == ({"code_digest"} if table == "survey_respondent" else set())


def test_the_sql_drops_foreign_keys_to_people_and_names_each_distributed_table():
    text = "\n".join(distribution_sql())
    assert all(f"'public.{table}'" in text for table in DISTRIBUTED)
    assert ("survey_identity", "respondent_id") in dropped_references()


@pytest.mark.skipif(
    not getattr(settings, "SERVERS", ""), reason="the function is PostgreSQL's"
)
def test_the_dropped_constraint_of_codes_has_this_name(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conname = 'survey_respondent_code_digest_key'"
        )
        assert cursor.fetchall() == [("UNIQUE (code_digest)",)]

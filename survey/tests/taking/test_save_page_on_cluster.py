"""The contract of `save_page`, fulfilled by the function of a Citus cluster.

On one server, the partition of the administration stands for the shard.
"""

from __future__ import annotations

import pytest
from django.conf import settings
from django.db import connection

from survey.database.sql_files import read_sql
from survey.tests.taking import test_save_page as contract

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not settings.SERVERS, reason="the function is PostgreSQL's"),
]
# Not those that look into the statement of one primary, or remove a part of it.
OTHERS = {
    "test_without_the_revision_guard_a_late_save_would_overwrite",
    "test_without_the_exact_revision_it_would_undo_them",
    "test_with_its_guard_as_a_filter_it_would_be_stored_in_part",
    "test_with_a_range_of_revisions_it_would_replace_that_row",
    "test_a_statement_commits_on_its_own",
    "test_every_respondent_has_a_different_code",
}
# Without Citus, only a superuser may set it.
SETTING = "SET citus.enable_manual_changes_to_shards = on\n"
SHARD = """
CREATE FUNCTION get_shard_id_for_distribution_column(of_table text, person bigint)
RETURNS bigint LANGUAGE sql AS
'SELECT administration_id FROM survey_respondent WHERE id = person'
"""
HOLD = """
CREATE FUNCTION survey_hold_shard(shard bigint) RETURNS boolean LANGUAGE sql
AS 'SELECT true'
"""
SAVE_PAGE = read_sql("save_page").replace(SETTING, "")


@pytest.fixture(autouse=True)
def cluster(db, settings):
    settings.IS_DISTRIBUTED = True
    with connection.cursor() as cursor:
        cursor.execute(SHARD)
        cursor.execute(HOLD)
        cursor.execute(SAVE_PAGE)


for name, function in vars(contract).items():
    if name.startswith("test_") and name not in OTHERS:
        globals()[name] = function


def test_without_the_conflict_rule_a_late_save_would_overwrite(maya):
    text = SAVE_PAGE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    rule = text[text.index("revision = CASE") : text.index("END\n        WHERE")]
    without = text.replace(f"{rule}END", "revision = excluded.revision")
    with connection.cursor() as cursor:
        cursor.execute(without)
    contract.save(maya, contract.SPORT, revision=11)
    contract.save(maya, contract.ART, revision=10)
    assert contract.stored(maya) == contract.ART

"""A shard that moves to another node of a Citus cluster loses no answer."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection, transaction

from provisioning.commands import Refusal
from survey.database.respondent_locks import lock_respondents
from survey.database.sql_files import read_sql
from survey.models import Respondent, Response
from survey.taking.storage import Outcome
from survey.tests.taking.test_save_page import ART, SPORT, save, stored

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("product_on_cluster"),
]
SHARD = "SELECT get_shard_id_for_distribution_column('public.survey_response', {})"
MOVE = (
    "SET lock_timeout = '500ms';"
    " SELECT citus_move_shard_placement({}, '{}', {}, '{}', {}, 'block_writes')"
)


@pytest.fixture
def move(nodes):
    """Return a function that moves a person's shard to the worker."""
    coordinator, run, port = nodes.coordinator, nodes.coordinator.run, nodes.worker.port
    has_shards = f"SELECT citus_set_node_property('{run}', {port}, 'shouldhaveshards',"
    # Otherwise the old copy is deleted within seconds.
    coordinator.sql("ALTER SYSTEM SET citus.defer_shard_delete_interval = -1")
    coordinator.sql(f"SELECT pg_reload_conf(); {has_shards} true)")
    moved = []

    def move(person, source=nodes.coordinator, target=nodes.worker):
        [[shard]] = coordinator.sql(SHARD.format(person.pk))
        places = (run, source.port, run, target.port)
        coordinator.sql(MOVE.format(shard, *places))
        moved.append(person)
        return shard

    yield move
    coordinator.sql("CALL citus_cleanup_orphaned_resources()")
    for person in moved[:]:
        move(person, nodes.worker, nodes.coordinator)
    coordinator.sql("CALL citus_cleanup_orphaned_resources()")
    coordinator.sql("ALTER SYSTEM RESET citus.defer_shard_delete_interval")
    coordinator.sql(f"SELECT pg_reload_conf(); {has_shards} false)")


def test_answers_move_with_their_shard(maya, move):
    assert save(maya, SPORT, revision=10).outcome is Outcome.SAVED
    move(maya)
    assert stored(maya) == SPORT
    assert save(maya, ART, revision=11).outcome is Outcome.SAVED
    assert stored(maya) == ART


def save_late(person):
    """Save as a call that was planned before the move: where the shard was.

    In a transaction, Citus does not hand the call over.
    """
    with transaction.atomic():
        return save(person, SPORT, revision=10).outcome


def test_a_save_that_arrives_where_the_shard_was_is_refused(maya, move):
    move(maya)
    with pytest.raises(OperationalError, match="The shard of this person was moved"):
        save_late(maya)
    assert save(maya, SPORT, revision=10).outcome is Outcome.SAVED


def test_without_the_check_its_answers_would_go_to_the_old_copy(maya, move, nodes):
    text = read_sql("save_page").replace(
        "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
    )
    check = "IF NOT public.survey_hold_shard(shard)"
    assert check in text
    shard = move(maya)
    try:
        nodes.coordinator.sql(text.replace(check, "IF false"))
        assert save_late(maya) is Outcome.SAVED
    finally:
        nodes.coordinator.sql(text)
    assert not Response.objects.exists()
    copy = f"SELECT respondent_id FROM survey_response_{shard}"
    assert [str(maya.pk)] in nodes.coordinator.sql(copy)


def test_a_shard_waits_for_those_who_have_locked_its_people(maya, move):
    with transaction.atomic():
        assert lock_respondents(Respondent.objects.all()) == [maya]
        with pytest.raises(Refusal, match="lock timeout"):
            move(maya)
    move(maya)


def test_locks_of_rows_alone_would_stay_behind(maya, move):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM survey_respondent WHERE id = %s FOR UPDATE", [maya.pk]
        )
        assert cursor.fetchall() == [(maya.pk,)]
        move(maya)

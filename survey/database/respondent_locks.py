"""Lock the rows of many respondents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from survey.models import Respondent

Row = TypeVar("Row")
BY_SHARD = """
SELECT people, survey_hold_shard(shard) FROM (
    SELECT shard, array_agg(person) people FROM (
        SELECT person, get_shard_id_for_distribution_column(
            'public.survey_respondent', person) shard
        FROM unnest(%s::bigint[]) person
    ) placed
    GROUP BY shard ORDER BY shard
) sorted
"""


def lock_respondents(
    rows: QuerySet[Respondent, Row], *, no_key: bool = False, of: Sequence[str] = ()
) -> list[Row]:
    """Return rows of respondents, locked in an order that all callers share.

    1 statement. On a cluster 3, and 1 for each shard in which they lie: Citus refuses
    SELECT ... FOR UPDATE of several shards. No shard is moved before the end of the
    transaction, which would leave the locks behind. Whoever no longer matches once all
    are locked is left out, as PostgreSQL itself does after waiting for a lock.
    """
    if not settings.IS_DISTRIBUTED:
        return list(rows.select_for_update(no_key=no_key, of=of).order_by("pk"))
    keys = list(rows.order_by().values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(BY_SHARD, [keys])
        shards = cursor.fetchall()
    people = Respondent.objects.select_for_update(no_key=no_key).order_by("pk")
    for of_shard, _ in shards:
        list(people.filter(pk__in=of_shard).values_list("pk"))
    return list(rows.filter(pk__in=keys).order_by("pk"))

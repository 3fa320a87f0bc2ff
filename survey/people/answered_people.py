"""Find out who has stored answers, without reading an answer."""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection

from survey.models import Response


def answered_people(administration_id: int, people: Collection[int]) -> set[int]:
    """Return those of `people` who have an answer. 1 statement.

    Workers may not read responses: on PostgreSQL a function of the database does it,
    and returns keys only.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT survey_answered_people(%s, %s)",
                [administration_id, list(people)],
            )
            return {pk for (pk,) in cursor.fetchall()}
    answers = Response.objects.filter(
        administration_id=administration_id, respondent_id__in=people
    )
    return set(answers.values_list("respondent_id", flat=True).distinct())

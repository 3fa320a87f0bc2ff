"""Return the seats of limited codes that were taken and not used."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from survey.models import OpenCodeSeat, Respondent, Response

USED_WITHIN = timedelta(days=1)


def return_unused_seats() -> int:
    """Withdraw people without an answer a day after their start; return their number.

    Their seats are free for others, so their codes must not be used any more.
    """
    before = timezone.now() - USED_WITHIN
    if connection.vendor == "postgresql":
        # A function that runs as the tables' owner: migration 0004.
        with connection.cursor() as cursor:
            cursor.execute("SELECT survey_return_seats(%s)", [before])
            [returned] = cursor.fetchone()
        return returned
    answers = Response.objects.filter(
        administration_id=OuterRef("respondent__administration_id"),
        respondent_id=OuterRef("respondent_id"),
    )
    with transaction.atomic():
        unused = OpenCodeSeat.objects.filter(~Exists(answers), claimed_at__lt=before)
        people = list(unused.values_list("respondent", flat=True))
        Respondent.objects.filter(pk__in=people, withdrawn_at=None).update(
            withdrawn_at=timezone.now()
        )
        seats = OpenCodeSeat.objects.filter(respondent__in=people)
        return seats.update(respondent=None, claimed_at=None)

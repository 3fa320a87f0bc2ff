"""Delete starts without any answer, some time after their administration closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from accounts import audit
from survey.models import (
    Administration,
    Denominator,
    DeviceLogin,
    OpenCode,
    OpenCodeSeat,
    Respondent,
    Response,
)

# Pages are accepted for ten minutes after closing, and again if the administration
# is reopened. A browser keeps pages that were not sent for seven days after the
# closing that it knows (`KEPT_AFTER_CLOSING` in `store.js`). Twice as long, because
# the closing may have been brought forward since.
KEPT_AFTER_CLOSING = timedelta(days=14)
# Starts that are looked at, and locked, at once.
BATCH = 1000


def delete_empty_starts() -> int:
    """Delete people who began with an open code and gave no answer; return how many.

    Once after each closing of an administration, in batches.
    """
    before = timezone.now() - KEPT_AFTER_CLOSING
    is_new = Q(empty_starts_deleted_at=None) | Q(
        empty_starts_deleted_at__lt=F("closes_at")
    )
    closed = Administration.objects.filter(
        is_new, denominator=Denominator.COUNT, closes_at__lt=before
    )
    total = 0
    for administration in closed.select_related("district").order_by("pk"):
        deleted = sum(_batches(administration))
        with transaction.atomic():
            same_closing = Administration.objects.filter(
                pk=administration.pk, closes_at=administration.closes_at
            )
            same_closing.update(empty_starts_deleted_at=timezone.now())
            if deleted:
                audit.record(
                    "delete starts without answers",
                    by="delete_empty_starts",
                    subject=administration,
                    district=administration.district,
                    after={"starts": deleted},
                )
        total += deleted
    return total


def _batches(administration: Administration) -> Iterator[int]:
    """Delete in short transactions; yield how many each of them deleted."""
    before = timezone.now() - KEPT_AFTER_CLOSING
    if connection.vendor != "postgresql":
        while deleted := _delete_in_sqlite(administration, before):
            yield deleted
        return
    after: int | None = 0
    while after is not None:
        # A function that runs as the tables' owner: migration 0004.
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT deleted, last FROM survey_delete_empty_starts(%s, %s, %s, %s)",
                [administration.pk, before, after, BATCH],
            )
            deleted, after = cursor.fetchone()
        yield deleted


def _delete_in_sqlite(administration: Administration, before: datetime) -> int:
    answers = Response.objects.filter(
        administration_id=administration.pk, respondent_id=OuterRef("pk")
    )
    with transaction.atomic():
        people = Respondent.objects.filter(
            ~Exists(answers),
            administration=administration,
            administration__closes_at__lt=before,
            open_code__isnull=False,
        )
        codes = dict(people.values_list("pk", "open_code")[:BATCH])
        for code, starts in Counter(codes.values()).items():
            OpenCode.objects.filter(pk=code).update(
                empty_starts_deleted=F("empty_starts_deleted") + starts
            )
        seats = OpenCodeSeat.objects.filter(respondent__in=codes)
        seats.update(respondent=None, claimed_at=None)
        DeviceLogin.objects.filter(respondent__in=codes).delete()
        Respondent.objects.filter(pk__in=codes).delete()
    return len(codes)

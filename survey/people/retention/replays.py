"""Destroy once more what a restored backup has again; the journal names it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Least
from django.utils import timezone

from accounts import audit
from survey.models import Administration, DataKind, Destruction, LegalHold
from survey.people.certificates.digests import new_key
from survey.people.certificates.journal import JournalError, description_of
from survey.people.certificates.replay import Result, replays
from survey.people.retention.certificates import reason_not_to_certify
from survey.people.retention.destroy import destroy_rows_of
from survey.people.retention.holds import OnHold

State = Destruction.State
REASON = "replay of a restored backup"
BY = "replay_erasures"


@replays(DataKind.IDENTITIES.value)
@replays(DataKind.ANSWERS.value)
def replay_destruction(entry: Mapping[str, Any], result: Result) -> None:
    """Destroy what the entry names of rounds that the database has.

    A round that has only the number of the entry's is left as it is, and noted. Raises
    JournalError where nothing can be destroyed.
    """
    if reason := reason_not_to_certify():
        raise JournalError(reason)
    for described in entry["rounds"]:
        rounds = Administration.objects.filter(pk=described["number"])
        administration = rounds.first()
        if administration is None:
            continue
        if is_described(administration, described):
            result.rows += _replay(administration, described, entry)
        else:
            result.rounds_not_the_same.append(administration.pk)


def is_described(administration: Administration, described: Mapping[str, Any]) -> bool:
    """Return whether a round is the one that the journal describes."""
    current = description_of(administration)
    # It may have been closed earlier than the backup says.
    return {**current, "closes_at": ""} == {**described, "closes_at": ""}


def _replay(
    administration: Administration,
    described: Mapping[str, Any],
    entry: Mapping[str, Any],
) -> int:
    kind, destroyed_at = entry["kind"], datetime.fromisoformat(entry["destroyed_at"])
    closed_at = datetime.fromisoformat(described["closes_at"])
    with transaction.atomic():
        marked = Administration.objects.filter(
            pk=administration.pk, **{f"{kind}_destroyed_at": None}
        )
        # As it was closed when it was destroyed: data of an open round stay.
        marked.update(
            closes_at=Least(F("closes_at"), closed_at),
            **{f"{kind}_destroyed_at": timezone.now()},
        )
        destruction, _created = Destruction.objects.get_or_create(
            administration=administration,
            kind=kind,
            state__in=Destruction.ORDERED,
            defaults={
                "state": State.RUNNING,
                "reason": REASON,
                "digest_key": new_key(),
            },
        )
        if destruction.state == State.DONE:
            return 0
        # Also of the state's round that this one adds pages to.
        rounds = [administration.pk, administration.module_of_id]
        placed = LegalHold.objects.current().filter(administration__in=rounds)
        _lift(placed.filter(placed_at__lt=destroyed_at), administration)
    try:
        destroy_rows_of(destruction)
    except OnHold as hold:
        # Placed later: somebody has worked in the database since it was restored.
        raise JournalError(str(hold)) from hold
    destruction.refresh_from_db()
    return destruction.rows


def _lift(holds: QuerySet[LegalHold], administration: Administration) -> None:
    """Lift holds once more that the backup still has.

    They were lifted before the round was destroyed, or it would not have been. By whom
    is not known here: whoever placed one stands for them, and the reason says so.
    """
    for hold in holds.select_related("district").order_by("pk"):
        hold.lifted_at = timezone.now()
        hold.lifted_by_id = hold.placed_by_id
        hold.lifted_reason = f"{REASON}: it was lifted before the data were destroyed"
        hold.save(update_fields=["lifted_at", "lifted_by", "lifted_reason"])
        audit.record(
            "lift a hold",
            by=BY,
            subject=administration,
            district=hold.district or administration.district,
            before={"holder": hold.holder, "reason": hold.reason},
            after={"reason": hold.lifted_reason},
        )

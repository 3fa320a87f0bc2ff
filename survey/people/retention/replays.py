"""Destroy once more what a restored backup has again; the journal names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from survey.models import Administration, DataKind, Destruction
from survey.people.certificates.digests import new_key
from survey.people.certificates.journal import JournalError
from survey.people.certificates.replay import replays
from survey.people.retention.certificates import reason_not_to_certify
from survey.people.retention.destroy import destroy_rows_of
from survey.people.retention.holds import OnHold

State = Destruction.State


@replays(DataKind.IDENTITIES.value)
@replays(DataKind.ANSWERS.value)
def replay_destruction(entry: Mapping[str, Any]) -> int:
    """Destroy what the entry names of rounds that the database has; return the rows.

    Raises JournalError where nothing can be destroyed.
    """
    if reason := reason_not_to_certify():
        raise JournalError(reason)
    return sum(_replay(pk, entry["kind"]) for pk in entry["administrations"])


def _replay(administration: int, kind: str) -> int:
    rounds = Administration.objects.filter(pk=administration)
    if not rounds.exists():
        return 0
    with transaction.atomic():
        marked = rounds.filter(**{f"{kind}_destroyed_at": None})
        marked.update(**{f"{kind}_destroyed_at": timezone.now()})
        destruction, _created = Destruction.objects.get_or_create(
            administration_id=administration,
            kind=kind,
            state__in=Destruction.ORDERED,
            defaults={
                "state": State.RUNNING,
                "reason": "replay of a restored backup",
                "digest_key": new_key(),
            },
        )
    if destruction.state == State.DONE:
        return 0
    try:
        destroy_rows_of(destruction)
    except OnHold as hold:
        # The backup is from before it was lifted.
        raise JournalError(str(hold)) from hold
    destruction.refresh_from_db()
    return destruction.rows

"""Warn the owner's administrators a month before data are destroyed, once."""

from __future__ import annotations

import logging
from datetime import date, datetime

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from accounts import audit
from accounts.email_outbox import Facts, queue_emails, writes
from accounts.models import District, Membership, QueuedEmail
from accounts.time_zones import zone_of
from survey.models import Administration, Retention
from survey.people.retention.terms import WARNING, Term, current_term

log = logging.getLogger(__name__)
KIND = "retention warning"


def administrators_of(district: District | None) -> list[str]:
    """Return the addresses of a district's administrators; else of the state's."""
    current = Membership.objects.current().filter(user__is_active=True)
    of_state = current.filter(role=Membership.Role.STATE)
    if district is None:
        return _addresses(of_state)
    of_district = current.filter(role=Membership.Role.DISTRICT, district=district)
    return _addresses(of_district) or _addresses(of_state)


def _addresses(memberships: QuerySet[Membership]) -> list[str]:
    return sorted(set(memberships.values_list("user__email", flat=True)))


@transaction.atomic
def warn(administration: Administration, kind: str, now: datetime) -> bool:
    """Send a warning, once after each closing; return False if nobody was warned.

    Without an administrator nothing is destroyed. What was ordered before a hold goes
    on a month after the warning, whatever its period is by now.
    """
    Retention.objects.get_or_create(administration=administration)
    row = Retention.objects.select_for_update().get(administration=administration)
    term = current_term(administration.pk, kind)
    has_end = term.ends_at is not None or term.destroyed_at is not None
    if term.warned_at is not None or not has_end or term.closes_at > now:
        return False
    addresses = administrators_of(administration.district)
    if not addresses:
        log.error("nobody is warned that data of %s end", administration.pk)
        return False
    setattr(row, f"{term.kind}_warned_at", now)
    row.save(update_fields=[f"{term.kind}_warned_at"])
    due_at = max(term.ends_at or now, now + WARNING)
    day = due_at.astimezone(zone_of(administration.district)).date().isoformat()
    facts: Facts = {
        "title": administration.title,
        "kind": str(term.kind.value),
        "day": day,
        "address": reverse("administration_retention", args=[administration.pk]),
    }
    queue_emails(KIND, dict.fromkeys(addresses, facts))
    audit.record(
        "warn of the end of data",
        by="apply_retention",
        subject=administration,
        district=administration.district,
        after={"data": str(term.kind.value), "day": day, "e-mails": len(addresses)},
    )
    return True


def withdraw_warning(administration: Administration, term: Term) -> None:
    """Forget a warning whose date no longer holds, so that a later one is sent."""
    Retention.objects.filter(administration=administration).update(
        **{f"{term.kind}_warned_at": None}
    )


@writes(KIND)
def day_of_destroying(email: QueuedEmail) -> Facts:
    return {"day": date.fromisoformat(email.facts["day"])}

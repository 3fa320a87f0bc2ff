"""Order that data are destroyed: at the end of their period, or by hand."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.permissions import Permissions
from survey.fieldwork.administrations.queries import may_manage
from survey.models import Administration, Destruction, Job
from survey.people.certificates.digests import new_key
from survey.people.retention.certificates import reason_not_to_certify
from survey.people.retention.destroy import KIND, destroy_data, warned_words
from survey.people.retention.holds import OnHold, held_rounds, refuse_if_held
from survey.people.retention.hooks import reason_to_wait
from survey.people.retention.notices import warn, withdraw_warning
from survey.people.retention.round_files import BY
from survey.people.retention.terms import (
    WARNING,
    Settings,
    Term,
    current_term,
    is_settled,
    terms_of,
)
from survey.work.jobs import start

log = logging.getLogger(__name__)
State = Destruction.State


class DestructionRefused(Exception):
    """Nothing was destroyed; the message says why."""


@transaction.atomic
def order_destruction(
    administration: Administration,
    kind: str,
    *,
    by: User | None = None,
    reason: str = "",
    request: HttpRequest | None = None,
) -> Destruction:
    """Start the job that destroys data of a closed round; nothing takes it back.

    From now on nothing brings these data back: no roster, no reopening. Raises
    PermissionDenied, DestructionRefused, and OnHold.
    """
    rows = Administration.objects.select_related("published__survey", "district").defer(
        "published__definition", "published__survey__source"
    )
    current = rows.select_for_update(of=("self",), no_key=True).get(
        pk=administration.pk
    )
    if by is not None and not may_manage(Permissions(by), current):
        raise PermissionDenied
    refuse_if_held([current.pk])
    if refusal := reason_not_to_destroy(current, kind):
        raise DestructionRefused(refusal)
    now = timezone.now()
    Administration.objects.filter(pk=current.pk).update(
        **{f"{kind}_destroyed_at": now}, changes=F("changes") + 1
    )
    destruction = Destruction.objects.create(
        administration=current,
        kind=kind,
        state=State.RUNNING,
        by=by,
        reason=reason,
        ordered_at=now,
        digest_key=new_key(),
    )
    audit.record(
        "order a destruction",
        by=by or BY,
        request=request,
        subject=current,
        district=current.district,
        after={"data": kind, "reason": reason},
    )
    start(destroy_data, subject_id=destruction.pk, by=by)
    return destruction


def reason_not_to_destroy(administration: Administration, kind: str) -> str:
    """Return why data cannot be destroyed now, apart from holds, or "".

    About 8 statements.
    """
    [term] = [term for term in terms_of(administration) if term.kind == kind]
    if term.destroyed_at is not None:
        return _("This was ordered before.")
    if not is_settled(administration):
        return _("Data can be destroyed from a day after the closing.")
    return reason_not_due(term, timezone.now()) or reason_to_wait(administration, kind)


def reason_not_due(term: Term, now: datetime) -> str:
    """Return why the period or the month after the warning is not over, or ""."""
    if term.is_due(now):
        return ""
    if term.ends_at is None:
        return _(
            "They are kept, because no period was set. Set a period: a warning is sent"
            " a month before it ends."
        )
    if term.warned_at is None:
        return _(
            "Administrators have not been warned yet. Set a period: a warning is sent a"
            " month before."
        )
    if not term.was_warned_long_ago(now):
        return warned_words(term.warned_at)
    words = _("The period ends on %(day)s. Nothing is destroyed before.")
    return words % {"day": date_format(localtime(term.ends_at), "DATE_FORMAT")}


def apply_retention(now: datetime | None = None) -> None:
    """Warn of what ends in a month, destroy what is due, go on with what stopped."""
    now = now or timezone.now()
    _resume(now)
    for administration, term in _unended(now):
        try:
            _apply(administration, term, now)
        except (DestructionRefused, OnHold) as refusal:
            # Tried again the next time, as after an export.
            log.info("%s of %s wait: %s", term.kind, administration.pk, refusal)
        except Exception:
            # One round must not keep others from their end.
            log.exception("retention of %s failed", administration.pk)


def _resume(now: datetime) -> None:
    """Start the jobs of destructions again that were interrupted or had to wait.

    After a hold, administrators are warned anew, and a month passes.
    """
    running = Job.objects.filter(kind=KIND, ended_at=None)
    stopped = Destruction.objects.filter(state=State.RUNNING).exclude(
        Q(pk__in=running.values("subject_id")) | Q(administration__in=held_rounds())
    )
    related = ("by", "administration__published__survey", "administration__district")
    for destruction in stopped.select_related(*related):
        try:
            term = current_term(destruction.administration_id, destruction.kind)
            if term.warned_at is None:
                warn(destruction.administration, destruction.kind, now)
            elif term.was_warned_long_ago(now):
                start(destroy_data, subject_id=destruction.pk, by=destruction.by)
        except Exception:
            # One round must not keep others from their end.
            log.exception("destruction %s does not go on", destruction.pk)


def _unended(now: datetime) -> Iterator[tuple[Administration, Term]]:
    """Yield the terms of closed rounds that nobody holds. 2 statements."""
    settings = Settings()
    closed = (
        Administration.objects.filter(closes_at__lte=now)
        .filter(Q(identities_destroyed_at=None) | Q(answers_destroyed_at=None))
        .exclude(pk__in=held_rounds())
        .select_related("published__survey", "district", "retention")
        .defer("published__definition", "published__survey__source")
    )
    for administration in closed.order_by("closes_at", "pk"):
        for term in terms_of(administration, settings.levels_of(administration)):
            if term.destroyed_at is None:
                yield administration, term


def _apply(administration: Administration, term: Term, now: datetime) -> None:
    ends_at = term.ends_at
    if ends_at is None or ends_at > now + WARNING:
        # The period was lengthened, or the round opened again: a new date, of which
        # they are warned again.
        if term.warned_at is not None:
            withdraw_warning(administration, term)
    elif term.warned_at is None:
        warn(administration, term.kind, now)
    elif term.is_due(now):
        # The console has no keys: there it is the job that refuses.
        if reason := reason_not_to_certify():
            raise DestructionRefused(reason)
        order_destruction(administration, term.kind)

"""Count what became of the e-mails of a schedule, for the people who manage it.

Where it is confidential who has finished, all figures are in tens: reminders go
to people who have not finished, so "1 reminder sent" to a roster with one address
would tell about one person.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.core.cache import cache
from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils.translation import gettext as _

from survey.models import EmailDelivery, EmailSchedule, EmailStep, SuppressedAddress

State = EmailDelivery.State
# The smallest number of people that is told from none.
SMALLEST = 10
# Seconds. Counting reads the whole ledger of a schedule.
KEPT = 10
COUNTED = ("sent", "bounced", "failed", "unconfirmed", "waiting", "repeated")
NOTHING = dict.fromkeys((*COUNTED, "finished_since", "opted_out"), 0)


class Figures(NamedTuple):
    """What became of one e-mail, or of all of them, in words for a page."""

    sent: str
    bounced: str
    failed: str
    # The mail server received the text and did not answer. Part of `failed`.
    unconfirmed: str
    # To be tried again. Part of `failed`.
    waiting: str
    # Perhaps sent twice, because a worker stopped while it was sending them.
    repeated: str
    # After they were sent this e-mail.
    finished_since: str
    opted_out: str


class ScheduleFigures(NamedTuple):
    total: Figures
    by_step: dict[int, Figures]


def read_figures(schedule: EmailSchedule) -> ScheduleFigures:
    """Return figures that are at most KEPT seconds old. 1 statement, or none."""
    key = f"email-figures/{schedule.pk}"
    counts: dict[int, dict[str, int]] | None = cache.get(key)
    if counts is None:
        counts = _count(schedule)
        cache.set(key, counts, KEPT)
    is_rounded = schedule.administration.is_completion_confidential
    total = {name: sum(row[name] for row in counts.values()) for name in NOTHING}
    # Everybody was invited, so the invitation counts each person once.
    invited = next((row for row in counts.values() if row["is_first"]), NOTHING)
    total |= {name: invited[name] for name in ("finished_since", "opted_out")}
    return ScheduleFigures(
        _in_words(total, is_rounded),
        {pk: _in_words(row, is_rounded) for pk, row in counts.items()},
    )


def _count(schedule: EmailSchedule) -> dict[int, dict[str, int]]:
    opted_out = SuppressedAddress.objects.filter(
        pk=OuterRef("address_digest"),
        reason__in=(
            SuppressedAddress.Reason.OPTED_OUT,
            SuppressedAddress.Reason.COMPLAINED,
        ),
    )
    sent = Q(state=State.SENT)
    unconfirmed = Q(reason=EmailDelivery.Reason.UNCONFIRMED)
    rows: Any = (
        EmailDelivery.objects.filter(step__schedule=schedule)
        .values("step", "step__kind")
        .annotate(
            sent=Count("pk", filter=sent),
            bounced=Count("pk", filter=Q(state=State.BOUNCED)),
            failed=Count("pk", filter=Q(state=State.FAILED)),
            unconfirmed=Count("pk", filter=Q(state=State.FAILED) & unconfirmed),
            waiting=Count("pk", filter=Q(retry_at__isnull=False)),
            repeated=Count("pk", filter=Q(repeated=True)),
            finished_since=Count(
                "pk",
                filter=sent
                & Q(
                    respondent__completed_at__gt=F("recorded_at"),
                    respondent__declined_at=None,
                ),
            ),
            opted_out=Count("pk", filter=Exists(opted_out)),
        )
    )
    return {
        row["step"]: {
            **{name: row[name] for name in NOTHING},
            "is_first": row["step__kind"] == EmailStep.Kind.INVITATION,
        }
        for row in rows
    }


def _in_words(counts: dict[str, int], is_rounded: bool) -> Figures:
    return Figures(
        **{
            name: in_tens(counts[name]) if is_rounded else f"{counts[name]:,}"
            for name in NOTHING
        }
    )


def in_tens(count: int) -> str:
    """Return a number of people in which no single person can be seen."""
    if count < SMALLEST:
        return _("under %(smallest)s") % {"smallest": SMALLEST}
    return f"{count - count % SMALLEST:,}+"


def no_figures(*, is_rounded: bool) -> Figures:
    return _in_words(NOTHING, is_rounded)

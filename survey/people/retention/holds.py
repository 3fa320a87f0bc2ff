"""Refuse to destroy or erase what somebody holds."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from survey.database import advisory_locks
from survey.fieldwork.administrations.checks import ChangeBlocked
from survey.fieldwork.administrations.removal import before_removal
from survey.models import Administration, LegalHold


class OnHold(Exception):
    """Nothing was changed; the message says who holds the data, and why."""

    def __init__(self, hold: LegalHold) -> None:
        super().__init__(explain(hold))


def explain(hold: LegalHold) -> str:
    """Say who holds the data of a survey round, since when and why.

    `administration` should be selected with what its title reads.
    """
    return _(
        "The data of %(title)s are on hold since %(day)s: %(reason)s. They are held by"
        " %(holder)s. Nothing of it can be deleted until the hold is lifted."
    ) % {
        "title": hold.administration.title,
        "day": date_format(localtime(hold.placed_at), "DATE_FORMAT"),
        "reason": hold.reason.rstrip("."),
        "holder": hold.holder,
    }


def hold_on(
    administrations: Collection[int], district: int | None = None
) -> LegalHold | None:
    """Return a hold on one of these rounds; on people of a district if given.

    1 statement.
    """
    holds = LegalHold.objects.current().filter(administration__in=administrations)
    if district is not None:
        holds = holds.filter(Q(district=None) | Q(district=district))
    titles = "administration__published__survey"
    return holds.select_related(titles).order_by("placed_at").first()


def refuse_if_held(
    administrations: Collection[int], district: int | None = None
) -> None:
    """Let new holds wait until the transaction ends. Raises OnHold.

    1 statement, and 1 for each of these rounds.
    """
    for key in sorted(administrations):
        advisory_locks.lock_shared(advisory_locks.HOLDS, key)
    if hold := hold_on(administrations, district):
        raise OnHold(hold)


@before_removal
def refuse_to_remove(administration: Administration) -> None:
    """Keep a round on hold, also one in which nobody has started."""
    try:
        refuse_if_held([administration.pk])
    except OnHold as hold:
        raise ChangeBlocked(str(hold)) from hold

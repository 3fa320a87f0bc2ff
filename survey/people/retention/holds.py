"""Refuse to destroy or erase what somebody holds."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet
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

    A hold on the state's round is on its modules too. 1 statement.
    """
    holds = LegalHold.objects.current().of_rounds(administrations)
    if district is not None:
        holds = holds.filter(Q(district=None) | Q(district=district))
    titles = "administration__published__survey"
    return holds.select_related(titles).order_by("placed_at").first()


def refuse_if_held(
    administrations: Collection[int], district: int | None = None
) -> None:
    """Let new holds wait until the transaction ends. Raises OnHold.

    2 statements, and 1 for each of these rounds and of those they are modules of.
    """
    state_rounds = Administration.objects.filter(modules__in=administrations)
    keys = {*administrations, *state_rounds.values_list("pk", flat=True)}
    for key in sorted(keys):
        advisory_locks.lock_shared(advisory_locks.HOLDS, key)
    if hold := hold_on(administrations, district):
        raise OnHold(hold)


def held_rounds() -> QuerySet[Administration, int]:
    """Return the keys of rounds on hold, and of their modules, for a subquery."""
    held = LegalHold.objects.current().values("administration")
    rounds = Administration.objects.filter(Q(pk__in=held) | Q(module_of__in=held))
    return rounds.values_list("pk", flat=True)


@before_removal
def refuse_to_remove(administration: Administration) -> None:
    """Keep a round on hold, also one in which nobody has started."""
    try:
        refuse_if_held([administration.pk])
    except OnHold as hold:
        raise ChangeBlocked(str(hold)) from hold

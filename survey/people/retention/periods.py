"""Change how long the data of one administration are kept."""

from __future__ import annotations

from collections.abc import Mapping

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.permissions import Permissions
from accounts.place_settings import levels_of
from survey.fieldwork.administrations.queries import may_manage
from survey.models import Administration, Retention
from survey.people.retention.terms import KINDS, MAX_DAYS, Limits, limits_of


def check_days(days: int | None, limits: Limits) -> None:
    """Raise ValidationError where the state does not allow so many days."""
    if days is None:
        return
    if not 1 <= days <= MAX_DAYS:
        words = _("Enter a whole number of days from 1 to %(most)s.")
        raise ValidationError(words % {"most": MAX_DAYS})
    if limits.least is not None and days < limits.least:
        words = _("The state requires at least %(least)s days.")
        raise ValidationError(words % {"least": limits.least})
    if limits.most is not None and days > limits.most:
        words = _("The state allows at most %(most)s days.")
        raise ValidationError(words % {"most": limits.most})


@transaction.atomic
def change_retention(
    administration: Administration,
    days: Mapping[str, int | None],
    *,
    by: User,
    request: HttpRequest | None = None,
) -> bool:
    """Set the days of each kind, None for the owner's; return whether they differ.

    A shorter period never ends within a month: administrators are warned first. Raises
    PermissionDenied, and ValidationError by kind.
    """
    if not may_manage(Permissions(by), administration):
        raise PermissionDenied
    levels = levels_of(administration.district)
    problems = {}
    for kind in KINDS:
        try:
            check_days(days[kind], limits_of(kind, levels))
        except ValidationError as error:
            problems[f"{kind}_days"] = error
    if problems:
        raise ValidationError(problems)
    Retention.objects.get_or_create(administration=administration)
    row = Retention.objects.select_for_update().get(administration=administration)
    before = {f"{kind}_days": row.days(kind) for kind in KINDS}
    after = {f"{kind}_days": days[kind] for kind in KINDS}
    changed = [name for name in after if after[name] != before[name]]
    if not changed:
        return False
    for name in changed:
        setattr(row, name, after[name])
    row.save(update_fields=changed)
    audit.record(
        "change retention",
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )
    return True

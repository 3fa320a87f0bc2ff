"""Release anchored items that have drifted, and anchor them again.

Both are decisions of a person, with a reason, after which the scores of the wave are
calculated again. Earlier waves and published results stay as they are.
"""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from reports.models import Calibration, ReleasedItem
from reports.scores.benchmark import released_items
from reports.scores.job import request_scores
from survey.fieldwork.administrations.changes import lock_administration
from survey.fieldwork.administrations.checks import refuse_lock_timeouts
from survey.models import Administration, Job

RELEASE = "release item of measure"
ANCHOR = "anchor item of measure"


class DecisionRefused(Exception):
    """The message tells the person why."""


def release_item(
    *,
    administration: Administration,
    measure: str,
    item: str,
    because: str,
    by: User,
    request: HttpRequest | None = None,
) -> Job:
    """Stop anchoring an item, and start calculating the scores again.

    Raises PermissionDenied, DecisionRefused and DatabaseBusy.
    """
    with refuse_lock_timeouts(), transaction.atomic():
        current = lock_to_decide(administration, by)
        released = released_items(current).get(measure, set())
        if item in released:
            raise DecisionRefused(_("%(item)s is released already.") % {"item": item})
        calibrations = Calibration.objects.filter(
            administration=current, measure=measure
        )
        anchored = {
            row["name"]: row
            for calibration in calibrations
            for row in calibration.items
            if row["is_anchored"] and row["name"] not in released
        }
        if item not in anchored:
            raise DecisionRefused(_("%(item)s is not anchored.") % {"item": item})
        if len(anchored) == 1:
            raise DecisionRefused(
                _(
                    "%(item)s is the last anchored item of this measure. Without it,"
                    " the scores could not be compared with earlier seasons."
                )
                % {"item": item}
            )
        ReleasedItem.objects.create(
            administration=current, measure=measure, item=item, by=by, because=because
        )
        audit.record(
            RELEASE,
            by=by,
            request=request,
            subject=current,
            district=current.district,
            after={
                "measure": measure,
                "item": item,
                "displacement": anchored[item]["displacement"],
                "reason": because,
            },
        )
        return request_scores(current, by=by, recalculate=True)


def anchor_item(
    *,
    administration: Administration,
    measure: str,
    item: str,
    because: str,
    by: User,
    request: HttpRequest | None = None,
) -> Job:
    """Take back the release of an item, and start calculating the scores again.

    Raises PermissionDenied, DecisionRefused and DatabaseBusy.
    """
    with refuse_lock_timeouts(), transaction.atomic():
        current = lock_to_decide(administration, by)
        deleted, _models = ReleasedItem.objects.filter(
            administration=current, measure=measure, item=item
        ).delete()
        if not deleted:
            raise DecisionRefused(_("%(item)s is not released.") % {"item": item})
        audit.record(
            ANCHOR,
            by=by,
            request=request,
            subject=current,
            district=current.district,
            after={"measure": measure, "item": item, "reason": because},
        )
        return request_scores(current, by=by, recalculate=True)


def lock_to_decide(administration: Administration, by: User) -> Administration:
    """Let decisions and the end of a calculation wait for each other."""
    current = lock_administration(administration, by=by, seen=None)
    if current.state != Administration.State.CLOSED:
        raise DecisionRefused(
            _("Scores are calculated once nobody can answer any more.")
        )
    return current

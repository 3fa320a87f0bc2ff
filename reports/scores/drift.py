"""Release an anchored item that has drifted, by a person's decision."""

from __future__ import annotations

from django.db import transaction

from accounts import audit
from accounts.models import User
from reports.models import Calibration, ReleasedItem
from reports.scores.job import request_scores
from survey.models import Job

RELEASE = "release item of measure"


@transaction.atomic
def release_item(*, calibration: Calibration, item: str, by: User) -> Job:
    """Stop anchoring an item, and start calculating the scores again.

    Raises ValueError if the item is not anchored.
    """
    [stored] = [one for one in calibration.items if one["name"] == item] or [{}]
    if not stored.get("is_anchored"):
        raise ValueError(f"{item} is not anchored")
    administration = calibration.administration
    ReleasedItem.objects.get_or_create(
        administration=administration,
        measure=calibration.measure,
        item=item,
        defaults={"by": by},
    )
    audit.record(
        RELEASE,
        by=by,
        subject=administration,
        district=administration.district,
        after={
            "measure": calibration.measure,
            "item": item,
            "displacement": stored["displacement"],
        },
    )
    return request_scores(administration, by=by, again=True)

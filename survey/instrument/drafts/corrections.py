"""Start the draft of a correction: a copy of a published survey, to change its texts.

It is compared and published as the draft of a corrected workbook
(`survey.instrument.definitions.corrections`), which checks that only texts differ.
"""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest

from accounts.models import User
from survey.instrument.drafts.drafting import start_draft
from survey.instrument.drafts.names import fix_names
from survey.instrument.drafts.store import load_book
from survey.models import PublishedSurvey, Survey


@transaction.atomic
def start_correction(
    *, corrects: PublishedSurvey, by: User, request: HttpRequest | None = None
) -> Survey:
    """Copy a published survey, or return the copy that is not published yet."""
    rows = Survey.objects.defer("source").select_for_update()
    original = rows.get(pk=corrects.survey_id)
    waiting = Survey.objects.defer("source").filter(
        corrects=corrects, published_at=None, source=None
    )
    if draft := waiting.order_by("pk").last():
        return draft
    return start_draft(
        book=fix_names(load_book(original)),
        name=original.name,
        version=next_version(original),
        title="",
        district=original.district,
        corrects=corrects,
        by=by,
        request=request,
    )


def next_version(survey: Survey) -> str:
    """Return a free version for a copy, such as 2027.1 of 2027."""
    taken = set(
        Survey.objects.filter(
            name=survey.name, district=survey.district_id
        ).values_list("version", flat=True)
    )
    numbers = (f"{survey.version[:56]}.{n}" for n in range(1, len(taken) + 2))
    return next(version for version in numbers if version not in taken)

"""Create open codes for all schools of a user that have none."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit
from accounts.models import School, User
from accounts.permissions import Capability, Permissions
from survey.fieldwork.administrations import schools_of
from survey.fieldwork.open_codes.codes import (
    CodeOptions,
    check_options,
    lock_administration,
    record_action,
    save_codes,
)
from survey.models import Administration, Job, OpenCode, OpenCodeBatch
from survey.work.job_turns import refuse_many
from survey.work.jobs import JobRefused, Progress, job, start

# Created in one transaction, while nobody can change the administration.
SCHOOLS_AT_ONCE = 200
SEATS_AT_ONCE = 50_000
# Of one order.
MOST_SEATS = 1_000_000
NOTHING_TO_DO = gettext_lazy("Every school has a code already.")


def schools_without_code(
    administration: Administration, permissions: Permissions
) -> QuerySet[School]:
    """Return the user's schools of an administration that have no valid code."""
    valid = OpenCode.objects.filter(
        school=OuterRef("pk"), administration=administration, revoked_at=None
    )
    manageable = permissions.schools(Capability.MANAGE_ROSTERS)
    schools = schools_of(administration).filter(pk__in=manageable.values("pk"))
    return schools.filter(~Exists(valid)).order_by("pk")


@transaction.atomic
def order_codes(
    *,
    administration: Administration,
    by: User,
    options: CodeOptions,
    request: HttpRequest | None = None,
) -> OpenCodeBatch:
    """Start the job that creates the codes.

    Raises ValidationError, and TooManyJobs of `survey.work.job_turns`.
    """
    refuse_many(by)
    check_options(administration, options)
    schools = schools_without_code(administration, Permissions(by)).count()
    if not schools:
        raise ValidationError(NOTHING_TO_DO)
    if schools * (options.get("limit") or 0) > MOST_SEATS:
        raise ValidationError(
            {
                "limit": _(
                    "For %(schools)s schools, these would be more than"
                    " %(most_seats)s places. Choose a smaller number."
                )
                % {"schools": f"{schools:,}", "most_seats": f"{MOST_SEATS:,}"}
            }
        )
    batch = OpenCodeBatch.objects.create(
        administration=administration, by=by, **options
    )
    audit.record(
        "create open codes for all schools",
        by=by,
        request=request,
        subject=batch,
        after={"administration": administration.name, "schools": schools},
        **audit.place_of(by),
    )
    start_creating(batch, by=by)
    return batch


@transaction.atomic
def start_creating(batch: OpenCodeBatch, *, by: User) -> None:
    """Start the job of an order, for the first time or again after a failure."""
    batch.job = start(create_codes, subject_id=batch.pk, by=by)
    batch.save(update_fields=["job"])


@job("open_codes.create", long=True, stoppable=False)
def create_codes(job: Job, progress: Progress) -> None:
    """Create the codes that are missing; each school gets one, however often it runs.

    Some schools at a time, so that a change of the administration waits shortly.
    """
    batch = OpenCodeBatch.objects.select_related("administration", "by").get(
        pk=job.subject_id or 0
    )
    missing = schools_without_code(batch.administration, Permissions(batch.by))
    progress.begin_step(_("Creating codes"), total=missing.count())
    at_once = min(SCHOOLS_AT_ONCE, max(1, SEATS_AT_ONCE // (batch.limit or 1)))
    while created := _create_some(batch, at_once, progress):
        progress.advance(created)
    count = OpenCodeBatch.objects.values_list("codes", flat=True).get(pk=batch.pk)
    progress.message = _("%(count)s codes were created.") % {"count": f"{count:,}"}


@transaction.atomic
def _create_some(batch: OpenCodeBatch, most: int, progress: Progress) -> int:
    # Roles and schools may have changed since the order; two orders at the same
    # time wait for each other here.
    current = lock_administration(batch.administration)
    options: CodeOptions = {
        "label": batch.label,
        "language": batch.language,
        "opens_at": batch.opens_at,
        "closes_at": batch.closes_at,
        "limit": batch.limit,
        "hourly_limit": batch.hourly_limit,
    }
    try:
        check_options(current, options)
    except ValidationError as error:
        raise JobRefused(" ".join(error.messages)) from error
    schools = list(schools_without_code(current, Permissions(batch.by))[:most])
    if schools:
        for code in save_codes(current, schools, by=batch.by, options=options):
            record_action("create open code", code, batch.by, None)
        OpenCodeBatch.objects.filter(pk=batch.pk).update(
            codes=F("codes") + len(schools)
        )
        progress.confirm()
    return len(schools)

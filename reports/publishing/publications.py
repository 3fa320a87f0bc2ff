"""Publish the results of an administration, and withdraw them."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.folded_text import fold
from accounts.models import User
from reports.models import Publication, PublishedPlace, ResultsRollUp
from reports.publishing.freezing import (
    FEWEST_SCHOOLS,
    Freezer,
    basis_of,
    has_content,
    one_moment,
    publication_digest,
)
from reports.rates.rollup import AFTER_CLOSING
from reports.releases.levels import STATE
from reports.scores.visible import has_scores
from survey.instrument.definitions.measures import measures_of
from survey.models import Administration, Job
from survey.work import jobs
from survey.work.jobs import JobRefused, Progress

# Rows that are stored by one statement.
BATCH = 200


class PublicationRefused(Exception):
    """The message tells the person why."""


def reason_not_to_publish(administration: Administration) -> str:
    """Return why these results cannot be published now, or "".

    At most 4 statements.
    """
    last_answers = administration.closes_at + AFTER_CLOSING
    if last_answers > timezone.now():
        return _("Results can be published once the survey round has closed.")
    roll_up = getattr(administration, "results_roll_up", None)
    if (
        roll_up is None
        or roll_up.as_of < last_answers
        or roll_up.hidden_as_of != roll_up.as_of
    ):
        return _("The answers are still being counted. Try again in a few minutes.")
    if not has_scores(administration) and measures_of(administration.published.survey):
        return _("The scores have not been calculated yet.")
    if not has_content(administration):
        return _(
            "There is nothing to publish. No school has reached its threshold with"
            " results that may be shown, and people of fewer than %(schools)s schools"
            " took part, which is too few to show all schools together."
        ) % {"schools": FEWEST_SCHOOLS}
    return ""


def administration_to_publish(pk: int) -> Administration:
    return (
        Administration.objects.select_related(
            "published__survey", "wave", "results_roll_up", "roll_up", "scoring"
        )
        .defer("published__definition", "published__survey__source")
        .get(pk=pk)
    )


@transaction.atomic
def request_publication(
    *,
    administration: Administration,
    basis: str,
    embargo_until: datetime | None,
    by: User | None,
    request: HttpRequest | None = None,
) -> Publication:
    """Record a publication and start freezing it; the caller checks permissions.

    `by` is None for a command. `basis` are the figures that the person has seen.
    Raises PublicationRefused.
    """
    # Requests for one administration wait for each other.
    ResultsRollUp.objects.select_for_update().filter(pk=administration.pk).first()
    current = administration_to_publish(administration.pk)
    if reason := reason_not_to_publish(current):
        raise PublicationRefused(reason)
    if basis != basis_of(current):
        raise PublicationRefused(
            _("The figures have changed since the preview. Look at it again.")
        )
    for earlier in current.publications.filter(withdrawn_at=None).select_related("job"):
        if earlier.published_at or (earlier.job and not earlier.job.is_over):
            raise PublicationRefused(_("These results are published already."))
        # Its job failed.
        earlier.delete()
    publication = Publication.objects.create(
        administration=current,
        title=current.title,
        basis=basis,
        embargo_until=embargo_until,
        published_by=by,
    )
    publication.job = jobs.start(freeze_results, subject_id=publication.pk, by=by)
    publication.save(update_fields=["job"])
    audit.record(
        "publish results",
        by=by or "publish_results",
        request=request,
        subject=current,
        after={"embargo": embargo_until.isoformat() if embargo_until else ""},
    )
    return publication


@jobs.job("results.publish", long=True)
def freeze_results(job: Job, progress: Progress) -> None:
    """Store what everybody may read. Reads one moment, and then writes at once."""
    publication = Publication.objects.get(pk=job.subject_id or 0)
    progress.begin_step(_("Reading the results."))
    with one_moment():
        administration = administration_to_publish(publication.administration_id)
        if basis_of(administration) != publication.basis:
            raise JobRefused(
                _("The figures have changed since the preview. Look at it again.")
            )
        freezer = Freezer(administration)
        places = list(freezer.places())
        schools = sum(1 for place in places if place.level == "school")
        frame = freezer.frame(schools)
    if not any((place.level, place.place_id) == STATE for place in places):
        raise JobRefused(_("There is nothing to publish: too few people took part."))
    progress.begin_step(_("Storing what everybody may read."), total=len(places))
    with transaction.atomic():
        publication.places.all().delete()
        digests = []
        for start in range(0, len(places), BATCH):
            rows = [
                PublishedPlace(
                    publication=publication,
                    level=place.level,
                    place_id=place.place_id,
                    district_id=place.district_id,
                    name=place.name,
                    code=place.code,
                    search=fold(place.name) or "",
                    summary=place.summary,
                    answers=place.answers,
                    digest=place.digest,
                )
                for place in places[start : start + BATCH]
            ]
            PublishedPlace.objects.bulk_create(rows)
            digests += [(row.level, row.place_id, row.digest) for row in rows]
            progress.advance(len(rows))
        Publication.objects.filter(pk=publication.pk).update(
            frame=frame,
            digest=publication_digest(frame, digests),
            published_at=timezone.now(),
        )
        progress.message = _("Ready: the results are published.")
        progress.confirm()


@transaction.atomic
def withdraw(
    publication: Publication,
    *,
    because: str,
    by: User,
    request: HttpRequest | None = None,
) -> bool:
    """Withdraw a publication; False if somebody did before."""
    withdrawn = Publication.objects.filter(
        pk=publication.pk, withdrawn_at=None, published_at__isnull=False
    ).update(withdrawn_at=timezone.now(), withdrawn_by=by, withdrawn_because=because)
    if withdrawn:
        audit.record(
            "withdraw published results",
            by=by,
            request=request,
            subject=publication.administration,
            after={"reason": because},
        )
    return bool(withdrawn)

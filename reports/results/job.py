"""The job that counts the results of an administration, and when it is started."""

from __future__ import annotations

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from accounts.models import User
from reports.models import ResultsRollUp, Scoring
from reports.releases.rollup import due, keeps_earlier_answers, roll_up_results
from reports.scores.job import RETRY_AFTER, request_scores
from survey.instrument.definitions.measures import measures_of
from survey.models import Administration, Job
from survey.work.jobs import JobRefused, Progress, job, start

DESTROYED = gettext_noop(
    "The answers were destroyed at the end of their retention period. The results stay"
    " as they are."
)


@job("results.count", long=True, waits=True)
def count_results(job: Job, progress: Progress) -> None:
    administration = Administration.objects.select_related("published__survey").get(
        pk=job.subject_id or 0
    )
    if administration.answers_destroyed_at is not None:
        raise JobRefused(_(DESTROYED))
    is_first = not ResultsRollUp.objects.filter(
        pk=administration.pk, hidden_as_of__isnull=False
    ).exists()
    outcome = roll_up_results(administration, progress, release=True)
    if (
        (is_first or outcome.rows_changed)
        and Scoring.objects.filter(pk=administration.pk).exists()
        and not keeps_earlier_answers(administration)
    ):
        # They are from before it was decided which schools are hidden, or of the people
        # of an earlier release.
        request_scores(administration, recalculate=True)
    if (
        administration.state == Administration.State.CLOSED
        and not Scoring.objects.current().filter(pk=administration.pk).exists()
        and measures_of(administration.published.survey)
    ):
        request_scores(administration)
    progress.message = ngettext(
        "Ready: the answers of %(schools)s school were counted.",
        "Ready: the answers of %(schools)s schools were counted.",
        outcome.schools,
    ) % {"schools": f"{outcome.schools:,}"}


def request_results(administration: Administration, *, by: User | None = None) -> Job:
    """Start counting, or return the job that has not ended yet."""
    running = Job.objects.filter(
        kind=count_results.name, subject_id=administration.pk, ended_at=None
    ).first()
    return running or start(count_results, subject_id=administration.pk, by=by)


def start_due() -> None:
    """Start counting the closed administrations that are due."""
    recent = Q(ended_at=None) | Q(
        state=Job.State.FAILED, ended_at__gt=timezone.now() - RETRY_AFTER
    )
    jobs = Job.objects.filter(recent, kind=count_results.name)
    known = set(jobs.values_list("subject_id", flat=True))
    for administration in due():
        if administration.pk not in known:
            start(count_results, subject_id=administration.pk)

"""The jobs that calculate the scores of an administration, once or again."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from reports.models import Calibration, Scoring
from reports.models.scores import FORMAT
from survey.models import Administration, Job
from survey.work.jobs import Progress, job, start

# A job that failed is not started again before.
RETRY_AFTER = timedelta(hours=1)


@job("scores.calculate", long=True, waits=True)
def calculate_scores(job: Job, progress: Progress) -> None:
    _calculate(job, progress, recalculate=False)


@job("scores.recalculate", long=True, waits=True)
def recalculate_scores(job: Job, progress: Progress) -> None:
    _calculate(job, progress, recalculate=True)


SCORE_JOBS = (calculate_scores.name, recalculate_scores.name)


def _calculate(job: Job, progress: Progress, *, recalculate: bool) -> None:
    # They need SciPy, which takes 0.5 s and 40 MB: not in each web server and command.
    from reports.scores.benchmark import rounds_to_calculate
    from reports.scores.scoring import score_administration

    administration = Administration.objects.select_related("published__survey").get(
        pk=job.subject_id or 0
    )
    try:
        outcome = score_administration(
            administration, progress, recalculate=recalculate
        )
    finally:
        # One after the other, because each needs the scale of its benchmark.
        for due in rounds_to_calculate(administration, after=True)[:1]:
            request_scores(due, recalculate=True)
    progress.message = (
        ngettext(
            "Ready: the scores of %(measures)s measure were calculated.",
            "Ready: the scores of %(measures)s measures were calculated.",
            outcome.measures,
        )
        % {"measures": outcome.measures}
        if outcome.measures
        else _("Ready: nothing was calculated.")
    )


def start_outdated() -> None:
    """Start calculating scores that were stored in another format. 1 statement.

    Benchmarks first: later waves get their scale.
    """
    now = timezone.now()
    outdated = Scoring.objects.exclude(format=FORMAT)
    waiting = Calibration.objects.filter(
        anchored_to__administration__in=outdated.values("pk")
    )
    recent = Q(ended_at=None) | Q(
        state=Job.State.FAILED, ended_at__gt=now - RETRY_AFTER
    )
    kinds = (calculate_scores.name, recalculate_scores.name)
    jobs = Job.objects.filter(recent, kind__in=kinds, subject_id__isnull=False)
    due = outdated.exclude(pk__in=waiting.values("administration"))
    for administration in (
        Administration.objects.filter(pk__in=due.values("pk"), closes_at__lte=now)
        .exclude(pk__in=jobs.values("subject_id"))
        .order_by("pk")
    ):
        request_scores(administration)


def request_scores(
    administration: Administration, *, by: User | None = None, recalculate: bool = False
) -> Job:
    """Start calculating, or return the job of this kind that has not started yet."""
    kind = recalculate_scores if recalculate else calculate_scores
    waiting = Job.objects.filter(
        kind=kind.name, subject_id=administration.pk, state=Job.State.WAITING
    ).first()
    return waiting or start(kind, subject_id=administration.pk, by=by)

"""The jobs that calculate the scores of an administration, once or again."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from survey.jobs import Progress, job, start
from survey.models import Administration, Job


@job("scores.calculate", long=True)
def calculate_scores(job: Job, progress: Progress) -> None:
    _calculate(job, progress, again=False)


@job("scores.recalculate", long=True)
def recalculate_scores(job: Job, progress: Progress) -> None:
    _calculate(job, progress, again=True)


def _calculate(job: Job, progress: Progress, *, again: bool) -> None:
    # It needs SciPy, which takes 0.5 s and 40 MB: not in each web server and command.
    from reports.scores.scoring import score_administration

    administration = Administration.objects.select_related("published__survey").get(
        pk=job.subject_id or 0
    )
    outcome = score_administration(administration, progress, again=again)
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


def request_scores(
    administration: Administration, *, by: User | None = None, again: bool = False
) -> Job:
    """Start calculating, or return the job of this kind that has not started yet."""
    kind = recalculate_scores if again else calculate_scores
    waiting = Job.objects.filter(
        kind=kind.name, subject_id=administration.pk, state=Job.State.WAITING
    ).first()
    return waiting or start(kind, subject_id=administration.pk, by=by)

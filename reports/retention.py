"""Say what destroying a round's answers waits for, and what goes with them.

Releases stay: they are numbers of groups. What compares them with single people goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from reports.models import (
    CountedSchool,
    FormerPeople,
    ReleasedSentence,
    ResultsRollUp,
)
from reports.rates.rollup import AFTER_CLOSING
from reports.results.job import count_results
from reports.scores.job import SCORE_JOBS
from survey.models import Administration, DataKind, Job
from survey.people.retention.hooks import (
    DerivedRows,
    blocks_destroying,
    derived_from_answers,
)


@blocks_destroying
def results_are_counted(administration: Administration, kind: str) -> str:
    """Wait for the release and the jobs that read answers. 2 statements."""
    if kind != DataKind.ANSWERS:
        return ""
    released = ResultsRollUp.objects.filter(
        pk=administration.pk, released_at__isnull=False
    )
    # `released_at` is of the first release, `as_of` of the last.
    as_of = released.values_list("as_of", flat=True).first()
    if as_of is None:
        return _("The results have not been counted yet.")
    if as_of < administration.closes_at + AFTER_CLOSING:
        return _(
            "The survey round was open again after its results were counted. Count new"
            " results first, on the page of its results."
        )
    kinds = (count_results.name, *SCORE_JOBS)
    jobs = Job.objects.filter(
        kind__in=kinds, subject_id=administration.pk, ended_at=None
    )
    return _("Results or scores are being calculated.") if jobs.exists() else ""


@derived_from_answers
def made_of_single_answers(administration: int) -> Iterator[DerivedRows]:
    """Yield who is in the figures, with what, and sentences that people wrote."""
    yield DerivedRows(
        CountedSchool.objects.filter(administration=administration).exclude(people=b""),
        {"people": b""},
    )
    yield DerivedRows(FormerPeople.objects.filter(administration=administration))
    yield DerivedRows(ReleasedSentence.objects.filter(administration=administration))

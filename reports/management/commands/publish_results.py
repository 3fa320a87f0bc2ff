from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.models import User
from reports.models import ChosenBenchmark, Publication, ResultsRollUp
from reports.publishing.freezing import basis_of
from reports.publishing.publications import (
    PublicationRefused,
    administration_to_publish,
    request_publication,
)
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from reports.scores.scoring import score_administration
from survey.fieldwork.administrations import AdministrationNotFound, get_administration
from survey.models import Administration
from survey.work import jobs
from survey.work.jobs import JobRefused


class Command(BaseCommand):
    help = (
        "Publish the results of a closed administration, for a demonstration, and share"
        " them with schools: counts and scores first what is missing. Does nothing if"
        " they are published."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the administration")
        parser.add_argument(
            "--benchmark", help="an earlier administration to count and score before"
        )
        parser.add_argument(
            "--chosen-by",
            metavar="EMAIL",
            help="who chooses it, and that schools are compared in their grade span",
        )

    def handle(self, **options: Any) -> None:
        try:
            administration = get_administration(options["name"])
            benchmark = options["benchmark"]
            earlier = [get_administration(benchmark)] if benchmark else []
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from error
        if administration.publications.filter(published_at__isnull=False).exists():
            self.stdout.write("Published already.")
            return
        roll_up()
        if options["chosen_by"]:
            choose_by_span(earlier, options["chosen_by"])
        try:
            for each in (*earlier, administration):
                count_and_score(each)
            publication = published(administration.pk)
        except (JobRefused, PublicationRefused) as refused:
            raise CommandError(str(refused)) from refused
        if publication.published_at is None:
            raise CommandError(publication.job.message if publication.job else "")
        unshared = ResultsRollUp.objects.filter(pk=administration.pk, shared_at=None)
        unshared.update(shared_at=timezone.now())
        self.stdout.write(f"Published: {publication.digest}")


def choose_by_span(benchmarks: Sequence[Administration], email: str) -> None:
    """Choose a benchmark as on its page, but without a calculation in a job."""
    by = User.objects.get(email=email)
    for administration in benchmarks:
        ChosenBenchmark.objects.get_or_create(
            administration=administration,
            defaults={
                "by": by,
                "because": "Schools are compared with schools of their kind.",
                "by_span": True,
            },
        )


def count_and_score(administration: Administration) -> None:
    if not hasattr(administration, "results_roll_up"):
        roll_up_results(administration, release=True)
    score_administration(administration)


def published(pk: int) -> Publication:
    administration = administration_to_publish(pk)
    publication = request_publication(
        administration=administration,
        basis=basis_of(administration),
        embargo_until=None,
        by=None,
    )
    if publication.job:
        jobs.run(publication.job.pk)
    return Publication.objects.select_related("job").get(pk=publication.pk)

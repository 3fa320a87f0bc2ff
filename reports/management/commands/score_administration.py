from __future__ import annotations

import json
import resource
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.models import Calibration, Scoring
from reports.scores.problems import Problem
from reports.scores.scoring import score_administration
from survey.fieldwork.administrations import AdministrationNotFound, get_administration
from survey.work.jobs import JobRefused


class Command(BaseCommand):
    help = "Calculate the scores of a closed administration, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the administration")
        parser.add_argument(
            "--again", action="store_true", help="replace the scores that are there"
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, **options: Any) -> None:
        try:
            administration = get_administration(options["name"])
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from error
        try:
            outcome = score_administration(administration, recalculate=options["again"])
        except JobRefused as refused:
            raise CommandError(str(refused)) from refused
        if options["json"]:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            self.stdout.write(json.dumps(asdict(outcome) | {"memory_mb": memory}))
            return
        for problem in Scoring.objects.get(pk=administration.pk).problems:
            self.stderr.write(Problem.from_json(problem).sentence)
        calibrations = Calibration.objects.filter(administration=administration)
        for calibration in calibrations.order_by("pk"):
            for problem in calibration.problems:
                sentence = Problem.from_json(problem).sentence
                self.stderr.write(f"{calibration.measure}: {sentence}")
        self.stdout.write(
            f"{outcome.people:,} people, {outcome.measures} measures,"
            f" {outcome.rows:,} rows in {outcome.seconds:.2f} s."
        )

from __future__ import annotations

import json
import resource
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.releases.rollup import roll_up_results
from survey.fieldwork.administrations import AdministrationNotFound, get_administration
from survey.work.jobs import JobRefused


class Command(BaseCommand):
    help = "Count the answers of an administration now, and store what changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("administration", help="its name")
        parser.add_argument(
            "--again", action="store_true", help="count schools that did not change"
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, **options: Any) -> None:
        try:
            administration = get_administration(options["administration"])
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from error
        try:
            outcome = roll_up_results(
                administration, all_schools=options["again"], release=True
            )
        except JobRefused as refused:
            raise CommandError(str(refused)) from refused
        if options["json"]:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            self.stdout.write(json.dumps(asdict(outcome) | {"memory_mb": memory}))
        else:
            self.stdout.write(
                f"{outcome.people:,} people of {outcome.schools:,} schools counted in"
                f" {outcome.seconds:.2f} s, {outcome.rows_changed:,} rows changed."
            )

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reports.rates.rollup import roll_up
from survey.models import Administration


class Command(BaseCommand):
    help = "Count the response rates now; the scheduler does so once a minute."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--all",
            action="store_true",
            help="include administrations that are not due",
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, **options: Any) -> None:
        everything = list(Administration.objects.all()) if options["all"] else None
        result = roll_up(everything)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(result)))
        else:
            self.stdout.write(
                f"{result.administrations} administrations counted in"
                f" {result.seconds:.2f} s, {result.rows_changed:,} rows changed."
            )

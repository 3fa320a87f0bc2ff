from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reports.rollup import roll_up
from survey.models import Administration


class Command(BaseCommand):
    help = "Count the response rates now, as the time table does once a minute."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--all", action="store_true", help="also those that are not due"
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        everything = list(Administration.objects.all()) if options["all"] else None
        rolled = roll_up(everything)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(rolled)))
        else:
            self.stdout.write(
                f"{rolled.administrations} administrations counted in"
                f" {rolled.seconds:.2f} s, {rolled.rows_changed:,} rows changed."
            )

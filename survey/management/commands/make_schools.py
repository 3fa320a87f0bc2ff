from __future__ import annotations

import csv

from django.core.management.base import BaseCommand, CommandParser

from survey.simulation.schools import HEADER, STATES, made_up_schools


class Command(BaseCommand):
    help = (
        "Write made-up schools of a state or a country, clustered like population,"
        " for import_schools --create."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--schools", type=int, default=100_000)
        parser.add_argument(
            "--state", choices=STATES, default="", help="only in this state"
        )
        parser.add_argument(
            "--seed", type=int, default=1, help="the same seed gives the same schools"
        )

    def handle(self, *, schools: int, state: str, seed: int, **options: object) -> None:
        writer = csv.writer(self.stdout)
        writer.writerow(HEADER)
        writer.writerows(made_up_schools(schools, seed, state))

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.tables import grants_for


class Command(BaseCommand):
    help = "Print what the models allow to a database role, a line for each model."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("role", choices=("taking", "reports"))

    def handle(self, **options: Any) -> None:
        self.stdout.write("\n".join(grants_for(options["role"])))

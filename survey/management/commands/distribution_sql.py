from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from survey.database.distribution import distribution_sql, functions_sql


class Command(BaseCommand):
    help = (
        "Print the SQL that distributes a migrated database on a Citus cluster, in one"
        " transaction. The superuser runs it on the coordinator, while nobody writes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        functions = "only bring back the functions that later migrations have replaced"
        parser.add_argument("--functions", action="store_true", help=functions)

    def handle(self, *, functions: bool, **options: Any) -> None:
        statements = functions_sql() if functions else distribution_sql()
        self.stdout.write("\n".join(["BEGIN;", *statements, "COMMIT;"]))

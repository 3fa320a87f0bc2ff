from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from survey.database.distribution import dropped_references


class Command(BaseCommand):
    help = (
        "Count rows of people who do not exist. On a Citus cluster, foreign keys to"
        " distributed tables do not refuse them. Run it each night there."
    )

    def handle(self, **options: Any) -> None:
        with connection.cursor() as cursor:
            for table, column in dropped_references():
                cursor.execute(
                    f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608
                    f" AND {column} NOT IN (SELECT id FROM survey_respondent)"
                )
                if count := cursor.fetchone()[0]:
                    raise CommandError(f"{count} rows of {table} have no respondent.")
        self.stdout.write("Every row has its respondent.")

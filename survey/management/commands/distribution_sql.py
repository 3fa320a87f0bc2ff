from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from survey.database.distribution import distribution_sql


class Command(BaseCommand):
    help = (
        "Print the SQL that distributes a migrated database on a Citus cluster, in one"
        " transaction. The superuser runs it on the coordinator, while nobody writes."
    )

    def handle(self, **options: Any) -> None:
        self.stdout.write("\n".join(["BEGIN;", *distribution_sql(), "COMMIT;"]))

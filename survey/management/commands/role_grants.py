from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from accounts.tables import grants_for


class Command(BaseCommand):
    help = "Print what the models allow to database roles, a line for each model."

    def handle(self, **options: Any) -> None:
        # Both in one call: to start Django takes seconds.
        for role in ("taking", "reports"):
            for grant in grants_for(role):
                self.stdout.write(f"{grant} TO {role}")

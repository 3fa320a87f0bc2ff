"""Print which release runs on the schema of each migration, for an upgrade."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.release_migrations import oldest_releases


class Command(BaseCommand):
    help = (
        "Prints the migrations of this code as JSON, each with the oldest release that"
        " runs on the schema it leaves. provisioning/upgrade and rollback compare them"
        " with the database. Reads no database."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(json.dumps(oldest_releases()))
        except ValueError as error:
            raise CommandError(str(error)) from error

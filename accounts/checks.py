"""System checks, which Django runs before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def check_second_factor(**options: object) -> list[CheckMessage]:
    """Refuse to start a production installation without the second factor."""
    if settings.SECOND_FACTOR_REQUIRED or settings.EMBEDDED:
        return []
    return [
        Error(
            "SECOND_FACTOR_REQUIRED is off, which only a demonstration may do.",
            hint="Only settings.embedded may turn it off.",
            id="accounts.E001",
        )
    ]


def check_replaced_migrations(
    *, databases: Sequence[str] | None = None, **options: object
) -> list[CheckMessage]:
    """Refuse a database with only some of the migrations that were replaced.

    Django would leave out the new ones, and fail later without saying why.
    """
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    present = loader.disk_migrations
    problems: list[CheckMessage] = []
    for alias in databases or ():
        applied = MigrationRecorder(connections[alias]).applied_migrations()
        lacking: list[str] = []
        for migration in present.values():
            missing = [key for key in migration.replaces if key not in applied]
            if len(missing) < len(migration.replaces):
                lacking += [".".join(key) for key in missing if key not in present]
        if lacking:
            problems.append(
                Error(
                    f"The database '{alias}' lacks migrations of earlier releases,"
                    f" which were replaced: {', '.join(sorted(lacking))}.",
                    hint="Install the last release that has them, run its migrations,"
                    " and then install this release again.",
                    id="accounts.E002",
                )
            )
    return problems

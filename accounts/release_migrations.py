"""Tell the oldest release that runs on the schema which each migration leaves.

A release serves while the next one migrates, and may serve again after a rollback, on
the database as it is then. So a migration adds what older code can do without
(expand), and a later release removes what no release in use reads (contract):

    class Migration(migrations.Migration):
        oldest_release = "1.0.0"

Where nothing but the release that brings it runs on its schema, the migration names
that release, and `provisioning/upgrade` closes the site meanwhile.
"""

from __future__ import annotations

import re
from pathlib import Path

from django.core.checks import CheckMessage, Error
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

RELEASE = re.compile(r"\d+\.\d+\.\d+")
FIRST_RELEASE = "1.0.0"
# The last migration of each app that the first release has; no other is before it.
OF_FIRST_RELEASE = {
    "account": "0009_emailaddress_unique_primary_email",
    "accounts": "0006_time_zones_of_districts",
    "admin": "0003_logentry_add_action_flag_choices",
    "auth": "0012_alter_user_first_name_max_length",
    "contenttypes": "0002_remove_content_type_name",
    "mfa": "0003_authenticator_type_uniq",
    "reports": "0003_rates_changed_at",
    "sessions": "0001_initial",
    "survey": "0014_district_modules",
    "usersessions": "0001_initial",
}
# Of packages, whose migrations can say nothing: by app and name.
OF_PACKAGES: dict[tuple[str, str], str] = {}


def oldest_release(migration: Migration) -> str | None:
    """Return what a migration says, or the tables above; None if nothing does."""
    app, name = migration.app_label, migration.name
    release: str | None = getattr(migration, "oldest_release", None)
    if release is None:
        release = OF_PACKAGES.get((app, name))
    # Migrations are numbered, so that their names sort.
    if release is None and name <= OF_FIRST_RELEASE.get(app, ""):
        return FIRST_RELEASE
    return release


def migrations_on_disk() -> dict[tuple[str, str], Migration]:
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    return loader.disk_migrations


def oldest_releases() -> dict[str, str]:
    """Return the oldest release by migration, such as `survey.0014_district_modules`.

    Raises ValueError for one that says nothing.
    """
    releases = {}
    for (app, name), migration in sorted(migrations_on_disk().items()):
        release = oldest_release(migration)
        if release is None:
            raise ValueError(f"{app}.{name} does not say its oldest release")
        releases[f"{app}.{name}"] = release
    return releases


def check_oldest_releases(**options: object) -> list[CheckMessage]:
    """Refuse a migration that does not say which release runs on its schema."""
    return [
        problem
        for migration in migrations_on_disk().values()
        if (problem := problem_of(migration))
    ]


def problem_of(migration: Migration) -> Error | None:
    release = oldest_release(migration)
    if release is not None and RELEASE.fullmatch(str(release)):
        return None
    name = f"{migration.app_label}.{migration.name}"
    text = "nothing" if release is None else repr(release)
    return Error(
        f"{name} says {text} about the oldest release that runs on its schema.",
        hint='Add oldest_release = "1.0.0" to its class, with that release; for a'
        f" package's migration a line in OF_PACKAGES of {Path(__file__).name}.",
        id="accounts.E003",
    )

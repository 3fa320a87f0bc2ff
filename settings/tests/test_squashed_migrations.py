"""Squashed migrations make the same database as the migrations they replace."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys

import psycopg2
import pytest
from django.conf import settings

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

# Halfway: the last migrations that an older installation has.
HALFWAY = {"accounts": "0012", "survey": "0030", "reports": "0003"}
MIGRATE = """
import json, sys, django
from django.conf import settings
name, halfway = json.loads(sys.argv[1])
settings.DATABASES["default"]["NAME"] = name
if settings.SERVERS:
    settings.DATABASES["default"]["PORT"] = 5432
django.setup()
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
if halfway:
    load_disk = MigrationLoader.load_disk
    def load_replaced(loader):
        load_disk(loader)
        loader.disk_migrations = {
            key: migration
            for key, migration in loader.disk_migrations.items()
            if not migration.replaces
        }
    MigrationLoader.load_disk = load_replaced
    for app, target in halfway.items():
        call_command("migrate", app, target, verbosity=0)
    MigrationLoader.load_disk = load_disk
call_command("migrate", verbosity=0)
"""
# On SQLite, which makes tables anew for some changes: other quotes, another order of
# columns, and `false` for 0. No statement relies on them.
WRITTEN_OTHERWISE = {
    "accounts_schoollisting",
    "people_who_await_consent",
    "survey_wave",
}
FILLED = {
    "django_content_type": "SELECT app_label, model FROM django_content_type",
    "auth_permission": (
        "SELECT c.app_label, p.codename, p.name FROM auth_permission p"
        " JOIN django_content_type c ON c.id = p.content_type_id"
    ),
    "django_migrations": "SELECT DISTINCT app, name FROM django_migrations",
}


def migrate(name, halfway=None):
    subprocess.run(
        [sys.executable, "-c", MIGRATE, json.dumps([str(name), halfway])],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings.test"},
        check=True,
    )


def server(name):
    return psycopg2.connect(
        host=settings.SERVERS, port=5432, user="postgres", dbname=name
    )


@pytest.fixture
def databases(tmp_path):
    names = [f"squash_{kind}_{os.getpid()}" for kind in ("squashed", "replaced")]
    if not settings.SERVERS:
        yield [tmp_path / name for name in names]
        return
    admin = server("postgres")
    admin.autocommit = True
    try:
        for name in names:
            admin.cursor().execute(f"CREATE DATABASE {name} OWNER groundswell")
        yield names
    finally:
        for name in names:
            admin.cursor().execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.close()


def schema(name):
    if settings.SERVERS:
        dump = subprocess.run(
            [
                *("pg_dump", "--schema-only", f"--host={settings.SERVERS}"),
                *("--port=5432", "--username=postgres", name),
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        # A key that pg_dump makes up each time.
        return re.sub(r"^\\(un)?restrict .*$", "", dump, flags=re.MULTILINE)
    query = "SELECT type, name, sql FROM sqlite_master"
    return {
        name: in_any_order(sql) if name in WRITTEN_OTHERWISE else (kind, sql)
        for kind, name, sql in sqlite3.connect(name).execute(query)
    }


def in_any_order(sql):
    """Ignore quotes, and the order of columns and of their clauses."""
    words = re.findall(
        r"\w+|[^\w\s\"]", (sql or "").replace("DEFAULT false", "DEFAULT 0")
    )
    return sorted(words)


def contents(name):
    connection = server(name) if settings.SERVERS else sqlite3.connect(name)
    cursor = connection.cursor()
    found = {}
    for table, query in FILLED.items():
        cursor.execute(query)
        found[table] = sorted(cursor.fetchall())
    connection.close()
    return found


def test_an_installation_halfway_ends_like_an_empty_database(databases):
    squashed, replaced = databases
    migrate(squashed)
    migrate(replaced, HALFWAY)
    assert schema(squashed) == schema(replaced)
    after = contents(replaced)
    # With the squashed ones, which are recorded as applied.
    assert contents(squashed) == after
    for app in ("accounts", "survey", "reports"):
        assert any(
            of == app and name.startswith("0001_squashed")
            for of, name in after["django_migrations"]
        )

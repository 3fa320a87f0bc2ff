"""Squashed migrations make the same database as the migrations they replace.

The squashed ones made the test database.
"""

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
from django.db import connection

# The mark makes the test database, which is compared.
pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite]

# Halfway: the last migrations that an older installation has.
HALFWAY = {"accounts": "0012", "survey": "0030", "reports": "0003"}
MIGRATE = """
import gc, json, sys, django
# Each migration leaves models of its own: looking for garbage among them takes a third
# of the time.
gc.disable()
from django.conf import settings
name, halfway = json.loads(sys.argv[1])
settings.DATABASES["default"]["NAME"] = name
if settings.SERVERS:
    settings.DATABASES["default"]["PORT"] = 5432
django.setup()
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
load_disk = MigrationLoader.load_disk
def load_replaced(loader):
    load_disk(loader)
    loader.disk_migrations = {
        key: migration
        for key, migration in loader.disk_migrations.items()
        if not migration.replaces
    }
MigrationLoader.load_disk = load_replaced
executor = MigrationExecutor(connection)
targets = [executor.loader.get_migration_by_prefix(*one) for one in halfway.items()]
# The command, once for each app, would build the models of that time once more.
executor.migrate([(one.app_label, one.name) for one in targets])
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


def migrate_by_halfway(name):
    subprocess.run(
        [sys.executable, "-c", MIGRATE, json.dumps([str(name), HALFWAY])],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings.test"},
        check=True,
    )


def server(name):
    return psycopg2.connect(
        host=settings.SERVERS, port=5432, user="postgres", dbname=name
    )


@pytest.fixture
def databases(tmp_path, db):
    """Return a database from squashed migrations, an empty one, one for its copy."""
    if not settings.SERVERS:
        yield connection.settings_dict["NAME"], tmp_path / "replaced", None
        return
    kinds = ("squashed", "replaced", "copy")
    names = [f"squash_{kind}_{os.getpid()}" for kind in kinds]
    admin = server("postgres")
    admin.autocommit = True
    try:
        for name in names:
            admin.cursor().execute(f"CREATE DATABASE {name} OWNER groundswell")
        squashed, _, _ = names
        # Other tests may have added partitions to the test database itself.
        load(squashed, connection.creation.dump)
        yield names
    finally:
        for name in names:
            admin.cursor().execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.close()


def run_program(program, name, *options):
    where = (f"--host={settings.SERVERS}", "--port=5432", "--username=postgres")
    return subprocess.run(
        [program, *where, f"--dbname={name}", *options],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def load(name, dump):
    options = ("--quiet", "--set=ON_ERROR_STOP=1", f"--file={dump}")
    run_program("psql", name, *options)


def schema(name):
    if settings.SERVERS:
        # Only extensions have comments, which the dump leaves out.
        dump = run_program("pg_dump", name, "--schema-only", "--no-comments")
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
    rows_of_table = {}
    for table, query in FILLED.items():
        cursor.execute(query)
        rows_of_table[table] = sorted(cursor.fetchall())
    connection.close()
    return rows_of_table


def test_an_installation_halfway_ends_like_an_empty_database(databases, tmp_path):
    squashed, replaced, copy = databases
    migrate_by_halfway(replaced)
    if settings.SERVERS:
        # The other one was loaded too, which writes conditions in another way.
        dump = tmp_path / "dump.sql"
        run_program("pg_dump", replaced, "--no-comments", f"--file={dump}")
        load(copy, dump)
        replaced = copy
    assert schema(squashed) == schema(replaced)
    after = contents(replaced)
    # With the squashed ones, which are recorded as applied.
    assert contents(squashed) == after
    for app in ("accounts", "survey", "reports"):
        assert any(
            of == app and name.startswith("0001_squashed")
            for of, name in after["django_migrations"]
        )

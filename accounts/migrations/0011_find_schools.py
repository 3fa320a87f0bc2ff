"""Indexes of the school finder; the queries are in `accounts.school_directory`."""

from django.db import migrations

# Both are trusted extensions: the database's owner may create them.
POSTGRESQL = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE EXTENSION IF NOT EXISTS cube",
    # In byte order an index serves both LIKE 'x%' and ORDER BY.
    'ALTER TABLE accounts_schoollisting ALTER COLUMN search TYPE text COLLATE "C"',
    'ALTER TABLE accounts_schoolword ALTER COLUMN word TYPE varchar(64) COLLATE "C"',
    'ALTER TABLE accounts_schoolword ALTER COLUMN reverse TYPE varchar(64) COLLATE "C"',
    "CREATE INDEX schools_by_name ON accounts_schoollisting (search)",
    # Words in any order, by their beginnings.
    "CREATE INDEX schools_by_words ON accounts_schoollisting"
    " USING gin (search gin_trgm_ops)",
    # The nearest ones. On the unit sphere the straight distance grows with the
    # distance on the ground, at the poles and the date line too.
    """
    CREATE INDEX schools_by_place ON accounts_schoollisting USING gist ((cube(ARRAY[
        cos(radians(latitude)) * cos(radians(longitude)),
        cos(radians(latitude)) * sin(radians(longitude)),
        sin(radians(latitude))
    ]))) WHERE latitude IS NOT NULL
    """,
    "CREATE INDEX words_by_end ON accounts_schoolword (reverse)",
)
SQLITE = (
    "CREATE INDEX schools_by_name ON accounts_schoollisting (search)",
    "CREATE INDEX schools_by_place ON accounts_schoollisting (latitude, longitude)",
    "CREATE INDEX words_by_end ON accounts_schoolword (reverse)",
)
NAMES = ("schools_by_name", "schools_by_words", "schools_by_place", "words_by_end")


def add(apps, schema_editor):
    on_postgresql = schema_editor.connection.vendor == "postgresql"
    for statement in POSTGRESQL if on_postgresql else SQLITE:
        schema_editor.execute(statement, None)


def remove(apps, schema_editor):
    for name in NAMES:
        schema_editor.execute(f"DROP INDEX IF EXISTS {name}")


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_list_schools")]

    operations = [migrations.RunPython(add, remove)]

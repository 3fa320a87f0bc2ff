"""Index whole words instead of trigrams.

A search for one word read the lists of all its trigrams: 5 to 9 ms with 100,000
schools, and 0.1 ms by words.
"""

from django.db import migrations

ADD = """
    CREATE INDEX schools_by_word ON accounts_schoollisting
    USING gin (array_to_tsvector(string_to_array(btrim(search), ' ')))
"""
OLD = """
    CREATE INDEX schools_by_words ON accounts_schoollisting
    USING gin (search gin_trgm_ops)
"""


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(ADD, None)
        schema_editor.execute("DROP INDEX IF EXISTS schools_by_words")


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(OLD, None)
        schema_editor.execute("DROP INDEX IF EXISTS schools_by_word")


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_school_contacts")]

    operations = [migrations.RunPython(add, remove)]

"""How the name of something begins, in any case, among millions of entries.

In the words of Django's istartswith. SQLite has a LIKE of its own, and never
so many rows.
"""

from django.db import migrations

INDEX = """
    CREATE INDEX audit_by_subject ON accounts_auditentry
    (upper(subject::text) text_pattern_ops)
"""


def index(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(INDEX)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX audit_by_subject")


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_audit_by_person_and_action")]

    operations = [migrations.RunPython(index, drop)]

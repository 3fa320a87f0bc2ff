"""Remove the texts of released sentences from the audit log, which is permanent.

Entries about releasing and withdrawing a sentence stored what a respondent wrote.
They keep the question, and get the number of the sentence where it is still released
and a keyed digest. Everything else of an entry stays, and a new entry says how many
were changed. Nothing brings the texts back.

This is the one time that entries change: the triggers that refuse it are off within
this transaction, in which nobody else can write the log. On PostgreSQL, VACUUM frees
the rows of before; backups and copies of the log have the texts until they expire.

Processes of the release before write such texts until they are restarted. To remove
these as well: migrate back to 0023, which changes nothing, and forward again.
"""

import json
from contextlib import contextmanager

from django.db import migrations
from django.utils.crypto import salted_hmac

ACTIONS = ("release sentence", "withdraw sentence")
SQLITE_TRIGGERS = """SELECT name, sql FROM sqlite_master
    WHERE type = 'trigger' AND tbl_name = 'accounts_auditentry'"""


@contextmanager
def rewriting_allowed(connection):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ALTER TABLE accounts_auditentry DISABLE TRIGGER USER")
            yield
            cursor.execute("ALTER TABLE accounts_auditentry ENABLE TRIGGER USER")
            return
        # Overwrites the texts in the file as well.
        cursor.execute("PRAGMA secure_delete = ON")
        cursor.execute(SQLITE_TRIGGERS)
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        yield
        for _, statement in triggers:
            cursor.execute(statement)


def remove(apps, schema_editor):
    entries = apps.get_model("accounts", "AuditEntry").objects
    sentences = apps.get_model("reports", "ReleasedSentence").objects
    found = [
        entry
        for entry in entries.filter(action__in=ACTIONS)
        if isinstance(entry.after.get("sentence"), str)
    ]
    if not found:
        return
    with rewriting_allowed(schema_editor.connection):
        for entry in found:
            name, text = entry.after.get("question"), entry.after.pop("sentence")
            key = sentences.filter(
                administration_id=entry.subject_id, item=name, text=text
            ).values_list("pk", flat=True)
            if entry.action == "release sentence" and (number := key.first()):
                entry.after["released_sentence"] = number
            # As in `reports.results.comments`.
            entry.after["sentence_digest"] = salted_hmac(
                "reports.released_sentence",
                json.dumps([entry.subject_id, name, text]),
                algorithm="sha256",
            ).hexdigest()[:32]
            entry.save(update_fields=["after"])
    entries.create(
        by="migrate",
        action="remove sentences from audit",
        after={"entries": len(found)},
    )


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0019_minimum_group_of_places"),
        ("reports", "0023_release_results"),
    ]

    operations = [migrations.RunPython(remove, migrations.RunPython.noop)]

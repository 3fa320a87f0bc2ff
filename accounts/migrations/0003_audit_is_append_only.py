"""The database itself refuses to change or to forget an audit entry.

Also to its owner, in a shell or the admin. A table can still be emptied by
whoever may drop triggers; a fleet's copy of the log shows it.
"""

from django.db import migrations

REFUSAL = "an audit entry is never changed or deleted"


def postgresql():
    yield f"""
        CREATE FUNCTION accounts_refuse_rewriting() RETURNS trigger AS $$
        BEGIN
            RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'check_violation';
        END $$ LANGUAGE plpgsql
    """
    yield """
        CREATE TRIGGER append_only
        BEFORE UPDATE OR DELETE ON accounts_auditentry
        FOR EACH ROW EXECUTE FUNCTION accounts_refuse_rewriting()
    """
    yield """
        CREATE TRIGGER never_emptied
        BEFORE TRUNCATE ON accounts_auditentry
        FOR EACH STATEMENT EXECUTE FUNCTION accounts_refuse_rewriting()
    """


def postgresql_reverse():
    yield "DROP TRIGGER never_emptied ON accounts_auditentry"
    yield "DROP TRIGGER append_only ON accounts_auditentry"
    yield "DROP FUNCTION accounts_refuse_rewriting()"


def sqlite():
    for event in ("UPDATE", "DELETE"):
        yield f"""
            CREATE TRIGGER append_only_{event.lower()}
            BEFORE {event} ON accounts_auditentry
            BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END
        """


def sqlite_reverse():
    for event in ("update", "delete"):
        yield f"DROP TRIGGER append_only_{event}"


APPEND_ONLY = {"postgresql": postgresql, "sqlite": sqlite}
REVERSE = {"postgresql": postgresql_reverse, "sqlite": sqlite_reverse}


def refuse(apps, schema_editor):
    for statement in APPEND_ONLY[schema_editor.connection.vendor]():
        schema_editor.execute(statement)


def allow(apps, schema_editor):
    for statement in REVERSE[schema_editor.connection.vendor]():
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_membership_and_audit")]

    operations = [migrations.RunPython(refuse, allow)]

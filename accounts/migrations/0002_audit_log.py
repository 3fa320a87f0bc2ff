"""The database itself refuses to change or to forget an audit entry.

Also to its owner, in a shell or the admin. A table can still be emptied by
whoever may drop triggers; a fleet's copy of the log shows it.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements

REFUSAL = "an audit entry is never changed or deleted"
POSTGRESQL = (
    f"""
        CREATE FUNCTION accounts_refuse_rewriting() RETURNS trigger AS $$
        BEGIN
            RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'check_violation';
        END $$ LANGUAGE plpgsql
    """,
    """
        CREATE TRIGGER append_only
        BEFORE UPDATE OR DELETE ON accounts_auditentry
        FOR EACH ROW EXECUTE FUNCTION accounts_refuse_rewriting()
    """,
    """
        CREATE TRIGGER never_emptied
        BEFORE TRUNCATE ON accounts_auditentry
        FOR EACH STATEMENT EXECUTE FUNCTION accounts_refuse_rewriting()
    """,
    # How the name of something begins, in any case, among millions of entries, in
    # the words of Django's istartswith. SQLite has a LIKE of its own, and never so
    # many rows.
    """
        CREATE INDEX audit_by_subject ON accounts_auditentry
        (upper(subject::text) text_pattern_ops)
    """,
)
SQLITE = [
    f"""
            CREATE TRIGGER append_only_{event.lower()}
            BEFORE {event} ON accounts_auditentry
            BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END
    """
    for event in ("UPDATE", "DELETE")
]


class Migration(migrations.Migration):
    replaces = [
        ("accounts", "0003_audit_is_append_only"),
        ("accounts", "0007_audit_by_subject"),
    ]

    dependencies = [("accounts", "0001_tables")]

    operations = [RunStatements(postgresql=POSTGRESQL, sqlite=SQLITE)]

from django.db import migrations

MISSING = """
    INSERT INTO accounts_schoollisting (school_id, district_id, name)
    SELECT id, district_id, name FROM accounts_school
    WHERE id NOT IN (SELECT school_id FROM accounts_schoollisting)
"""


class Migration(migrations.Migration):
    """List the schools that were there before the triggers."""

    dependencies = [("accounts", "0009_keep_school_listings")]

    operations = [migrations.RunSQL(MISSING, migrations.RunSQL.noop)]

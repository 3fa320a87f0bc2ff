"""Check that people who have opted out are withdrawn."""

from django.db import migrations, models


class AddConstraintWithoutLock(migrations.AddConstraint):
    """Add a constraint for new rows, then check the others while saves go on."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        table, name = model._meta.db_table, self.constraint.name
        # If it was interrupted, the constraint is there.
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        sql = self.constraint.create_sql(model, schema_editor)
        schema_editor.execute(f"{sql} NOT VALID", params=None)
        schema_editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")


class Migration(migrations.Migration):
    # Otherwise the lock would be held until the last row is checked.
    atomic = False

    dependencies = [("survey", "0050_opt_outs")]

    operations = [
        AddConstraintWithoutLock(
            model_name="respondent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("opted_out_at__isnull", True),
                    ("withdrawn_at__isnull", False),
                    _connector="OR",
                ),
                name="opted_out_people_are_withdrawn",
            ),
        ),
    ]

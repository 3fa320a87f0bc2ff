"""Surveys belong to the state or to a district, and so do their names."""

from importlib import import_module

import django.db.models.deletion
import django.db.models.functions.comparison
from django.conf import settings
from django.db import migrations, models

frozen = import_module("survey.migrations.0003_frozen_surveys")


# SQLite makes the table anew to drop a constraint, and the triggers go with it.
def thaw(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        frozen.thaw(apps, schema_editor)


def freeze(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        frozen.freeze(apps, schema_editor)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_audit_is_append_only"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("survey", "0008_partition_by_function"),
    ]

    operations = [
        migrations.RunPython(thaw, freeze),
        migrations.AddField(
            model_name="survey",
            name="district",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="surveys",
                to="accounts.district",
            ),
        ),
        migrations.AddField(
            model_name="survey",
            name="uploaded_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RemoveConstraint(
            model_name="survey", name="one_survey_per_name_and_version"
        ),
        migrations.AddConstraint(
            model_name="survey",
            constraint=models.UniqueConstraint(
                models.F("name"),
                models.F("version"),
                django.db.models.functions.comparison.Coalesce("district", 0),
                name="one_survey_per_name_and_version_of_an_owner",
            ),
        ),
        migrations.RunPython(freeze, thaw),
    ]

import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("survey", "0055_listed_ids"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="administration",
            name="requires_consent",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddConstraint(
            model_name="administration",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("requires_consent", False),
                    models.Q(("denominator", "count"), _negated=True),
                    _connector="OR",
                ),
                name="consent_is_for_people_on_a_roster",
            ),
        ),
        migrations.AddField(
            model_name="respondent",
            name="awaits_consent",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name="Consent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("given_on", models.DateField()),
                ("given_by", models.CharField(choices=[("parent", "A parent or guardian"), ("person", "The person")], max_length=16)),
                ("note", models.CharField(blank=True, max_length=200)),
                ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("by", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("respondent", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="consents", to="survey.respondent")),
            ],
            options={"ordering": ("-pk",)},
        ),
        migrations.AddField(
            model_name="listedid",
            name="kind",
            field=models.CharField(choices=[("opt out", "Opt Out"), ("consent", "Consent")], db_default="opt out", default="opt out", max_length=16),
        ),
        migrations.RemoveConstraint(
            model_name="listedid", name="an_id_is_listed_once_for_each_place"
        ),
        migrations.AddConstraint(
            model_name="listedid",
            constraint=models.UniqueConstraint(models.F("administration"), models.F("district"), models.F("external_id"), django.db.models.functions.comparison.Coalesce("school", 0), models.F("kind"), name="an_id_is_on_each_list_once_for_each_place"),
        ),
    ]

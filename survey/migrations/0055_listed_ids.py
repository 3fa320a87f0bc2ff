import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0015_merges"),
        ("survey", "0054_response_language"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ListedId",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("external_id", models.CharField(max_length=128)),
                ("requested_on", models.DateField()),
                ("requested_by", models.CharField(choices=[("parent", "A parent or guardian"), ("person", "The person"), ("school", "The school or district")], max_length=16)),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("administration", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="survey.administration")),
                ("by", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("district", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="accounts.district")),
                ("school", models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="accounts.school")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(models.F("administration"), models.F("district"), models.F("external_id"), django.db.models.functions.comparison.Coalesce("school", 0), name="an_id_is_listed_once_for_each_place"),
                ],
            },
        ),
    ]

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("survey", "0049_administration_joins_waves"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="respondent",
            name="opted_out_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="OptOut",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("requested_on", models.DateField()),
                ("requested_by", models.CharField(choices=[("parent", "A parent or guardian"), ("person", "The person"), ("school", "The school or district")], max_length=16)),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("was_withdrawn_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("by", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("ended_by", models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("respondent", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="opt_outs", to="survey.respondent")),
            ],
            options={
                "ordering": ("-pk",),
                "constraints": [models.UniqueConstraint(condition=models.Q(("ended_at", None)), fields=("respondent",), name="a_person_opts_out_once_at_a_time")],
            },
        ),
    ]

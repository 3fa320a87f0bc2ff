from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0026_return_seats")]

    operations = [
        migrations.AddField(
            model_name="opencode",
            name="published_code",
            field=models.CharField(
                blank=True, db_default="", default="", editable=False, max_length=12
            ),
        ),
        migrations.AddConstraint(
            model_name="opencode",
            constraint=models.CheckConstraint(
                condition=models.Q(("published_code", ""), ("revoked_at", None), _connector="OR"),
                name="a_revoked_code_is_not_published",
            ),
        ),
    ]

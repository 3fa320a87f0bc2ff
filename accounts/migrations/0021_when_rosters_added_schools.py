"""Store when a roster added a school; blank for schools that were there before."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0020_login_attempts_in_progress")]

    operations = [
        migrations.AddField(
            model_name="school",
            name="added_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]

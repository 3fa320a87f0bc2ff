from django.db import migrations, models


class Migration(migrations.Migration):

    oldest_release = "1.0.0"

    dependencies = [
        ('reports', '0009_returns_and_projects'),
    ]

    operations = [
        migrations.AddField(
            model_name='scorerow',
            name='school_errors',
            field=models.JSONField(null=True),
        ),
    ]

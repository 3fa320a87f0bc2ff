from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('survey', '0041_roster_missing'),
    ]

    operations = [
        migrations.AddField(
            model_name='feedscan',
            name='was_held',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='rosterfeed',
            name='previous_identity',
            field=models.CharField(blank=True, max_length=100),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('survey', '0048_pair_choices'),
    ]

    operations = [
        migrations.AddField(
            model_name='administration',
            name='joins_waves',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]

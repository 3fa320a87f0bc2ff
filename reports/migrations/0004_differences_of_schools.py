from django.db import migrations, models


class Migration(migrations.Migration):

    oldest_release = "1.0.0"

    dependencies = [
        ('reports', '0003_rates_changed_at'),
    ]

    operations = [
        migrations.AlterField(
            model_name='scoring',
            name='format',
            field=models.PositiveSmallIntegerField(db_default=1, default=3),
        ),
        *(migrations.AddField(
            model_name='calibration',
            name=name,
            field=models.FloatField(null=True),
        )
        for name in (
            'schools_mean',
            'schools_deviation',
            'people_deviation',
            'linking_error',
        )),
    ]

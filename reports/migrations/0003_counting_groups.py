from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reports', '0002_exports'),
    ]

    operations = [
        migrations.AddField(
            model_name='graderate',
            name='at_opening',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='rollup',
            name='groups_as_of',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='schoolrate',
            name='at_opening',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='schoolrate',
            name='waiting',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reports', '0002_summed_schools'),
    ]

    operations = [
        migrations.AddField(
            model_name='rollup',
            name='changed_at',
            field=models.DateTimeField(null=True),
        ),
    ]

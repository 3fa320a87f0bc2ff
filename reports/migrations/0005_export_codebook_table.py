from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reports', '0004_unit_of_counts'),
    ]

    operations = [
        migrations.AddField(
            model_name='export',
            name='codebook_table_name',
            field=models.CharField(blank=True, db_default='', default='', max_length=100),
        ),
        migrations.AddField(
            model_name='export',
            name='blank_missing',
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
